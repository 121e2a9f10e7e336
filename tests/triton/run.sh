#!/bin/sh
# run.sh BUILD PYTHON N: texts of the tile IR exchanged with Triton, of which PYTHON has the package; no GPU is needed.
# For N variants of each kernel that the tests launch on the interpreter: Triton reads tlc's text, tlc reads Triton's
# text of the same source, and launches of it write what they should and, but for the tests' tolerances, the same bits.
set -eu
build=$1 python=$2 n=$3 work=$1/triton
if ! "$python" -c 'import triton' 2> /dev/null; then
	echo "SKIPPED: '$python' has no package triton; nothing was tested. Say PY=PYTHON-WITH-TRITON"
	exit 77
fi
rm -rf "$work"
mkdir -p "$work"
export TL_DEVICE=interp TRITON_CACHE_DIR="$PWD/$work/cache"
echo "variants of the tests' kernels:"
"$build/test-run" --sources "$work"
failed=0
"$python" tests/triton/exchange.py "$build/tlc" "$work" --per-kernel "$n" || failed=1
"$build/test-run" --texts "$work" || failed=1
exit $failed
