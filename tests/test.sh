#!/bin/sh
# test.sh BUILD core|all|share UNIT…: tests that need no GPU, as many jobs at once as there are processors, or $JOBS. Ends
# in "N passed, N failed"; failures are shown before.
#
#   core   each kind of test, with a share of the cases: all pairs of their choices, and random kernels of a seed
#   all    all cases
#   share  a sixth of the suites of `all`, chosen by the seed
#
# The seed is a number of the commit, or $TEST_SEED. It is printed.
build=$1 mode=$2
shift 2
commit=$(git rev-parse HEAD 2> /dev/null || echo 000001) # outside of git: 1
seed=${TEST_SEED:-$(printf '%d' "0x$(echo "$commit" | cut -c 1-6)")}
echo "seed $seed: TEST_SEED=$seed make test repeats it"
work=$build/test-logs
PATH=$PATH:/usr/local/cuda/bin # ptxas may be there
export OMP_WAIT_POLICY=passive # a thread without work leaves its processor to other jobs
export TL_CACHE=0 # each kernel is compiled
export TL_COMPILE_CHECK=buffers,time # a failed proof of buffers is an error, and so is a long compilation
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

# core NAME COMMAND…: a suite that stands for larger ones of `all`
core() {
	[ "$mode" != core ] || suite "$@"
}

# both NAME COMMAND…: a suite of `core` and of `all`
both() {
	[ "$mode" = share ] || suite "$@"
}

# all NAME COMMAND…: a suite of `all`, and of one share of six
all() {
	case $mode in
	all) suite "$@" ;;
	share) [ $((($(printf %s "$1" | cksum | cut -d ' ' -f 1) + seed) % 6)) != 0 ] || suite "$@" ;;
	esac
}

