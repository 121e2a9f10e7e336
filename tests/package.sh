#!/bin/sh
# package.sh BUILD: the Debian packages installed in a clean root of Debian 12 that has a compiler, CMake and pkg-config,
# with the packages that they depend on and no others of LLVM; and programs built and run there, in C, C++, with pkg-config
# and CMake, with the library and with kernels compiled ahead of time, some of them named like words of C and C++.
build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
work=$build/package-test
root=$work/root

. "$top/tests/checks.sh"

chroot=$(command -v chroot || echo /usr/sbin/chroot)
if [ "$(id -u)" != 0 ]; then # in a namespace of one's own, where that is allowed
	unshare --map-auto --map-root-user true 2> /dev/null && exec unshare --map-auto --map-root-user sh "$0" "$@"
	echo "NOT TESTED: a clean root needs root's rights, or a namespace"
	echo "0 passed, 0 failed"
	exit
fi
rm -rf "$work"
mkdir -p "$work"
suite=bookworm
check "packages" "${MAKE:-make}" -s -C "$top" deb BUILD="$build"
depends() { # what the packages depend on, but for each other
	for package in "$build"/deb/*.deb; do
		dpkg-deb -f "$package" Depends
	done | sed 's/([^)]*)//g; s/,/\n/g' | tr -d ' ' | grep -v '^libtl0$' | sort -u | paste -sd ,
}
base=gcc,g++,cmake,make,pkg-config,libc6-dev
sh "$top/.ci/install-deps.sh" root > "$work/mmdebstrap" 2>&1 && mmdebstrap --variant=apt --include="$base,$(depends)" --aptopt='APT::Install-Recommends "false"' \
	--dpkgopt='path-exclude=/usr/share/locale/*' $suite "$root" >> "$work/mmdebstrap" 2>&1 || {
	tail -n 5 "$work/mmdebstrap"
	echo "NOT TESTED: Debian's packages cannot be had"
	echo "0 passed, 0 failed"
	exit
}

inside() { "$chroot" "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
packages() { # all are configured
	cp "$build"/deb/*.deb "$root/tmp" || return 1
	inside sh -c 'dpkg -i /tmp/*.deb' || return 1
	[ -z "$(inside dpkg --audit)" ] && inside dpkg -s tlc libtl0 libtl-dev | grep -c 'Status: install ok installed' | grep -qx 3
}
listing() { (cd "$root" && find . -xdev ! -path './tmp/*' ! -path './proc/*' ! -path './sys/*' ! -path './var/*' ! -path './root/*' | sort); }
in_c() { inside sh -c 'cd /tmp/project && cc scale.c $(pkg-config --cflags --libs libtl) -o scale && ./scale' | grep -qx 'y\[2999\] = 7497.5'; }
in_cpp() { inside sh -c 'cd /tmp/project && g++ -std=c++17 -Wall -Wextra -Werror use.cpp $(pkg-config --cflags --libs libtl) -o use && ./use' | grep -q '^42 '; }
ahead() { # C and C++ by pkg-config
	inside sh -c 'cd /tmp/project/examples/aot && tlc build ../vector_add.tl --target sm_90a --target cpu -o vector_add &&
		for compiler in cc g++; do
			$compiler -Wall -Wextra -Werror -x $([ $compiler = cc ] && echo c || echo c++) add.c$([ $compiler = cc ] || echo pp) vector_add.c -x none \
				$(pkg-config --cflags --libs libtlrt) -o add && ./add cpu || exit 1
		done'
}
by_cmake() { # relative paths, in C and C++; a sub-project, in C++ alone
	inside sh -c 'cd /tmp/project && sed -i "s/--target sm_80/--target cpu/" examples/aot/CMakeLists.txt &&
		cmake -S examples/aot -B aot && cmake --build aot && aot/add_c cpu && aot/add_cpp cpu &&
		cmake -S sub -B sub-build && cmake --build sub-build && [ "$(sub-build/scaled)" = 3 ]'
}
named() { # refused as they are, and work behind a prefix
	inside sh -c 'cd /tmp/project && for word in double free template errno tl_launch; do
		printf "@triton.jit\ndef %s(p: \"*fp32\", n: \"fp32\"):\n    tl.store(p, n)\n" $word > $word.tl
		! tlc build $word.tl --target cpu -o word && tlc build $word.tl --target cpu -o word --prefix my_ || exit 1
		printf "#include \"word.h\"\nint main(void) { tl_context *c; tl_compiled *k; tl_config g = {{1}, 0}; float x = 0; return tl_context_create(\"cpu\", &c) || my_%s_load(c, &k) ||
			my_%s(k, &g, &x, 3) || tl_synchronize(c) || x != 3; }\n" $word $word > main.c
		gcc -std=c99 main.c word.c $(pkg-config --cflags --libs libtlrt) -o word && ./word || exit 1
	done'
}
remarks() { inside sh -c 'cd /tmp/project && tlc examples/softmax.tl --emit ptx -o - && tlc run examples/vector_add.tl -g 3 --device cpu x_ptr=fp32[3000]:ones y_ptr=fp32[3000]:ones out_ptr=fp32[3000] n=3000' | grep 'out_ptr: fp32\[3000\] min 2 max 2'; }
removed() { # nothing is left
	inside sh -c 'rm -r /tmp/project && dpkg -P libtl-dev tlc libtl0 && ldconfig' && listing > "$work/after" && grep -i 'libtl\|tlc' "$work/after" && return 1
	return 0
}

check "dpkg -i in a clean root" packages
mkdir -p "$root/tmp/project"
cp -r "$top/examples" "$top/tests/unit/use.cpp" "$root/tmp/project"
cp -r "$top/tests/aot/cmake" "$root/tmp/project/sub"
for file in scale.tl scale.c; do
	awk -v file="file=$file" '/^```/ { inside = 0 } inside { print } index($0, "```") == 1 && index($0, file) { inside = 1 }' "$top/docs/guide/start.md" > "$root/tmp/project/$file"
done
check "a program in C" in_c
check "a program in C++" in_cpp
check "kernels compiled ahead of time" ahead
check "CMake" by_cmake
check "kernels named like words" named
check "tlc" remarks
check "dpkg -P" removed
rm -rf "$root"
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
