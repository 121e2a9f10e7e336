#!/bin/sh
# test.sh BUILD UNIT…: every test that needs no GPU. Ends in "N passed, N failed"; what failed is shown before.
build=$1
shift
work=$build/test-logs
npass=0 nfail=0
PATH=$PATH:/usr/local/cuda/bin # ptxas may be there
mkdir -p "$work"

# count NAME PASSED FAILED SECONDS
count() {
	printf '%-24s %6d passed %4d failed %5d s\n' "$@"
	npass=$((npass + $2)) nfail=$((nfail + $3))
}

# suite NAME COMMAND…: it ends in "N passed, N failed", or all of it counts as one failure.
suite() {
	name=$1 begin=$(date +%s)
	shift
	"$@" > "$work/$name" 2>&1
	status=$?
	set -- $(tail -n 1 "$work/$name" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p')
	[ "$status" = 0 ] || cat "$work/$name"
	{ [ $# = 2 ] && { [ $status = 0 ] || [ "$2" != 0 ]; }; } || set -- "${1:-0}" 1
	count "$name" "$1" "$2" $(($(date +%s) - begin))
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
	$LIT -sv --param "build=$build" "$@" > "$work/lit.raw" 2>&1
	cat "$work/lit.raw"
	awk '/^ *Passed/ { split($0, a, /[:(]/); passed = a[2] + 0 } /^ *(Failed|Unresolved|Timed Out) *:/ { split($0, a, /[:(]/); failed += a[2] }
		/^ *(Unsupported|Skipped) *:/ { print "not run here:" $0 }
		END { printf "%d passed, %d failed\n", passed, failed; exit failed != 0 || !passed }' "$work/lit.raw"
}

# halves PROGRAM [N [ARGUMENT…]]: both halves of its cases at once; with N, two shares of N
halves() {
	program=$1 shares=${2:-2}
	shift $(($# < 2 ? $# : 2))
	"$program" --shard "0/$shares" "$@" > "$work/half.0" 2>&1 &
	"$program" --shard "1/$shares" "$@" > "$work/half.1" 2>&1
	status=$?
	wait $! || status=1
	cat "$work/half.0" "$work/half.1"
	awk '/^[0-9]+ passed, [0-9]+ failed$/ { p += $1; f += $3 } END { printf "%d passed, %d failed\n", p, f }' "$work/half.0" "$work/half.1"
	return $status
}

# every example under three schedules of the simulator, for two targets
sim_examples() {
	passed=0 failed=0
	for run in sim/0 sim:80/1 sim/2; do
		for program in "$build"/examples/*; do
			if TL_SIM_SEED=${run#*/} "$program" --kernels examples --small --device "${run%/*}" > "$work/example" 2>&1; then
				passed=$((passed + 1))
			else
				failed=$((failed + 1))
				cat "$work/example"
			fi
		done
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

suite sources sources
suite unit unit "$@"
for folder in tests/lang tests/eval tests/ir tests/opt tests/place tests/lower tests/cli tests/bad; do
	suite "${folder#tests/}" lit "$folder"
done
suite diagnostics python3 tests/diagnostics.py
suite round-trip sh tests/round-trip.sh "$build"
suite mutations python3 tests/mutate.py "$build" --placed --count 200 --seconds 20
export TL_DEVICE=interp
suite run halves "$build/test-run" 2 --calls "$work/calls"
suite matrix sh tests/run/matrix.sh "$build" "$work/calls.0" "$work/calls.1"
suite random halves "$build/test-random"
# the IR after each pass against the one before it, and facts against values
export TL_INTERP_CHECK=passes,facts
suite "run every pass" halves "$build/test-run" 8
suite "random every pass" "$build/test-random" --kind random --count 500
suite "tree every pass" "$build/test-random" --kind tree
suite "loops every pass" "$build/test-random" --kind loops
for kind in blocks products moves values scaled pipelines; do
	suite "$kind every pass" "$build/test-random" --kind $kind --count 100
done
unset TL_INTERP_CHECK
for device in sim sim:80; do
	for seed in 0 1 2; do
		export TL_DEVICE=$device TL_SIM_SEED=$seed
		suite "run $device $seed" halves "$build/test-run" 2 --calls "$work/calls"
		[ $seed != 0 ] || suite "matrix $device" sh tests/run/matrix.sh "$build" "$work/calls.0" "$work/calls.1"
	done
	suite "random $device" halves "$build/test-random"
done
unset TL_DEVICE TL_SIM_SEED
suite "examples sim" sim_examples
suite mutants "$build/tests/mutants"
suite isa "$build/tests/isa" check tests/sim/h100.isa
suite examples sh tests/examples.sh "$build"
suite install sh tests/install.sh "$build"
suite limits python3 tests/limits.py "$build/tlc"
suite "deep kernels" python3 tests/deep.py "$build/tlc"
suite docs sh docs/check.sh "$build"
suite reference sh docs/builtins.sh "$build"
export DEVICES="sim sim:80"
suite "reference sim" sh docs/check.sh "$build" docs/builtins.md
unset DEVICES
command -v ptxas > /dev/null || echo "without ptxas: that the PTX assembles was not checked"
echo "$npass passed, $nfail failed"
[ "$nfail" = 0 ]