# shares NAME N PROGRAM ARGUMENT…: all of the program's cases in N jobs
shares() {
	name=$1 n=$2
	shift 2
	for i in $(seq "$n"); do
		all "$name, $i of $n" "$@" --shard $((i - 1))/$n
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

# In `core`, the cases of tests/run are those of all pairs of choices, and random kernels are a quarter of the usual
# number, of seeds that no other commit has. The long ones first.
run="$build/test-run" random="$build/test-random"
pairs="--pairs $seed"
new="--seed $((10000 + seed % 1000000 * 10000))"
units() { # units I UNIT…: every third unit test from the Ith on
	i=0 n=$1 list=
	shift
	for program; do
		[ $((i % 3)) != "$n" ] || list="$list $program"
		i=$((i + 1))
	done
	# shellcheck disable=SC2086
	unit $list
}
both lit lit tests/lit
both "unit 1" units 0 "$@"
both "unit 2" units 1 "$@"
both "unit 3" units 2 "$@"
core "run cpu, 1 of 2" env TL_DEVICE=cpu "$run" $pairs --shard 0/2
core "run cpu, 2 of 2" env TL_DEVICE=cpu "$run" $pairs --shard 1/2
core "run sim, 1 of 2" env TL_DEVICE=sim TL_SIM_SEED=$((seed % 1000)) "$run" $pairs --shard 0/2
core "run sim, 2 of 2" env TL_DEVICE=sim TL_SIM_SEED=$((seed % 1000)) "$run" $pairs --shard 1/2
core "run sim:80" env TL_DEVICE=sim:80 "$run" $pairs --shard $((seed % 4))/4
core "run interp" env TL_DEVICE=interp "$run" $pairs
core "random sim" env TL_DEVICE=sim "$random" $new --shard 0/4
core "random sim:80" env TL_DEVICE=sim:80 "$random" $new --shard 1/8
core "random cpu" env TL_DEVICE=cpu "$random" $new --shard 2/4
core "random interp" env TL_DEVICE=interp "$random" $new --shard 3/4
for device in sim sim:80; do
	shares "random $device" 4 env TL_DEVICE=$device TL_SIM_SEED=2 "$random"
	shares "run $device" 4 env TL_DEVICE=$device "$run" --schedules 3 --calls "$work/calls.$device"
done
both "examples sim 0" sim_examples sim 0
all "examples sim:80 1" sim_examples sim:80 1
all "examples sim 2" sim_examples sim 2
both "examples cpu" sim_examples cpu 0
for device in interp cpu; do
	shares "run $device" 2 env TL_DEVICE=$device "$run" --calls "$work/calls.$device"
	shares "random $device" 2 env TL_DEVICE=$device "$random"
done
# Code for other CPUs. Outputs larger than the cache are stored past it, here and below.
past="TL_DEVICE=cpu TL_CPU_CACHE=1"
core "run cpu:baseline" env $past TL_CPU=baseline "$run" $pairs --shard $((seed % 16))/16
core "random cpu:baseline" env $past TL_CPU=baseline "$random" $new --shard 0/32
all "run cpu:baseline" env $past TL_CPU=baseline "$run" --shard 0/8
all "random cpu:baseline" env $past TL_CPU=baseline "$random" --shard 0/8
# AMX tile registers, by a model; it needs the other instructions of such CPUs
if grep -q avx512_bf16 /proc/cpuinfo && grep -q avx512vbmi /proc/cpuinfo; then
	amx="env TL_DEVICE=cpu LD_PRELOAD=$PWD/$build/tests/libamx.so"
	core "run cpu with tiles" $amx "$run" $pairs --shard 0/2 dot
	all "run cpu with tiles" $amx "$run" --shard 0/2 dot
	for kind in edges products pipelines; do
		core "$kind cpu with tiles" $amx "$random" $new --kind $kind --count 40
		all "$kind cpu with tiles" $amx "$random" --kind $kind --count 100
	done
fi
# the CPU code generator and runtime with the sanitizers
checked="env TL_DEVICE=cpu ASAN_OPTIONS=detect_leaks=0"
for kind in random tree dots loops blocks moves values pipelines offsets edges tiles; do
	core "$kind cpu, checked" $checked "$build/checked/test-random" $new --kind $kind --count 4
	all "$kind cpu, checked" $checked "$build/checked/test-random" --kind $kind --count 10
done
# with debug information
core "run cpu for gdb" env $past TL_GDB=1 "$run" $pairs --shard $(((seed + 1) % 16))/16
core "random cpu for gdb" env $past TL_GDB=1 "$random" $new --shard 1/32
all "run cpu for gdb" env $past TL_GDB=1 "$run" --shard 1/8
all "random cpu for gdb" env $past TL_GDB=1 "$random" --shard 1/8
share=1
[ "$mode" != core ] || share=2
# compiled with less pipelining, as after a failed proof of the buffers
for kind in pipelines dots; do
	less="env TL_DEVICE=sim TL_COMPILE_CHECK=buffers"
	both "$kind, unproved" $less,unproved "$random" $new --kind $kind --count $((30 / share))
	both "$kind, unproved copies" $less,unproved-copies "$random" $new --kind $kind --count $((10 / share))
done
# without the optimisations of LLVM's back end, as very large kernels are compiled
for kind in random loops pipelines; do
	both "$kind sim, quick" env TL_DEVICE=sim TL_COMPILE_CHECK=quick,buffers "$random" $new --kind $kind --count $((20 / share))
	both "$kind cpu, quick" env TL_DEVICE=cpu TL_COMPILE_CHECK=quick "$random" $new --kind $kind --count $((20 / share))
done
# the IR after each pass against the IR before it, and facts against values
core "run every pass" "$run" --every-pass $pairs --shard $((seed % 16))/16
all "run every pass, 1 of 8" "$run" --every-pass --shard 0/8
all "run every pass, 2 of 8" "$run" --every-pass --shard 1/8
core "random every pass" "$random" --every-pass $new --kind random --count 125
core "tree every pass" "$random" --every-pass $new --kind tree --count 500
core "loops every pass" "$random" --every-pass $new --kind loops --count 75
all "random every pass" "$random" --every-pass --kind random --count 500
all "tree every pass" "$random" --every-pass --kind tree
all "loops every pass" "$random" --every-pass --kind loops
kinds="blocks products moves values scaled pipelines offsets edges tiles attention gradients experts pairs weights strips"
for kind in $kinds; do
	core "$kind every pass" "$random" --every-pass $new --kind $kind --count 25
	all "$kind every pass" "$random" --every-pass --kind $kind --count 100
done
# divisors that do not matter change no instruction, and launches have estimates
divisors="env TL_DEVICE=sim TL_COMPILE_CHECK=buffers,divisors,estimates"
core "divisors" $divisors "$run" --shard $((seed % 4))/4 table
all "divisors" $divisors "$run" table
for kind in random tree loops $kinds; do
	core "$kind divisors" $divisors "$random" $new --kind $kind --count 8
	all "$kind divisors" $divisors "$random" --kind $kind --count 40
done
both "loads ahead" sh tests/run/ahead.sh "$build"
both examples sh tests/examples.sh "$build"
for device in cpu sim; do
	both "gpt $device" "$build/tests/test_gpt" $device
done
for device in interp sim:80 cpu:check; do
	all "gpt $device" "$build/tests/test_gpt" $device
done
for device in cpu interp; do
	both "two devices $device" "$build/tests/test_two_gpus" $device $device
done
all gpt sh tests/gpt.sh "$build"
both "gpt tokens" python3 tests/gpt/tokens.py "$build/tests/gpt_tokens"
all "deep kernels" python3 tests/deep.py "$build/tlc"
both "cache stress" "$build/tests/cache-stress"
core mutants "$build/tests/mutants" -s $((seed % 4))/4
all mutants "$build/tests/mutants"
all limits python3 tests/limits.py "$build/tlc"
both round-trip sh tests/round-trip.sh "$build"
both docs sh docs/check.sh "$build"
both mutations python3 tests/mutate.py "$build" --placed --count 200 --seconds 20
all "reference sim" env DEVICES="sim sim:80" sh docs/check.sh "$build" docs/reference/builtins.md
both diagnostics python3 tests/diagnostics.py
both extremes env EXTREME_STRIDE=5 python3 tests/extreme.py "$build/tlc"
both "values made" python3 tests/made.py "$build/tlc"
both "state under control" python3 tests/state.py "$build/tlc"
all install sh tests/install.sh "$build"
all python env MAKEFLAGS= make -s test-python BUILD="$build"
both aot sh tests/aot.sh "$build"
all names sh tests/names.sh "$build"
all compilers sh tests/compilers.sh "$build"
both isa "$build/tests/isa" check tests/sim/h100.isa
both reference sh docs/builtins.sh "$build"
both sources sources
wait
if [ "$mode" = all ]; then
	for device in interp cpu sim sim:80; do
		suite "matrix $device" env TL_DEVICE=$device sh tests/run/matrix.sh "$build" "$work/calls.$device".*
	done
	wait
fi
command -v ptxas > /dev/null || echo "without ptxas: that the PTX assembles was not checked"
cat "$work/counts"/* | awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f != 0 }'
