"""The structures of libtl.py are those of runtime/tl.h: launches through them on the interpreter give the right numbers.

    python3 tests/bench/binding.py BUILD

Ends with status 0 if so. Needs neither a GPU, torch nor triton.
"""
import ctypes
import os
import random
import sys
import tempfile

import libtl

TEXT = '''
import triton
import triton.language as tl

@triton.jit
def scaled(x_ptr, y_ptr, factor, shift, n, B: tl.constexpr):
    i = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * B + tl.arange(0, B)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor + shift, mask=i < n)
'''
N, BLOCK = 1000, 64

tl = libtl.Context(libtl.load(sys.argv[1]), "interp")
with tempfile.NamedTemporaryFile("w", suffix=".tl") as source:
    source.write(TEXT)
    source.flush()
    kernel = tl.kernel(source.name, "scaled")
random.seed(1)
x, y = (ctypes.c_float * N)(), (ctypes.c_float * N)()
for i in range(N):
    x[i], y[i] = random.randint(-100, 100), float("nan")
address = [ctypes.addressof(a) for a in (x, y)]
args = [libtl.pointer("float32", address[0], ctypes.sizeof(x)), libtl.pointer("float32", address[1], ctypes.sizeof(y)),
        libtl.scalar(0.5), libtl.scalar(3), libtl.scalar(N), libtl.scalar(BLOCK)]
tl.launcher(kernel, (4, 4, 1), args, 4, 3)()
tl.synchronize()
for i in range(N):
    assert y[i] == x[i] * 0.5 + 3, (i, x[i], y[i])
assert "tt.store" in tl.dump(kernel, args, 4, 3, "ttir")
