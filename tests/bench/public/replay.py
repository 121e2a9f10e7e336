#!/usr/bin/env python3
"""replay.py LAUNCHES.jsonl [NAME...] [--out PATH] [--build FOLDER] [--before FOLDER] [--from FOLDER=FOLDER...]
[--below RATIO] [--jobs N] [--repeat N]

Launches recorded kernels (launches.py) by Triton and by tlc on a GPU, on equal random data. First several processes launch
each kernel once, and all memory is compared; then one process times them in turns, each with a cold L2 cache and after
work that hides the host.

NAME...          only kernels whose name contains one of these
--out PATH       replay.jsonl by default; a line for each launch: the launch, the medians triton_us, tlc_us and
                 control_us (Triton again), the milliseconds of tlc's first launch, and the largest relative
                 difference of an argument's memory
--build FOLDER   of libtl.so; default: build
--before FOLDER  of another libtl.so, which is timed too: before_us
--from A=B       sources recorded below folder A lie below folder B here; packages are imported from B
--below RATIO    only launches whose triton_us / tlc_us is less
--jobs N         processes of the first part
--repeat N       timed launches of each; 0: only the first part

Integers in memory are those of the recording, or 0, so that they are valid as indices; floats are normally
distributed."""
import json
import os
import statistics
import subprocess
import sys
import time

import numpy
import torch
import triton

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import launches
import libtl

DTYPES = {  # by the names of launches: the number in tl.h, and the type in memory
    "i1": (0, torch.uint8), "i8": (1, torch.int8), "i16": (2, torch.int16), "i32": (3, torch.int32),
    "i64": (4, torch.int64), "u8": (5, torch.uint8), "u16": (6, torch.int16), "u32": (7, torch.int32),
    "u64": (8, torch.int64), "fp8e4nv": (9, torch.float8_e4m3fn), "fp8e5": (10, torch.float8_e5m2),
    "fp16": (11, torch.float16), "bf16": (12, torch.bfloat16), "fp32": (13, torch.float32),
    "fp64": (14, torch.float64)
}
PTR, INT, FLOAT, BOOL, STR, TYPE = range(1, 7)  # kinds of arguments in tl.h
COLD_BYTES, HIDDEN_CYCLES = 256 << 20, 250_000


# --- arguments --------------------------------------------------------------------------------------------------------


