"""Arguments of kernels: types of elements and numbers, views, other libraries' arrays, tuples, descriptors, functions."""

import collections
import typing

import numpy as np
import pytest

import libtl
import libtl.language as tl

RNG = np.random.default_rng()


@libtl.jit
def copy(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)


@libtl.jit
def copy_strided(x, o, n, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i * stride, mask=i < n), mask=i < n)


@libtl.jit
def put(o, v):
    tl.store(o, v)


def random(n, dtype):
    return RNG.integers(0, 100, n).astype(dtype)


DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("device", ["cpu", "cpu:check", "interp", "sim"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(dtype, device):
    n = int(RNG.integers(1, 3000))
    x, o = random(n, dtype), random(n, dtype)
    with libtl.device(device):
        copy[(libtl.cdiv(n, 256),)](x, o, n, BLOCK=256)
    np.testing.assert_array_equal(o, x)


def test_grid_function_and_keywords():
    n = 1000
    x, o = random(n, "int32"), random(n, "int32")
    seen = {}

    def grid(meta):
        seen.update(meta)
        return libtl.cdiv(meta["n"], meta["BLOCK"]), 1

    copy[grid](o=o, x=x, BLOCK=128, n=n, num_warps=2)
    np.testing.assert_array_equal(o, x)
    assert seen["BLOCK"] == 128 and seen["x"] is x and set(seen) == {"x", "o", "n", "BLOCK"}


def test_views():
    base = random(4000, "float32")
    o = np.full(100, np.nan, "float32")
    copy_strided[(1,)](base[7:], o, 100, 3, BLOCK=128)
    np.testing.assert_array_equal(o, base[7:307:3])
    square = random((20, 30), "int16")
    o = np.zeros(30, "int16")
    copy[(1,)](square[3], o, 30, BLOCK=32)
    np.testing.assert_array_equal(o, square[3])


def test_views_reach_to_the_end_of_their_memory():
    """A kernel may use the memory after a view: on a device that checks accesses, too."""
    base = random(64, "int32")
    o = np.zeros(64, "int32")
    with libtl.device("interp"):
        copy[(1,)](base[:1], o, 64, BLOCK=64)
    np.testing.assert_array_equal(o, base)


@pytest.mark.parametrize("value, dtype", [
    (3, "int32"), (-1, "int32"), (2**31, "int64"), (-(2**63), "int64"), (2**63, "uint64"), (2**64 - 1, "uint64"),
    (True, "bool"), (0.5, "float32"), (np.float64(0.25), "float32"), (np.int64(7), "int64"), (np.uint8(200), "uint8"),
])
def test_numbers(value, dtype):
    o = np.zeros(1, dtype)
    put[(1,)](o, value)
    assert o[0] == value


def test_integers_of_more_than_64_bits():
    with pytest.raises(OverflowError):
        put[(1,)](np.zeros(1), 2**64)
    with pytest.raises(OverflowError):
        put[(1,)](np.zeros(1), -(2**63) - 1)


def test_arrays_that_are_refused():
    x, o = random(10, "float32"), random(10, "float32")
    with pytest.raises(ValueError, match="negative strides"):
        copy[(1,)](x[::-1], o, 10, BLOCK=16)
    with pytest.raises(TypeError, match="byte order"):
        copy[(1,)](x.astype(">f4"), o, 10, BLOCK=16)
    with pytest.raises(TypeError, match="complex|c8"):
        copy[(1,)](x.astype("complex64"), o, 10, BLOCK=16)
    with pytest.raises(TypeError, match="cannot be passed"):
        copy[(1,)](object(), o, 10, BLOCK=16)


def test_missing_and_unknown_arguments():
    x = random(10, "float32")
    with pytest.raises(TypeError, match="BLOCK"):
        copy[(1,)](x, x, 10)
    with pytest.raises(TypeError, match="too many"):
        copy[(1,)](x, x, 10, 16, 5)
    with pytest.raises(TypeError, match="multiple values"):
        copy[(1,)](x, x, 10, 16, BLOCK=16)
    with pytest.raises(KeyError, match="num_wraps"):
        copy[(1,)](x, x, 10, 16, num_wraps=4)


class DLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **kwargs):
        return self.a.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_dlpack():
    x, o = random(50, "float64"), np.zeros(50)
    copy[(1,)](DLPack(x), DLPack(o), 50, BLOCK=64)
    np.testing.assert_array_equal(o, x)


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float8_e5m2:
        x = torch.randint(0, 2, (100,)).to(dtype)
        o = torch.zeros(100, dtype=dtype)
        copy[(1,)](x, o, 100, BLOCK=128)
        assert torch.equal(o.float(), x.float())
    x = torch.randn(100, requires_grad=True)
    o = torch.full((100,), float("nan"))
    copy[(1,)](x, torch.nn.Parameter(o, requires_grad=False), 100, BLOCK=128)
    assert torch.equal(o, x)
    with pytest.raises(TypeError, match="complex64"):
        copy[(1,)](x.to(torch.complex64), o, 100, BLOCK=128)


Pair = collections.namedtuple("Pair", "first second")


class Typed(typing.NamedTuple):
    pointer: object
    scale: float = 2.0


@libtl.jit
def sum_of_tuple(o, values, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(len(values)):
        acc += tl.load(values[k].first + i) * values[k].second
    tl.store(o + i, acc)


@libtl.jit
def scaled(o, t, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(t.pointer + i) * t.scale)


def test_tuples():
    x, y = (RNG.standard_normal(64).astype("float32") for _ in range(2))
    o = np.full(64, np.nan, "float32")
    sum_of_tuple[(1,)](o, (Pair(x, 2), Pair(y, 0.5)), BLOCK=64)
    np.testing.assert_allclose(o, 2 * x + 0.5 * y, rtol=1e-6, atol=2e-6)
    scaled[(1,)](o, Typed(x), BLOCK=64)
    np.testing.assert_array_equal(o, 2 * x)


@libtl.jit
def apply(x, o, f: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, f(tl.load(x + i)))


def test_functions():
    """Functions of the same name in one kernel's arguments are told apart."""

    def made(k):
        @libtl.jit
        def times(v):
            return v * k

        return times

    x = RNG.standard_normal(16).astype("float32")
    o = np.full(16, np.nan, "float32")
    for k in 2, 3, 2:
        apply[(1,)](x, o, made(k), BLOCK=16)
        np.testing.assert_array_equal(o, x * np.float32(k))


@libtl.jit
def cast(x, o, T: tl.constexpr, NAME: tl.constexpr, SHAPE: tl.constexpr):
    i = tl.arange(0, SHAPE[0])
    v = tl.load(x + i).to(T)
    if NAME == "double":
        v += v
    tl.store(o + i, v)


def test_constexprs():
    x = RNG.standard_normal(16).astype("float32") * 10
    o = np.zeros(16, "int32")
    cast[(1,)](x, o, tl.int32, "double", (16,))
    np.testing.assert_array_equal(o, 2 * x.astype("int32"))
    cast[(1,)](x, o, tl.constexpr(tl.int8), tl.constexpr(None), tl.constexpr((16,)))
    np.testing.assert_array_equal(o, x.astype("int32"))


@libtl.jit
def by_descriptor(d, o, M: tl.constexpr, N: tl.constexpr):
    v = d.load([tl.program_id(0) * M, 0])
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o + tl.program_id(0) * M * N + i, v)


@pytest.mark.parametrize("device", ["cpu", "interp", "sim"])
def test_descriptors(device):
    x = np.zeros(64 * 32 + 4, "float32")
    x = x[-x.ctypes.data % 16 // 4:][: 64 * 32].reshape(64, 32)
    x[:] = RNG.standard_normal(x.shape)
    o = np.full(64 * 32, np.nan, "float32")
    with libtl.device(device):
        by_descriptor[(4,)](libtl.TensorDescriptor.from_tensor(x, [16, 32]), o, M=16, N=32)
    np.testing.assert_array_equal(o.reshape(x.shape), x)
    with pytest.raises(ValueError, match="strides has 1"):
        libtl.TensorDescriptor(x, [64, 32], [1], [16, 32])


def test_none_and_defaults():
    @libtl.jit
    def optional(o, x=None, BLOCK: tl.constexpr = 16):
        i = tl.arange(0, BLOCK)
        if x is None:
            tl.store(o + i, i)
        else:
            tl.store(o + i, tl.load(x + i))

    o = np.zeros(16, "int32")
    optional[(1,)](o)
    np.testing.assert_array_equal(o, np.arange(16))
    x = random(16, "int32")
    optional[1](o, x)
    np.testing.assert_array_equal(o, x)
