#!/bin/sh
# install.sh BUILD: programs in C, C++ and of CMake build against an installed libtl, shared and static, and run; the
# library puts nothing but tl_* into a program's namespace; what is installed can be uninstalled; packages have all of it.
build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)

. "$top/tests/checks.sh"

# read by hand, since pkg-config is not needed to build or test
flags() {
	sed -n -e "s|\${libdir}|$work/usr/lib|g" -e "s|\${includedir}|$work/usr/include|g" -e "s/^$1: //p" "$work/usr/lib/pkgconfig/libtl.pc"
}

nm "$build/libtlrt.a" | grep -q __asan_ && san='-fsanitize=address,undefined' || san= # as it was built

block() {
	awk -v start="^\`\`\`$1" '/^```/ { inside = 0 } inside { print } $0 ~ start { inside = 1 }' "$top/docs/guide/start.md"
}

runs() { (cd "$work" && eval "${CC:-cc} scale.c $*" && LD_LIBRARY_PATH=usr/lib ./a.out | grep -qx 'y\[2999\] = 7497.5'); }
runs_cpp() {
	${CXX:-g++} "-std=$1" -Wall -Wextra -pedantic -Werror "$top/tests/unit/use.cpp" -o "$work/use" $(flags Cflags) $(flags Libs) &&
		[ "$(LD_LIBRARY_PATH=$work/usr/lib "$work/use")" = "42 $(flags Version)" ]
}
strict() { # each compiler that is here, in a file that calls the inline functions
	case $1 in *++*) language=c++ compilers="${CXX:-g++} clang++ clang++-19" ;; *) language=c compilers="${CC:-cc} clang clang-19" ;; esac
	printf '%s\n' '#include <tl.h>' 'int calls(void);' 'int calls(void)' '{' \
		'return tl_int(1).kind == TL_ARG_INT && tl_float(2).f > 1 && tl_ptr(TL_F32, 0).ptr == 0 && tl_bool(true).i == 1;' '}' > "$work/strict.c"
	for compiler in $compilers; do
		! command -v "${compiler%% *}" > "$work/which" ||
			$compiler -x $language -std=$1 -pedantic-errors -Wall -Wextra -Wconversion -Wshadow -Werror -I"$work/usr/include" -fsyntax-only "$work/strict.c" || return 1
	done
}
same_flags() { # the real pkg-config reads the file as we do
	[ "$(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --cflags --libs libtl | xargs)" = "$(flags Cflags) $(flags Libs)" ] &&
		[ "$(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --modversion libtl)" = "$(flags Version)" ] &&
		[ "$(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --modversion libtlrt)" = "$(flags Version)" ] &&
		"$work/usr/bin/tlc" build "$top/examples/vector_add.tl" --target cpu:baseline -o "$work/vector_add" &&
		${CC:-cc} "$top/examples/aot/add.c" "$work/vector_add.c" -I"$work" -o "$work/add" $(PKG_CONFIG_PATH=$work/usr/lib/pkgconfig pkg-config --cflags --libs libtlrt) &&
		"$work/add" cpu
}
with_cmake() { # the programs of examples/aot, on the simulator's driver
	CFLAGS=$san CXXFLAGS=$san LDFLAGS=$san cmake -S "$top/examples/aot" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/usr" && cmake --build "$work/cmake" &&
		for program in add_c add_cpp; do
			LD_LIBRARY_PATH=$work/../simcuda "$work/cmake/$program" || return 1
		done
}
with_ninja() { # again, where a sub-project of C++ alone has the kernels, from relative paths; after a change of an import
	rm -rf "$work/project" "$work/sub"
	cp -r "$top/tests/aot/cmake" "$work/project"
	CXXFLAGS="$san -Wall -Wextra -Werror" LDFLAGS=$san cmake -G "$1" -S "$work/project" -B "$work/sub" -DCMAKE_PREFIX_PATH="$work/usr" &&
		cmake --build "$work/sub" && [ "$("$work/sub/scaled")" = 3 ] && cmake --build "$work/sub" > "$work/second" || return 1
	! grep 'Generating\|Building' "$work/second" || { echo "built a second time"; return 1; }
	sed 's/x \* by/x * by + 1/' "$top/tests/aot/cmake/kernels/shared/factor.py" > "$work/project/kernels/shared/factor.py"
	touch -d '+2 seconds' "$work/project/kernels/shared/factor.py" && cmake --build "$work/sub" && [ "$("$work/sub/scaled")" = 4 ]
}
versions() { # those that find_package takes: none, older ones of the same number
	for version in "" 0 0.0.5 "$(flags Version)" 0.9 1.0; do
		case $version in 0.9 | 1.0) wanted=1 ;; *) wanted=0 ;; esac
		echo "cmake_minimum_required(VERSION 3.13)
			project(none LANGUAGES C)
			find_package(libtl $version REQUIRED)" > "$work/project/CMakeLists.txt"
		cmake -S "$work/project" -B "$work/versions" -DCMAKE_PREFIX_PATH="$work/usr" > "$work/version.log" 2>&1
		[ "$(($? != 0))" = $wanted ] || { echo "version '$version'"; cat "$work/version.log"; return 1; }
	done
}
share=$work/usr/share
manuals() { # each option, each function
	"$work/usr/bin/tlc" --help | grep -o '^  -[^ ,]*' | tr -d ' ' | sed 's/-/\\\\-/g' | while read -r option; do
		grep -q "^\.B $option" "$share/man/man1/tlc.1" || { echo "tlc.1 has no $option"; exit 1; }
	done || return 1
	{
		nm -D --defined-only "$work/usr/lib/libtl.so" | sed -n 's/.* T \(tl_\)/\1/p'
		sed -n 's/^static inline [^(]* \(tl_[a-z_]*\)(.*/\1/p' "$top/runtime/tl.h"
	} | while read -r call; do
		page=$share/$(sed -n 's/^\.so /man\//p' "$share/man/man3/$call.3")
		grep -q "[ *]$call(" "$page" || { echo "$page has no prototype of $call"; exit 1; }
		awk -v call="$call()" '/^\.S/ { found = index($0, call) } found && /^[^.]/ { text = 1 } END { exit !text }' "$page" ||
			{ echo "$page does not describe $call"; exit 1; }
	done || return 1
	commands=$("$work/usr/bin/tlc" --help | sed -n 's/^  tlc \([a-z]*\) .*/\1/p' | sort -u)
	[ "$(echo "$commands" | wc -w)" -ge 8 ] || return 1
	for command in $commands; do
		grep -q "^tlc $command" "$share/man/man1/tlc-$command.1" && grep -q '^\.SH DESCRIPTION' "$share/man/man1/tlc-$command.1" || { echo "tlc-$command.1"; return 1; }
	done
	for page in man1/tlc.1 man1/tlc-run.1 man1/tlc-cache.1 man3/tl.3 $(cd "$share/man" && echo man3/tl-*.3); do
		! command -v groff > /dev/null || [ -z "$(groff -man -k -Tutf8 -ww -z "$share/man/$page" 2>&1 | tee /dev/stderr)" ] || return 1
		! command -v mandoc > /dev/null || [ -z "$(mandoc -Tlint -W warning "$share/man/$page" | grep -v 'missing date' | tee /dev/stderr)" ] || return 1
	done
	! command -v man > /dev/null || man -M "$share/man" tl_launch | grep -q 'tl_prepared_launch('
}
options() { "$work/usr/bin/tlc" --help | sed -n 's/^  \(-[^ ,]*\),\{0,1\} \(--[a-z-]*\)\{0,1\}.*/\1 \2/p'; }
completions() {
	[ "$(options | wc -w)" -gt 25 ] || return 1
	for option in $(options); do
		grep -q -e "[ \"]$option[ \"]" "$share/bash-completion/completions/tlc" || { echo "bash: $option"; return 1; }
		grep -q -e "'$option\[" "$share/zsh/site-functions/_tlc" || { echo "zsh: $option"; return 1; }
		case $option in --*) flag="-l ${option#--}" ;; *) flag="-s ${option#-}" ;; esac
		grep -q -e " $flag " "$share/fish/vendor_completions.d/tlc.fish" || { echo "fish: $option"; return 1; }
	done
}
completes_bash() {
	bash -c '. "$1"
		try() { # try WANT WORD…: the last word is being typed
			want=$1
			shift
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_tlc
			[ "${COMPREPLY[*]}" = "$want" ] || { echo "$*: ${COMPREPLY[*]}, not $want"; exit 1; }
		}
		try "--print-after" tlc x.tl --print-a
		try "interp" tlc run --device in
		try "90" tlc run --device sim : 9
		try "verify" tlc cache v
		try "bench" tlc benc' bash "$share/bash-completion/completions/tlc"
}
parses() { case $1 in zsh) zsh -n "$share/zsh/site-functions/_tlc" ;; fish) fish -n "$share/fish/vendor_completions.d/tlc.fish" ;; esac; }
debian() { # the packages together are what is installed, and what lintian knows of is right
	"${MAKE:-make}" -s -C "$top" deb BUILD="$build" && rm -rf "$work/deb" || return 1
	for package in "$build"/deb/*.deb; do
		dpkg-deb -x "$package" "$work/deb" || return 1
	done
	for package in "$work"/deb/usr/share/doc/*; do
		for part in 'Copyright (c) 2026 The tlc authors' libclc LLVM liblzma zlib zstd xxhash 'Apache License'; do
			grep -qi "$part" "$package/copyright" || { echo "$package/copyright lacks $part"; return 1; }
		done
	done
	# but for folders that Debian calls otherwise, and what it compresses
	(cd "$work/usr" && find . ! -type d) | grep -v 'share/doc/tlc/' | while read -r file; do
		case $file in
		./lib/*) there=usr/lib/*-linux-gnu/${file#./lib/} ;;
		./share/man/*) there=usr/$file.gz ;;
		./share/zsh/*) there=usr/share/zsh/*/_tlc ;;
		*) there=usr/$file ;;
		esac
		grep -qsx other "$work/usr/$file" && continue
		set -- "$work"/deb/$there
		[ -e "$1" ] || [ -h "$1" ] || { echo "no package has $file"; exit 1; }
	done || return 1
	dpkg-deb -f "$build"/deb/tlc_*.deb Recommends | grep gdb | grep -q gnuplot || return 1
	lib=$(echo "$work"/deb/usr/lib/*/libtl.so.[0-9]) && readelf -n "$lib" | grep -q 'Build ID' || return 1
	(cd "$work" && "${CC:-cc}" scale.c -Ideb/usr/include -L"${lib%/*}" -ltl && LD_LIBRARY_PATH=${lib%/*} ./a.out) |
		grep -qx 'y\[2999\] = 7497.5' || return 1
	"$work/deb/usr/bin/tlc" "$top/examples/softmax.tl" -o /dev/null || return 1
	! command -v lintian > /dev/null || lintian --fail-on error,warning "$build"/deb/*.deb
}
plugin() { # plugin ARCHIVE FLAGS: a shared library with the archive inside exports its own names alone, and works
	printf '%s\n' '#include <tl.h>' 'int plugin(const char *device);' 'int plugin(const char *device)' '{' \
		'	tl_context *c;' '	int failed = tl_context_create(device, &c);' '	tl_context_destroy(c);' '	return failed;' '}' > "$work/plugin.c"
	echo 'int plugin(const char *); int main(void) { return plugin("cpu"); }' > "$work/host.c"
	${CC:-cc} -shared -fPIC $san "$work/plugin.c" -o "$work/libplugin.so" $(flags Cflags) "$@" && ${CC:-cc} $san "$work/host.c" -o "$work/host" -L"$work" -lplugin &&
		LD_LIBRARY_PATH=$work "$work/host" && nm -D --defined-only "$work/libplugin.so" | grep -q ' T plugin$' && ! nm -D --defined-only "$work/libplugin.so" | grep ' tl_'
}
exports() { # EXPORT_TL=1 keeps the names visible
	echo '__attribute__((visibility("default"))) int tl_shown(void); int tl_shown(void) { return 0; }' | ${CC:-cc} -fPIC -x c -c - -o "$work/shown.o" &&
		OBJ=$work EXPORT_TL=$1 sh "$top/.ci/archive.sh" "$work/libshown.a" '' "$work/shown.o" &&
		${CC:-cc} -shared -o "$work/libshown.so" -Wl,--whole-archive "$work/libshown.a" -Wl,--no-whole-archive && nm -D --defined-only "$work/libshown.so" | grep -c ' tl_' | grep -qx "${1:-0}"
}
only_tl() { ! "$@" | grep ' [A-Z] ' | grep -v ' tl_'; }

# beside files that are there already, in folders of their own and in the same ones
for file in bin/other lib/cmake/other/other.cmake share/man/man3/tla.3 share/doc/other; do
	mkdir -p "$work/usr/$(dirname "$file")" "$work/usr/share/empty" && echo other > "$work/usr/$file"
done
listing() { (cd "$work" && find usr ! -type d -exec sha256sum {} + -o -type d -print | sort); }
listing > "$work/before"
check "make install" "${MAKE:-make}" -s -C "$top" install BUILD="$build" PREFIX="$work/usr"
block 'python file=scale.tl' > "$work/scale.tl"
block 'c file=scale.c' > "$work/scale.c"
check "a program with libtl.so" runs "$(flags Cflags) $(flags Libs)"
check "a program with libtl.a" runs "$(flags Cflags) $work/usr/lib/libtl.a $(flags Libs.private)"
check "a program in C++11" runs_cpp c++11
check "a program in C++20" runs_cpp c++20
for standard in c99 c11 c17 c++11 c++17 c++20; do
	check "tl.h in strict $standard" strict $standard
done
command -v pkg-config > "$work/log" && check "pkg-config" same_flags
check "names in libtl.so" only_tl nm -D --defined-only "$work/usr/lib/libtl.so"
check "names in libtl.a" only_tl nm -g --defined-only "$work/usr/lib/libtl.a"
check "a shared library with libtl.a inside" plugin "$work/usr/lib/libtl.a" $(flags Libs.private)
check "a shared library with libtlrt.a inside" plugin "$work/usr/lib/libtlrt.a" -lpthread -ldl
check "hidden names" exports
check "names for a library that exports them again" exports 1
check "the library's number" test -e "$work/usr/lib/$(readelf -d "$work/usr/lib/libtl.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')"
check "the manual pages" manuals
check "each option is completed, in each shell" completions
check "the completions of bash" completes_bash
for shell in zsh fish; do
	command -v $shell > "$work/log" && check "the completions' syntax in $shell" parses $shell
done
command -v dpkg-shlibdeps > "$work/log" && check "Debian packages" debian
check "the installed tlc" "$work/usr/bin/tlc" "$top/examples/softmax.tl" -o /dev/null
if command -v cmake > "$work/log"; then
	check "CMake" with_cmake
	check "a sub-project of CMake" with_ninja "Unix Makefiles"
	command -v ninja > "$work/log" && check "a sub-project of CMake, by ninja" with_ninja Ninja
	check "versions of CMake's package" versions
fi
uninstalls() {
	"${MAKE:-make}" -s -C "$top" uninstall BUILD="$build" PREFIX="$work/usr" && listing | diff "$work/before" -
}
check "make uninstall" uninstalls
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
