#!/bin/sh
# install.sh BUILD: the README's C program builds against an installed libtl, shared and static, and runs; the library
# puts nothing but tl_* into a program's namespace.
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
	sed -n -e "s|\${prefix}|$work/usr|g" -e "s/^$1: //p" "$work/usr/lib/pkgconfig/libtl.pc"
}

block() {
	awk -v start="^\`\`\`$1" '/^```/ { inside = 0 } inside { print } $0 ~ start { inside = 1 }' "$top/README.md"
}

runs() { (cd "$work" && eval "${CC:-cc} scale.c $*" && LD_LIBRARY_PATH=usr/lib ./a.out | grep -qx 'y\[2999\] = 7497.5'); }
only_tl() { ! "$@" | grep ' [A-Z] ' | grep -v ' tl_\| \.gomp_'; }

check "make install" "${MAKE:-make}" -s -C "$top" install BUILD="$build" PREFIX="$work/usr"
block 'python file=scale.tl' > "$work/scale.tl"
block 'c file=scale.c' > "$work/scale.c"
check "a program with libtl.so" runs "$(flags Cflags) $(flags Libs)"
check "a program with libtl.a" runs "$(flags Cflags) $work/usr/lib/libtl.a $(flags Libs.private)"
check "names in libtl.so" only_tl nm -D --defined-only "$work/usr/lib/libtl.so"
check "names in libtl.a" only_tl nm -g --defined-only "$work/usr/lib/libtl.a"
check "the installed tlc" "$work/usr/bin/tlc" "$top/examples/softmax.tl" -o /dev/null
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
