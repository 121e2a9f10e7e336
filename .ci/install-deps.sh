#!/bin/sh
# install-deps.sh build|static|test|python|python-test|package|root|cross: installs from Debian 12 what building tlc needs,
# also with LLVM linked statically, what the tests need, what the Python package and its tests need, what making packages
# needs, what testing them in a clean root needs, or what building for arm64 needs. It does nothing where all of it is there.
set -e
missing=
need() { # need PACKAGE TEST…
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
header() { # header PACKAGE FILE
	need "$1" test -e "/usr/include/$2"
}
case $1 in
build | static)
	need flex flex --version
	need bison bison --version
	need gcc gcc --version
	need libc6-dev test -e /usr/include/stdio.h
	need llvm-19-dev test -e /usr/lib/llvm-19/include/llvm-c/Core.h
	need llvm-19 opt-19 --version
	need libclc-19 test -e /usr/lib/clc/nvptx64--nvidiacl.bc
	header libxxhash-dev xxhash.h
	header liblzma-dev lzma.h
	;;
esac
case $1 in
static)
	need g++ g++ --version
	header libzstd-dev zstd.h
	header zlib1g-dev zlib.h
	;;
test)
	need g++ g++ --version
	need llvm-19-tools test -e /usr/lib/llvm-19/build/utils/lit/lit.py
	need clang-19 clang-19 --version
	header libcmocka-dev cmocka.h
	header libmpfr-dev mpfr.h
	need openmpi-bin mpirun --version
	need libopenmpi-dev mpicc --version
	need gdb gdb --version
	need python3 python3 --version
	need cmake cmake --version
	need ninja-build ninja --version
	need pkg-config pkg-config --version
	;;
python)
	need python3-dev python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
	;;
python-test)
	need python3-venv /usr/bin/python3 -c 'import ensurepip, venv'
	need python3-numpy /usr/bin/python3 -c 'import numpy'
	need python3-pytest /usr/bin/python3 -c 'import pytest'
	;;
package)
	need dpkg-dev dpkg-shlibdeps --version
	;;
root)
	need mmdebstrap mmdebstrap --version
	;;
cross)
	need gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc --version
	need g++-aarch64-linux-gnu aarch64-linux-gnu-g++ --version
	need qemu-user qemu-aarch64 --version
	;;
esac
[ -z "$missing" ] && exit 0
echo "installing:$missing"
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
$sudo apt-get install -q -y --no-install-recommends $missing
