import triton

BLOCK = 64

@triton.jit
def negative(x):
    return -x
