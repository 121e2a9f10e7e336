import triton
import triton.language as tl
from factor import times


@triton.jit
def scaled(x, n, by, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, times(tl.load(x + i, mask=i < n), by), mask=i < n)
