"""launch.py [LAUNCH]: the host's time for a launch from Python, by the package libtl and by Triton, on a GPU.

It needs PyTorch and Triton. LAUNCH is the program build/tests/launch, whose figures for the C interface and for a bare
cuLaunchKernel follow. A kernel of N arguments gets N - N // 4 tensors and N // 4 integers. Each figure is the median of
BATCHES batches of BATCH launches of one program; both compilers take turns, and the GPU is idle when a batch begins. An
empty grid ends in libtl before it calls the driver: that column is a bound of libtl's own time.
"""

import linecache
import statistics
import subprocess
import sys
import time

import torch
import triton

import libtl

BATCHES, BATCH = 41, 200
TEXT = """
def kernel({names}, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(t0 + i, tl.load(t0 + i) + 1)
"""


def functions(names):
    """The kernel as libtl's and as Triton's. Both read the function's text through inspect, thus through linecache."""
    text = TEXT.format(names=", ".join(names))
    file = f"<kernel of {len(names)} arguments>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    result = []
    for package, language in (libtl, libtl.language), (triton, triton.language):
        scope = {"tl": language, "__name__": __name__}
        exec(compile(text, file, "exec"), scope)  # pylint: disable=exec-used
        result.append(package.jit(scope["kernel"]))
    return result


def batch(launch):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(BATCH):
        launch()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / BATCH * 1e6


def main():
    print("| arguments | libtl µs | of an empty grid | Triton µs | Triton/libtl |\n|---|---|---|---|---|")
    for n in 1, 2, 4, 8, 12, 16, 20:
        numbers = n // 4
        names = [f"t{i}" for i in range(n - numbers)] + [f"n{i}" for i in range(numbers)]
        values = [torch.zeros(64, device="cuda") for _ in range(n - numbers)] + [100 + i for i in range(numbers)]
        launches = []
        ours, theirs = functions(names)
        for launcher in ours[(1,)], ours[(0,)], theirs[(1,)]:
            launches.append(lambda launcher=launcher: launcher(*values, B=64))
            launches[-1]()
        torch.cuda.synchronize()
        assert (values[0] == 2).all()
        times = [[] for _ in launches]
        for _ in range(BATCHES):
            for launch, measured in zip(launches, times):
                measured.append(batch(launch))
        ours, empty, theirs = (statistics.median(t) for t in times)
        assert (values[0] == 2 + 2 * BATCHES * BATCH).all()
        print(f"| {n} | {ours:.2f} | {empty:.2f} | {theirs:.2f} | {theirs / ours:.1f} |", flush=True)
    if len(sys.argv) > 1:
        subprocess.run(sys.argv[1:2], check=True)


if __name__ == "__main__":
    main()
