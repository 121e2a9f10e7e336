#!/bin/sh
# ahead.sh BUILD SIZE…: makes BUILD/gpt-aot/gpt, the program with kernels compiled ahead of time, for sm_80, sm_90a and
# the CPU ($DEVICES: cpu sim:80 sim). The kernels are recorded from a training step and the generation of a token with
# models of these sizes.
set -e
build=$1
shift
out=$build/gpt-aot top=$(dirname "$0")
rm -rf "$out"
mkdir -p "$out"
export TL_MANIFEST="$out/used"
for device in ${DEVICES:-cpu sim:80 sim}; do
	"$build/gpt" train "$top/gpt.tl" --kernels "$top/gpt.tl" --out "$out/model" --device $device "$@" --layers 1 --batch 8 \
		--accumulate 2 --steps 1
	"$build/gpt" sample "$out/model" --kernels "$top/gpt.tl" --device $device --prompt 'ab' --tokens 1
	rm "$out/model"
done > "$out/log"
unset TL_MANIFEST
"$build/tlc" build "$out/used" --target sm_80 --target sm_90a --target cpu -o "$out/gpt_kernels"
sources=$(ls "$top"/*.c | grep -v '/jit\.c$')
# shellcheck disable=SC2086
${CC:-cc -O2} -Wl,--gc-sections -ffunction-sections -s -I"$out" -o "$out/gpt" $sources "$out/gpt_kernels.c" "$build/libtlrt.a" -lm -lpthread -ldl
