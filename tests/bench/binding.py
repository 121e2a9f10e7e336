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

# a tuner: the configuration that is right, of two, with the grid that the plan gives
tuner, config, out = ctypes.c_void_p(), libtl.Config(grid_dims=2), libtl.Choice()
keys = (ctypes.c_char_p * 1)(b"n")
options = libtl.Tuning(keys, 1, rep_ms=1, limit_ms=500, threads=1, check=True, tolerance=1e-6)
tl.must(tl.lib.tl_tuner_create(kernel, ctypes.byref(options), ctypes.byref(tuner)))
for warps in 3, 2:
    named = (libtl.NamedArg * 1)(libtl.NamedArg(b"B", libtl.scalar(BLOCK)))
    tl.must(tl.lib.tl_tuner_add(tuner, ctypes.byref(libtl.Config(num_warps=warps)), named, ctypes.c_size_t(1)))


@libtl.PLAN
def plan(user, config, args, nargs):
    config.contents.grid[0], config.contents.grid[1] = -(-args[4].value.i // args[5].value.i), 1
    return 0 if nargs == 6 else 1


array = (libtl.Arg * 5)(*args[:5])
for call in tl.lib.tl_tuner_choose, tl.lib.tl_tuner_launch:
    ctypes.memset(y, 0, ctypes.sizeof(y))
    last = [ctypes.byref(out)] if call == tl.lib.tl_tuner_choose else []
    tl.must(call(tuner, ctypes.byref(config), plan, None, array, ctypes.c_size_t(5), *last))
assert out.text == b"B=64 num_warps=2" and not out.stored, (out.text, out.stored)
assert list(out.config.grid) == [16, 1, 0] and out.config.num_warps == 2
assert all(y[i] == x[i] * 0.5 + 3 for i in range(N))
