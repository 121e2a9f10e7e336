#!/bin/sh
# names.sh BUILD: the functions and parameters that `tlc build` declares, for kernels called like each word of the C and
# C++ compiler, like each identifier and macro of the headers and each function of the C library here: the declarations
# compile in C and C++ among these headers, and none of the functions takes the place of one of the library.
build=$1
work=$build/names-test
rm -rf "$work"
mkdir -p "$work"

. "$(dirname "$0")/checks.sh"

for header in assert complex ctype errno fcntl fenv float inttypes limits locale math pthread setjmp signal stdarg stdbool stddef stdint \
	stdio stdlib string sys/types threads time uchar unistd wchar wctype iso646 stdalign stdnoreturn stdatomic; do
	echo "#include <$header.h>"
done > "$work/headers.h"
# C++ has atomics, threads and complex numbers of its own
grep -v 'atomic\|threads\|noreturn\|complex' "$work/headers.h" > "$work/headers.hpp"

library() { # the functions of the C library and its mathematics
	for file in libc.so.6 libm.so.6; do
		nm -D --defined-only "$(${CC:-cc} -print-file-name=$file)"
	done | sed -n 's/.* [TWiVBD] \([A-Za-z_0-9]*\)\(@@.*\)\{0,1\}$/\1/p'
}
candidates() {
	for language in c c++; do
		for compiler in cc1 cc1plus; do
			strings -n 2 "$(${CC:-cc} -print-prog-name=$compiler)"
		done
		${CC:-cc} -x $language -dM -E "$work/headers.$([ $language = c ] && echo h || echo hpp)" | sed 's/^#define \([A-Za-z_0-9]*\).*/\1/'
		${CC:-cc} -x $language -P -E "$work/headers.$([ $language = c ] && echo h || echo hpp)" | grep -o '[A-Za-z_][A-Za-z_0-9]*'
	done
	library
}
more() {
	printf '%s\n' A a K_ main _ __ _a _A tl_ tl_launch tl_module tl_compiled I NULL EOF errno é größe ÀÉ x.0 名前
}
declared() { # declared LANGUAGE STANDARD HEADERS
	${CXX:-g++} -x "$1" "-std=$2" -Wall -Wextra -Werror -Iruntime -include "$work/$3" -include tl.h -fsyntax-only "$work/names.h"
}
none_of_library() {
	library | sort -u > "$work/library"
	[ "$(wc -l < "$work/library")" -gt 1000 ] && "$build/tests/names" accepted < "$work/candidates" | sort -u | comm -12 - "$work/library" > "$work/both" &&
		cat "$work/both" && [ ! -s "$work/both" ]
}
enough() { # most words are accepted, and names that kernels have
	[ "$("$build/tests/names" accepted < "$work/candidates" | wc -l)" -gt 10000 ] || return 1
	for name in add_kernel softmax _attn_fwd matmul_t step sum dot scale end leaf copy größe_kernel; do
		echo $name | "$build/tests/names" accepted | grep -q . || { echo "$name is not accepted"; return 1; }
	done
}

export LC_ALL=C
{
	candidates | grep -x '[A-Za-z_][A-Za-z_0-9]*'
	more
} | sort -u > "$work/candidates"
"$build/tests/names" < "$work/candidates" > "$work/names.h"
check "in C, with extensions" declared c gnu17 headers.h
check "in strict C99" declared c c99 headers.h
check "in C++11" declared c++ c++11 headers.hpp
check "in C++20, with extensions" declared c++ gnu++20 headers.hpp
check "functions of the C library" none_of_library
check "names of kernels" enough
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
