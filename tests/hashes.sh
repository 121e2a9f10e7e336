#!/bin/sh
# hashes.sh BUILD [N]: a hash of the code, without comments, of each kernel of the examples, and of every Nth variant
# (default 8th) that tests/run launches, for sm_80, sm_90a and a CPU with AVX2. A change that leaves all code as it is
# leaves this output as it is:
#
#   sh tests/hashes.sh build > before; ...; sh tests/hashes.sh build | diff before -
#
# A line: hash, exit status of tlc, target, arguments of tlc.
build=$1 every=${2:-8}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export TL_CACHE=0
TL_DEVICE=interp "$build/test-run" --sources "$work" > "$work/log" || { tail "$work/log" >&2; exit 2; }
{
	sort -u "$work/commands" | awk -v every="$every" 'NR % every == 0'
	for file in examples/*.tl; do
		for kernel in $("$build/tlc" list "$file" --json | sed -n 's/.*{"name": "\([^"]*\)", .*"kind": "kernel".*/\1/p'); do
			for warps in 4 8; do
				echo "$file -k $kernel --num-warps $warps"
			done
		done
	done
} > "$work/list"
for target in "sm_80 --emit ptx" "sm_90a --emit ptx" "cpu:avx2 --emit asm"; do
	sed "s/^/--target $target /" "$work/list"
done | WORK=$work xargs -P "$(nproc)" -d '\n' -n 1 sh -c '
	code=$(eval "timeout 100 $0 $1 -o -" 2> /dev/null; echo "status $?")
	echo "$(echo "$code" | sed "s|$WORK|WORK|g; s|[[:space:]]*//.*||" | sha256sum | cut -c 1-16) ${code##*status } $1"' "$build/tlc" |
	sed "s|$work|WORK|g" | sort -k 3
