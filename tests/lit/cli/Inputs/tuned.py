import triton
import triton.language as tl
from somewhere import cache_results, libentry, tuned_elsewhere

options = {"cache_results": cache_results}

def configurations(sizes):
    found = []
    for size in sizes:
        if size % 32 == 0:
            found.append(triton.Config({"BLOCK": size, "KIND": "sum"}, num_warps=4 if size < 128 else 8))
    return found

@libentry()
@triton.autotune(configs=configurations((16, 64, 128)) + [triton.Config(dict(BLOCK=32, KIND=None), num_stages=2)],
                 key=["n"], **options)
@triton.heuristics({
    "HAS_BIAS": lambda args: args["bias"] is not None,
    "EVEN": lambda args: args["n"] % args["BLOCK"] == 0,
    "LARGE": lambda args: args["BLOCK"] >= 64,
})
@triton.jit
def kernel(p, bias, n, BLOCK: tl.constexpr, KIND: tl.constexpr, HAS_BIAS: tl.constexpr, EVEN: tl.constexpr,
           LARGE: tl.constexpr, SCALE: tl.constexpr = 0.5):
    i = tl.arange(0, BLOCK)
    x = i * 1.0
    if HAS_BIAS:
        x += tl.load(bias + i)
    if LARGE:
        x = -x
    tl.store(p + i, x, mask=None if EVEN else i < n)

@tuned_elsewhere(configs=read_from_file("block.yaml"), key=["n"])
@triton.jit
def other(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.arange(0, BLOCK), helper(n))

@triton.jit
def helper(x):
    return x + 1
