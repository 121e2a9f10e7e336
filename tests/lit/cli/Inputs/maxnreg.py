import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({'BLOCK': 64}, num_stages=2, maxnreg=40)], key=[])
@triton.jit
def limited(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@triton.autotune(configs=[triton.Config({'BLOCK': 64}, num_warps=3)], key=[])
@triton.jit
def three_warps(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)
