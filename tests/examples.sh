#!/bin/sh
# examples.sh BUILD: the kernels of examples/ compile without options; their programs find the results right on the
# interpreter, and find them wrong when a kernel is. BUILD/examples holds the programs.
set -u
build=$1
top=$(dirname "$0")/..
work=$build/examples-test
. "$top/tests/verdict.sh"
rm -rf "$work"
mkdir -p "$work"

for file in "$top"/examples/*.tl; do
	for arch in sm_80 sm_90a; do
		ptx=$work/$(basename "$file" .tl).$arch.ptx
		"$build/tlc" "$file" --target "cuda:$arch" --emit ptx -o "$ptx" &&
			{ ! command -v ptxas >/dev/null || ptxas -arch=$arch "$ptx" -o /dev/null; }
		verdict $? "$file: no PTX for $arch without options"
	done
done

for program in vector_add softmax matmul mean layer_norm attention attention_bias; do
	"$build/examples/$program" --kernels "$top/examples" --device interp >"$work/$program.txt" 2>&1
	verdict $? "$program: see $work/$program.txt"
done

# finds PROGRAM FILE SED-SCRIPT: the program must end with 1 after this change to the kernel.
finds() {
	rm -rf "$work/changed"
	cp -R "$top/examples" "$work/changed"
	sed -i "$3" "$work/changed/$2.tl"
	if cmp -s "$top/examples/$2.tl" "$work/changed/$2.tl"; then
		verdict 1 "$2.tl: '$3' changes nothing"
		return
	fi
	"$build/examples/$1" --kernels "$work/changed" --device interp >"$work/changed.txt" 2>&1
	[ $? = 1 ]
	verdict $? "$1: '$3' goes unnoticed"
}
finds vector_add vector_add 's/x + y, mask=inside/x + y/'
finds vector_add vector_add 's/inside = i < n/inside = i < n - 1/'
finds vector_add vector_add 's/inside = i < n/inside = i < unknown/'
finds softmax softmax 's/col, y, mask=inside/col, y/'
finds softmax softmax_persistent 's/0), n_rows,/0), n_rows - 1,/'
finds matmul matmul 's/b_ptrs, mask=.*, other=0.0/b_ptrs/'
finds matmul matmul 's/0\.01 \* x/0.0101 * x/'
finds matmul matmul 's/ & (n\[None, :\] < N)//'
finds matmul matmul_persistent 's/ & (n\[None, :\] < N)//'
finds matmul matmul_split_k 's/static_range(1, SPLIT_K)/static_range(1, SPLIT_K - 1)/'
finds mean mean 's/tl.sum(acc, axis=0) \/ N/tl.sum(acc, axis=0) \/ (N + 1)/'
finds mean mean 's/N, mask=k < K/N, mask=k <= K/'
finds layer_norm layer_norm 's/ \/ n + eps/ \/ n/'
finds layer_norm layer_norm 's/tl.where(start + col < n, x - mean, 0)/x - mean/'
finds layer_norm layer_norm 's/tl.store(rstd_ptr + row, rstd)/tl.store(rstd_ptr + row, rstd * 1.00001)/'
finds attention attention 's/n\[None, :\] <= m/n[None, :] < m/'
finds attention attention 's/seen = n\[None, :\] < N_CTX/seen = n[None, :] <= N_CTX/'
finds attention attention 's/acc \* shrink\[:, None\]/acc/'
finds attention_bias attention_bias 's/RADIUS), -RADIUS)/RADIUS), -RADIUS + 1)/'
finds attention_bias attention_bias 's/tl.where(j\[None, :\] < N_CTX/tl.where(j[None, :] <= N_CTX/'

echo "$npass passed, $nfail failed"
[ $nfail = 0 ]
