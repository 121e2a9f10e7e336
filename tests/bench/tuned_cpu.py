"""The tuner's choices on the device cpu against the best by exhaustive timing.

    python3 tests/bench/tuned_cpu.py BUILD [M,N,K ...]

The kernel is examples/matmul.tl in fp32. The tuner chooses as it does for any program; then all configurations are timed in turns,
the fastest of many calls each. Needs torch for memory; BUILD holds libtl.so. The last line is "N passed, N failed": a choice
within 3 % of the best passes.
"""
import ctypes
import os
import sys
import time

import libtl

libtl.keep_blocks()

import torch

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
NAMES = ["BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M"]
CONFIGS = [(32, 32, 32, 8), (64, 64, 64, 8), (128, 128, 128, 8), (256, 256, 256, 8), (64, 128, 64, 8), (128, 64, 64, 8), (128, 256, 64, 8),
           (32, 128, 128, 8), (16, 64, 128, 8), (16, 256, 256, 8), (256, 128, 128, 8), (64, 256, 128, 8)]
SHAPES = [(128, 128, 128), (256, 256, 256), (512, 512, 512), (1000, 1000, 1000), (1024, 1024, 1024), (16, 2048, 2048), (2048, 2048, 64),
          (333, 777, 555), (64, 4096, 512), (2048, 2048, 2048)]
WITHIN = 1.03


def grid(m, n, config):
    return [-(-m // config[0]) * -(-n // config[1]), 1, 1]


def fastest(launch, ms):
    """Of calls for so many milliseconds, at least three."""
    best, end, count = float("inf"), time.perf_counter() + ms / 1e3, 0
    while count < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        launch()
        best, count = min(best, time.perf_counter() - begin), count + 1
    return best * 1e3


def main():
    shapes = [tuple(map(int, s.split(","))) for s in sys.argv[2:]] or SHAPES
    tl = libtl.Context(libtl.load(sys.argv[1]), "cpu")
    kernel, tuner = tl.kernel(os.path.join(EXAMPLES, "matmul.tl"), "matmul_kernel"), ctypes.c_void_p()
    options = libtl.Tuning((ctypes.c_char_p * 3)(b"M", b"N", b"K"), 3)
    tl.must(tl.lib.tl_tuner_create(kernel, ctypes.byref(options), ctypes.byref(tuner)))
    for values in CONFIGS:
        named = (libtl.NamedArg * len(NAMES))(*[libtl.NamedArg(n.encode(), libtl.scalar(v)) for n, v in zip(NAMES, values)])
        tl.must(tl.lib.tl_tuner_add(tuner, ctypes.byref(libtl.Config((ctypes.c_uint32 * 3)(), 4, 3)), named, ctypes.c_size_t(len(NAMES))))

    def plan(user, config, args, nargs):
        value = [args[i].value.i for i in range(nargs)]
        config.contents.grid[0] = grid(value[3], value[4], value[12:14])[0]
        return 0

    plan = libtl.PLAN(plan)
    print("| M, N, K | tuning s | chosen | ms | best | ms | chosen/best |\n|---|---|---|---|---|---|---|", flush=True)
    passed = 0
    for m, n, k in shapes:
        a, b, c = torch.randn(m, k), torch.randn(k, n), torch.full((m, n), float("nan"))
        args = [libtl.pointer("float32", t.data_ptr(), t.numel() * 4) for t in (a, b, c)]
        args += [libtl.scalar(v) for v in (m, n, k, k, 1, n, 1, n, 1)]
        array, out, begin = (libtl.Arg * len(args))(*args), libtl.Choice(), time.perf_counter()
        tl.must(tl.lib.tl_tuner_choose(tuner, ctypes.byref(libtl.Config()), plan, None, array, ctypes.c_size_t(len(args)), ctypes.byref(out)))
        seconds, given = time.perf_counter() - begin, dict(pair.split("=") for pair in out.text.decode().split())
        chosen = tuple(int(given[name]) for name in NAMES)
        launch = {v: tl.launcher(kernel, grid(m, n, v), args + [libtl.scalar(x) for x in v], 4, 3) for v in CONFIGS}
        launch[chosen]()
        assert (c - a @ b).abs().max() < 5e-3 * k ** 0.5  # products are of tf32
        ms = {v: float("inf") for v in CONFIGS}
        for _ in range(6):
            for v in CONFIGS:
                ms[v] = min(ms[v], fastest(launch[v], 30))
        best = min(CONFIGS, key=ms.get)
        passed += ms[chosen] <= WITHIN * ms[best]
        name = lambda v: "x".join(map(str, v[:3]))
        print(f"| {m}, {n}, {k} | {seconds:.2f} | {name(chosen)} | {ms[chosen]:.4f} | {name(best)} | {ms[best]:.4f} | {ms[chosen] / ms[best]:.3f} |", flush=True)
    print(f"{passed} passed, {len(shapes) - passed} failed")
    sys.exit(passed != len(shapes))


main()
