#!/bin/sh
# cross.sh BUILD: prepares BUILD for programs of arm64, without root's rights: BUILD/root has Debian's packages for arm64
# that tlc links with, BUILD/cc compiles for them, BUILD/emulate runs a program, and BUILD/shlibs says which package has
# which library. It ends with 3 where these packages cannot be had.
set -eu
build=$1
packages="libc6 libgcc-s1 libstdc++6 libllvm19 zlib1g libzstd1 liblzma5 liblzma-dev libxxhash-dev libxml2 libicu72
	libedit2 libbsd0 libmd0 libtinfo6 libz3-4 libffi8"
mkdir -p "$build/root" "$build/apt/lists/partial" "$build/apt/archives/partial"
build=$(cd "$build" && pwd)
[ "$build/cc" -nt "$0" ] && exit

# The lists and packages of arm64 stay in BUILD: the system's own are not changed.
get() {
	(cd "$build/apt/archives" && apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
		-o Dir::State::lists="$build/apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$build/apt" \
		-o APT::Update::Error-Mode=any "$@")
}
echo "  APT	packages for arm64"
get update > "$build/apt/log" 2>&1 || true # a source may be without arm64; the packages tell
if ! get download $packages >> "$build/apt/log" 2>&1; then
	tail -n 5 "$build/apt/log" >&2
	echo "the packages for arm64 cannot be had" >&2
	exit 3
fi
: > "$build/shlibs"
for deb in "$build"/apt/archives/*.deb; do
	dpkg-deb -x "$deb" "$build/root"
	dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./shlibs 2> /dev/null | grep -v '^udeb:' >> "$build/shlibs" || true
done
rm -r "$build/apt/archives" "$build/apt/lists"

find "$build/root" -type l -lname '/*' | while read -r link; do # into BUILD/root as well
	ln -sfn "$build/root$(readlink "$link")" "$link"
done
lib=$build/root/usr/lib/aarch64-linux-gnu
ln -sf libLLVM.so.19.1 "$lib/libLLVM-19.so"
# The headers of LLVM are those of the build machine, but for the one that names the machine they are for.
mkdir -p "$build/include/llvm/Config"
sed '/LLVM_NATIVE\|LLVM_HOST_TRIPLE\|LLVM_DEFAULT_TARGET/s/X86/AArch64/g; s/x86_64-/aarch64-/' /usr/include/llvm-19/llvm/Config/llvm-config.h \
	> "$build/include/llvm/Config/llvm-config.h"
cat > "$build/emulate" << EOF
#!/bin/sh
exec qemu-aarch64 -L "$build/root" -E LD_LIBRARY_PATH="$lib:$build/root/lib/aarch64-linux-gnu:$build:\${LD_LIBRARY_PATH:-}" "\$@"
EOF
cat > "$build/cc" << EOF
#!/bin/sh
exec aarch64-linux-gnu-gcc -isystem "$build/include" "\$@" -idirafter "$build/root/usr/include" -B"$lib/" -L"$lib" -Wl,-rpath-link,"$lib:$build/root/lib/aarch64-linux-gnu"
EOF
chmod +x "$build/emulate" "$build/cc"
