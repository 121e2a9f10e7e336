"""What holds an attention: our kernel's and cuDNN's cycles by hardware counters, and the clock that the GPU keeps under them.

    python3 tests/bench/counters.py BUILD [FILTER[,FILTER]...]

A row of `counters`: cycles, and in how many of 100 of them the tensor cores, the units of exponentials, of integers and of
multiply-adds worked, and an instruction was issued, of one launch at the clock of an idle GPU. Of `under load`: a second of
launches in a row. There the tensor cores' share is that of the cycles that the products need at least. Needs a GPU, torch
and ncu; BUILD holds libtl.so. Rows are named as in bench.py --group attention.
"""
import csv
import fnmatch
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

import libtl
from attention import SHAPES, flops_of, forced
from harness import EXAMPLES, HERE, to_arg

METRICS = {"cycles": "sm__cycles_elapsed.max", "tensor": "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed",
           "exp": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed", "alu": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
           "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", "issued": "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
           "instructions": "smsp__inst_executed.sum", "registers": "launch__registers_per_thread"}
OPERATIONS = 4096  # of fp16 products, of a multiprocessor's cycle
# the configurations that bench.py finds best
BEST = {64: ((64, 128), 4, 2), 128: ((128, 128), 8, 3), 256: ((128, 64), 8, 2)}
WAYS = "diagonal", "masked", "while", "descriptors"


def rows(build, wanted):
    """Names, what launches ours and cuDNN's, and the operations."""
    torch.empty(1, device="cuda")  # which makes the context that is current
    tl = libtl.Context(libtl.load(build))
    example = tl.kernel(os.path.join(EXAMPLES, "attention.tl"), "attention_kernel")
    ways = tl.kernel(os.path.join(HERE, "attention_ways.tl"), "attention_ways_kernel")
    tasks = [(f"attention {z}x{h}x{n}x{d} {'causal' if c else 'full'}", z, h, n, d, c, None) for d in BEST for z, h, n in SHAPES for c in (False, True)]
    tasks += [(f"{way} attention 1x64x4096x{d}", 1, 64, 4096, d, way == "diagonal", way) for d in (64, 128) for way in WAYS]
    for name, z, h, n, d, causal, way in tasks:
        if not any(fnmatch.fnmatch(name, pattern) for pattern in wanted):
            continue
        q, k, v = (torch.randn(z, h, n, d, device="cuda").half() for _ in range(3))
        out, (tile, warps, stages) = torch.empty_like(q), BEST[d]
        strides = [h * n * d, n * d, d] * 4
        args = [q, k, v, out, q, d**-0.5, n, h, d, *tile, way] if way else [q, k, v, out, d**-0.5, *strides, h, n, d, *tile, causal]
        grid = (-(-n // tile[0]), z * h, 1)
        ours = tl.launcher(ways if way else example, grid, [to_arg(a) for a in args], warps, stages, torch.cuda.current_stream().cuda_stream)
        library = forced("cuDNN", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal))
        yield name, {"tlc": ours, "cuDNN": library}, flops_of(z, h, n, d, causal)


def launch_once(build, wanted):
    """What ncu looks at."""
    for _, runs, _ in rows(build, wanted):
        for run in runs.values():
            run()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        for run in runs.values():
            run()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def counters(build, wanted, names):
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw", "--print-units", "base",
               "--metrics", ",".join(METRICS.values()), sys.executable, __file__, build, ",".join(wanted), "--launch"]
    said = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in said.stdout.splitlines() if line.startswith('"')]
    table = list(csv.DictReader(lines))[1:]  # the first line has units
    if len(table) != 2 * len(names):
        sys.exit(f"ncu counted {len(table)} launches of {2 * len(names)}: {said.stdout[-500:]}{said.stderr[-500:]}")
    print("\n| counters | of | " + " | ".join(METRICS) + " |\n" + "|---" * (2 + len(METRICS)) + "|")
    for i, line in enumerate(table):
        values = [f"{float(line[metric].replace(',', '')):.{1 if '.pct' in metric else 0}f}" for metric in METRICS.values()]
        print(f"| {names[i // 2]} | {('tlc', 'cuDNN')[i % 2]} | {' | '.join(values)} |")


def under_load(build, wanted):
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    print("\n| under load | of | µs | TFLOPS | MHz | W | tensor |\n|---|---|---|---|---|---|---|")
    for name, runs, flops in rows(build, wanted):
        for who, run in runs.items():
            run()
            torch.cuda.synchronize()
            watch = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "50"],
                                     stdout=subprocess.PIPE, text=True)
            begin, launches = time.perf_counter(), 0
            while time.perf_counter() - begin < 1:
                for _ in range(20):
                    run()
                launches += 20
                torch.cuda.synchronize()
            seconds = (time.perf_counter() - begin) / launches
            watch.terminate()
            samples = [tuple(map(float, line.split(","))) for line in watch.stdout.read().splitlines() if line.count(",") == 1][3:]
            clock, power = (sorted(values)[len(values) // 2] for values in zip(*samples))
            share = flops / seconds / (processors * OPERATIONS * clock * 1e6)
            print(f"| {name} | {who} | {seconds * 1e6:.1f} | {flops / seconds * 1e-12:.0f} | {clock:.0f} | {power:.0f} | {share * 100:.1f} |", flush=True)


if __name__ == "__main__":
    build, wanted = sys.argv[1], sys.argv[2].split(",") if len(sys.argv) > 2 else ["*"]
    if sys.argv[-1] == "--launch":
        launch_once(build, wanted)
    else:
        print(torch.cuda.get_device_name())
        names = [name for name, _, _ in rows(build, wanted)]
        under_load(build, wanted)
        counters(build, wanted, names)
