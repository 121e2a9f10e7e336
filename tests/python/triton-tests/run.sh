#!/bin/sh
# run.sh CHECKOUT [TEST FILE...]: Triton's own tests with the package libtl under the name triton. CHECKOUT has a checkout
# of Triton (a folder python/). A test file is a path below python/test; default: all that concern the language, launching
# and compiling. Results: $OUT/log.jsonl, and pytest's output of each file. `python3 report.py LOG` counts and classifies.
#   PYTHON  a Python with torch, numpy, scipy, pytest, pytest-timeout     BUILD   the folder with python/libtl (build)
#   DEVICE  cpu, cpu:check, interp, sim (cpu)   SAMPLE  parameter sets of a test function (20)   SEED   LIMIT seconds a test
#   TEXTS=any  tests find what they look for in texts of kernels, and go on to the values
set -eu
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "${1:?run.sh CHECKOUT [TEST FILE...]}" && pwd)
shift
build=$(cd "${BUILD:-$here/../../../build}" && pwd)
mkdir -p "${OUT:-$build/triton-tests}"
out=$(cd "${OUT:-$build/triton-tests}" && pwd)
TRITON_PY=$checkout/python
[ -d "$TRITON_PY" ] || TRITON_PY=$checkout
export TRITON_PY PYTHONPATH="$build/python:$here" LIBTL_DEVICE="${DEVICE:-cpu}" LOG="$out/log.jsonl" TL_CACHE=0
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" PYTHONDONTWRITEBYTECODE=1
language=unit/language run=unit/runtime
if [ $# = 0 ]; then
	for f in tuple core standard random annotations libdevice subprocess compile_errors compile_only decorator frontend \
		tensor_descriptor pipeliner matmul mxfp conversions; do set -- "$@" $language/test_$f.py; done
	for f in autotuner launch bindings specialize cache subproc; do set -- "$@" $run/test_$f.py; done
	set -- "$@" unit/test_debug.py
fi
cd "$TRITON_PY/test"
for f in "$@"; do
	text="$out/$(echo "${f%.py}" | tr / _).out"
	nice "${PYTHON:-python3}" -m pytest -p triton_plugin -p no:xdist -p no:cacheprovider -q --timeout "${LIMIT:-150}" \
		--timeout-method=thread --rootdir "$TRITON_PY" -c "$here/pytest.ini" -W ignore "$f" > "$text" 2>&1 || true
	echo "$f: $(tail -1 "$text")"
done
