#!/bin/sh
# checked.sh BUILD: what checks of every access cost: kernels on cpu and on cpu:check, in turns, the fastest of three medians.
# A Markdown table.
build=${1:-build}
here=$(dirname "$0")

# row NAME FILE KERNEL ARGUMENT…
row() {
	name=$1
	shift
	for turn in 1 2 3; do
		for device in cpu cpu:check; do
			"$build/tlc" bench "$@" --device "$device" --rep 300 --json | tr ',{}' '\n\n\n' |
				sed -n "s/^ *\"ms\": *\([0-9.e-]*\).*/$device \1/p"
		done
	done | awk -v name="$name" '{ if (!best[$1] || $2 < best[$1]) best[$1] = $2 }
		END { printf "| %s | %.3f | %.3f | %.1f |\n", name, best["cpu"], best["cpu:check"], best["cpu:check"] / best["cpu"] }'
}

echo "| kernel | cpu ms | cpu:check ms | check/cpu |"
echo "|---|---|---|---|"
for type in fp32 bf16; do
	row "gelu $type 2^22" "$here/cpu.tl" -k gelu_kernel -g 4096 -D BLOCK=1024 "x_ptr=$type[4194304]:randn:1" "out_ptr=$type[4194304]:zeros" n=4194304
	row "softmax $type 4096 x 1000" "$here/../../examples/softmax.tl" -k softmax_kernel -g 4096 -D BLOCK=1024 "y_ptr=$type[4194304]:zeros" \
		"x_ptr=$type[4194304]:rand:2" x_stride=1024 y_stride=1024 n_cols=1000
	row "layer norm $type 4096 x 1000" "$here/cpu.tl" -k layer_norm_kernel -g 4096 -D BLOCK=1024 "x_ptr=$type[4096000]:randn:1" \
		"weight_ptr=$type[1000]:ones" "bias_ptr=$type[1000]:ones" "out_ptr=$type[4096000]:zeros" stride=1000 n_cols=1000 eps=0.1
done
row "mean of columns fp32 4096 x 1000" "$here/cpu.tl" -k column_mean_kernel -g 8 -D BM=32 -D BN=128 x_ptr='fp32[4096000]:randn:1' \
	out_ptr='fp32[1000]:zeros' stride=1000 n_rows=4096 n_cols=1000
row "cumsum fp32 4096 x 1000" "$here/workloads.tl" -k cumsum_kernel -g 4096 -D BLOCK=1024 x_ptr='fp32[4096000]:randn:1' \
	out_ptr='fp32[4096000]:zeros' n_cols=1000
row "matmul fp32 1024^3" "$here/cpu.tl" -k matmul_kernel -g 64 -D BM=128 -D BN=128 -D BK=128 -D GROUP=8 a_ptr='fp32[1048576]:rand:1' \
	b_ptr='fp32[1048576]:rand:1' c_ptr='fp32[1048576]:zeros' M=1024 N=1024 K=1024 stride_a=1024 stride_b=1024 stride_c=1024
row "attention fp32 8 x 2048 x 64" "$here/cpu.tl" -k attention_kernel -g 16,8 -D D=64 -D BM=128 -D BN=64 -D CAUSAL=False \
	q_ptr='fp32[8,2048,64]:randn:1' k_ptr='fp32[8,2048,64]:randn:2' v_ptr='fp32[8,2048,64]:randn:3' \
	out_ptr='fp32[8,2048,64]:zeros' scale=0.125 n=2048
row "int4 weights, 16 rows" "$here/workloads.tl" -k int4_kernel -g 1,32 -D BM=16 -D BN=64 -D BK=128 -D GROUP=128 x_ptr='fp16[16,2048]:randn:1' \
	w_ptr='i32[256,2048]:arange' scale_ptr='fp16[16,2048]:rand:2' out_ptr='fp16[16,2048]:zeros' m=16 n=2048 k=2048
row "gather: 16 codes" "$here/workloads.tl" -k codebook_kernel -g 1,32 -D BM=16 -D BN=64 -D BK=64 x_ptr='fp16[16,2048]:randn:1' \
	w_ptr='u8[2048,1024]:arange' code_ptr='fp32[16]:rand:3' scale_ptr='fp32[2048,32]:rand:2' out_ptr='fp16[16,2048]:zeros' m=16 n=2048 k=2048
row "atomic add fp32" "$here/workloads.tl" -k scatter_add_kernel -g 4096,2 -D BLOCK=512 x_ptr='fp32[4096,1024]:randn:1' \
	index_ptr='i32[4096]:arange' out_ptr='fp32[4096,1024]:zeros' width=1024
