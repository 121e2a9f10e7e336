"""Lifetimes, threads, options and bindings: that what was compiled once stays right when something else changes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import libtl
import libtl.language as tl
from libtl import knobs, triton_compat

PYTHON = os.environ.get("LIBTL_PYTHON", sys.executable)  # under qemu, a script that starts it
RNG = np.random.default_rng()
N = tl.constexpr(1)
ZERO = 0.0
PAIR = (7, 2)
NESTED = ([1],)


@libtl.jit
def multiply_add(x, y, z, o):
    i = tl.arange(0, 1024)
    tl.store(o + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


def products():
    x, y = RNG.standard_normal((2, 1024)).astype("float32")
    return x, y, -(x * y), np.full(1024, np.nan, "float32")


def test_default_of_fusion_holds_for_each_launch():
    x, y, z, o = products()
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        for _ in range(3):
            o[:] = np.nan
            multiply_add[(1,)](x, y, z, o)
            assert (o == 0).all()
    for _ in range(2):
        multiply_add[(1,)](x, y, z, o)
        assert o.any()


def test_options_are_variants():
    x, y, z, o = products()
    hashes = {multiply_add[(1,)](x, y, z, o, **options).hash for options in (
        {}, {"enable_fp_fusion": False}, {"enable_reflect_ftz": False}, {"num_warps": 8}, {"enable_fp_fusion": True})}
    assert len(hashes) == 4


@libtl.jit
def put(o):
    tl.store(o, N + ZERO + PAIR[0] / PAIR[1] + NESTED[0][0])


def test_changes_that_are_equal_but_not_the_same():
    global N, ZERO, PAIR, NESTED

    @libtl.jit
    def bits(o):
        tl.store(o, ZERO)

    @libtl.jit
    def quotient(o):
        tl.store(o, PAIR[0] // PAIR[1])

    o = np.zeros(1, "float32")
    bits[1](o)
    assert not np.signbit(o[0])
    ZERO = -0.0
    bits[1](o)
    assert np.signbit(o[0])
    ZERO = 0.0
    for pair, expected in ((7, 2), 3), ((7.5, 2.0), 3.0), ((9, 2), 4):
        PAIR = pair
        quotient[1](o)
        assert o[0] == expected
    PAIR = (7, 2)
    put[1](o)
    assert o[0] == 1 + 0 + 3.5 + 1
    NESTED[0][0] = 5
    put[1](o)
    assert o[0] == 1 + 0 + 3.5 + 5
    NESTED[0][0] = 1


def test_changes_of_inherited_attributes():
    class Settings:
        K = 2

    settings = Settings()

    @libtl.jit
    def kernel(o):
        tl.store(o, settings.K)

    o = np.zeros(1, "int32")
    for Settings.K in 2, 8, 2:
        kernel[1](o)
        assert o[0] == Settings.K


def test_changes_seen_on_another_device():
    global N
    o = np.zeros(1, "float32")
    before = N
    try:
        put[1](o)
        put[1](o)
        N = tl.constexpr(5)
        put[1](o, device="interp")
        put[1](o)
        assert o[0] == 5 + 3.5 + 1
    finally:
        N = before


def test_lists_of_functions():
    @libtl.jit
    def twice(v):
        return v * 2

    functions = [twice]

    @libtl.jit
    def kernel(o):
        tl.store(o, functions[0](tl.load(o)))

    o = np.array([3], "int32")
    kernel[1](o)
    assert o[0] == 6
    modules = len(kernel._modules)
    kernel[1](o)
    assert o[0] == 12 and len(kernel._modules) == modules


@libtl.jit
def by_descriptor(d, o, M: tl.constexpr):
    v = d.load([0, 0])
    tl.store(o + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], v)


def test_descriptors_outlive_their_launch():
    """In a process whose allocator overwrites what is freed."""
    if os.environ.get("PYTHONMALLOC") != "debug":
        r = subprocess.run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k",
                            "outlive"], env={**os.environ, "PYTHONMALLOC": "debug"}, capture_output=True, text=True,
                           check=False)
        assert r.returncode == 0 and "1 passed" in r.stdout, r.stdout + r.stderr
        return
    x = np.zeros(16 * 16 + 4, "float32")
    x = x[-x.ctypes.data % 16 // 4:][:256].reshape(16, 16)
    o = np.zeros((16, 16), "float32")
    compiled = by_descriptor.warmup(libtl.TensorDescriptor.from_tensor(x, [16, 16]), o, M=16, grid=(1,))
    launched = by_descriptor[1](libtl.TensorDescriptor.from_tensor(x, [16, 16]), o, M=16)
    assert "tt.func" in compiled.dump("ttir") and "tt.func" in launched.dump("ttir")


def test_threads_and_changes():
    """Launches in threads while another thread changes a global that the kernel depends on."""
    code = """
