"""From source to PTX in a process that has compiled before, by libtl and by Triton in turns. Needs triton, and no GPU.

    python3 tests/bench/warm.py BUILD

Prints a Markdown table of medians in milliseconds, for the kernels and configurations of cold.py; BUILD holds libtl.so.
"""
import os
import statistics
import sys
import time

import libtl
from cold import CASES, triton_compile

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
ROUNDS = 9


def ours(tl, case, programs):
    """Milliseconds; nothing reads the addresses."""
    args = [libtl.pointer(a[0], 1 << 20) if isinstance(a, tuple) else libtl.scalar(a) for a in case.args]
    begin = time.perf_counter()
    tl.dump(tl.kernel(case.path, case.function), args, case.warps, case.stages, "ptx", programs)
    return (time.perf_counter() - begin) * 1e3


tl = libtl.Context(libtl.load(sys.argv[1]), "sim")
print("| kernel | tlc ms | Triton ms | Triton/tlc |\n|---|---|---|---|")
for name, programs in [(name, 1) for name in CASES] + [("matmul 128x256x64", 4096)]:  # more than multiprocessors
    case = CASES[name]
    ours(tl, case, programs), triton_compile(case)
    pairs = [(ours(tl, case, programs), triton_compile(case)[1]) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(times) for times in zip(*pairs))
    print(f"| {name}{f', {programs} programs' * (programs > 1)} | {mine:.1f} | {theirs:.0f} | {theirs / mine:.1f} |", flush=True)
