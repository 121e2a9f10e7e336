import os
import triton
from packaging import version
from . import sub, rescaled
from .helpers import scaled, UNKNOWN
from pkg.sub.deep import BLOCK
from pkg import negative
import pkg.sub.deep as deep
tl = triton.language

fast = tl.exp2 if os.environ.get("TLC_TEST_FAST", "0") == "1" else tl.exp
NEW = version.parse(triton.__version__) >= version.parse("3.0.0")

@triton.jit
def k(p):
    i = tl.arange(0, BLOCK + deep.BLOCK)
    x = scaled(tl.load(p + i)) + sub.FACTOR
    if NEW:
        x = fast(rescaled(x))
    tl.store(p + i, negative(x))

@triton.jit
def wrong(p):
    tl.store(p, UNKNOWN)
    tl.store(p, sub.nothing)
