"""libtl: kernels in Triton's language, compiled by tlc in milliseconds, on NVIDIA GPUs and on CPUs.

    import libtl
    import libtl.language as tl

    @libtl.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offs < n
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask) + tl.load(y_ptr + offs, mask), mask)

    add[(libtl.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

Arguments are tensors of PyTorch, arrays of NumPy, CuPy and JAX, and all that has DLPack. Memory of a GPU is used by
kernels on that GPU, on PyTorch's current stream; memory of the host by kernels on the CPU, or for debugging on the
device that set_device() chooses.
"""

from . import _core
from . import language
from ._device import device, device_info, get_device, set_device, synchronize
from ._jit import (CompiledKernel, ConstexprFunction, JITFunction, KernelInterface, MockTensor, TensorWrapper,
                   constexpr_function, jit, reinterpret)
from .autotuner import Config, autotune, heuristics
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .tools.tensor_descriptor import TensorDescriptor

__version__ = _core.version()
__all__ = ["jit", "autotune", "heuristics", "Config", "constexpr_function", "cdiv", "next_power_of_2", "language",
           "TensorDescriptor", "device", "set_device", "get_device", "device_info", "synchronize", "reinterpret",
           "JITFunction", "CompiledKernel", "install", *_errors]


@constexpr_function
def cdiv(x, y):
    """x / y rounded up, of positive integers."""
    return (x + (y - 1)) // y


@constexpr_function
def next_power_of_2(n):
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def install():
    """Makes `import triton` mean libtl from now on. Call it before Triton is imported. RuntimeError: it has been."""
    from . import triton_compat
    triton_compat.install()


def __getattr__(name):
    if name in ("testing", "torch", "triton_compat", "tools"):
        import importlib
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'libtl' has no attribute {name!r}")
