#!/bin/sh
# ptxas.sh -arch=ARCH [OPTION…]: does the PTX on standard input assemble? Warnings count as errors. With -v, says what the
# kernel uses. ptxas is the one in PATH, else the CUDA toolkit's.
ptxas=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/in.ptx"
[ -s "$tmp/in.ptx" ] || { echo "ptxas.sh: no PTX" >&2; exit 1; }
"$ptxas" "$@" -o "$tmp/out.cubin" "$tmp/in.ptx" >"$tmp/said" 2>&1
status=$?
cat "$tmp/said"
[ $status = 0 ] && ! grep -q -i warning "$tmp/said"