import threading
import numpy as np, libtl, libtl.language as tl
M = tl.constexpr(1)
@libtl.jit
def kernel(o):
    tl.store(o + tl.arange(0, 64), M)
def work():
    o = np.zeros(64, "int32")
    for _ in range(300):
        kernel[1](o)
        assert o[0] in (1, 2)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads:
    t.start()
for k in range(60):
    M = tl.constexpr(k % 2 + 1)
for t in threads:
    t.join()
print("done")
"""
    path = os.path.join(os.environ.get("LIBTL_WORK", "/tmp"), "threads_and_changes.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    r = subprocess.run([PYTHON, path], capture_output=True, text=True, check=False)
    assert r.returncode == 0 and "done" in r.stdout, r.stdout + r.stderr


def test_aggregates_are_told_apart_by_their_values():
    @triton_compat.aggregate
    class S:
        k: tl.constexpr

        def __init__(self, k):
            self.k = tl.constexpr(k)

    @libtl.jit
    def kernel(o, s: tl.constexpr):
        tl.store(o, s.k)

    o = np.zeros(1, "int32")
    for i in range(1, 6):
        text = kernel.warmup(o, S(i), grid=(1,)).asm["ttir"]
        assert f"constant {i} : i32" in text
        kernel[1](o, S(i))
        assert o[0] == i


def test_pre_hook_alone():
    seen = []

    @libtl.autotune([libtl.Config({"B": b}) for b in (16, 32)], key=[], pre_hook=lambda *a, **k: seen.append(a), warmup=1, rep=1)
    @libtl.jit
    def kernel(o, B: tl.constexpr):
        tl.store(o + tl.arange(0, B), 1)

    o = np.zeros(32, "int32")
    kernel[1](o)
    assert seen and o[:16].all()


def test_reinterpret():
    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 16)
        tl.store(o + i, tl.load(x + i))

    x = RNG.standard_normal(16).astype("float32")
    o = np.zeros(16, "int32")
    kernel[1](libtl.reinterpret(x, tl.int32), o)
    np.testing.assert_array_equal(o, x.view("int32"))


def test_read_only_arrays():
    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 16)
        tl.store(o + i, tl.load(x + i) + 1)

    text = bytes(range(16))
    x, o = np.frombuffer(text, "uint8"), np.zeros(16, "uint8")
    for _ in range(2):
        kernel[1](x, o)
        np.testing.assert_array_equal(o, x + 1)
        with pytest.raises(libtl.ArgumentError, match="writes 'o', which is a read-only array"):
            kernel[1](o, x)
    assert text == bytes(range(16))


def test_binding_is_pythons():
    @libtl.jit
    def kernel(o, /, a, *, K: tl.constexpr):
        tl.store(o, a + K)

    o = np.zeros(1, "int32")
    for _ in range(3):
        kernel[1](o, 1, K=4)
        assert o[0] == 5
        with pytest.raises(TypeError):
            kernel[1](o, 1, 4)
        with pytest.raises(TypeError):
            kernel[1](o=o, a=1, K=4)


def test_wrong_options_and_grids():
    o = np.zeros(1, "float32")
    for grid, message in ((-1, "axis 0 of the grid has -1 programs"), ((1, 2**32), "axis 1 of the grid"),
                          (1.5, "axis 0 of the grid is 1.5; it must be an integer"), (lambda meta: None, "axis 0 of the grid is None")):
        for _ in range(2):
            with pytest.raises((ValueError, TypeError), match=message):
                put[grid](o)
    with pytest.raises(ValueError, match="num_warps is 4294967300"):
        put[1](o, num_warps=2**32 + 4)
    with pytest.raises(libtl.ArgumentError, match="do_not_specialize='n': it must be a list of parameters"):
        libtl.jit(do_not_specialize="n")(put.fn)
    with pytest.raises(libtl.ArgumentError, match="n"):
        libtl.jit(do_not_specialize=["n"])(put.fn)


def test_device_of_a_kernel_can_change():
    @libtl.jit
    def kernel(o):
        tl.store(o + tl.program_id(0), 1)

    o = np.zeros(1, "int32")
    kernel[1](o)
    kernel.device = "interp"
    with pytest.raises(libtl.KernelError):
        kernel[2](o)


def test_many_texts_and_parameters():
    @libtl.jit
    def kernel(o, names: tl.constexpr):
        tl.store(o, len(names))

    o = np.zeros(1, "int32")
    kernel[1](o, tuple(f"name{i}" for i in range(300)))
    assert o[0] == 300
    parameters = ", ".join(f"p{i}" for i in range(257))
    scope = {}
    exec(f"def many({parameters}): pass", scope)
    with pytest.raises(TypeError, match="many has 257 parameters; a kernel has at most 256"):
        libtl.jit(scope["many"])
