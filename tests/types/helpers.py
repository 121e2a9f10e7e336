"""Functions that the expressions of operations.txt call, for Triton and for tlc."""
import triton
import triton.language as tl


@triton.jit
def combine_add(a, b):
    return a + b


@triton.jit
def combine_mul(a, b):
    return a * b


@triton.jit
def combine_xor(a, b):
    return a ^ b


@triton.jit
def combine_larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def combine_smaller(a, b):
    return tl.minimum(a, b)


@triton.jit
def combine_first(a, b):
    return a


@triton.jit
def combine_weak_larger(a, b):
    return tl.maximum(tl.maximum(a, b), 1)


@triton.jit
def combine_weak_sum(a, b):
    return a + b + 1


@triton.jit
def combine_choose(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def combine_two(a, i, b, j):
    return tl.where(a > b, a, b), i + j


@triton.jit
def carried(x, y):
    for k in range(tl.program_id(0)):
        x = x + y
    return x


@triton.jit
def chosen(c, x, y):
    return x if c > 0 else y


@triton.jit
def branched(c, x, y):
    if c > 0:
        r = x
    else:
        r = y
    return r


@triton.jit
def returned(c, x, y):
    if c > 0:
        return x
    else:
        return y


@triton.jit
def assigned(x):
    r = x
    return r


@triton.jit
def index_of(x, y):
    for k in range(x, y):
        observe(k)


@triton.jit
def index_by(x, y, z):
    for k in range(x, y, z):
        observe(k)


@triton.jit
def condition(x):
    r = 0
    if x:
        r = 1
    return r


@triton.jit
def loop_while(x):
    r = 0
    while x:
        r += 1
    return r


@triton.jit
def asserted(x):
    assert x


@triton.jit
def assumed(x):
    tl.assume(x)


@triton.jit
def printed(x):
    tl.device_print("x:", x)
