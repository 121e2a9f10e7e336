#!/bin/sh
# gpt.sh BUILD: the program of examples/gpt: it learns, goes on where it was interrupted or killed, keeps its checkpoint
# whatever happens, and names what is wrong with its input. $KILLS: how often it is killed; 30.
set -u
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.." || exit 1
work=$build/gpt-test
. tests/verdict.sh
rm -rf "$work"
mkdir -p "$work"
# kernels are compiled once for all these processes
export TL_CACHE=1 TL_CACHE_DIR="$work/cache" OMP_NUM_THREADS=2

gpt=$build/gpt
cat docs/*.md docs/*/*.md > "$work/text"
head -c 3000 "$work/text" > "$work/short"
tiny="--layers 1 --channels 32 --heads 2 --context 32 --batch 4"
train() { # train OUT STEPS OPTION…
	out=$1 steps=$2
	shift 2
	$exec "$gpt" train "$work/text" --out "$out" --steps "$steps" --log-every 1 "$@"
}
exec= # "exec" where the process itself is to get signals

# --- it learns, on each device the same
for device in cpu interp sim; do
	# shellcheck disable=SC2086
	train "$work/$device.safetensors" 12 --device $device $tiny --rate 1e-2 > "$work/$device.log" 2>&1
	verdict $? "training on $device: see $work/$device.log"
	sed -n 's/^step \([0-9]*\).*loss \([0-9.]*\).*/\1 \2/p' "$work/$device.log" > "$work/$device.losses"
	awk -v device=$device 'NR == 1 { first = $2 } { last = $2 } END { if (NR == 12 && first > 5.4 && first < 5.7 && last < first - 0.5) exit 0
		print device ": the loss goes from " first " to " last; exit 1 }' "$work/$device.losses"
	verdict $? "the loss on $device does not fall"
done
for device in interp sim; do
	paste -d ' ' "$work/cpu.losses" "$work/$device.losses" | awk '{ d = $2 - $4; if (d < -0.002 || d > 0.002) { print; bad = 1 } } END { exit bad }'
	verdict $? "the losses on $device are not those on cpu"
	for sampler in cpu $device; do
		"$gpt" sample "$work/$device.safetensors" --device $sampler --prompt 'The ' --tokens 60 --temperature 0 > "$work/sample.$sampler"
	done
	cmp "$work/sample.cpu" "$work/sample.$device"
	verdict $? "$device continues a prompt otherwise than cpu"
done
# shellcheck disable=SC2086
train "$work/bf16.safetensors" 12 --device cpu $tiny --rate 1e-2 --dtype bf16 --accumulate 2 > "$work/bf16.log" 2>&1
verdict $? "training in bf16: see $work/bf16.log"
"$gpt" sample "$work/cpu.safetensors" --device cpu --prompt x --tokens 100 --seed 5 --top-k 10 > "$work/a"
"$gpt" sample "$work/cpu.safetensors" --device cpu --prompt x --tokens 100 --seed 5 --top-k 10 > "$work/b"
"$gpt" sample "$work/cpu.safetensors" --device cpu --prompt x --tokens 100 --seed 6 --top-k 10 > "$work/c"
cmp "$work/a" "$work/b" && ! cmp -s "$work/a" "$work/c" && [ "$(wc -c < "$work/a")" = 102 ]
verdict $? "a seed does not decide the sample, or its length is not the number of tokens"

# --- interrupted and killed, it goes on bit for bit
long="--device cpu $tiny --save-every 1"
# shellcheck disable=SC2086
train "$work/whole.safetensors" 1500 $long > "$work/whole.log"
verdict $? "1500 steps: see $work/whole.log"
mkfifo "$work/lines"
# shellcheck disable=SC2086
exec=exec
train "$work/interrupted.safetensors" 1500 $long --save-every 1000 > "$work/lines" &
exec=
process=$!
while read -r line; do
	case $line in *"step 20/"*) kill -INT $process ;; *stopped*) echo "$line" > "$work/stopped" ;; esac
done < "$work/lines"
wait $process
verdict $? "interrupted, it ends with an error"
grep -q 'stopped after step' "$work/stopped"
verdict $? "it does not say that it was interrupted"
# shellcheck disable=SC2086
train "$work/interrupted.safetensors" 1500 $long > "$work/interrupted.log"
grep -q 'goes on from' "$work/interrupted.log" && cmp "$work/whole.safetensors" "$work/interrupted.safetensors"
verdict $? "interrupted and continued, it ends with other weights"
kills=0
while [ $kills -lt "${KILLS:-30}" ]; do
	kills=$((kills + 1))
	# shellcheck disable=SC2086
	exec=exec
	train "$work/killed.safetensors" 1500 $long >> "$work/killed.log" 2>&1 &
	process=$! exec=
	sleep "0.$(printf %02d $((kills * 37 % 11 + 5)))"
	kill -9 $process 2> /dev/null
	wait $process 2> /dev/null
	[ ! -e "$work/killed.safetensors" ] || "$gpt" sample "$work/killed.safetensors" --device cpu --tokens 1 > "$work/killed.sample"
	verdict $? "killed, it leaves a checkpoint that cannot be read"
