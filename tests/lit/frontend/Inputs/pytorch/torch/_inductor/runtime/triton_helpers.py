import warnings
from typing import Any, Callable

from .triton_compat import _log2, is_new, libdevice, math, tl, triton  # noqa


def set_driver_to_gpu():
    warnings.warn("no driver")


@triton.jit
def maximum(a, b):
    return libdevice.exp(a) + math.abs(b) + 40


@triton.jit
def broken(a):
    return a +


@triton.jit
def half_width(x, DTYPE: tl.constexpr):
    DTYPE = tl.core._unwrap_if_constexpr(DTYPE)
    return DTYPE.primitive_bitwidth // 2 + _log2(x.numel)


def triton_builtin(f: Callable[..., Any]) -> Callable[..., Any]:
    if is_new:

        def wrapper(*args, _semantic, **kwargs):
            kwargs["_builder"] = _semantic
            return f(*args, **kwargs)
    else:
        wrapper = f
    wrapper.__triton_builtin__ = True
    return wrapper


@triton_builtin
def if_mask(mask: Any, val, *, _builder: object = None) -> tl.constexpr:
    if isinstance(mask, tl.constexpr) and mask.value is None:
        return tl.constexpr(None)
    return val


@triton_builtin
def doubled(n: tl.constexpr, *, _builder: object = None) -> tl.constexpr:
    assert isinstance(n, tl.constexpr)
    return tl.constexpr(2 * n.value)
