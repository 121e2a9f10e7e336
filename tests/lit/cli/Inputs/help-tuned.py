import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (256, 1024) for w in (4, 8)], key=['n'])
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