done
# shellcheck disable=SC2086
train "$work/killed.safetensors" 1500 $long >> "$work/killed.log" 2>&1
cmp "$work/whole.safetensors" "$work/killed.safetensors"
verdict $? "killed $kills times and continued, it ends with other weights"

# --- weights as .npy files
"$gpt" export "$work/cpu.safetensors" --out "$work/weights" > "$work/export.log" && grep -q '^16 tensors in .*, of 2 heads' "$work/export.log" &&
	python3 tests/gpt/npy.py "$work/cpu.safetensors" "$work/weights"
verdict $? "the exported weights are not those of the checkpoint"
"$gpt" sample "$work/weights" --heads 2 --device cpu --prompt 'The ' --tokens 60 --temperature 0 > "$work/sample.npy" && cmp "$work/sample.cpu" "$work/sample.npy"
verdict $? "exported weights continue a prompt otherwise"
# shellcheck disable=SC2086
train "$work/from.safetensors" 3 --device cpu $tiny --from "$work/weights" --heads 2 > "$work/from.log" 2>&1 && grep -q 'step 3/3' "$work/from.log"
verdict $? "training does not begin with exported weights: see $work/from.log"
refused() { # refused WORDS: the folder $work/bad
	! "$gpt" sample "$work/bad" --heads 2 --device cpu --prompt x --tokens 1 > "$work/bad.log" 2>&1 && grep -q "$1" "$work/bad.log"
	verdict $? "no message '$1': see $work/bad.log"
	rm -rf "$work/bad" && cp -r "$work/weights" "$work/bad"
}
cp -r "$work/weights" "$work/bad"
rm "$work/bad/wpe.weight.npy" && refused 'no matrices wte.weight and wpe.weight'
rm "$work/bad/h.0.ln_1.bias.npy" && refused 'has no tensor h.0.ln_1.bias'
truncate -s -4 "$work/bad/wte.weight.npy" && refused 'wte.weight.npy has .* bytes of numbers, and its shape says'
truncate -s 20 "$work/bad/wte.weight.npy" && refused "wte.weight.npy is no file of NumPy's"
sed -i 's/False/True /' "$work/bad/wte.weight.npy" && refused "in C's order can be read"
sed -i 's/<f4/<f8/' "$work/bad/ln_f.bias.npy" && refused 'numbers of type <f4 or <f2'
sed -i 's/(32,)/(16,)/' "$work/bad/ln_f.bias.npy" && refused 'ln_f.bias is not of shape 32'
sed -i 's/(32,)/(3x,)/' "$work/bad/ln_f.bias.npy" && refused 'can be read, and this has'

# --- four processes with MPI compute what one does
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for ranks in 1 4; do
	# shellcheck disable=SC2086
	OMP_NUM_THREADS=1 mpirun --oversubscribe -n $ranks "$gpt-mpi" train "$work/text" --out "$work/mpi$ranks.safetensors" --steps 20 \
		--log-every 1 --device cpu $tiny --layers 2 --batch 8 --accumulate 2 < /dev/null > "$work/mpi$ranks.log" 2>&1
	verdict $? "$ranks processes: see $work/mpi$ranks.log"
	tr '\r' '\n' < "$work/mpi$ranks.log" | sed -n 's/.*step \([0-9]*\).*loss \([0-9.]*\).*norm \([0-9.]*\).*/\1 \2 \3/p' > "$work/mpi$ranks.losses"
done
paste -d ' ' "$work/mpi1.losses" "$work/mpi4.losses" | awk '
	{ d = $2 - $5; e = $3 - $6; if ($1 != $4 || d < -0.0005 || d > 0.0005 || e < -0.02 || e > 0.02) { print; bad = 1 } }
	END { exit bad || NR != 20 }'
verdict $? "four processes compute other losses than one"

# --- the same program with kernels compiled ahead of time
DEVICES=cpu CC="gcc -std=c11 -D_GNU_SOURCE -O1 -Iruntime" sh examples/gpt/ahead.sh "$build" --channels 32 --heads 2 --context 32 \
	> "$work/ahead.log" 2>&1
verdict $? "kernels ahead of time: see $work/ahead.log"
# shellcheck disable=SC2086
"$build/gpt-aot/gpt" train "$work/text" --out "$work/ahead.safetensors" --steps 12 --log-every 1 --device cpu $tiny --rate 1e-2 \
	> "$work/ahead.log" 2>&1
verdict $? "training ahead of time: see $work/ahead.log"
sed -n 's/^step \([0-9]*\).*loss \([0-9.]*\).*/\1 \2/p' "$work/ahead.log" | paste -d ' ' "$work/cpu.losses" - |
	awk '{ d = $2 - $4; if (d < -0.002 || d > 0.002) { print; bad = 1 } } END { exit bad || NR != 12 }'
