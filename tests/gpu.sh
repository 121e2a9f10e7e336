#!/bin/sh
# gpu.sh BUILD [ARTICLES]: the tests that need a GPU: the runtime against the driver, every built-in and random kernels
# against references, the examples at full size, and these and the benchmark's kernels under compute-sanitizer where it is installed.
# Ends in "N passed, N failed"; QUICK=1 leaves out the examples at full size. BUILD may be an unpacked kit (make gpu-kit).
build=$1 articles=$2
top=$(dirname "$0")/..
log=$build/test-logs
mkdir -p "$log"
npass=0 nfail=0
export TL_CACHE=0 # each kernel is compiled
export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TL_DEVICE=cuda TL_TESTS="$top/tests/run"

# done_with NAME STATUS PASSED FAILED
done_with() {
	failed=$4
	[ "$2" = 0 ] || [ "$failed" != 0 ] || failed=1
	printf '%-28s %6d passed %4d failed\n' "$1" "$3" "$failed"
	[ "$failed" = 0 ] || tail -n 40 "$log/$1"
	npass=$((npass + $3)) nfail=$((nfail + failed))
}

# counted NAME: sums the lines "N passed, N failed" of its log
counted() {
	set -- "$1" "$2" $(awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { print p + 0, f + 0 }' "$log/$1")
	done_with "$@"
}

unit() { # unit NAME PROGRAM…
	name=$1
	shift
	"$@" > "$log/$name" 2>&1
	code=$?
	done_with "$name" $code "$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log/$name" | tail -n 1)" "$code"
}
unit runtime "$build/tests/test_runtime_gpu"
unit helper "$build/tests/test_tune_helper" gpu

cat > "$log/assert.tl" << 'EOF'
@triton.jit
def assert_kernel(x_ptr, LIMIT: tl.constexpr):
    i = tl.arange(0, 128)
    tl.device_assert(i < LIMIT, "i is too large")
    tl.store(x_ptr + i, i)
EOF
asserts() { # asserts LIMIT OPTION…
	limit=$1
	shift
	"$build/tlc" run "$log/assert.tl" --device cuda -g 1 x_ptr='i32[128]' LIMIT="$limit" "$@" >> "$log/assert" 2>&1
}
: > "$log/assert"
asserts 128 --debug && asserts 100 && ! asserts 100 --debug && grep -q 'assert.tl:4.*i is too large' "$log/assert"
code=$?
done_with assert $code $((code == 0)) $((code != 0))

"$build/tlc" run "$top/examples/softmax.tl" --device cuda -g 4 x_ptr='fp32[4,512]:randn' y_ptr='fp32[4,512]' x_stride=512 y_stride=512 n_cols=512 \
	--remarks > "$log/remarks" 2>&1 &&
	grep -q 'remark: [1-9][0-9]* registers a thread, 128 threads and [0-9]* bytes of shared memory a block; [1-9][0-9]* resident blocks per multiprocessor' "$log/remarks"
code=$?
done_with remarks $code $((code == 0)) $((code != 0))

# in_shares NAME COMMAND…: COMMAND for each share of the cases, all at once
shares=$(($(nproc) < 8 ? $(nproc) : 8))
in_shares() {
	name=$1 i=0 status=0 pids=
	shift
	while [ $i -lt $shares ]; do
		"$@" --shard $i/$shares > "$log/$name.$i" 2>&1 &
		pids="$pids $!"
		i=$((i + 1))
	done
	for pid in $pids; do
		wait "$pid" || status=1
	done
	cat "$log/$name".[0-9] > "$log/$name"
	counted "$name" $status
}
in_shares run "$build/test-run"
in_shares random "$build/test-random"
"$build/tests/test_gpt" cuda > "$log/gpt" 2>&1
counted gpt $?
if [ "$(nvidia-smi -L 2> /dev/null | wc -l)" -gt 1 ]; then
	"$build/tests/test_two_gpus" > "$log/gpus" 2>&1
	counted gpus $?
fi

# The Python package, where python3 has PyTorch and libtl
python() { # python NAME TEST…
	name=$1
	shift
	python3 -W ignore "$@" > "$log/$name" 2>&1
	code=$?
	ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$log/$name")
	done_with "$name" $code "$((code == 0 ? ${ran:-0} : 0))" $((code != 0))
}
if python3 -c 'import torch, libtl' 2> /dev/null; then
	python3 -m pytest -q -p no:cacheprovider "$top/tests/python/test_torch_cuda.py" > "$log/python" 2>&1
	code=$?
	passed=$(sed -n 's/.*\b\([0-9][0-9]*\) passed.*/\1/p' "$log/python")
	done_with python $code "${passed:-0}" $((code != 0))
	TORCH_DEVICE=cuda python torch-compile "$top/tests/python/test_torch_compile.py"
	TORCH_DEVICE=cuda TORCH_LAUNCHER=static python torch-static "$top/tests/python/test_torch_compile.py" Functions
	TORCH_DEVICE=cuda python torch-kernels "$top/tests/python/test_torch_kernels.py"
fi

if [ -n "$articles" ]; then
	"$build/articles-test" "$articles" > "$log/articles" 2>&1
	counted articles $?
fi

# Each example checks its own results. Under the sanitizer they run at small sizes, as do the benchmark's kernels: exit status 9 is a finding.
tools=
command -v compute-sanitizer > /dev/null && tools="memcheck racecheck"
[ -n "$QUICK" ] || for program in "$build"/examples/*; do
	name=$(basename "$program")
	"$program" --kernels "$top/examples" > "$log/$name" 2>&1
	code=$?
	done_with "$name" $code $((code == 0)) $((code != 0))
	cat "$log/$name"
done
for program in "$build"/examples/*; do
	for tool in $tools; do
		result=$log/$(basename "$program")-$tool
		{
			compute-sanitizer --tool $tool --error-exitcode 9 "$program" --kernels "$top/examples" --small > "$result" 2>&1
			echo $? > "$result.code"
		} &
	done
done
wait
for program in "$build"/examples/*; do
	for tool in $tools; do
		name=$(basename "$program")-$tool
		code=$(cat "$log/$name.code")
		done_with "$name" "$code" $((code == 0)) $((code != 0))
	done
done
for tool in $tools; do
	for theme in table weights; do
		in_shares $theme-$tool compute-sanitizer --tool $tool --error-exitcode 9 "$build/test-run" $theme/
	done
done
echo "$npass passed, $nfail failed"
[ "$nfail" = 0 ]
