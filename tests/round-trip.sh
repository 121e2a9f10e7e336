#!/bin/sh
# round-trip.sh BUILD: IR text is read back as it was printed. Of kernels, for two targets: the placed IR prints the same again and
# gives the same PTX, and so does the IR after passes of placement, with the rest of them run on what was read. Every operation of
# ops.def must have been in one of the texts. Ends in "N passed, N failed".
tlc=$1/tlc
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
passed=0 failed=0

ok() {
	passed=$((passed + 1))
}

bad() {
	failed=$((failed + 1))
	echo "$what: $*"
}

# without lines of the source, which are those of the text the second time
code() {
	grep -v '^[[:space:]]*\.loc\|^[[:space:]]*\.file\|^[[:space:]]*//' "$1" > "$1.code"
}

same() { # same FILE FILE WHAT
	if cmp -s "$1" "$2"; then
		ok
	else
		bad "$3"
		diff "$1" "$2" | head -n 6
	fi
}

# The IR after pass $1, of the command that follows, compiled from its text with $options.
from_pass() {
	pass=$1
	shift
	"$tlc" "$@" "--print-after=$pass" "--stop-after=$pass" --emit ttgir -o "$tmp/end" 2> "$tmp/pass.ttgir"
	cat "$tmp/pass.ttgir" >> "$tmp/seen"
	if "$tlc" "$tmp/pass.ttgir" $options --target "$target" "--start-after=$pass" -o "$tmp/pass.ptx" 2> "$tmp/err"; then
		code "$tmp/pass.ptx"
		same "$tmp/one.ptx.code" "$tmp/pass.ptx.code" "PTX from the IR after $pass"
	else
		bad "the IR after $pass: $(head -n 1 "$tmp/err")"
	fi
}

# kernel 'OPTIONS of later passes too' FILE OPTION…
kernel() {
	options=$1
	shift
	for target in sm_80 sm_90a; do
		what="$* $options $target"
		if ! "$tlc" "$@" $options --target "$target" --emit ttgir,ptx -o "$tmp/one" 2> "$tmp/err"; then
			bad "$(head -n 1 "$tmp/err")"
			continue
		fi
		cat "$tmp/one.ttgir" >> "$tmp/seen"
		if ! "$tlc" "$tmp/one.ttgir" --emit ttgir,ptx -o "$tmp/two" 2> "$tmp/err"; then
			bad "$(head -n 1 "$tmp/err")"
			continue
		fi
		same "$tmp/one.ttgir" "$tmp/two.ttgir" "placed IR"
		code "$tmp/one.ptx"
		code "$tmp/two.ptx"
		same "$tmp/one.ptx.code" "$tmp/two.ptx.code" "PTX"
		for after in legalize-dots layouts pipeline allocate; do
			from_pass "$after" "$@" $options --target "$target"
		done
	done
}

for file in tests/lit/ir/*.ttir; do
	what=$file
	"$tlc" "$file" --stop-after=eval --emit ttir -o "$tmp/one.ttir" && "$tlc" "$tmp/one.ttir" --stop-after=eval --emit ttir -o "$tmp/two.ttir"
	same "$tmp/one.ttir" "$tmp/two.ttir" "IR"
	cat "$tmp/two.ttir" >> "$tmp/seen"
done
# operations for debuggers, which targets with lines have
for function in straight loops calls; do
	what="$function with lines"
	set -- --target cpu:avx2+lines --stop-after=eval --emit ttir
	"$tlc" tests/lit/cli/Inputs/gdb-lines.tl -k $function -s '*fp32,*fp32,i32' -D BLOCK=8 "$@" -o "$tmp/one.ttir" && "$tlc" "$tmp/one.ttir" "$@" -o "$tmp/two.ttir"
	same "$tmp/one.ttir" "$tmp/two.ttir" "IR"
	cat "$tmp/two.ttir" >> "$tmp/seen"
done
for file in attention layer_norm matmul mean softmax_persistent; do
	kernel '' "examples/$file.tl"
done
kernel --persistent examples/matmul.tl
kernel '--num-warps 8' examples/matmul.tl
kernel '--num-warps 8 --num-stages 3' tests/lit/gpu/producer.tl -k k -s '*fp16:16,*fp16:16,*fp16:16,i32:256'
kernel '--num-warps 8' tests/lit/gpu/boxes.tl -s '*fp16:16,*fp16:16,*fp32:16,i32,i32:16,i32:16'
kernel '--num-warps 8 --num-stages 4' tests/lit/gpu/tensor-boxes.tl -k described -D BOUND=True
kernel '--num-warps 8' tests/lit/gpu/pairs.tl -s '*fp16:16,*fp16:16,*fp16:16,i32:8,i32:8,i32:8'
kernel '--num-warps 16' tests/lit/gpu/cluster.tl -k k -s '*fp32:16,*fp32:16,i32:16' -D N=131072

kernel "" tests/lit/gpu/wgmma.tl -s "*fp16:16,*fp16:16,*fp32:16"
what='ops.def'
for op in $(sed -n 's/^OP([A-Z0-9_]*, "\([^"]*\)".*/\1/p' compiler/ir/ops.def); do
	if grep -q "[ \"]$op\([^a-z_.]\|\$\)" "$tmp/seen"; then
		ok
	else
		bad "no text has $op"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
