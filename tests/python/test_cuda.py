"""Kernels on a GPU through the CUDA driver: the one of the machine, or where there is none, the driver that the
simulator stands in for ($LIBTL_BUILD/simcuda). Memory comes from the driver, without any other library."""

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

import libtl
import libtl.language as tl

SIMULATED = os.path.join(os.environ.get("LIBTL_BUILD", ""), "simcuda")


def driver():
    """The driver with a current context; None: there is no GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return None
    assert not cuda.cuDeviceGet(ctypes.byref(device), 0)
    assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    assert not cuda.cuCtxPushCurrent_v2(context)
    return cuda


CUDA = driver()
ON_GPU = pytest.mark.skipif(CUDA is None, reason="no CUDA driver in this process; test_simulated_driver runs these tests")


class Array:
    """An array in memory of the GPU, with __cuda_array_interface__."""

    def __init__(self, a):
        self.shape, self.dtype, self.nbytes = a.shape, a.dtype, a.nbytes
        p = ctypes.c_uint64()
        assert not CUDA.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(max(a.nbytes, 1)))
        assert not CUDA.cuMemcpyHtoDAsync_v2(p, ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(a.nbytes), None)
        assert not CUDA.cuCtxSynchronize()
        self.address = p.value

    @property
    def __cuda_array_interface__(self):
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False)}

    def get(self):
        libtl.synchronize()
        a = np.empty(self.shape, self.dtype)
        assert not CUDA.cuMemcpyDtoHAsync_v2(
            ctypes.c_void_p(a.ctypes.data), ctypes.c_uint64(self.address), ctypes.c_size_t(a.nbytes), None)
        assert not CUDA.cuCtxSynchronize()
        return a


@libtl.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@libtl.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0)
        y = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@ON_GPU
def test_add():
    r = np.random.default_rng()
    n = int(r.integers(1, 5000))
    x, y = (r.standard_normal(n).astype("float32") for _ in range(2))
    o = Array(np.full(n, np.nan, "float32"))
    k = add[(libtl.cdiv(n, 512),)](Array(x), Array(y), o, n, BLOCK=512)
    np.testing.assert_array_equal(o.get(), x + y)
    assert k.resources["threads"] == 128 and k.n_spills == 0 and ".entry add" in k.asm["ptx"]


@ON_GPU
def test_matmul():
    r = np.random.default_rng()
    m, n, k = (int(v) for v in r.integers(17, 150, 3))
    a, b = r.standard_normal((m, k)).astype("float16"), r.standard_normal((k, n)).astype("float16")
    c = Array(np.full((m, n), np.nan, "float32"))
    matmul[lambda meta: (libtl.cdiv(m, meta["BM"]), libtl.cdiv(n, meta["BN"]))](
        Array(a), Array(b), c, m, n, k, BM=64, BN=64, BK=32)
    np.testing.assert_allclose(c.get(), a.astype("float64") @ b.astype("float64"), rtol=2e-3, atol=2e-3)


@ON_GPU
def test_devices_are_not_mixed():
    x = np.zeros(16, "float32")
    with pytest.raises(ValueError, match="different devices: one before is on cuda:0, and argument 1 is on cpu"):
        add[(1,)](Array(x), x, Array(x), 16, BLOCK=16)
    with libtl.device("interp"):
        add[(1,)](Array(x), Array(x), Array(x), 16, BLOCK=16)  # memory of the GPU decides
    with pytest.raises(libtl.ArgumentError, match='"interp" cannot use memory of a GPU'):
        add[(1,)](Array(x), Array(x), Array(x), 16, BLOCK=16, device="interp")


@ON_GPU
def test_stream():
    stream = ctypes.c_void_p()
    assert not CUDA.cuStreamCreate(ctypes.byref(stream), 1)
    x = np.arange(1000, dtype="int32")
    o = Array(np.zeros(1000, "int32"))
    add[(2,)](Array(x), Array(x), o, 1000, BLOCK=512, stream=stream.value)
    assert not CUDA.cuStreamSynchronize(stream)
    np.testing.assert_array_equal(o.get(), 2 * x)


@ON_GPU
def test_fork_is_refused():
    """A child process of fork cannot use the GPU, and says so."""
    x = np.zeros(16, "float32")
    add[(1,)](Array(x), Array(x), Array(x), 16, BLOCK=16)
    arguments = Array(x), Array(x), Array(x)
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            add[(1,)](*arguments, 16, BLOCK=16)
            os.write(write, b"launched")
        except libtl.DeviceError as e:
            os.write(write, str(e).encode())
        os._exit(0)
    os.close(write)
    assert "spawn" in os.read(read, 1000).decode()


GIVEN_UP = """
import libtl
import libtl.language as tl
from libtl import _compiled, triton_compat

@libtl.jit
def fill(x):
    for i in tl.static_range(1000):
        tl.store(x + tl.arange(0, 128) * i, 1.0 + i)

k = _compiled.compile_types(triton_compat.ASTSource(fill, {"x": "*fp32"}, {}, {}), "cuda:0", {})
assert len(k.asm["ptx"]) > 1 << 16
print(k.n_regs, k.n_spills)
"""


@pytest.mark.skipif(CUDA is not None, reason="the simulated driver alone can give up")
@pytest.mark.parametrize("cache", ["0", "1", "1"])
def test_given_up_allocation(cache, tmp_path_factory):
    """Where the driver's assembler gives up the allocation of registers, its least optimization is used: for a compiled
    kernel, without and with the disk cache, and for one from the disk cache."""
    if not os.path.exists(os.path.join(SIMULATED, "libcuda.so.1")):
        pytest.skip("build/simcuda/libcuda.so.1 is not built: make test-programs")
    folder = tmp_path_factory.getbasetemp() / "given_up"
    folder.mkdir(exist_ok=True)
    (folder / "fill.py").write_text(GIVEN_UP)
    environment = {**os.environ, "LD_LIBRARY_PATH": SIMULATED, "TL_CACHE": cache, "TL_CACHE_DIR": str(folder / "cache")}
    for gives_up, expected in (("1", "255 0"), (None, "32 0")):
        if cache == "1" and not gives_up:
            break  # the code is in the cache
        own = {**environment, **({"SIMCUDA_GIVES_UP": gives_up} if gives_up else {})}
        r = subprocess.run([sys.executable, str(folder / "fill.py")], capture_output=True, text=True, env=own, check=False)
        assert r.stdout.strip() == expected, r.stdout + r.stderr


@pytest.mark.skipif(CUDA is not None, reason="the tests above run on a driver already")
def test_simulated_driver():
    """The tests of this file, in a process whose driver is the simulator."""
    if not os.path.exists(os.path.join(SIMULATED, "libcuda.so.1")):
        pytest.skip("build/simcuda/libcuda.so.1 is not built: make test-programs")
    environment = {**os.environ, "LD_LIBRARY_PATH": SIMULATED}
    r = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__], capture_output=True,
                       text=True, env=environment, check=False)
    assert r.returncode == 0 and "5 passed, 4 skipped" in r.stdout, r.stdout + r.stderr
