#!/bin/sh
# cross.sh BUILD [python]: prepares BUILD for programs of arm64, without root's rights: BUILD/root has Debian's packages for
# arm64 that tlc links with, BUILD/cc and BUILD/c++ compile for them, BUILD/emulate runs a program, and BUILD/shlibs says
# which package has which library. With `python`, BUILD/root also has what the wheel is linked with and tested with: the
# static libraries, Python, NumPy and pytest. It ends with 3 where these packages cannot be had.
set -eu
build=$1
mkdir -p "$build/root" "$build/apt"
build=$(cd "$build" && pwd)

# The lists and packages of arm64 stay in BUILD: the system's own are not changed.
get() {
	(cd "$build/apt/archives" && apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
		-o Dir::State::lists="$build/apt/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$build/apt" \
		-o APT::Update::Error-Mode=any "$@")
}
unpack() { # unpack NAME PACKAGE…: once, into BUILD/root
	name=$1
	shift
	[ ! "$build/apt/$name" -nt "$0" ] || return 0
	mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial"
	echo "  APT	packages for arm64: $name"
	get update > "$build/apt/log" 2>&1 || true # a source may be without arm64; the packages tell
	if ! get download "$@" >> "$build/apt/log" 2>&1; then
		tail -n 5 "$build/apt/log" >&2
		echo "the packages for arm64 cannot be had" >&2
		exit 3
	fi
	for deb in "$build"/apt/archives/*.deb; do
		dpkg-deb -x "$deb" "$build/root"
		dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./shlibs 2> /dev/null | grep -v '^udeb:' >> "$build/shlibs" || true
	done
	rm -r "$build/apt/archives" "$build/apt/lists"
	rm -f "$build/cc"
	touch "$build/apt/$name"
}
unpack libraries libc6 libgcc-s1 libstdc++6 libllvm19 zlib1g libzstd1 liblzma5 liblzma-dev libxxhash-dev libxml2 libicu72 \
	libedit2 libbsd0 libmd0 libtinfo6 libz3-4 libffi8
[ "${2:-}" != python ] || unpack python llvm-19-dev zlib1g-dev libzstd-dev libpython3.11-dev python3.11-minimal \
	libpython3.11-minimal libpython3.11-stdlib libexpat1 libssl3 libbz2-1.0 libcrypt1 libuuid1 libsqlite3-0 libreadline8 \
	python3-numpy libblas3 liblapack3 libgfortran5 python3-pytest python3-iniconfig python3-packaging python3-pluggy \
	python3-attr python3-pkg-resources
[ ! "$build/cc" -nt "$0" ] || exit 0

find "$build/root" -type l -lname '/*' ! -lname "$build/*" | while read -r link; do # into BUILD/root as well
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
exec qemu-aarch64 -L "$build/root" -E LD_LIBRARY_PATH="$lib:$lib/blas:$lib/lapack:$build/root/lib/aarch64-linux-gnu:$build:\${LD_LIBRARY_PATH:-}" "\$@"
EOF
for compiler in c++=g++ cc=gcc; do
	cat > "$build/${compiler%=*}" << EOF
#!/bin/sh
exec aarch64-linux-gnu-${compiler#*=} -isystem "$build/include" -L"$build/root/usr/lib/llvm-19/lib" "\$@" -idirafter "$build/root/usr/include" -B"$lib/" -L"$lib" -Wl,-rpath-link,"$lib:$build/root/lib/aarch64-linux-gnu"
EOF
done
chmod +x "$build/emulate" "$build/cc" "$build/c++"
