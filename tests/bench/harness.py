"""What every row of the benchmark does: load a kernel into both compilers, check, time, print.

A row runs the same kernel text on the same tensors and stream with each compiler, over the same configurations, compares
each result with PyTorch's, and keeps the fastest configuration of each. Those and the libraries are then timed in turns.
"""
import fnmatch
import json
import os
import statistics
import sys
import time

import torch
import triton
import triton.testing

import libtl
from load import load_python

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
DEVICE = "cuda"  # or "cpu": see Host
RELATIVE = 5e-2  # most that results may differ by, of their norm: an absolute tolerance says little where they are small


def size(gpu, cpu):
    """Of a row on the device."""
    return gpu if DEVICE == "cuda" else cpu


def untimed(f):
    """The reference of a row: what f returns, or f itself on the CPU, where it is timed: there are no libraries beside it."""
    return f() if DEVICE == "cuda" else f


def to_arg(v):
    if not isinstance(v, torch.Tensor):
        return libtl.scalar(v)
    # torch's tensors share allocations
    extent = 1 + sum((n - 1) * stride for n, stride in zip(v.shape, v.stride()))
    return libtl.pointer(str(v.dtype)[6:], v.data_ptr(), extent * v.element_size())


def measure(f):
    """Median milliseconds with a cold L2 cache."""
    return triton.testing.do_bench(f, warmup=10, rep=60, return_mode="median")


