"""Threads that compile TorchInductor's kernels, instead of worker processes: the compiler runs without Python's lock."""

import concurrent.futures
import contextlib
import functools
import os

__all__ = ["install"]


@functools.cache
def _pool(process, threads):
    """A child process of fork gets its own threads."""
    return concurrent.futures.ThreadPoolExecutor(threads, "libtl")


def _compiled(load, device):
    """The kernel with the code of all its configurations. device: the index of the GPU that is current, or None."""
    import torch
    with contextlib.nullcontext() if device is None else torch.cuda.device(device):
        kernel = load()
        kernel.precompile(warm_cache_only=True)
        return kernel


def install(set_attribute, threads):
    """Lets TorchInductor compile its kernels in so many threads. set_attribute(owner, name, value) is undone later."""
    import torch
    from torch._inductor import async_compile, codecache
    from torch._inductor.virtualized import V
    owner, kernels = async_compile.AsyncCompile, async_compile.CompiledTritonKernels
    one_by_one, wait_for_others = owner.triton, owner.wait

    def triton(self, kernel_name, source_code, device_str="cuda"):
        if kernels.get(source_code) is not None or os.environ.get("TRITON_INTERPRET") == "1":
            return one_by_one(self, kernel_name, source_code, device_str)
        load = functools.partial(codecache._load_triton_kernel_from_source, kernel_name, source_code)
        device = torch.cuda.current_device() if device_str == "cuda" and torch.cuda.is_available() else None
        info = torch._guards.CompileContext.current_compile_id(), getattr(V.graph, "is_backward", False)
        task = _pool(os.getpid(), threads).submit(_compiled, load, device)

        def result():
            kernel = task.result()
            kernel.set_compile_info(*info)
            kernel.precompile(warm_cache_only=False, static_triton_bundle_key=kernels.key(source_code))
            return kernel

        return codecache.LambdaFuture(result, future=task)

    def wait(self, scope):
        self._wait_futures(scope)
        wait_for_others(self, scope)

    set_attribute(owner, "triton", triton)
    set_attribute(owner, "wait", wait)
