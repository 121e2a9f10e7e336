#!/bin/sh
# deb.sh BUILD VERSION: Debian packages of what BUILD holds, in BUILD/deb: tlc (the compiler), libtl0 (the library),
# libtl-dev (to build programs with it). In the environment: CC, of which the tools are; ARCH where that compiles for
# another architecture, of which BUILD/shlibs then lists the libraries; TLC, which runs the compiler.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
build=$(cd "$1" && pwd) version=$2 out=$(cd "$1" && pwd)/deb
arch=${ARCH:-$(dpkg --print-architecture)}
triplet=$(dpkg-architecture -a "$arch" -qDEB_HOST_MULTIARCH)
tool() { ${CC:-cc} -print-prog-name="$1"; }
strip=$(tool strip) objdump=$(tool objdump)
rm -rf "$out"
mkdir -p "$out/debian"
STRICT=1 "${MAKE:-make}" -s install BUILD="$build" CC="${CC:-cc}" TLC="${TLC:-$build/tlc}" DESTDIR="$out/all" PREFIX=/usr LIBDIR="/usr/lib/$triplet" ZSH=vendor-completions
date=$(git log -1 --format=%aD 2> /dev/null || date -R)
maintainer="${DEBFULLNAME:-The tlc authors} <${DEBEMAIL:-tlc@users.noreply.github.com}>"

# move PACKAGE PATH…: from what was installed
move() {
	package=$1
	shift
	for path; do
		mkdir -p "$out/$package/$(dirname "$path")"
		mv "$out/all/"$path "$out/$package/$(dirname "$path")/"
	done
}
# control PACKAGE SECTION DEPENDS TEXT [FIELDS], with the description's long part on standard input
control() {
	printf 'Package: %s\nSource: tlc\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %s\n' "$1" "$version" "$arch" \
		"$maintainer" "$(du -sk "$out/$1/usr" | cut -f1)"
	[ -z "$3" ] || printf 'Depends: %s\n' "$3"
	[ -z "${5:-}" ] || printf '%b\n' "$5"
	[ "$1" != libtl-dev ] && [ "$1" != libtl0 ] || echo "Multi-Arch: same"
	printf 'Section: %s\nPriority: optional\nDescription: %s\n' "$2" "$4"
	sed 's/^/ /'
}
# needs FILE: the packages of the libraries it is linked with
needs() {
	if [ -e "$build/shlibs" ]; then
		$objdump -p "$out/$1" | sed -n 's/ *NEEDED *\(.*\)\.so\.\(.*\)/\1 \2/p' | while read -r library number; do
			grep -m 1 "^$library $number " "$build/shlibs" || { echo "no package has $library.so.$number" >&2; exit 1; }
		done | cut -d ' ' -f 3- | sort -u | paste -sd , | sed 's/,/, /g'
		return
	fi
	(cd "$out" && dpkg-shlibdeps -O "$1" 2> shlibdeps.log || { cat shlibdeps.log >&2; exit 1; }) | sed 's/^shlibs:Depends=//'
}
# pack PACKAGE
pack() {
	doc=$out/$1/usr/share/doc/$1
	mkdir -p "$doc" "$out/$1/DEBIAN"
	{
		printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: tlc\n\n'
		printf 'Files: *\nCopyright: the authors of tlc\nLicense: see-below\n'
		sed 's/^$/./; s/^/ /' LICENSE
		echo ' .'
		sed 's/^$/./; s/^/ /' "$build/share/doc/tlc/NOTICES"
	} > "$doc/copyright"
	printf 'tlc (%s) unstable; urgency=medium\n\n  * Build of the source tree.\n\n -- %s  %s\n' "$version" "$maintainer" "$date" |
		gzip -9n > "$doc/changelog.gz"
	(cd "$out/$1" && find usr -type f -exec md5sum {} + > DEBIAN/md5sums)
	find "$out/$1" -type d -exec chmod 755 {} +
	dpkg-deb --root-owner-group -Zxz --build "$out/$1" "$out/${1}_${version}_$arch.deb" > /dev/null
}

lib=usr/lib/$triplet
rm -r "$out/all/usr/share/doc" # each package has a file `copyright` in its place
gzip -9n "$out"/all/usr/share/man/man*/*
$strip --strip-unneeded -R .comment -R .note "$out/all/usr/bin/tlc" "$out/all/$lib/libtl.so.$2"
for archive in libtl.a libtlrt.a; do
	$strip --strip-debug -R .comment -R .note --enable-deterministic-archives "$out/all/$lib/$archive"
done
move libtl0 "$lib/libtl.so.*"
move libtl-dev "$lib/libtl.so" "$lib/libtl.a" "$lib/libtlrt.a" "$lib/pkgconfig" "$lib/cmake" usr/include usr/share/man/man3
move tlc usr/bin usr/share
[ -z "$(find "$out/all" ! -type d)" ] || { echo "in no package:" && find "$out/all" ! -type d && exit 1; } >&2
rm -r "$out/all"
printf 'Source: tlc\n\nPackage: tlc\nArchitecture: any\n' > "$out/debian/control"
soname=$($objdump -p "$out/libtl0/$lib/libtl.so.$2" | sed -n 's/.*SONAME *//p')
mkdir -p "$out/libtl0/DEBIAN"
echo "libtl ${soname##*.} libtl0 (>= $2)" > "$out/libtl0/DEBIAN/shlibs"
echo "activate-noawait ldconfig" > "$out/libtl0/DEBIAN/triggers"
mkdir -p "$out/tlc/DEBIAN" "$out/libtl-dev/DEBIAN"
control tlc devel "$(needs tlc/usr/bin/tlc)" "compiler for Triton kernels, without Python" "Recommends: gdb, gnuplot-nox | gnuplot" > "$out/tlc/DEBIAN/control" << 'EOF'
tlc compiles GPU kernels in Triton's tile language to PTX in milliseconds, runs
them on a GPU, on a simulator that checks them or on a reference interpreter,
and times them.
EOF
control libtl0 libs "$(needs "libtl0/$lib/libtl.so.$2")" "library to compile and launch Triton kernels" > "$out/libtl0/DEBIAN/control" << 'EOF'
libtl compiles kernels in Triton's tile language when they are first launched,
and launches them on NVIDIA GPUs or on the CPU. The CUDA driver is opened at
run time, where there is one.
EOF
control libtl-dev libdevel "libtl0 (= $version)" "library to compile and launch Triton kernels (headers)" \
	"Recommends: tlc (= $version)\nSuggests: cmake, pkg-config, llvm-19-dev, liblzma-dev" > "$out/libtl-dev/DEBIAN/control" << 'EOF'
libtl compiles kernels in Triton's tile language when they are first launched,
and launches them on NVIDIA GPUs or on the CPU.
.
This package has the header, the static libraries (libtl.a, which needs LLVM,
and libtlrt.a, which launches kernels compiled ahead of time), the files for
pkg-config and CMake, and the manual pages.
EOF
for package in tlc libtl0 libtl-dev; do
	pack $package
done
rm -rf "$out/debian" "$out/shlibdeps.log" "$out/tlc" "$out/libtl0" "$out/libtl-dev"
ls "$out"/*.deb