def random_memory(dtype, alignment, size):
    """A buffer of so many bytes."""
    kind = DTYPES[dtype][1]
    n = max(size // kind.itemsize, 1)
    shift = 0 if alignment % 16 == 0 else 1
    buffer = torch.zeros(n + shift, dtype=kind, device="cuda")
    if kind.is_floating_point:
        for begin in range(0, n + shift, 1 << 26):  # bounds the memory of the conversion
            part = buffer[begin:begin + (1 << 26)]
            part.copy_(torch.randn(len(part), device="cuda"))
    return buffer[shift:]


def recorded_memory(folder, entry):
    """A buffer for a pointer: with the recorded integers, if there are any."""
    buffer, path = random_memory(*entry[3:6]), entry[6] if len(entry) > 6 else None
    if path:
        values = torch.from_numpy(numpy.load(os.path.join(folder, path))["arr_0"])
        buffer.view(torch.uint8)[:len(values)].copy_(values)
    return buffer


def argument(entry, memory):
    """The tl_arg, and the argument of Triton's launch."""
    name, _, kind, dtype, value = entry[:5]
    if kind == "ptr":
        view = memory[name].view(torch.bool) if dtype == "i1" else memory[name]
        return libtl.Arg(PTR, DTYPES[dtype][0], 1, memory[name].nbytes, libtl.Value(ptr=memory[name].data_ptr())), view
    if kind == "dtype":
        constant = getattr(triton.language, launches.triton_name(dtype))
        return libtl.Arg(TYPE, DTYPES[dtype][0], 1, 0, libtl.Value(i=0)), constant
    v = {"none": lambda: None, "bool": lambda: bool(value), "float": lambda: float(value)}.get(kind, lambda: value)()
    return libtl.scalar(v), v


# --- one launch -------------------------------------------------------------------------------------------------------


def difference(a, b):
    """The relative difference of two buffers; of integers the share of elements that differ."""
    if not a.dtype.is_floating_point:
        return (a != b).double().mean().item()
    worst = squares = total = 0.0
    for begin in range(0, len(a), 1 << 26):
        x, y = (t[begin:begin + (1 << 26)].double() for t in (a, b))
        finite = torch.isfinite(x)
        if (finite != torch.isfinite(y)).any():
            worst = float("inf")
        x, y = x[finite], torch.nan_to_num(y[finite])
        squares, total = squares + (x - y).square().sum().item(), total + x.square().sum().item()
    return max(worst, (squares / total)**.5 if total else squares)


def in_turns(runs, repeat, cold):
    """The median microseconds of each."""
    spans = {name: [] for name in runs}
    for turn in range(repeat):
        for name in list(runs)[::1 if turn % 2 else -1]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(HIDDEN_CYCLES)
            cold.zero_()
            begin.record()
            runs[name]()
            end.record()
            spans[name].append((begin, end))
    torch.cuda.synchronize()
    return {name: statistics.median(a.elapsed_time(b) * 1e3 for a, b in pairs) for name, pairs in spans.items()}


def launch_options(launch):
    """Triton's options, unless the kernel has parameters of these names."""
    options = {"num_warps": launch["warps"], "num_stages": launch["stages"]}
    return {name: value for name, value in options.items() if name not in (x[0] for x in launch["args"])}


class Runs:
    """A launch on random memory, by Triton and by each libtl."""

    def __init__(self, launch, folder, contexts):
        torch.manual_seed(0)
        self.memory = {x[0]: recorded_memory(folder, x) for x in launch["args"] if x[2] == "ptr"}
        tl_args, triton_args = zip(*(argument(x, self.memory) for x in launch["args"]))
        grid = (tuple(launch["grid"]) + (1, 1))[:3]
        kernel, options = launches.jit_function(launch)[grid], launch_options(launch)
        self.of = {"triton": lambda: kernel(*triton_args, **options)}
        for name, context in contexts.items():
            self.of[name] = context.launcher(context.kernel(launch["file"], launch["kernel"]), grid, tl_args,
                                             launch["warps"], launch["stages"], torch.cuda.current_stream().cuda_stream)


def check(launch, folder, contexts):
    """Launches each once: the milliseconds of libtl's first launches, and how the memory differs from Triton's."""
    runs = Runs(launch, folder, contexts)
    start = {name: buffer.clone() for name, buffer in runs.memory.items()}
    runs.of["triton"]()
    expected = {name: buffer.clone() for name, buffer in runs.memory.items()}
    row = {"difference": {}}
    for name in contexts:
        for key, buffer in runs.memory.items():
            buffer.copy_(start[key])
        torch.cuda.synchronize()
        begin = time.perf_counter()
        runs.of[name]()
        torch.cuda.synchronize()
        row[name + "_first_ms"] = (time.perf_counter() - begin) * 1e3
        row["difference"][name] = max((difference(expected[k], b) for k, b in runs.memory.items()), default=0)
    return row


def timed(launch, folder, contexts, repeat, cold):
    """The median microseconds of each; the control is Triton again."""
    runs = Runs(launch, folder, contexts).of
    for run in runs.values():
        run()
    return {name + "_us": us for name, us in in_turns({**runs, "control": runs["triton"]}, repeat, cold).items()}


# --- all launches -----------------------------------------------------------------------------------------------------


def check_part(args, contexts):
    """Checks every jobs-th launch, in a process. A fault in the GPU ends a process; another goes on after the launch."""
    with open(f"{args.out}.{args.part}", "w" if args.after < 0 else "a") as out:
        for number, launch in launches.read(args):
            if number % args.jobs != args.part or number <= args.after:
                continue
            row = {"number": number}
            try:
                row.update(check(launch, os.path.dirname(args.launches), contexts))
            except Exception as e:
                row["error"] = str(e)[:400]
            print(json.dumps(row), file=out, flush=True)
            try:
                torch.cuda.empty_cache()
                torch.cuda.synchronize()
            except Exception:
                os.execv(sys.executable, [sys.executable, *sys.argv, "--after", str(number)])


def checked(args):
    """The rows of all parts, by number."""
    workers = [subprocess.Popen([sys.executable, *sys.argv, "--part", str(i)]) for i in range(args.jobs)]
    for w in workers:
        w.wait()
    rows = {}
    for part in range(args.jobs):
        with open(f"{args.out}.{part}") as f:
            rows.update((row["number"], row) for row in map(json.loads, f))
        os.remove(f"{args.out}.{part}")
    return rows


def report(rows):
    timed = [x for x in rows if "tlc_us" in x]
    small, large = ([x for x in timed if (x["triton_us"] < 10) == is_small] for is_small in (True, False))
    for what, above, below, group in (
            ("Triton/tlc", "triton", "tlc", timed), ("  from 10 us on", "triton", "tlc", large),
            ("  below 10 us", "triton", "tlc", small), ("Triton/Triton below 10 us", "triton", "control", small),
            ("before/tlc", "before", "tlc", [x for x in timed if "before_us" in x])):
        if group:
            ratios = sorted(x[above + "_us"] / x[below + "_us"] for x in group)
            at = lambda share: ratios[min(int(len(ratios) * share), len(ratios) - 1)]
            total = sum(x[above + "_us"] for x in group) / sum(x[below + "_us"] for x in group)
            print(f"{what}, {len(group)} launches: min {ratios[0]:.2f}, p10 {at(.1):.2f}, median {at(.5):.2f}, "
                  f"p90 {at(.9):.2f}; total {total:.2f}; below 0.95: {sum(r < .95 for r in ratios)}")
    first = sorted(x["tlc_first_ms"] for x in rows if "tlc_first_ms" in x)
    if first:
        print(f"first launch, ms: median {first[len(first) // 2]:.0f}, p90 {first[len(first) * 9 // 10]:.0f}, "
              f"max {first[-1]:.0f}")


def main():
    p = launches.parser(__doc__)
    p.add_argument("--out", default="replay.jsonl")
    p.add_argument("--build", default=os.path.join(HERE, "..", "..", "..", "build"))
    p.add_argument("--before")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--repeat", type=int, default=20)
    p.add_argument("--part", type=int)
    p.add_argument("--after", type=int, default=-1)
    args = p.parse_intermixed_args()
    os.environ["TL_CACHE_DIR"] = os.path.abspath(args.out) + ".cache"
    os.environ["TL_CACHE"] = "1"
    rows = checked(args) if args.part is None else {}
    folders = {"tlc": args.build, **({"before": args.before} if args.before else {})}
    torch.zeros(1, device="cuda")
    contexts = {name: libtl.Context(libtl.load(folder)) for name, folder in folders.items()}
    if args.part is not None:
        return check_part(args, contexts)
    cold = torch.empty(COLD_BYTES, dtype=torch.uint8, device="cuda")
    with open(args.out, "w") as out:
        for number, launch in launches.read(args):
            row = rows.setdefault(number, {"number": number, "error": "its process ended"})
            if "error" not in row and args.repeat:
                try:
                    row.update(timed(launch, os.path.dirname(args.launches), contexts, args.repeat, cold))
                except Exception as e:
                    row["error"] = str(e)[:400]
            keep = {key: launch[key] for key in ("case", "kernel", "file", "grid", "warps", "stages", "args") if key in launch}
            print(json.dumps({**keep, **row}), file=out, flush=True)
            show = [f"{row['triton_us'] / row[n + '_us']:5.2f} {row[n + '_us']:9.1f}" for n in contexts if n + "_us" in row]
            print(f"{number:3}", *show, launch["kernel"][:60], row.get("difference", ""), row.get("error", "")[:150],
                  flush=True)
    report(list(rows.values()))


main()
