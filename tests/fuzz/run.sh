#!/bin/sh
# run.sh BUILD SECONDS [JOBS]: fuzzes source text, IR, placed IR and PTX for SECONDS each, JOBS kinds at a time (2), FORK processes a
# kind (1). BUILD/tlc makes the corpora from the examples and the tests; BUILD-fuzz holds the fuzzers (make fuzz). Inputs that fail
# stay in BUILD-fuzz/found. Ends in "N passed, N failed": kinds of input.
tlc=$1/tlc fuzz=$1-fuzz seconds=$2 jobs=${3:-2}
work=$fuzz/corpora
export TL_COMPILE_CHECK=buffers
found=$fuzz/found
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$work/tl" "$work/ttir" "$work/ttgir" "$work/ptx" "$found"

# the command of the first RUN line that compiles, as options of tlc
options_of() {
	sed -n 's/^\(#\|\/\/\) RUN: %ptx %s \([^|]*\).*/\2/p' "$1" | head -n 1
}

placed() { # placed NAME FILE OPTION…
	name=$1
	shift
	for pass in legalize-dots layouts pipeline allocate barriers; do
		{
			echo "// after $pass"
			"$tlc" "$@" "--print-after=$pass" "--stop-after=$pass" --emit ttgir -o "$work/end" 2>&1
		} > "$work/ttgir/$name-$pass"
	done
}

corpus() {
	cd "$top" || exit 1
	for file in examples/*.tl tests/run/*.tl tests/lang/*.tl tests/eval/*.tl tests/bad/*.tl; do
		cp "$file" "$work/tl/$(basename "$(dirname "$file")")-$(basename "$file")"
	done
	cp tests/ir/*.ttir "$work/ttir"
	for file in examples/*.tl tests/place/*.tl tests/lower/*.tl tests/opt/*.tl; do
		name=$(basename "$file" .tl)
		options=$(options_of "$file")
		# the quotes of the RUN line count
		eval "set -- $options"
		"$tlc" "$file" "$@" --emit ttir,ptx -o "$work/out" 2> "$work/err" || continue
		cp "$work/out.ttir" "$work/ttir/$name"
		cp "$work/out.ptx" "$work/ptx/$name"
		case $options in *sm_7* | *sm_89* | *start-after*) continue ;; esac
		placed "$name" "$file" "$@"
	done
	rm -f "$work"/out.* "$work"/end* "$work/err"
}

one() { # one KIND
	kind=$1 program=fuzz dict=tl
	[ "$kind" != ptx ] || program=fuzz-ptx dict=ptx
	mkdir -p "$work/new-$kind"
	"$fuzz/$program" -fork="${FORK:-1}" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -dict="$top/tests/fuzz/$dict.dict" \
		-max_total_time="$seconds" -timeout=60 -report_slow_units=60 -rss_limit_mb=3000 -max_len=20000 -artifact_prefix="$found/$kind-" \
		"$work/new-$kind" "$work/$kind" > "$fuzz/$kind.log" 2>&1
}

[ -n "$(ls "$work/ptx")" ] || corpus
running=0
for kind in tl ttir ttgir ptx; do
	one $kind &
	running=$((running + 1))
	[ $((running % jobs)) != 0 ] || wait
done
wait
passed=0 failed=0
for kind in tl ttir ttgir ptx; do
	bad=$(ls "$found" | grep -c "^$kind-")
	if [ "$bad" = 0 ] && grep -q '^INFO: fuzzed for' "$fuzz/$kind.log"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
	printf '%-6s %3d found; %s\n' $kind "$bad" "$(grep -a '^#[0-9]*: cov' "$fuzz/$kind.log" | tail -n 1)"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
