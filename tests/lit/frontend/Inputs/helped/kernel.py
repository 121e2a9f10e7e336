import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

triton_helpers.set_driver_to_gpu()
HIP: tl.constexpr = torch.version.hip is not None
NEW: tl.constexpr = torch.__version__ >= "2"


@triton.jit
def k(o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = triton_helpers.maximum(i * 0.0, -1.0)
    m = triton_helpers.libdevice.abs(-1.0) + triton_helpers.math.abs(-1.0) + libdevice.abs(-1.0) + tl_math.abs(-1.0)
    a = tl.load(o + i, None, other=triton_helpers.if_mask(None, 0.0))
    b = tl.load(o + i, i < 0, other=triton_helpers.if_mask(i < 0, 5.0))
    tl.store(o + i, x + a + b + m - 4 + HIP + (0 if NEW else 1))


@tl.core.builtin
def rows(n, _semantic=None):
    return n // 4 if isinstance(n, tl.constexpr) else 100


@triton.jit
def compiled(o, N: tl.constexpr):
    tl.store(o, triton_helpers.half_width(tl.arange(0, N), tl.float32) + triton_helpers.doubled(N) + rows(N))


@triton.jit
def wrong(o, N: tl.constexpr):
    triton_helpers.maximun(o, o)
    triton_helpers.broken(o)
    triton_helpers.doubled(tl.load(o))


@triton.jit
def missing(o, N: tl.constexpr):
    triton_helpers.gather_rows(o, o)
