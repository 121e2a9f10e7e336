#!/bin/sh
# run.sh BUILD SECONDS [JOBS]: fuzzes source text, IR, placed IR, PTX, images and bundles, entries of the disk cache, manifests with
# tunings, and .npy for SECONDS each, or the kinds in KINDS, JOBS kinds at a time (2), FORK processes a kind (1). BUILD/tlc makes the corpora from the examples and the tests; BUILD-fuzz holds the fuzzers (make fuzz). Inputs that fail
# stay in BUILD-fuzz/found. Ends in "N passed, N failed": kinds of input.
tlc=$1/tlc fuzz=$1-fuzz seconds=$2 jobs=${3:-2}
work=$fuzz/corpora
export TL_COMPILE_CHECK=buffers
found=$fuzz/found
top=$(cd "$(dirname "$0")/../.." && pwd)
kinds=${KINDS:-tl ttir ttgir ptx image entry lines npy}
mkdir -p "$found"
for kind in tl ttir ttgir ptx image entry lines npy; do
	mkdir -p "$work/$kind"
done

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
	for file in examples/*.tl tests/run/*.tl tests/lit/lang/*.tl tests/lit/frontend/*.tl tests/lit/bad/*.tl; do
		cp "$file" "$work/tl/$(basename "$(dirname "$file")")-$(basename "$file")"
	done
	cp tests/lit/ir/*.ttir "$work/ttir"
	for file in examples/*.tl tests/lit/gpu/*.tl tests/lit/codegen/*.tl tests/lit/transform/*.tl; do
		name=$(basename "$file" .tl)
		options=$(options_of "$file")
		# the quotes of the RUN line count
		eval "set -- $options"
		"$tlc" "$file" "$@" --emit ttir,ptx,image -o "$work/out" 2> "$work/err" || continue
		cp "$work/out.ttir" "$work/ttir/$name"
		cp "$work/out.ptx" "$work/ptx/$name"
		cp "$work/out.image" "$work/image/$name"
		case $options in *sm_7* | *sm_89* | *start-after*) continue ;; esac
		placed "$name" "$file" "$@"
	done
	files
	rm -f "$work"/out.* "$work"/end* "$work/err"
}

# what the runtime opens
files() {
	run="$tlc run examples/vector_add.tl -g 3 x_ptr=fp32[3000]:rand y_ptr=fp32[3000]:rand n=3000"
	for device in sim sim:80 cpu; do
		TL_CACHE=1 TL_CACHE_DIR="$work/cache" TL_MANIFEST="$work/lines/manifest" $run --device $device \
			"out_ptr=fp32[3000]:>$work/npy/$device" > /dev/null
	done
	cp "$work"/cache/*.image "$work/image"
	"$tlc" build examples/vector_add.tl --target sm_90a -o "$work/out" > /dev/null
	tr -d '\n\t' < "$work/out.c" | sed 's/.*images_0\[\] = {\([0-9,]*\)};.*/\1/' | tr , '\n' |
		python3 -c 'import sys; sys.stdout.buffer.write(bytes(int(n) for n in sys.stdin.read().split()))' > "$work/image/bundle"
	cp "$work"/image/* "$work/entry"
	echo '{"kernel":"k","source":"0000000000000007","device":"device","version":"1","configurations":"0000000000000009","key":{"n":1},"values":{"B":1},"cost":0.5,"unit":"ms","tried":3}' \
		> "$work/lines/tuning"
	for type in bf16 i8 i64 fp64; do
		"$tlc" run examples/vector_add.tl -g 1 --device interp "x_ptr=$type[2,3]:>$work/npy/$type" "y_ptr=fp32[1]" "out_ptr=fp32[1]" n=0 > /dev/null
	done
	rm -rf "$work/cache"
}

one() { # one KIND
	kind=$1 program=fuzz dict=$top/tests/fuzz/tl.dict len=20000
	case $kind in
	ptx | lines | npy) program=fuzz-$kind dict=$top/tests/fuzz/$kind.dict ;;
	image | entry) program=fuzz-$kind dict=$top/tests/fuzz/ptx.dict len=40000 ;; # their code is PTX
	esac
	mkdir -p "$work/new-$kind" "$work/tmp-$kind"
	# memory that runs out is an error of the library's
	TMPDIR=$(cd "$work/tmp-$kind" && pwd) ASAN_OPTIONS=allocator_may_return_null=1 "$fuzz/$program" -fork="${FORK:-1}" -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -dict="$dict" \
		-max_total_time="$seconds" -timeout=60 -report_slow_units=60 -rss_limit_mb=3000 -max_len=$len -artifact_prefix="$found/$kind-" \
		"$work/new-$kind" "$work/$kind" > "$fuzz/$kind.log" 2>&1
	rm -rf "$work/tmp-$kind"
}

[ -n "$(ls "$work/npy")" ] || corpus
running=0
for kind in $kinds; do
	one $kind &
	running=$((running + 1))
	[ $((running % jobs)) != 0 ] || wait
done
wait
passed=0 failed=0
for kind in $kinds; do
	bad=$(ls "$found" | grep -c "^$kind-")
	if [ "$bad" = 0 ] && grep -q '^#[1-9]' "$fuzz/$kind.log" && grep -q '^INFO: fuzzed for' "$fuzz/$kind.log"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
	printf '%-6s %3d found; %s\n' $kind "$bad" "$(grep -a '^#[0-9]*: cov' "$fuzz/$kind.log" | tail -n 1)"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
