#!/bin/sh
# compilers.sh BUILD: a tlc that another C compiler built (BUILD/other/tlc) makes the same PTX of the examples and of a
# third of the kernels whose PTX tests/lit/codegen looks at. Ends in "N passed, N failed".
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "$0")/checks.sh"

# same ARGUMENT…: of tlc
same() {
	"$build/tlc" "$@" --emit ptx -o "$work/one.ptx" 2> /dev/null || return
	"$build/other/tlc" "$@" --emit ptx -o "$work/other.ptx" || return
	diff "$work/one.ptx" "$work/other.ptx"
}

for kernel in examples/*.tl; do
	check "$kernel" same "$kernel" --target sm_90a
done
grep '^# RUN: %ptx %s' tests/lit/codegen/*.tl | sed 's/^\([^:]*\):# RUN: %ptx %s\([^|>]*\).*/\1 \2/; s/ 2$//' | sort -u | awk 'NR % 3 == 0' > "$work/runs"
while read -r run; do
	eval "check \"\$run\" same $run"
done < "$work/runs"
echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
