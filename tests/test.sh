#!/bin/sh
# test.sh BUILD UNIT…: every test that needs no GPU, as many jobs at once as there are processors, or $JOBS. Ends in
# "N passed, N failed"; what failed is shown before.
build=$1
shift
work=$build/test-logs
PATH=$PATH:/usr/local/cuda/bin # ptxas may be there
export OMP_WAIT_POLICY=passive # a thread without work leaves its processor to other jobs
export TL_CACHE=0 # each kernel is compiled
export TL_COMPILE_CHECK=buffers # a failed proof of buffers is an error
rm -rf "$work"
mkdir -p "$work/counts"

# A job holds a token from here while it runs.
mkfifo "$work/tokens"
exec 9<> "$work/tokens"
for token in $(seq "${JOBS:-$(nproc)}"); do
	echo "$token" >&9
done

# job NAME COMMAND…: it ends in "N passed, N failed", or all of it counts as one failure.
job() {
	name=$1 log="$work/$1" begin=$(date +%s)
	shift
	"$@" > "$log" 2>&1 9>&-
	status=$?
	set -- $(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p')
	{ [ $# = 2 ] && { [ $status = 0 ] || [ "$2" != 0 ]; }; } || set -- "${1:-0}" 1
	echo "$@" > "$work/counts/$name"
	{
		[ $status = 0 ] || cat "$log"
		printf '%-26s %6d passed %4d failed %5d s\n' "$name" "$1" "$2" $(($(date +%s) - begin))
	} > "$log.told"
	cat "$log.told"
	echo >&9
}

# suite NAME COMMAND…: starts it as soon as a processor is free.
suite() {
	read -r token <&9
	echo 0 1 > "$work/counts/$1" # until it has ended
	job "$@" &
}

# shares NAME N PROGRAM ARGUMENT…: the program's cases in N jobs
shares() {
	name=$1 n=$2
	shift 2
	for i in $(seq "$n"); do
		suite "$name, $i of $n" "$@" --shard $((i - 1))/$n
	done
}

unit() { # cmocka: the exit status is the number of failures
	passed=0 failed=0
	for program; do
		"$program" > "$work/unit.raw" 2>&1
		code=$?
		passed=$((passed + $(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$work/unit.raw" | tail -n 1) + 0))
		failed=$((failed + (code < 128 ? code : 1))) # a signal is one
		[ $code = 0 ] || sed '/^\[ RUN  \|^\[       OK/d' "$work/unit.raw"
	done
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}

lit() {
	$LIT -sv -j1 --param "build=$build" "$@" > "$work/lit.raw" 2>&1
	cat "$work/lit.raw"
	awk '/^ *Passed/ { split($0, a, /[:(]/); passed = a[2] + 0 } /^ *(Failed|Unresolved|Timed Out) *:/ { split($0, a, /[:(]/); failed += a[2] }
		/^ *(Unsupported|Skipped) *:/ { print "not run here:" $0 }
		END { printf "%d passed, %d failed\n", passed, failed; exit failed != 0 || !passed }' "$work/lit.raw"
}

# sim_examples DEVICE SEED: every example under a schedule of the simulator
sim_examples() {
	passed=0 failed=0
	for program in "$build"/examples/*; do
		if TL_SIM_SEED=$2 "$program" --kernels examples --small --device "$1"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}

# sources: each check of .ci/
sources() {
	passed=0 failed=0
	for check in .ci/check-*.sh; do
		if sh "$check"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	done
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}

# the long ones first
suite lit lit tests/lit
suite unit unit "$@"
for device in sim sim:80; do
	shares "random $device" 4 env TL_DEVICE=$device TL_SIM_SEED=2 "$build/test-random"
	shares "run $device" 4 env TL_DEVICE=$device "$build/test-run" --schedules 3 --calls "$work/calls.$device"
done
suite "examples sim 0" sim_examples sim 0
suite "examples sim:80 1" sim_examples sim:80 1
suite "examples sim 2" sim_examples sim 2
suite "examples cpu" sim_examples cpu 0
for device in interp cpu; do
	shares "run $device" 2 env TL_DEVICE=$device "$build/test-run" --calls "$work/calls.$device"
	shares "random $device" 2 env TL_DEVICE=$device "$build/test-random"
done
# what other processors run; what is larger than the cache is stored past it, here and below
past="TL_DEVICE=cpu TL_CPU_CACHE=1"
suite "run cpu:baseline" env $past TL_CPU=baseline "$build/test-run" --shard 0/8
suite "random cpu:baseline" env $past TL_CPU=baseline "$build/test-random" --shard 0/8
# by tile registers, for which a model stands in; it needs the rest of such processors
if grep -q avx512_bf16 /proc/cpuinfo && grep -q avx512vbmi /proc/cpuinfo; then
	amx="env TL_DEVICE=cpu LD_PRELOAD=$PWD/$build/tests/libamx.so"
	suite "run cpu with tiles" $amx "$build/test-run" --shard 0/2 dot
	for kind in edges products pipelines; do
		suite "$kind cpu with tiles" $amx "$build/test-random" --kind $kind --count 100
	done
fi
# with the sanitizers in the code generator
checked="env TL_DEVICE=cpu ASAN_OPTIONS=detect_leaks=0"
for kind in random tree dots loops blocks moves values pipelines offsets edges tiles; do
	suite "$kind cpu, checked" $checked "$build/checked/test-random" --kind $kind --count 10
done
# what debuggers get
suite "run cpu for gdb" env $past TL_GDB=1 "$build/test-run" --shard 1/8
suite "random cpu for gdb" env $past TL_GDB=1 "$build/test-random" --shard 1/8
# compiled with less pipelining, as if the proof of the buffers had failed
for kind in pipelines dots; do
	suite "$kind, unproved" env TL_DEVICE=sim TL_COMPILE_CHECK=unproved,buffers "$build/test-random" --kind $kind --count 30
	suite "$kind, unproved copies" env TL_DEVICE=sim TL_COMPILE_CHECK=unproved-copies,buffers "$build/test-random" --kind $kind --count 10
done
# without the optimisations of LLVM's back end, as very large kernels are compiled
for kind in random loops pipelines; do
	suite "$kind sim, quick" env TL_DEVICE=sim TL_COMPILE_CHECK=quick,buffers "$build/test-random" --kind $kind --count 20
	suite "$kind cpu, quick" env TL_DEVICE=cpu TL_COMPILE_CHECK=quick "$build/test-random" --kind $kind --count 20
done
# the IR after each pass against the one before it, and facts against values
suite "run every pass, 1 of 8" "$build/test-run" --every-pass --shard 0/8
suite "run every pass, 2 of 8" "$build/test-run" --every-pass --shard 1/8
suite "random every pass" "$build/test-random" --every-pass --kind random --count 500
suite "tree every pass" "$build/test-random" --every-pass --kind tree
suite "loops every pass" "$build/test-random" --every-pass --kind loops
for kind in blocks products moves values scaled pipelines offsets edges tiles attention gradients experts pairs weights; do
	suite "$kind every pass" "$build/test-random" --every-pass --kind $kind --count 100
done
# divisors that are not useful change no instruction
divisors="env TL_DEVICE=sim TL_COMPILE_CHECK=buffers,divisors"
suite "divisors" $divisors "$build/test-run" table
for kind in random tree loops blocks products moves values scaled pipelines offsets edges tiles attention gradients experts pairs weights; do
	suite "$kind divisors" $divisors "$build/test-random" --kind $kind --count 40
done
suite "loads ahead" sh tests/run/ahead.sh "$build"
suite examples sh tests/examples.sh "$build"
for device in cpu interp sim sim:80 cpu:check; do
	suite "gpt $device" "$build/tests/test_gpt" $device
done
for device in cpu interp; do
	suite "two devices $device" "$build/tests/test_two_gpus" $device $device
done
suite gpt sh tests/gpt.sh "$build"
suite "gpt tokens" python3 tests/gpt/tokens.py "$build/tests/gpt_tokens"
suite "deep kernels" python3 tests/deep.py "$build/tlc"
suite "cache stress" "$build/tests/cache-stress"
suite mutants "$build/tests/mutants"
suite limits python3 tests/limits.py "$build/tlc"
suite round-trip sh tests/round-trip.sh "$build"
suite docs sh docs/check.sh "$build"
suite mutations python3 tests/mutate.py "$build" --placed --count 200 --seconds 20
suite "reference sim" env DEVICES="sim sim:80" sh docs/check.sh "$build" docs/reference/builtins.md
suite diagnostics python3 tests/diagnostics.py
suite extremes env EXTREME_STRIDE=5 python3 tests/extreme.py "$build/tlc"
suite "values made" python3 tests/made.py "$build/tlc"
suite "state under control" python3 tests/state.py "$build/tlc"
suite install sh tests/install.sh "$build"
suite aot sh tests/aot.sh "$build"
suite names sh tests/names.sh "$build"
suite compilers sh tests/compilers.sh "$build"
suite isa "$build/tests/isa" check tests/sim/h100.isa
suite reference sh docs/builtins.sh "$build"
suite sources sources
wait
for device in interp cpu sim sim:80; do
	suite "matrix $device" env TL_DEVICE=$device sh tests/run/matrix.sh "$build" "$work/calls.$device".*
done
wait
command -v ptxas > /dev/null || echo "without ptxas: that the PTX assembles was not checked"
cat "$work/counts"/* | awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f != 0 }'
