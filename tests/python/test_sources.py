"""The text of a kernel: names from modules and closures, changed globals, lines and columns of messages."""

import enum
import math
import pickle
import textwrap
import typing

import numpy as np
import pytest

import libtl
import libtl.language as tl
from libtl.language import load, store as put_there
from libtl.language.extra import libdevice

FACTOR = tl.constexpr(3)
OFFSET = 5
LIMITS = (1, 2, 4)


class Settings:
    scale = 10

    class inner:
        shift = 7


class Mode(enum.Enum):
    ADD = 1


class Shape(typing.NamedTuple):
    rows: int
    columns: int = 4


SHAPE = Shape(2)


@libtl.constexpr_function
def doubled(x):
    return 2 * x


@libtl.jit
def helper(v, k: tl.constexpr):
    return v * k + FACTOR


def run(kernel, n=16, dtype="float32", **kwargs):
    x = np.random.default_rng().standard_normal(n).astype(dtype)
    o = np.full(n, np.nan, dtype)
    kernel[(1,)](x, o, **kwargs)
    return x, o


def test_module_names():
    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, LIMITS[2] * SHAPE.rows * 2)
        v = helper(load(x + i), doubled(2)) + OFFSET * Settings.scale + Settings.inner.shift
        put_there(o + i, v + libdevice.floor(v) + math.pi)

    x, o = run(kernel)
    v = x * 4 + 3 + 57
    np.testing.assert_allclose(o, v + np.floor(v) + np.pi, rtol=1e-6, atol=2e-6)


def test_closures():
    def made(k, f):
        @libtl.jit
        def kernel(x, o):
            i = tl.arange(0, 16)
            tl.store(o + i, f(tl.load(x + i), k))

        return kernel

    for k in 2, 5:
        x, o = run(made(k, helper))
        np.testing.assert_allclose(o, x * k + 3, rtol=1e-6, atol=2e-6)


def test_changed_global():
    """A global that has changed since the last launch counts: never the old value."""

    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 16)
        tl.store(o + i, tl.load(x + i) + OFFSET)

    global OFFSET
    before = OFFSET
    try:
        for value in 5, 8, 5:
            OFFSET = value
            x, o = run(kernel)
            np.testing.assert_array_equal(o, x + np.float32(value))
    finally:
        OFFSET = before


def test_changed_variables_of_functions_and_objects():
    shift = 1

    @libtl.jit
    def add(v):
        return v + shift * Settings.inner.shift

    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 16)
        tl.store(o + i, add(tl.load(x + i)))

    before = Settings.inner.shift
    try:
        for shift, Settings.inner.shift in (2, 7), (3, 7), (3, 9), (2, 7):  # noqa: B007
            x, o = run(kernel)
            np.testing.assert_array_equal(o, x + np.float32(shift * Settings.inner.shift))
    finally:
        Settings.inner.shift = before


def test_place_of_errors():
    """File, line and column are the Python file's, also of an indented function."""

    @libtl.jit
    def kernel(x, o):
        """A text before the error: é."""
        i = tl.arange(0, 16)
        tl.store(o + i, tl.load(x + i) + undefined_name)

    with pytest.raises(libtl.CompileError, match="'undefined_name' is not defined") as e:
        run(kernel)
    line = kernel.fn.__code__.co_firstlineno + 4
    text = open(__file__, encoding="utf-8").read().splitlines()[line - 1]
    assert (e.value.file, e.value.line) == (__file__, line)
    assert e.value.column == text.index("undefined_name") + 1
    assert str(e.value).splitlines()[0].startswith(f"{__file__}:{line}:{e.value.column}: error: ")
    assert text.strip() in str(e.value)


@libtl.jit
def wrong(v):
    return v + nothing.of_it


def test_place_of_errors_in_helpers():
    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 16)
        tl.store(o + i, wrong(tl.load(x + i)))

    with pytest.raises(libtl.CompileError) as e:
        run(kernel)
    assert e.value.line == wrong.fn.__code__.co_firstlineno + 2
    assert f"{__file__}:{kernel.fn.__code__.co_firstlineno + 3}:" in str(e.value)  # the call, as a note


@pytest.mark.parametrize("device", ["interp", "cpu:check", "sim"])
def test_place_of_faults(device):
    @libtl.jit
    def kernel(x, o):
        i = tl.arange(0, 32)
        tl.store(o + i, tl.load(x + i))

    with libtl.device(device), pytest.raises(libtl.KernelError, match="outside") as e:
        run(kernel)
    assert (e.value.file, e.value.line, e.value.kernel) == (__file__, kernel.fn.__code__.co_firstlineno + 3, "kernel")


def test_static_assert():
    @libtl.jit
    def kernel(x, o, N: tl.constexpr):
        tl.static_assert(N == 16, "N must be 16")
        tl.store(o, N)

    with pytest.raises(libtl.CompileTimeAssertionFailure, match="N must be 16"):
        run(kernel, N=8)


def test_device_assert():
    @libtl.jit(debug=True)
    def kernel(x, o):
        i = tl.arange(0, 16)
        v = tl.load(x + i)
        tl.device_assert(v < 0, "not negative")
        tl.store(o + i, v)

    with libtl.device("interp"), pytest.raises(libtl.KernelError, match="not negative"):
        kernel[(1,)](np.ones(16, "float32"), np.ones(16, "float32"))


def test_warnings():
    @libtl.jit
    def kernel(x, o):
        tl.load(x)

    with pytest.warns(libtl.CompilerWarning, match="no effect"):
        run(kernel)


def test_no_source():
    scope = {"libtl": libtl, "tl": tl}
    exec(textwrap.dedent("""
        @libtl.jit
        def kernel(x, o):
            tl.store(o, 1)
    """), scope)
    with pytest.raises(libtl.CompileError, match="source of kernel is not available"):
        scope["kernel"][(1,)](np.zeros(1), np.zeros(1))


def test_values_without_text():
    """An object that has no text is an error where it is used, not before."""
    unused = object()

    @libtl.jit
    def kernel(x, o, F: tl.constexpr):
        if F:
            tl.store(o, unused)
        tl.store(o, 1)

    o = np.zeros(1, "int32")
    kernel[(1,)](o, o, False)
    assert o[0] == 1
    with pytest.raises(libtl.CompileError, match="unused"):
        kernel[(1,)](o, o, True)


def test_pickle():
    assert pickle.loads(pickle.dumps(helper)) is helper
    e = pickle.loads(pickle.dumps(libtl.CompileError("text", "status", "k", "f", 3, 4)))
    assert (str(e), e.line, e.column) == ("text", 3, 4)


def test_outside_of_kernels():
    with pytest.raises(RuntimeError, match="tl.load exists in kernels only"):
        tl.load(0)
    with pytest.raises(RuntimeError, match="launch it with helper"):
        helper(1, 2)
    assert libtl.cdiv(5, 2) == 3 and libtl.next_power_of_2(5) == 8
    assert (FACTOR + 1).value == 4 and tl.float16 == tl.dtype("fp16") and tl.int32.primitive_bitwidth == 32
