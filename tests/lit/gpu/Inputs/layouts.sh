# layouts.sh TLC TEXT: compiles TEXT with each of these lines in it, and prints what tlc says
n=0 after=multiply-adds
try() { # try TARGET LINE
	n=$((n + 1))
	said=$(sed "s/TARGET/$1/; s/LINE/$2/" "$text" > "$tmp/k.ttgir"; "$tlc" "$tmp/k.ttgir" --start-after=$after --emit ptx -o /dev/null 2>&1 | sed -n 's/.*\(error: .*\)/\1/p' | head -n 1)
	echo "$1 $n: ${said:-ok}"
}
tlc=$1 text=$2 tmp=$(mktemp -d)
wgmma() { # wgmma N WARPS, and more attributes
	echo "inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32, tlc.instr_shape = array<i32: 64, $1, 16>, tlc.warps = array<i32: $2>$3"
}
mma() { # mma M N K WARPS
	echo "{tlc.instr_shape = array<i32: $1, $2, $3>, tlc.warps = array<i32: $4>}"
}
dot=$(wgmma 64 '4, 1')
good='!ttg.memdesc<64x64xf16, #good, #smem, mutable>' plain='!ttg.memdesc<64x64xf16, #plain, #smem, mutable>'
bytes='!ttg.memdesc<64x64xi8, #good, #smem, mutable>'
acc='tensor<64x64xf32, #acc>' t16='tensor<64x64xf16, #t>' t32='tensor<64x64xf32, #t>' t64='tensor<64x64xf64, #t>'
sum='({ ^bb0(%u: f32, %v: f32): %z = arith.addf %u, %v : f32\n tt.reduce.return %z : f32 }) :'
try 90 '%o = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32, #a> -> tensor<1x128xi32, #a1>'
try 90 '%o = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32, #a> -> tensor<1x128xi32, #b1>'
try 90 '%o = ttg.convert_layout %r : tensor<128xi32, #a> -> tensor<128xi32, #b>'
try 90 '%o, %e = tt.split %x : tensor<64x2xi32, #a2> -> tensor<64xi32, #h>'
try 90 "%o = \"tt.reduce\"(%c) <{axis = 1 : i32}> $sum ($t32) -> tensor<64xf32, #row>"
try 90 "%o = \"tt.reduce\"(%c) <{axis = 1 : i32}> $sum ($t32) -> tensor<64xf32, #col>"
try 90 "%o = ttg.memdesc_trans %g {order = array<i32: 1, 0>} : $good -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>"
try 90 "%o = ttg.memdesc_trans %g {order = array<i32: 1, 0>} : $good -> !ttg.memdesc<64x64xf16, #turn, #smem, mutable>"
try 90 '%o = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #twice>'
try 80 "%o = tt.dot %y, %y, %c $(mma 16 8 16 '4, 1') : $t16 * $t16 -> $t32"
try 80 "%o = tt.dot %g, %g, %c $(mma 16 8 16 '4, 1') : $good * $good -> $t32"
try 75 "%o = tt.dot %d, %d, %d : $t64 * $t64 -> $t64"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$dot} : $good * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %n, %w {$dot} : $good * $plain -> $acc"
try 90 "%o = ttng.warp_group_dot %y, %g, %w {$dot} : $t16 * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %g, %c {$dot} : $good * $good -> $t32"
try 90 "%o = ttng.warp_group_dot %i, %i, %w {$dot} : $bytes * $bytes -> $acc"
try 80 "%o = tt.dot %y, %y, %c $(mma 16 8 4 '4, 1') : $t16 * $t16 -> $t32"
try 75 "%o = tt.dot %y, %y, %c $(mma 16 8 16 '4, 1') : $t16 * $t16 -> $t32"
try 80 "%o = tt.dot %y, %y, %c $(mma 16 8 16 '3, 1') : $t16 * $t16 -> $t32"
try 80 "%o = tt.dot %y, %y, %c $(mma 16 8 16 '2, 1') : $t16 * $t16 -> $t32"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 32 '4, 1')} : $good * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 64 '2, 2')} : $good * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 64 '4, 1' ', tlc.exchanged')} : $good * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 64 '4, 1' ', tlc.register_groups = 2 : i32')} : $good * $good -> $acc"
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 0 '4, 1')} : $good * $good -> $acc"
try 90 '%o = arith.addi %r, %s : tensor<128xi32, #a>'
for way in registers shuffles 'memory, tlc.pieces = 1 : i32' 'memory, tlc.pieces = 3 : i32' 'warp_memory, tlc.pieces = 1 : i32'; do
	try 90 "%o = ttg.convert_layout %r {tlc.conversion = $way} : tensor<128xi32, #a> -> tensor<128xi32, #b>"
done
after=vectorize loaded='tensor<128x!tt.ptr<f32>, #a>'
try 90 "%o = tt.load %q : $loaded"
try 90 "%o = tt.load %q {tlc.vector = array<i32: 4>} : $loaded"
try 90 "%o = tt.load %q {tlc.vector = array<i32: 3>} : $loaded"
try 90 "%o = tt.load %q {tlc.unit = 2 : i32} : $loaded"
try 90 "tt.store %q, %f {tlc.vector = array<i32: 1, 4>} : $loaded"
after=allocate
try 90 '%o = ttg.convert_layout %r : tensor<128xi32, #a> -> tensor<128xi32, #b>'
after=multiply-adds
try 90 "%o = ttng.warp_group_dot %g, %g, %w {$(wgmma 64 '4, 1' ', tlc.transposed')} : $good * $good -> $acc"
in_registers='!ttg.memdesc<64x64xf16, #good, #smem, mutable> * tensor<64x64xf16, #exchanged> -> tensor<64x64xf32, #exchanged>'
try 90 "%o = ttng.warp_group_dot %g, %j, %k {$(wgmma 64 '4, 1' ', tlc.exchanged, tlc.register_groups = 2 : i32')} : $in_registers"
try 90 "%o:2 = ttng.warp_group_dot %g, %j, %k {$(wgmma 64 '4, 1' ', tlc.exchanged, tlc.register_groups = 2 : i32, isAsync')} : $in_registers"
try 90 "%o = ttng.warp_group_dot %g, %j, %k {$(wgmma 64 '4, 1' ', tlc.exchanged')} : $in_registers"
try 90 "%o = ttng.warp_group_dot %g, %j, %k {$(wgmma 64 '4, 1' ', tlc.register_groups = 2 : i32')} : $in_registers"
for groups in 3 8; do
	try 90 "%o = ttng.warp_group_dot %g, %j, %k {$(wgmma 64 '4, 1' ", tlc.exchanged, tlc.register_groups = $groups : i32")} : $in_registers"
done
rm -r "$tmp"
