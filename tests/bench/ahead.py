"""Triton's compilation of the rows' configurations by several processes, before the rows run and find it in Triton's cache."""
import concurrent.futures
import multiprocessing
import os
import sys
import time
import types

import torch
from torch.overrides import TorchFunctionMode
from triton.tools.tensor_descriptor import TensorDescriptor

import fused_attention
from harness import Bench
from load import load_python


class WithoutData(TorchFunctionMode):
    """Tensors have shapes only, and cost nothing."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "meta"
        return function(*args, **kwargs)


class Recorder:
    """A kernel of Triton's that remembers what it is launched with, as far as that decides what is compiled."""

    def __init__(self, jobs, path, function):
        self.jobs, self.path, self.function = jobs, path, function
        self.params = getattr(load_python(path), function).params

    def __getitem__(self, grid):
        def launch(*args, num_warps, num_stages):
            told = tuple(self.kind(a, p.is_constexpr) for a, p in zip(args, self.params))
            self.jobs[self.path, self.function, told, num_warps, num_stages] = None
        return launch

    def kind(self, a, constexpr):
        if isinstance(a, torch.Tensor):
            return a.dtype
        if isinstance(a, TensorDescriptor):
            return "descriptor", a.base.dtype, tuple(a.shape), tuple(a.strides), tuple(a.block_shape)
        if constexpr or isinstance(a, bool) or not isinstance(a, int) or not -(2**31) <= a < 2**31:
            return a
        return 1 if a == 1 else 16 if a % 16 == 0 else 17


class Collector(Bench):
    def __init__(self, wanted):
        self.wanted, self.jobs, self.tl = self.filters(wanted), {}, types.SimpleNamespace(kernel=lambda *_: None)

    def triton(self, path, function):
        return Recorder(self.jobs, path, function)

    def row(self, what, kernel, grid, args, out, reference, configs, tutorial=None, **_):
        launchers = [(kernel.launcher("triton", grid, args), configs)] + ([tutorial] if tutorial else [])
        for prepare, several in launchers:
            for config in several:
                prepare(*config)()


def collect(wanted, groups):
    collector = Collector(wanted)
    real = fused_attention.fused_attention_kernel
    fused_attention.fused_attention_kernel = Recorder(collector.jobs, fused_attention.__file__, real.__name__)
    for group in groups:
        try:
            with WithoutData():
                group.rows(collector)
        except (NotImplementedError, RuntimeError) as e:  # its rows look at values
            print(f"{group.__name__}: the rest is compiled row by row: {str(e).splitlines()[0]}", file=sys.stderr)
    fused_attention.fused_attention_kernel = real
    return list(collector.jobs)


def compile_one(job):
    path, function, told, warps, stages = job
    if (path, function) not in compile_one.kernels:
        compile_one.kernels[path, function] = getattr(load_python(path), function)
    args = [TensorDescriptor(torch.empty(a[2], dtype=a[1], device="meta"), *map(list, a[2:])) if isinstance(a, tuple) else a for a in told]
    try:
        compile_one.kernels[path, function].warmup(*args, grid=(1, 1, 1), num_warps=warps, num_stages=stages)
    except Exception as e:  # the row will say so
        return f"{function} {told}: {type(e).__name__}"


compile_one.kernels = {}


def compile_ahead(wanted, groups, processes):
    begin, jobs = time.perf_counter(), collect(wanted, groups)
    with concurrent.futures.ProcessPoolExecutor(min(processes, len(jobs) or 1), multiprocessing.get_context("spawn")) as pool:
        failed = [text for text in pool.map(compile_one, jobs) if text]
    for text in failed:
        print(text, file=sys.stderr)
    print(f"{len(jobs)} variants by Triton in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
