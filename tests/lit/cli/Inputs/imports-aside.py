import triton
import triton.language as tl
from aside import SIZE

@triton.jit
def k(p: "*fp32"):
    tl.store(p + tl.arange(0, SIZE), 1.0)
