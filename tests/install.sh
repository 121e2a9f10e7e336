#!/bin/sh
# install.sh BUILD: the README's C program and one in C++ build against an installed libtl, shared and static, and run; the
# library puts nothing but tl_* into a program's namespace.
build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
npass=0 nfail=0

check() { # check WHAT COMMAND…
	what=$1
	shift
	if "$@" > "$work/log" 2>&1; then
		npass=$((npass + 1))
	else
		nfail=$((nfail + 1))
		echo "$what:"
		cat "$work/log"
	fi
}

# read by hand, since pkg-config is not needed to build or test
flags() {
	sed -n -e "s|\${libdir}|$work/usr/lib|g" -e "s|\${includedir}|$work/usr/include|g" -e "s/^$1: //p" "$work/usr/lib/pkgconfig/libtl.pc"
}

block() {
	awk -v start="^\`\`\`$1" '/^```/ { inside = 0 } inside { print } $0 ~ start { inside = 1 }' "$top/README.md"
}

runs() { (cd "$work" && eval "${CC:-cc} scale.c $*" && LD_LIBRARY_PATH=usr/lib ./a.out | grep -qx 'y\[2999\] = 7497.5'); }
runs_cpp() {
	${CXX:-g++} "-std=$1" -Wall -Wextra -pedantic -Werror "$top/tests/unit/use.cpp" -o "$work/use" $(flags Cflags) $(flags Libs) &&
		[ "$(LD_LIBRARY_PATH=$work/usr/lib "$work/use")" = "42 $(flags Version)" ]
}
same_flags() { # the real pkg-config reads the file as we do
	[ "$(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --cflags --libs libtl | xargs)" = "$(flags Cflags) $(flags Libs)" ] &&
		[ "$(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --modversion libtl)" = "$(flags Version)" ]
}
with_cmake() { # the programs of examples/aot, on the simulator's driver
	cmake -S "$top/examples/aot" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/usr" && cmake --build "$work/cmake" &&
		for program in add_c add_cpp; do
			LD_LIBRARY_PATH=$work/../simcuda "$work/cmake/$program" || return 1
		done
}
only_tl() { ! "$@" | grep ' [A-Z] ' | grep -v ' tl_\| \.gomp_'; }

check "make install" "${MAKE:-make}" -s -C "$top" install BUILD="$build" PREFIX="$work/usr"
block 'python file=scale.tl' > "$work/scale.tl"
block 'c file=scale.c' > "$work/scale.c"
check "a program with libtl.so" runs "$(flags Cflags) $(flags Libs)"
check "a program with libtl.a" runs "$(flags Cflags) $work/usr/lib/libtl.a $(flags Libs.private)"
check "a program in C++11" runs_cpp c++11
check "a program in C++20" runs_cpp c++20
check "tl.h in C11, pedantically" "${CC:-cc}" -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only "$work/usr/include/tl.h"
command -v pkg-config > "$work/log" && check "pkg-config" same_flags
check "names in libtl.so" only_tl nm -D --defined-only "$work/usr/lib/libtl.so"
check "names in libtl.a" only_tl nm -g --defined-only "$work/usr/lib/libtl.a"
check "the library's number" test -e "$work/usr/lib/$(readelf -d "$work/usr/lib/libtl.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
check "the installed tlc" "$work/usr/bin/tlc" "$top/examples/softmax.tl" -o /dev/null
command -v cmake > "$work/log" && check "CMake" with_cmake
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
