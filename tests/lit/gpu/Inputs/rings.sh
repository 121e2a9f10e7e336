# rings.sh TLC EXAMPLES TESTS: compiles placed texts of pipelined loops, each with one thing changed, and prints what tlc says
tlc=$1 tmp=$(mktemp -d)
text() { # text SOURCE OPTION…: the placed text that is changed from here on
	"$tlc" "$@" --emit ttgir -o "$tmp/whole.ttgir"
}
try() { # try WHAT SED-COMMANDS
	sed "$2" "$tmp/whole.ttgir" > "$tmp/k.ttgir"
	[ -z "$2" ] || ! cmp -s "$tmp/whole.ttgir" "$tmp/k.ttgir" || echo "nothing changes:"
	said=$("$tlc" "$tmp/k.ttgir" --emit ptx -o /dev/null 2>&1 | sed -n 's/.*\(error: .*\)/\1/p' | head -n 1)
	echo "$1: ${said:-ok}"
}
loop='/scf.for/,/scf.yield/' behind='/scf.yield/,$'

text "$2/matmul.tl" --target sm_80
try 'copies' ''
try 'copies, no wait' "$loop{/async_wait/d}"
try 'copies, one group less' "$loop{s/num = 1/num = 2/}"
try 'copies, one group less, without a token' "$loop{s/async_wait .*num = 1/async_wait {num = 2/}"
try 'copies, another token' "$loop"'{s/async_wait %arg5/async_wait %arg6/}'
try 'copies, groups not ended' 's/ttg.async_commit_group/tlc.done/'
try 'copies, nobody meets' "$loop{/gpu.barrier/d}"
try 'copies, of the next buffer' "$loop"'{s/addi %arg\([0-9]\), %c2_i32/addi %arg\1, %c1_i32/}'
try 'copies, not waited for at the end' "$behind{/async_wait/d}"
text "$2/matmul.tl" --target sm_90a
try 'dots' ''
try 'dots, one group more' "$loop{s/pendings = 1/pendings = 2/}"
try 'dots, one group more, without a token' "$loop{s/wait .*pendings = 1.*/wait {pendings = 2 : i32}/}"
try 'dots, the token of others' "$loop"'{s/\(dot_wait\) %arg[0-9]*/\1 %arg5/}'
try 'dots, no wait' "$loop{/warp_group_dot_wait/d}"
try 'dots, nobody meets' "$loop{/pendings/{n;/gpu.barrier/d}}"
try 'dots, their sum awaited too late' "$behind{s/pendings = 0/pendings = 1/}"
try 'dots, their sum used at once' 's/arith.truncf %[0-9]*/arith.truncf %acc#0/'
text "$3/pipeline-ring.tl" --target sm_90a -s '*fp16:16,*fp16:16,*fp32:16,i32,i32'
try 'stores' ''
try 'stores, no fence' "$loop{/fence_async/d}"
try 'stores, nobody meets' "$loop{/gpu.barrier$/d}"
try 'stores, into one buffer' "$loop"'{s/arith.subi \(%[0-9]*\), %c2_i32/arith.subi \1, \1/;s/\(addi %arg[0-9]\), %c1_i32/\1, %c2_i32/}'
text "$2/attention.tl" --target sm_90a --num-warps 8 --num-stages 3 -D HEAD_DIM=64 -D BLOCK_M=128 -D BLOCK_N=64 -D CAUSAL=True
try 'boxes' ''
try 'boxes, no wait' "$loop{/wait_barrier %[0-9]*, %arg/d}"
try 'boxes, another phase' "$loop"'{s/\(wait_barrier %[0-9]*\), %arg[0-9_]*/\1, %c0_i32/}'
try 'boxes, another phase of the readers' '/elect_one/,/}/{s/arith.xori \(%[0-9a-z]*\), %c1_i32/arith.xori \1, %c0_i32/}'
try 'boxes, never released' '/arrive_barrier/d'
try 'boxes, released before they are read' '/warp_group_dot_wait %s/{h;d};/tlc.arrive_barrier/{G}'
try 'boxes, no wait for the readers' '/elect_one/,/}/{/wait_barrier/d}'
try 'boxes, of other sizes' '0,/expect/s/\(barrier_expect %[0-9]*\), [0-9]*/\1, 8192/'
try 'boxes, for no iteration' 's/\(arith.subi %[0-9]*\), %c128_i32/\1, %c64_i32/'
try 'boxes, for who knows' 's/arith.cmpi slt, %[0-9]*, %[0-9]* : i64/arith.cmpi slt, %42, %43 : i64/'
try 'boxes, mbarriers unknown to TMA' '0,/fence_async/{/fence_async/d}'
try 'boxes, mbarriers unknown to others' '0,/gpu.barrier/{/gpu.barrier/d}'
try 'boxes, other arrivals' 's/\(init_barrier %[0-9]*\), 8/\1, 7/'
try 'boxes, mbarriers in use at their end' '/only = 1/,/inval/{/gpu.barrier/d}'
try 'turns, the last one kept' '/pingpong_arrive {only = 1/d'
try 'turns, all meet' "$loop{s/tlc.pingpong_wait/gpu.barrier/}"
text "$3/producer.tl" -k k --target sm_90a --num-warps 8 --num-stages 3 -s '*fp16:16,*fp16:16,*fp16:16,i32:256' -D TILES=8
try 'producer' ''
try 'producer, no wait' '/tlc.partition/,/^    }/{/wait_barrier/d}'
try 'producer, another phase' '/tlc.partition/,/^    }/{s/arith.xori \(%[0-9a-z_]*\), %c1_i32/arith.xori \1, %c0_i32/}'
try 'producer, fewer iterations' '/tlc.partition/,/^    }/{s/to %c8_i32/to %c3_i32/}'
try 'producer, buffers in another order' '/tlc.partition/,/^    }/{s/\(addi %arg1_0\), %c1_i32/\1, %c2_i32/}'
try 'producer, the last buffer kept' '/warp_group_dot_wait %/,${/arrive_barrier/d}'
try 'producer, released while dots read' '/^    }/,${s/iter_args(\(.*\) = %c3_i32, /iter_args(\1 = %c0_i32, /}'
text "$2/attention.tl" --target sm_90a --num-warps 8 --num-stages 3 -D HEAD_DIM=128 -D BLOCK_M=128 -D BLOCK_N=128 -D CAUSAL=False --persistent -s N_CTX=i32:256
try 'tiles' ''
try 'tiles, the results not read' '/%q_0 = ttg.local_alloc/{n;/gpu.barrier/d}'
try 'tiles, the results of one over queries of the other' '/convert_layout/s/allocation.offset = 197632/allocation.offset = 199680/'
try 'tiles, the results in too large pieces' '/convert_layout/{s/pieces = 2/pieces = 1/;s/allocation.offset = 197632/allocation.offset = 196672/}'
try 'tiles, a turn left' '/pingpong_wait {first}/d'
try 'tiles, a turn kept' '/^      }/,${/pingpong_arrive/d}'
rm -r "$tmp"
