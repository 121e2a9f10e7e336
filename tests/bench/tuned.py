"""Autotuned matmul: how long our tuner and Triton's take to find a configuration, and how fast the chosen ones are.

    python3 tests/bench/tuned.py BUILD [M,N,K ...]

The kernel is examples/matmul.tl in float16, for both over the same configurations and the same key, from empty caches. A
row's tuning time is that of the first launch, compiling included; what Triton or we compiled for an earlier row serves later
ones. The chosen kernels are then timed in turns with a cold L2 cache, beside torch. Needs a GPU, torch and triton; BUILD
holds libtl.so. About 3 minutes for the ten shapes of docs/notes/measurements.md, nearly all of it Triton's tuning.
"""
import os
import statistics
import sys
import tempfile

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-")

import torch
import triton

import libtl
from harness import EXAMPLES, differs, first, in_turns, to_arg
from load import load_python
from tuner import CONFIGS, NAMES, Tuner

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16, 8192, 8192),
          (8192, 8192, 512), (4096, 11008, 4096), (1000, 1000, 1000), (4095, 4097, 4093)]


def tiles(m, n, block_m, block_n):
    return triton.cdiv(m, block_m) * triton.cdiv(n, block_n)


def main():
    shapes = [tuple(map(int, s.split(","))) for s in sys.argv[2:]] or SHAPES
    path = os.path.join(EXAMPLES, "matmul.tl")
    torch.zeros(1, device="cuda")  # makes the context that libtl joins
    tl = libtl.Context(libtl.load(sys.argv[1]))
    stream = torch.cuda.Stream()
    ours = Tuner(tl, tl.kernel(path, "matmul_kernel"), NAMES, CONFIGS, ("M", "N", "K"), stream.cuda_stream)
    theirs = triton.autotune([triton.Config(dict(zip(NAMES, v)), num_warps=w, num_stages=s) for v, w, s in CONFIGS],
                             key=["M", "N", "K"])(load_python(path).matmul_kernel)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}\n")
    print("| M, N, K | tuning: tlc s | Triton s | Triton/tlc | tlc TFLOPS | Triton | torch | tlc/Triton | tlc's | Triton's |")
    print("|" + "---|" * 10, flush=True)
    totals, ratios = [0, 0], []
    with torch.cuda.stream(stream):
        for m, n, k in shapes:
            a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
            c = torch.empty(m, n, device="cuda", dtype=torch.float16)
            values = [a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride()]
            args = list(map(to_arg, values))
            grid = lambda block_m, block_n, *_: (tiles(m, n, block_m, block_n), 1, 1)
            run_theirs = lambda: theirs[lambda meta: (tiles(m, n, meta["BLOCK_M"], meta["BLOCK_N"]),)](*values)
            expected = (a @ b).float()
            seconds, notes = [], []
            for who, run in (("tlc", lambda: ours.launch(args, grid)), ("Triton", run_theirs)):
                c.fill_(float("nan"))
                seconds.append(first(run) / 1e3)
                wrong = differs(c, expected, 1.0)
                notes += [f"{who} WRONG: {wrong}"] if wrong else []
            choice, _, run_ours = ours.choice(args, grid)
            best = theirs.best_config
            where = (tiles(m, n, best.kwargs["BLOCK_M"], best.kwargs["BLOCK_N"]),)
            chosen = lambda: theirs.fn[where](*values, **best.kwargs, num_warps=best.num_warps, num_stages=best.num_stages)
            ms = in_turns({"tlc": run_ours, "Triton": chosen, "torch": lambda: torch.matmul(a, b, out=c)})
            rate = {who: 2 * m * n * k / t / 1e9 for who, t in ms.items()}
            totals = [t + s for t, s in zip(totals, seconds)]
            ratios.append(rate["tlc"] / rate["Triton"])
            print(f"| {m}, {n}, {k} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[1] / seconds[0]:.1f} | {rate['tlc']:.0f} | "
                  f"{rate['Triton']:.0f} | {rate['torch']:.0f} | {ratios[-1]:.2f} | {choice.text.decode()} | {best} | {'; '.join(notes)}", flush=True)
    print(f"\ntuning in all: tlc {totals[0]:.1f} s, Triton {totals[1]:.1f} s, {totals[1] / totals[0]:.1f} times as long; "
          f"speed tlc/Triton: geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