verdict $? "losses ahead of time are others"
"$build/gpt-aot/gpt" train "$work/text" --out "$work/new" --steps 1 --device cpu --channels 64 --heads 2 > "$work/ahead.log" 2>&1
[ $? = 2 ] && grep -q 'was not compiled for the arguments' "$work/ahead.log"
verdict $? "no message for a model that nothing was compiled for"
! ldd "$build/gpt-aot/gpt" | grep -q 'LLVM\|libtl'
verdict $? "the program ahead of time needs the compiler"

# --- a disk without room keeps the last checkpoint
cp "$work/cpu.safetensors" "$work/full.safetensors"
# shellcheck disable=SC2086
(
	trap '' XFSZ
	ulimit -f 60 # 30 KB: the checkpoint takes more
	train "$work/full.safetensors" 14 --device cpu $tiny --rate 1e-2 > "$work/full.log" 2> "$work/full.error"
)
[ $? = 1 ] && grep -q 'no checkpoint of step 14: .*full.safetensors.new: File too large' "$work/full.error"
verdict $? "no message where the disk is full: $(cat "$work/full.error")"
cmp "$work/cpu.safetensors" "$work/full.safetensors" && [ ! -e "$work/full.safetensors.new" ]
verdict $? "a full disk costs the last checkpoint"

# --- bad input: status 2, and words that say what is wrong
refused() { # refused WORDS ARGUMENT…
	words=$1
	shift
	"$gpt" "$@" > "$work/refused.out" 2> "$work/refused"
	code=$?
	[ $code = 2 ] && grep -q "$words" "$work/refused"
	verdict $? "gpt $*: status $code, and not '$words': $(cat "$work/refused")"
}
model=$work/cpu.safetensors
: > "$work/empty"
refused 'has 0 tokens' train "$work/empty" --out "$work/new" --device cpu
refused 'has 3000 tokens.*a sequence takes 5001' train "$work/short" --out "$work/new" --device cpu --context 5000
refused 'No such file' train "$work/none" --out "$work/new" --device cpu
refused 'Is a directory' train "$work" --out "$work/new" --device cpu
refused 'a head must have' train "$work/short" --out "$work/new" --device cpu --channels 40 --heads 1
refused 'do not divide' train "$work/short" --out "$work/new" --device cpu --accumulate 3
refused 'not a number' train "$work/short" --out "$work/new" --steps many
refused 'not a number from' train "$work/short" --out "$work/new" --layers 0
refused 'neither fp32 nor bf16' train "$work/short" --out "$work/new" --dtype fp8
refused 'no option' train "$work/short" --stepz 3
refused 'no option' sample "$model" --steps 3
refused 'needs a value' train "$work/short" --steps
refused 'one argument too many' sample "$model" "$model"
refused 'needs a file' sample
refused 'no command' trian "$work/short"
refused 'the options say other' train "$work/text" --out "$model" --layers 2 --device cpu
refused 'was trained with --seed' train "$work/text" --out "$model" --seed 77 --device cpu
refused 'No such file' sample "$work/none"
refused 'no device' sample "$model" --device nothing
refused 'that is no file of weights' sample "$work/empty"
refused 'not in the format safetensors' sample "$work/text"
refused 'No such file' sample "$model" --tokenizer "$work/none"
refused 'the prompt is empty' sample "$model" --prompt ''
printf '\110\0\0\0\0\0\0\0%-72s' '{"wte.weight":{"dtype":"F32","shape":[9,64],"data_offsets":[0,2304]}}' > "$work/odd"
refused 'it is no GPT-2' sample "$work/odd"

# --- damaged files: never a crash
size=$(wc -c < "$model")
header=$(($(od -An -t u4 -N 4 "$model") + 8))
crashes=0 opened=0
for n in 0 1 7 8 9 20 100 300 $((header / 2)) $((header - 1)) "$header" $((header + 1)) $((size / 4)) $((size / 3)); do
	head -c "$n" "$model" > "$work/damaged"
	"$gpt" sample "$work/damaged" --device cpu --tokens 1 > /dev/null 2> "$work/damaged.error"
	code=$?
	[ $code = 2 ] && grep -q '^gpt: error: ' "$work/damaged.error" || crashes=$((crashes + 1))
done
verdict $crashes "$crashes truncated files end otherwise than with a message"
crashes=0
i=0
while [ $i -lt 60 ]; do
	i=$((i + 1))
	cp "$model" "$work/damaged"
	printf "\\$(printf %o $((i * 89 % 256)))" | dd of="$work/damaged" bs=1 seek=$((i * i * 7919 % header)) conv=notrunc 2> /dev/null
	"$gpt" sample "$work/damaged" --device cpu --tokens 1 > /dev/null 2>&1
	case $? in 0) opened=$((opened + 1)) ;; 2) ;; *) crashes=$((crashes + 1)) ;; esac
done
verdict $crashes "$crashes damaged headers end otherwise than with a message"

echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
