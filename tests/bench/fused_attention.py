"""Attention as Triton programs for Hopper write it, after FlashAttention-2 (Dao, 2023) as Triton's tutorial does: tiles
fetched by TMA through descriptors that the host makes, the scale folded into exp2, the loop over keys split at the
diagonal. An anchor for the text in examples/, which uses plain pointers. Sequences are multiples of the tiles.
"""
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def visit(acc, total, largest, q, keys, values, row, first, last, log2_scale, m, BLOCK_N: tl.constexpr, DIAGONAL: tl.constexpr):
    """Keys first to last of the head whose rows begin at `row`."""
    for start in tl.range(first, last, BLOCK_N):
        start = tl.multiple_of(start, BLOCK_N)
        scores = tl.dot(q, keys.load([row + start, 0]).T)
        if DIAGONAL:
            visible = m[:, None] >= start + tl.arange(0, BLOCK_N)[None, :]
            scores = scores * log2_scale + tl.where(visible, 0, -1.0e6)
            now = tl.maximum(largest, tl.max(scores, 1))
            scores -= now[:, None]
        else:
            now = tl.maximum(largest, tl.max(scores, 1) * log2_scale)
            scores = scores * log2_scale - now[:, None]
        p = tl.exp2(scores)
        shrink = tl.exp2(largest - now)
        sums = tl.sum(p, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(tl.float16), values.load([row + start, 0]), acc)
        total = total * shrink + sums
        largest = now
    return acc, total, largest


@triton.jit
def fused_attention_kernel(queries, keys, values, out, scale, N, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
                           BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """All four are matrices of fp16: heads times N rows, HEAD_DIM columns."""
    tile = tl.program_id(0)
    row = tl.program_id(1) * N
    m = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    largest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    log2_scale = scale * 1.44269504
    q = queries.load([row + tile * BLOCK_M, 0])
    if CAUSAL:
        acc, total, largest = visit(acc, total, largest, q, keys, values, row, 0, tile * BLOCK_M, log2_scale, m, BLOCK_N, False)
        acc, total, largest = visit(acc, total, largest, q, keys, values, row, tl.multiple_of(tile * BLOCK_M, BLOCK_M),
                                    (tile + 1) * BLOCK_M, log2_scale, m, BLOCK_N, True)
    else:
        acc, total, largest = visit(acc, total, largest, q, keys, values, row, 0, N, log2_scale, m, BLOCK_N, False)
    out.store([row + tile * BLOCK_M, 0], (acc / total[:, None]).to(tl.float16))


def configs(d, causal):
    """Those of the tutorial and some more: 8 warps only where each has enough to do; a tile on the diagonal is not wider
    than high; what is in flight fits shared memory."""
    return [((bm, bn), warps, stages) for bm in (64, 128) for bn in (32, 64, 128) for warps in (4, 8) for stages in (2, 3, 4)
            if (warps == 4 or bm == 128 and bn >= 64) and (not causal or bm >= bn) and 2 * d * (bm + 2 * bn * stages) <= 226 * 1024]


def launcher(q, k, v, out, scale, causal):
    """What runs it with the tiles, warps and stages of a configuration."""
    heads, n, d = q.shape[0] * q.shape[1], q.shape[2], q.shape[3]

    def prepare(tile, warps, stages):
        bm, bn = tile
        tiles = [TensorDescriptor.from_tensor(x.view(-1, d), [rows, d]) for x, rows in ((q, bm), (k, bn), (v, bn), (out, bm))]
        grid = (n // bm, heads, 1)
        return lambda: fused_attention_kernel[grid](*tiles, scale, n, d, bm, bn, causal, num_warps=warps, num_stages=stages)
    return prepare
