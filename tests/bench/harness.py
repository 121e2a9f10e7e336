"""What every row of the benchmark does: load a kernel into both compilers, check, time, print.

A row runs the same kernel text on the same tensors and stream with each compiler, over the same configurations, compares
each result with PyTorch's, and keeps the fastest configuration of each. Times are medians with a cold L2 cache.
"""
import ctypes
import importlib.util
import json
import os
import sys
import time

import torch
import triton
import triton.testing

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
DTYPES = {torch.int8: 1, torch.float8_e4m3fn: 9, torch.float8_e5m2: 10, torch.int32: 3, torch.int64: 4, torch.float16: 11, torch.bfloat16: 12, torch.float32: 13, torch.float64: 14}


class Value(ctypes.Union):
    _fields_ = [("ptr", ctypes.c_void_p), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Arg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("dtype", ctypes.c_int), ("typed", ctypes.c_bool), ("value", Value)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("num_warps", ctypes.c_int), ("num_stages", ctypes.c_int),
                ("group_pids", ctypes.c_int), ("debug", ctypes.c_bool), ("stream", ctypes.c_void_p)]


class TlError(Exception):
    pass


def to_arg(v):
    if isinstance(v, torch.Tensor):
        return Arg(1, DTYPES[v.dtype], True, Value(ptr=v.data_ptr()))
    if isinstance(v, bool):
        return Arg(4, 0, True, Value(i=v))
    if isinstance(v, int):
        return Arg(2, 3, False, Value(i=v))
    if isinstance(v, float):
        return Arg(3, 13, True, Value(f=v))
    return Arg(0, 3, False, Value(i=0))


def measure(f):
    """Median milliseconds with a cold L2 cache."""
    return triton.testing.do_bench(f, warmup=10, rep=60, return_mode="median")


def first(f):
    """Milliseconds of the first launch, which compiles."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


class Kernel:
    """One kernel of a .tl file, compiled by both."""

    def __init__(self, bench, path, function):
        name = os.path.basename(path).split(".")[0]
        loader = importlib.machinery.SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(module)
        self.bench, self.triton = bench, getattr(module, function)
        m, self.ours = ctypes.c_void_p(), ctypes.c_void_p()
        bench.must(bench.lib.tl_module_load(bench.context, path.encode(), ctypes.byref(m)))
        bench.must(bench.lib.tl_module_kernel(m, function.encode(), ctypes.byref(self.ours)))

    def tlc(self, grid, args, warps, stages):
        array = (Arg * len(args))(*map(to_arg, args))
        config = Config((ctypes.c_uint32 * 3)(*grid), warps, stages, 0, False, torch.cuda.current_stream().cuda_stream)
        launch, must, ref, n = self.bench.lib.tl_launch, self.bench.must, ctypes.byref(config), ctypes.c_size_t(len(args))
        return lambda: must(launch(self.ours, ref, array, n))

    def launcher(self, who, grid, args, warps, stages):
        if who == "tlc":
            return self.tlc(grid, args, warps, stages)
        return lambda: self.triton[grid](*args, num_warps=warps, num_stages=stages)


COLUMNS = ("kernel", "tlc µs", "Triton µs", "torch µs", "copy µs", "tlc", "best/tlc", "Triton/tlc", "torch/tlc", "copy/tlc",
           "tlc compile ms", "Triton compile ms", "tlc's best", "Triton's best", "")


class Bench:
    def __init__(self, build, wanted, all=False):
        self.all, self.wanted, self.saved = all, [w for w in wanted.split(",") if w], []
        self.lib = ctypes.CDLL(os.path.join(build, "libtl.so"))
        self.lib.tl_error.restype = ctypes.c_char_p
        self.lib.tl_error.argtypes = [ctypes.c_void_p]
        self.context = ctypes.c_void_p()
        torch.manual_seed(0)
        torch.zeros(1, device="cuda")
        self.must(self.lib.tl_context_from_cuda(None, ctypes.byref(self.context)))
        self.device = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}"
        print(f"{self.device}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)

    def must(self, status):
        if status:
            raise TlError(self.lib.tl_error(self.context).decode())

    def wants(self, what):
        return not self.wanted or any(w in what for w in self.wanted)

    def example(self, name, function):
        return Kernel(self, os.path.join(EXAMPLES, name + ".tl"), function)

    def kernel(self, function):
        return Kernel(self, os.path.join(HERE, "kernels.tl"), function)

    def best(self, what, who, kernel, grid, args, out, expected, configs, tolerance, notes):
        """(ms, configuration, ms of its first launch), or None where no configuration works."""
        best = None
        for constexprs, warps, stages in configs:
            run = kernel.launcher(who, grid(*constexprs), args(*constexprs), warps, stages)
            name = f"{','.join(map(str, constexprs))} w{warps}" + (f" s{stages}" if stages > 1 else "")
            out.fill_(float("nan") if out.is_floating_point() else -7)
            try:
                compile_ms = first(run)
                error = (out.float() - expected).abs_().max().item()
                if not error <= tolerance:
                    notes.append(f"{who} {name} WRONG: {error:.3g}")
                    continue
                ms = measure(run)
                if self.all:
                    print(f"{what} {who} {name}: {ms * 1e3:.1f} µs, first {compile_ms:.0f} ms", file=sys.stderr)
            except Exception as e:
                notes.append(f"{who} {name}: {type(e).__name__}")
                if who == "tlc":
                    print(e, file=sys.stderr)
                continue
            if best is None or ms < best[0]:
                best = ms, name, compile_ms
        return best

    def row(self, what, kernel, grid, args, out, reference, configs, bytes=0, flops=0, tolerance=1e-2):
        """grid and args are functions of the constexprs; configs: (constexprs, warps, stages). `bytes` must be moved."""
        notes = []
        expected = reference().float()
        ours, theirs = (self.best(what, who, kernel, grid, args, out, expected, configs, tolerance, notes) for who in ("tlc", "triton"))
        del expected
        library, copy = measure(reference), self.copy(bytes) if bytes else None
        rate = lambda ms: f"{flops / ms / 1e9:.0f} TFLOPS" if flops else f"{bytes / ms / 1e6:.0f} GB/s"
        us = lambda ms: f"{ms * 1e3:.1f}" if ms else "–"
        ratio = lambda ms: f"{ms / ours[0]:.2f}" if ms and ours else "–"
        cells = [what, us(ours and ours[0]), us(theirs and theirs[0]), us(library), us(copy), rate(ours[0]) if ours else "fails",
                 ratio(min(library, theirs[0] if theirs else library)), ratio(theirs and theirs[0]), ratio(library), ratio(copy),
                 f"{ours[2]:.0f}" if ours else "–", f"{theirs[2]:.0f}" if theirs else "–", ours[1] if ours else "–",
                 theirs[1] if theirs else "–", "; ".join(notes)]
        print(f"| {' | '.join(cells)} |", flush=True)
        self.saved.append(dict(zip(COLUMNS, cells)))

    def copy(self, bytes):
        """A copy that moves as many bytes, half of them read and half written."""
        x = torch.empty(bytes // 2, device="cuda", dtype=torch.uint8)
        y = torch.empty_like(x)
        return measure(lambda: y.copy_(x))

    def save(self, path):
        with open(path, "w") as f:
            json.dump({"device": self.device, "rows": self.saved}, f, indent=1)
