"""Measuring and comparing kernels."""

import functools
import math
import os
import statistics
import sys
import time

from . import _device

__all__ = ["do_bench", "do_bench_cudagraph", "Benchmark", "Mark", "perf_report", "assert_close", "nvsmi"]


def _quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def _summary(times, quantiles, mode):
    if quantiles is not None:
        r = [_quantile(times, q) for q in quantiles]
        return r[0] if len(r) == 1 else r
    if mode == "all":
        return times
    return {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median}[mode](times)


def _cuda():
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def do_bench(fn, warmup=25, rep=100, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Measures a function that launches kernels, in milliseconds.

    warmup, rep: milliseconds for which the function runs before it is timed, and while it is timed. grad_to_none: tensors
    whose gradients are dropped before each run. quantiles: these quantiles are returned. return_mode: "mean", "median",
    "min", "max" or "all". On a GPU the L2 cache is flushed before each run.
    """
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise ValueError(f"return_mode is {return_mode!r}; it must be min, max, mean, median or all")
    torch = _cuda()
    timer = functools.partial(_timed_gpu, torch) if torch else _timed_host
    timer(fn, 1, None)
    start = time.perf_counter()
    timer(fn, 5, None)
    # of a run, with the flush and the host's part: a short function is not run a hundred thousand times
    estimate = (time.perf_counter() - start) * 1e3 / 5
    runs = max(1, int(rep / estimate))
    for _ in range(max(1, int(warmup / estimate))):
        fn()
    return _summary(timer(fn, runs, grad_to_none), quantiles, return_mode)


def _drop(tensors):
    for t in tensors or ():
        t.grad = None


def _timed_host(fn, runs, grad_to_none):
    times = []
    for _ in range(runs):
        _drop(grad_to_none)
        start = time.perf_counter()
        fn()
        _device.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _timed_gpu(torch, fn, runs, grad_to_none):
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
    for start, end in events:
        _drop(grad_to_none)
        flush.zero_()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in events]


def do_bench_cudagraph(fn, rep=20, grad_to_none=None, quantiles=None, return_mode="mean"):
    """Like do_bench, with the runs captured in a CUDA graph, so that the host takes no part. It needs PyTorch and a GPU."""
    torch = _cuda()
    if torch is None:
        raise RuntimeError("do_bench_cudagraph needs PyTorch and a GPU")
    with torch.cuda.stream(torch.cuda.Stream()):
        fn()
        _drop(grad_to_none)
        estimate = statistics.median(_timed_gpu(torch, fn, 5, grad_to_none)) or 1e-4
        n = max(1, int(rep / estimate))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(n):
                _drop(grad_to_none)
                fn()
        torch.cuda.synchronize()
        times = [t / n for t in _timed_gpu(torch, graph.replay, 10, None)]
    return _summary(times, quantiles, return_mode)


class Benchmark:
    """A plot of times: for perf_report.

    x_names: parameters that take the values `x_vals`. line_arg: the parameter that takes `line_vals`, one line each, with
    the names `line_names`. plot_name: a name of a file. args: other arguments, by name.
    """

    def __init__(self, x_names, x_vals, line_arg, line_vals, line_names, plot_name, args, xlabel="", ylabel="",
                 x_log=False, y_log=False, styles=None):
        self.x_names, self.x_vals, self.line_arg, self.line_vals = x_names, x_vals, line_arg, line_vals
        self.line_names, self.plot_name, self.args, self.styles = line_names, plot_name, args, styles
        self.xlabel, self.ylabel, self.x_log, self.y_log = xlabel, ylabel, x_log, y_log


class Mark:
    """A function with its benchmarks."""

    def __init__(self, fn, benchmarks):
        self.fn, self.benchmarks = fn, benchmarks

    def _rows(self, b, kwargs):
        for x in b.x_vals:
            xs = x if isinstance(x, (list, tuple)) else [x] * len(b.x_names)
            if len(xs) != len(b.x_names):
                raise ValueError(f"expected {len(b.x_names)} values, got {x}")
            row = [self.fn(**dict(zip(b.x_names, xs)), **{b.line_arg: y}, **b.args, **kwargs) for y in b.line_vals]
            yield list(xs), [y[0] if isinstance(y, (list, tuple)) else y for y in row]

    def _table(self, b, rows):
        head = [*b.x_names, *(f"{n} ({b.ylabel})" if b.ylabel else n for n in b.line_names)]
        cells = [[str(v) if isinstance(v, int) else f"{v:.6f}" for v in (*xs, *ys)] for xs, ys in rows]
        widths = [max(len(r[i]) for r in [head, *cells]) for i in range(len(head))]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(r, widths)) for r in [head, *cells])

    def run(self, show_plots=False, print_data=False, save_path="", return_df=False, **kwargs):
        """Runs the benchmarks. print_data: prints a table. save_path: a folder for tables in CSV. return_df: returns pandas
        data frames."""
        benchmarks = self.benchmarks if isinstance(self.benchmarks, (list, tuple)) else [self.benchmarks]
        frames = []
        for b in benchmarks:
            rows = list(self._rows(b, kwargs))
            if print_data:
                print(f"{b.plot_name}:\n{self._table(b, rows)}")
            if save_path:
                os.makedirs(save_path, exist_ok=True)
                with open(os.path.join(save_path, f"{b.plot_name}.csv"), "w") as f:
                    for r in [[*b.x_names, *b.line_names], *([*xs, *ys] for xs, ys in rows)]:
                        f.write(",".join(map(str, r)) + "\n")
            if return_df:
                import pandas
                frames.append(pandas.DataFrame([[*xs, *ys] for xs, ys in rows], columns=[*b.x_names, *b.line_names]))
        if return_df:
            return frames if isinstance(self.benchmarks, (list, tuple)) else frames[0]
        return None


def perf_report(benchmarks):
    """Marks a function as a benchmark: its `run` measures all points, and prints a table."""
    return lambda fn: Mark(fn, benchmarks)


def assert_close(x, y, atol=None, rtol=None, err_msg=""):
    """Raises AssertionError where |x - y| > atol + rtol |y|. x, y: tensors or arrays. The default tolerances are 1e-2 and
    0."""
    import numpy
    x, y = (_array(numpy, v) for v in (x, y))
    numpy.testing.assert_allclose(x, y, rtol=0 if rtol is None else rtol, atol=1e-2 if atol is None else atol,
                                  err_msg=err_msg, equal_nan=True)


def _array(numpy, v):
    if hasattr(v, "detach"):
        v = v.detach().cpu()
        v = v.float().numpy() if str(v.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2") else v.numpy()
    return numpy.asarray(v)


def nvsmi(attrs):
    """Values that nvidia-smi gives for GPU 0."""
    import subprocess
    out = subprocess.check_output(["nvidia-smi", "-i", "0", "--query-gpu=" + ",".join(attrs), "--format=csv,noheader,nounits"])
    return [int(x) for x in out.decode().split(",")]
