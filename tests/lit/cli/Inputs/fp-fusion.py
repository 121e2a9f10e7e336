import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({'BLOCK': 64, 'enable_fp_fusion': False}, num_warps=2),
                          triton.Config({'BLOCK': 64, 'enable_fp_fusion': True})], key=[])
@triton.jit
def scale_and_add(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * 3 + tl.load(y + i))
