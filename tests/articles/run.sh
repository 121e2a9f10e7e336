#!/bin/sh
# run.sh DIR BUILD: every kernel of the articles in DIR becomes PTX for sm_80 and sm_90a (assembled, where ptxas is
# there) and gives the right result on the best device here. The numbers are those the articles launch with.
set -eu
here=$(dirname "$0") dir=$1 build=$2 work=$2/articles
rm -rf "$work"
sh "$here/extract.sh" "$dir" "$work"
npass=0 nfail=0
PATH=$PATH:/usr/local/cuda/bin # ptxas may be there

# compiles FILE KERNEL SIGNATURE [-D…]
compiles() {
	file=$1 kernel=$2 sig=$3
	shift 3
	for arch in sm_80 sm_90a; do
		ptx=$work/$file.$arch.ptx
		if "$build/tlc" "$work/$file.py" -k "$kernel" -s "$sig" "$@" --target "cuda:$arch" --emit ptx -o "$ptx" &&
			{ ! command -v ptxas > /dev/null || ptxas -arch=$arch "$ptx" -o /dev/null; }; then
			npass=$((npass + 1))
		else
			echo "$file: no PTX for $arch"
			nfail=$((nfail + 1))
		fi
	done
}

f32=*fp32:16 f16=*fp16:16 s9=i32:16,i32,i32,i32:16,i32:1,i32:16,i32:1,i32:16,i32:1
row="$f32,$f32,i32:16,i32:16,i32"
compiles 000_add add_kernel "$f32,$f32,$f32,i32" -D BLOCK_SIZE=1024
compiles 000_softmax softmax_kernel "$f32,$f32,i32:16,i32:16,i32,i32" -D BLOCK_SIZE=1024 -D num_stages=4
compiles 000_matmul matmul_kernel "$f16,$f16,$f16,$s9" -D BLOCK_SIZE_M=128 -D BLOCK_SIZE_N=64 -D BLOCK_SIZE_K=32 -D GROUP_SIZE_M=2
compiles 001_add add_kernel "*i64:16,*i64:16,*i64:16,i32" -D BLOCK_SIZE=128
compiles 001_softmax softmax_kernel "$row" -D BLOCK_SIZE=512
compiles 001_mean mean_kernel "$f32,$f32,i32,i32,i32:1,i32,i32:1,i32,i32,i32" -D BLOCK_SIZE=1024
compiles 002_add add_kernel "$f32,$f32,$f32,i32:16" -D BLOCK_SIZE=1024
compiles 002_matmul naive_matmul_k "$f32,$f32,$f32,$s9" -D bm=32 -D bn=32 -D bk=32
compiles 002_softmax fused_softmax_k "$f32,$f32,i32:16,i32:16" -D BLOCK_SIZE=1024
compiles 002_grouped grouped_autotuned_matmul_k "$f16,$f16,$f16,$s9" -D bm=128 -D bn=256 -D bk=64 -D group_sz=8
compiles 002_debug my_kernel "$f32,$f32,i32" -D BLOCK_SIZE=64
compiles 004_add add_triton "$f32,$f32,$f32,i32" -D BLOCK_SIZE=1024
compiles 004_softmax softmax_kernel "$row" -D BLOCK_SIZE=1024
compiles 004_layer_norm layer_norm_kernel "$f16,$f16,$f16,$f16,$f32,$f32,i32:16,i32:16" -D eps=1e-5 -D BLOCK_SIZE=1024
compiles 004_matmul matmul_kernel "$f16,$f16,$f16,$s9" -D BLOCK_M=128 -D BLOCK_N=256 -D BLOCK_K=64 -D GROUP_M=8 --num-warps 8
compiles 004_rel_attn rel_attn_kernel "$f16,$f16,$f16,$f32,$f16,i32:16,i32:16,i32:16,i32:1,i32:16,i32:16,i32:16,i32:1,i32:16,i32:16,i32:16,i32:1,i32:16,i32:16,i32:16,i32:1,i32,i32,i32,i32:16,fp32" -D BLOCK_M=64 -D BLOCK_N=64 -D BLOCK_D=64
compiles 004_autotune my_kernel "$f32,$f32,i32,i32" -D BLOCK_M=64 -D BLOCK_N=256
echo "$npass passed, $nfail failed (PTX)"
"$build/articles-test" "$work"
[ $nfail = 0 ]
