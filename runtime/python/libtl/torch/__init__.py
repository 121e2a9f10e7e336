"""torch.compile with libtl: TorchInductor's kernels are compiled by tlc, for NVIDIA GPUs and for CPUs.

    import libtl.torch
    libtl.torch.enable()

    @torch.compile
    def f(x):
        return torch.softmax(x, 1) * 2

Triton is not needed. On a machine without a GPU the kernels run on the CPU, instead of TorchInductor's C++ kernels.
"""

from ._backend import disable, enable, is_enabled, statistics

__all__ = ["enable", "disable", "is_enabled", "statistics"]
