#!/bin/sh
# cross.sh BUILD CROSS: the tree built for arm64 in CROSS, and run by qemu: an example on each device, a share of the
# kernels of tests/run, PTX as BUILD's compiler emits it, and a program with a kernel compiled ahead of time.
build=$1 cross=$2
work=$cross/cross-test
rm -rf "$work"
mkdir -p "$work"
export TL_CACHE=0

. "$(dirname "$0")/checks.sh"

sh .ci/install-deps.sh cross > "$work/deps" 2>&1 && sh .ci/cross.sh "$cross" > "$work/packages" 2>&1 || {
	tail -n 3 "$work/deps" "$work/packages"
	echo "NOT TESTED: the packages for arm64 cannot be had"
	echo "0 passed, 0 failed"
	exit
}

emulated() { "$cross/emulate" "$@"; }
share() { # share DEVICE SHARD: all of its cases pass
	TL_DEVICE=$1 emulated "$cross/test-run" --shard "$2" > "$work/run" || { tail -n 20 "$work/run"; return 1; }
	tail -n 1 "$work/run" | grep -q '^[1-9][0-9]* passed, 0 failed$' && cat "$work/run" >> "$work/cases"
}
same_ptx() {
	for file in vector_add softmax layer_norm mean attention; do
		for target in sm_80 sm_90a; do
			"$build/tlc" examples/$file.tl --target $target -o "$work/ptx" || return 1
			emulated "$cross/tlc" examples/$file.tl --target $target -o "$work/ptx.cross" && cmp "$work/ptx" "$work/ptx.cross" || return 1
		done
	done
}
ahead() {
	emulated "$cross/tlc" build examples/vector_add.tl --target cpu -o "$work/vector_add" && grep -q 'cpu:neon' "$work/vector_add.h" &&
		"$cross/cc" -O2 -Wall -Wextra -Werror -Iruntime -I"$work" examples/aot/add.c "$work/vector_add.c" "$cross/libtlrt.a" -lpthread -ldl -o "$work/add" &&
		emulated "$work/add" cpu
}
arm64() { readelf -h "$1" | grep -q AArch64; }

check "the build" "${MAKE:-make}" -s cross CROSS="$cross" GOAL="all $cross/test-run $cross/examples/softmax"
for file in tlc libtl.so; do
	check "$file is of arm64" arm64 "$cross/$file"
done
for device in interp sim cpu; do
	check "softmax on $device" emulated "$cross/examples/softmax" --kernels examples --small --device $device
done
check "PTX" same_ptx
check "a kernel compiled ahead of time" ahead
check "kernels on cpu" share cpu 0/320
check "kernels on interp" share interp 1/320
check "kernels on sim" share sim 2/640
cases=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$work/cases" | paste -sd + | sed 's/^$/0/')
npass=$((npass + $cases))
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