def in_turns(runs, rounds=None, hidden_cycles=0):
    """Milliseconds of each with a cold L2 cache, launched in turns: clock and heat, as those before left them, are the same for all.
    The mean of the middle half of the launches: times of short kernels fall on steps 0.8 µs apart, of long ones on several clocks.
    rounds: the launches of each, or None. hidden_cycles: the GPU waits so long before each launch, for the host to get ahead."""
    cache = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    event = lambda: torch.cuda.Event(enable_timing=True)
    rounds = rounds or min(300, max(30, int(60 / min(map(measure, runs.values())))))
    spans = {name: [] for name in runs}
    for i in range(rounds):
        for name in list(runs)[:: 1 if i % 2 else -1]:
            spans[name].append((event(), event()))
            if hidden_cycles:
                torch.cuda._sleep(hidden_cycles)
            cache.zero_()
            spans[name][-1][0].record()
            runs[name]()
            spans[name][-1][1].record()
    torch.cuda.synchronize()
    times = {name: sorted(a.elapsed_time(b) for a, b in pairs) for name, pairs in spans.items()}
    return {name: statistics.mean(t[rounds // 4 : -(rounds // 4)]) for name, t in times.items()}


def first(f):
    """Milliseconds of the first launch, which compiles."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


def differs(result, expected, tolerance):
    """How much, or None where that is little enough."""
    difference = result.float() - expected
    error, share = difference.abs().max().item(), (difference.norm() / expected.norm()).item()
    return None if error <= tolerance and share <= RELATIVE else f"{error:.3g}, {share:.3g} of the whole"


class Kernel:
    """One kernel of a .tl file, compiled by both."""

    def __init__(self, bench, path, function):
        self.tl, self.triton, self.ours = bench.tl, bench.triton(path, function), bench.tl.kernel(path, function)
        self.stream = torch.cuda.current_stream().cuda_stream if DEVICE == "cuda" else None

    def launcher(self, who, grid, args):
        """What runs it with the constexprs, warps and stages of a configuration."""
        def prepare(constexprs, warps, stages):
            where, values = grid(*constexprs), args(*constexprs)
            if who == "tlc":
                return self.tl.launcher(self.ours, where, list(map(to_arg, values)), warps, stages, self.stream)
            return lambda: self.triton[where](*values, num_warps=warps, num_stages=stages)
        return prepare


class Steps:
    """Kernels that run one after the other, timed as one. launches: from the constexprs to a list of (kernel, grid, args), or
    with (warps, stages) behind, where a kernel has its own."""

    def __init__(self, launches):
        self.launches = launches

    def launcher(self, who, *_):
        def prepare(constexprs, warps, stages):
            runs = [kernel.launcher(who, lambda: grid, lambda: args)((), *(own[0] if own else (warps, stages)))
                    for kernel, grid, args, *own in self.launches(*constexprs)]

            def all_of_them():
                for run in runs:
                    run()
            return all_of_them
        return prepare


COLUMNS = ("kernel", "tlc µs", "Triton µs", "tutorial µs", "torch µs", "copy µs", "tlc", "best/tlc", "Triton/tlc", "tutorial/tlc",
           "torch/tlc", "copy/tlc", "roof/tlc", "anchors", "tlc compile ms", "Triton compile ms", "tlc's best", "Triton's best", "tutorial's best", "")


class Bench:
    def __init__(self, build, wanted, all=False):
        self.all, self.saved, self.peaks = all, [], {}
        self.wanted = self.filters(wanted)
        torch.manual_seed(0)
        torch.zeros(1, device="cuda")
        self.tl = libtl.Context(libtl.load(build))
        self.device = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}"
        print(f"{self.device}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)

    def filters(self, wanted):
        return [w[1:] + "*" if w[0] == "^" else f"*{w}*" for w in wanted.split(",") if w]

    def triton(self, path, function):
        return getattr(load_python(path), function)

    def wants(self, what):
        return not self.wanted or any(fnmatch.fnmatchcase(what, w) for w in self.wanted)

    def example(self, name, function):
        return Kernel(self, os.path.join(EXAMPLES, name + ".tl"), function)

    def kernel(self, function, file="kernels.tl"):
        return Kernel(self, os.path.join(HERE, file), function)

    def best(self, what, who, prepare, configs, out, expected, tolerance, adds, notes):
        """(ms, configuration, ms of its first launch, what launches it), or None where no configuration works."""
        found = []
        for constexprs, warps, stages in configs:
            name = f"{','.join(map(str, constexprs))} w{warps}" + (f" s{stages}" if stages > 1 else "")
            out.fill_(0 if adds else float("nan") if out.is_floating_point() else -7)
            try:
                run = prepare(constexprs, warps, stages)
                compile_ms = first(run)
                wrong = differs(out, expected, tolerance)
                if wrong:
                    notes.append(f"{who} {name} WRONG: {wrong}")
                    continue
                ms = measure(run)
                if self.all:
                    print(f"{what} {who} {name}: {ms * 1e3:.1f} µs, first {compile_ms:.0f} ms", file=sys.stderr)
            except Exception as e:
                notes.append(f"{who} {name}: {type(e).__name__}")
                if who == "tlc":
                    print(e, file=sys.stderr)
                continue
            found.append((ms, name, compile_ms, run))
        found.sort(key=lambda f: f[0])
        close = [f for f in found[:5] if f[0] < 1.12 * found[0][0]]  # the first ones were timed on a cooler GPU, and times move
        if len(close) > 1:
            ms = in_turns({i: f[3] for i, f in enumerate(close)})
            return close[min(ms, key=ms.get)]
        return close[0] if close else None

    def row(self, what, kernel, grid, args, out, reference, configs, bytes=0, flops=0, tolerance=1e-2, tutorial=None, adds=False,
            anchors={}, peak=None):
        """grid and args are functions of the constexprs; configs: (constexprs, warps, stages). `bytes` must be moved.
        reference: what computes the result by PyTorch, and is timed, or the result itself.
        adds: to what is in `out`, which is 0 then. tutorial: another kernel in Triton for the same task, as a launcher, and its own configurations.
        anchors: others that do the same task, by name: functions, or pairs of one and of what makes its result comparable, which
        is not timed; one that returns None does a task like it, and is not among the best.
        peak: the type of the products, for the roof: the time of the copy, or of the flops as cuBLAS does 8192³, if that is longer."""
        notes, begin = [], time.perf_counter()
        timed = {"torch": reference} if callable(reference) else {}
        expected = (reference() if timed else reference).float()
        find = lambda who, prepare, configs: self.best(what, who, prepare, configs, out, expected, tolerance, adds, notes)
        ours, theirs = (find(who, kernel.launcher(who, grid, args), configs) for who in ("tlc", "triton"))
        other = find("tutorial", *tutorial) if tutorial else None
        beside, peers = self.usable(anchors, expected, tolerance, notes)
        del expected
        found = {"tlc": ours, "Triton": theirs, "tutorial": other}
        runs = {who: best[3] for who, best in found.items() if best} | timed | beside | ({"copy": self.copy(bytes)} if bytes else {})
        ms = in_turns(runs) if runs else {}
        if peak:
            ms["roof"] = max(ms.get("copy", 0), flops / self.peak(peak))
        rate = lambda ms: f"{flops / ms / 1e9:.0f} TFLOPS" if flops else f"{bytes / ms / 1e6:.0f} GB/s"
        us = lambda who: f"{ms[who] * 1e3:.1f}" if who in ms else "–"
        ratio = lambda *whose: f"{min(ms[w] for w in whose if w in ms) / ms['tlc']:.2f}" if ours and ms.keys() & set(whose) else "–"
        name = lambda found: found[1] if found else "–"
        cells = [what, us("tlc"), us("Triton"), us("tutorial"), us("torch"), us("copy"), rate(ms["tlc"]) if ours else "fails",
                 ratio("torch", "Triton", "tutorial", *peers), ratio("Triton"), ratio("tutorial"), ratio("torch"), ratio("copy"), ratio("roof"),
                 "; ".join(f"{who} {us(who)} µs, {ratio(who)}" for who in beside) or "–",
                 f"{ours[2]:.0f}" if ours else "–", f"{theirs[2]:.0f}" if theirs else "–", name(ours), name(theirs), name(other), "; ".join(notes)]
        print(f"| {' | '.join(cells)} |", flush=True)
        self.saved.append({**dict(zip(COLUMNS, cells)), "seconds": round(time.perf_counter() - begin, 1)})

    def usable(self, anchors, expected, tolerance, notes):
        """The anchors that run here with the expected result, or none, and the names of the former."""
        usable, peers = {}, []
        for who, f in anchors.items():
            f, comparable = f if isinstance(f, tuple) else (f, lambda result: result)
            try:
                result = comparable(f())
                torch.cuda.synchronize()
                wrong = result is not None and differs(result, expected, tolerance)
            except (RuntimeError, TypeError, ValueError, AttributeError) as e:  # a backend refuses, or PyTorch is too old
                notes.append(f"{who}: {type(e).__name__}")
                print(f"{who}: {str(e).splitlines()[0]}", file=sys.stderr)
                continue
            if wrong:
                notes.append(f"{who} WRONG: {wrong}")
                continue
            usable[who] = f
            if result is not None:
                peers.append(who)
        return usable, peers

    def peak(self, dtype):
        """Operations a millisecond that cuBLAS does of a product of 8192³."""
        if dtype not in self.peaks:
            x, y = (torch.randn(8192, 8192, device="cuda").to(dtype) for _ in range(2))
            one = torch.tensor(1.0, device="cuda")
            f = lambda: x @ y
            if x.element_size() == 1:
                f = lambda: torch._scaled_mm(x, y.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
            self.peaks[dtype] = 2 * 8192**3 / measure(f)
        return self.peaks[dtype]

    def copy(self, bytes):
        """A copy that moves as many bytes, half of them read and half written."""
        x = torch.empty(bytes // 2, device="cuda", dtype=torch.uint8)
        y = torch.empty_like(x)
        return lambda: y.copy_(x)

    def save(self, path):
        with open(path, "w") as f:
            json.dump({"device": self.device, "rows": self.saved}, f, indent=1)


class Host(Bench):
    """On the CPU, as many threads: our kernels beside PyTorch's reference alone. One row of the table:"""

    COLUMNS = ("kernel", "cpu ms", "PyTorch ms", "PyTorch/cpu", "speed", "first call ms", "best", "")

    def __init__(self, build, wanted, all=False, cpu_time=False):
        self.all, self.saved, self.wanted = all, [], self.filters(wanted)
        self.clock = time.process_time if cpu_time else time.perf_counter
        torch.manual_seed(0)
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        self.tl = libtl.Context(libtl.load(build), "cpu")
        self.device = f"CPU, {torch.get_num_threads()} threads, torch {torch.__version__}"
        print(f"{self.device}\n\n| {' | '.join(self.COLUMNS)} |\n|{'---|' * len(self.COLUMNS)}", flush=True)

    def triton(self, path, function):
        return None

    def in_turns(self, runs, limit):
        """Seconds of the fastest call of each, three calls a turn: other load on the machine changes within milliseconds."""
        best, end = [float("inf")] * len(runs), time.perf_counter() + limit
        while best[-1] == float("inf") or time.perf_counter() < end:
            for i, run in enumerate(runs):
                for _ in range(3):
                    begin = self.clock()
                    run()
                    best[i] = min(best[i], self.clock() - begin)
        return best

    def row(self, what, kernel, grid, args, out, reference, configs, bytes=0, flops=0, tolerance=1e-2, adds=False, **_):
        notes, found, expected = [], [], reference().float()
        for constexprs in dict.fromkeys(c for c, *_ in configs):
            out.fill_(0 if adds else float("nan") if out.is_floating_point() else -7)
            try:
                begin = time.perf_counter()
                run = kernel.launcher("tlc", grid, args)(constexprs, 4, 3)
                run()
                first = time.perf_counter() - begin
                wrong = differs(out, expected, tolerance)
            except libtl.TlError as e:
                wrong = e
            if wrong:
                notes.append(f"{constexprs} WRONG: {wrong}")
                continue
            found.append((constexprs, first, run))
        if found:
            best = self.in_turns([run for *_, run in found], 0.1 * len(found)) if len(found) > 1 else [0]
            for seconds, (constexprs, *_) in zip(best, found if self.all else ()):
                print(f"{what} {constexprs}: {seconds * 1e3:.3f} ms", file=sys.stderr)
            constexprs, first, run = found[best.index(min(best))]
            ours, theirs = self.in_turns((run, reference), 1.6)
            speed = f"{flops / ours / 1e9:.0f} GFLOPS" if flops else f"{bytes / ours / 1e9:.1f} GB/s"
            cells = [what, f"{ours * 1e3:.3f}", f"{theirs * 1e3:.3f}", f"{theirs / ours:.2f}", speed, f"{first * 1e3:.0f}",
                     ",".join(map(str, constexprs))]
        else:
            cells = [what, "fails"] + ["–"] * 5
        cells.append("; ".join(notes))
        print(f"| {' | '.join(cells)} |", flush=True)
        self.saved.append(dict(zip(self.COLUMNS, cells)))
