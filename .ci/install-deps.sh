#!/bin/sh
# Installs what tlc is built and tested with, from Debian 12. Does nothing when all of it is there.
set -e
missing=
need() { # need PACKAGE TEST…
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
need flex flex --version
need bison bison --version
need g++ g++ --version
need llvm-19-dev test -e /usr/lib/llvm-19/include/llvm-c/Core.h
need llvm-19 opt-19 --version
need llvm-19-tools test -e /usr/lib/llvm-19/build/utils/lit/lit.py
need clang-19 clang-19 --version
need libclc-19 test -e /usr/lib/clc/nvptx64--nvidiacl.bc
need libcmocka-dev test -e /usr/include/cmocka.h
need libmpfr-dev test -e /usr/include/mpfr.h
need libxxhash-dev test -e /usr/include/xxhash.h
need libzstd-dev test -e /usr/include/zstd.h
need liblzma-dev test -e /usr/include/lzma.h
need zlib1g-dev test -e /usr/include/zlib.h
need libxml2-dev test -e /usr/include/libxml2/libxml/tree.h
need openmpi-bin mpirun --version
need libopenmpi-dev mpicc --version
need gdb gdb --version
need python3 python3 --version
[ -z "$missing" ] && exit 0
echo "installing:$missing"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
$sudo apt-get install -q -y --no-install-recommends $missing
