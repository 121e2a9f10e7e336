"""limits.py TLC: what a user waits for and pays. Compiles every example with all dumps, several times, and fails when
softmax takes more than 15 ms beyond what a process takes that only starts (CPU time of the fastest runs, in turns: other work on
the machine is no fault of tlc, which has one thread, nor is the loading of a shared LLVM), when any takes more than 150 MB at its peak, when the binary, if linked statically, is over 60 MB,
when a loop unrolled 500 times takes more than 1 s or 150 MB, when the tile IR of the kernels of tests/lit/frontend takes more than 2 ms in the median, or that of 32 rounds of Philox more than 10 ms, when 1,000 pipelined loops of
dots take more than 8 s to placed IR, or when code for the processor
of 32 equal rounds of divisions, or of 48 products of small tiles, takes more than 0.5 s, or that of 1,000 sums, or for a GPU 500 loops, more than 5 s."""
import glob
import os
import re
import shlex
import statistics
import subprocess
import sys

tlc = sys.argv[1]
top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
passed = failed = 0


def limit(what, value, most, unit):
    global passed, failed
    print(f"{what:40} {value:8.1f} {unit}" + (f", more than {most}" if value > most else ""))
    passed += value <= most
    failed += value > most


def run(arguments, text=""):
    """Milliseconds of CPU time and peak megabytes of one process, which reads the text."""
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, read, 0)]
    pid = os.posix_spawn(tlc, [tlc] + arguments, os.environ, file_actions=quiet)
    os.close(read)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{arguments}: status {status}")
    return (used.ru_utime + used.ru_stime) * 1e3, used.ru_maxrss / 1024


def to_tile_ir(arguments, text=None):
    """Milliseconds from source to the tile IR after all passes before placement, parsing and the library included; None if it does not compile."""
    best = None
    for _ in range(3):
        done = subprocess.run([tlc] + arguments + ["--emit", "ttir", "--time", "-o", os.devnull], input=text, capture_output=True, text=True)
        if done.returncode:
            return None
        took = sum(float(ms) for ms in re.findall(r"^\S+ +([\d.]+) ms$", done.stderr, re.M))
        best = min(took, best or took)
    return best


PHILOX = """import triton
import triton.language as tl

@triton.jit
def k(o, seed):
    i = tl.arange(0, 1024)
    tl.store(o + i, tl.randint(seed, i, 32))
"""

UNROLLED = """import triton
import triton.language as tl

@triton.jit
def k(x, n):
    for i in tl.range(0, n, loop_unroll_factor=500):
        tl.store(x + i, i)
"""

ROUNDS = """import triton
import triton.language as tl

@triton.jit
def k(lengths, out, n, most):
    i = tl.arange(0, 1024)
    low = 1
    high = most
    for _ in tl.static_range(32):
        size = (low + high) // 2
        parts = 0
        for first in range(0, n, 1024):
            length = tl.load(lengths + first + i, mask=first + i < n, other=0)
            parts += tl.sum((length // most + size - 1) // size)
        low = tl.where(parts > n, size + 1, low)
        high = tl.where(parts > n, high, size)
    tl.store(out, low)
"""

SUMS = """import triton
import triton.language as tl

@triton.jit
def k(o, p):
    i = tl.arange(0, 1024)
    x = tl.load(p + i)
    for j in tl.static_range(1000):
        x = x * 0.5 + tl.sum(tl.exp(x), 0) + j
    tl.store(o + i, x)
"""

ADDITIONS = """import triton
import triton.language as tl

@triton.jit
def k(o, p, n):
    i = tl.arange(0, 1024)
    x = tl.load(p + i)
    for j in tl.static_range(500):
        for k in range(0, n):
            x += tl.load(p + k * 1024 + i + j)
    tl.store(o + i, x)
"""

PRODUCTS = """import triton
import triton.language as tl

@triton.jit
def k(p, n):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    inside = (i < n)[:, None]
    x = tl.load(p + at, mask=inside, other=0)
    for step in tl.static_range(1, 25):
        y = tl.load(p + step * 256 + at, mask=inside, other=0)
        x = tl.dot(x, tl.dot(y, x, input_precision="ieee"), input_precision="ieee")
        tl.store(p + step * 256 + at, x, mask=inside)
"""

LOOPS = """import triton
import triton.language as tl

@triton.jit
def k(a, b, c, n):
    rows = tl.arange(0, 64)[:, None]
    columns = tl.arange(0, 64)[None, :]
    depth = tl.arange(0, 32)
    for j in tl.static_range(1000):
        acc = tl.zeros((64, 64), dtype=tl.float32)
        for i in range(0, n, 32):
            x = tl.load(a + j * 4096 + rows * 4096 + (i + depth)[None, :])
            y = tl.load(b + j * 64 + (i + depth)[:, None] * 64 + columns)
            acc += tl.dot(x, y)
        tl.store(c + j * 4096 + rows * 64 + columns, acc)
"""

for path in sorted(glob.glob(os.path.join(top, "examples", "*.tl"))):
    name = os.path.basename(path)
    arguments = [path, "--target", "cuda:sm_90a", "--emit", "ttir,ttgir,llir,ptx", "-o", os.devnull]
    runs, most = [run(arguments) for _ in range(3)], 1000
    if name == "softmax.tl":
        starts = []
        for _ in range(40):
            starts.append(run(["--version"])[0])
            runs.append(run(arguments))
        print(f"{'process start':40} {min(starts):8.1f} ms")
        most = min(starts) + 15
    limit(f"{name} to PTX with all dumps", min(r[0] for r in runs), most, "ms")
    limit(f"{name} peak memory", max(r[1] for r in runs), 150, "MB")
times = []
for path in sorted(glob.glob(os.path.join(top, "tests", "lit", "frontend", "*.tl"))):
    with open(path) as f:
        command = re.search(r"^# RUN: %eval %s(.*?)(2>&1)? *\|", f.read(), re.M)
    took = to_tile_ir([path] + shlex.split(command[1])) if command else None
    times += [took] if took else []
limit(f"tile IR of {len(times)} kernels, median", statistics.median(times), 2, "ms")
took, megabytes = run(["-", "-s", "*fp32:16,i32", "--target", "cuda:sm_90a", "-o", os.devnull], UNROLLED)
limit("a loop unrolled 500 times", took, 1000, "ms")
limit("a loop unrolled 500 times, peak memory", megabytes, 150, "MB")
limit("tile IR of 32 rounds of Philox", to_tile_ir(["-", "-s", "*i32,i32"], PHILOX), 10, "ms")
os.environ.pop("TL_COMPILE_CHECK", None)  # so many buffers are in more states than the proof goes through
took, _ = run(["-", "-s", "*fp16:16,*fp16:16,*fp32:16,i32:16", "--target", "cuda:sm_90a", "--emit", "ttgir", "-o", os.devnull], LOOPS)
limit("1,000 pipelined loops of dots to placed IR", took, 8000, "ms")
for what, text, signature in [("32 rounds of divisions", ROUNDS, "*i32:16,*i32:16,i32,i32"), ("48 products", PRODUCTS, "*fp32:16,i32")]:
    arguments = ["-", "-s", signature, "--target", "cpu:baseline", "--emit", "obj", "-o", os.devnull]
    limit(f"{what} to code of the processor", min(run(arguments, text)[0] for _ in range(3)), 500, "ms")
took, _ = run(["-", "-s", "*fp32:16,*fp32:16", "--target", "cpu:baseline", "--emit", "obj", "-o", os.devnull], SUMS)
limit("1,000 sums to code of the processor", took, 5000, "ms")
took, _ = run(["-", "-s", "*fp32:16,*fp32:16,i32", "--target", "cuda:sm_90a", "--emit", "ptx", "-o", os.devnull], ADDITIONS)
limit("500 loops to PTX", took, 5000, "ms")
if os.path.getsize(tlc) > 20e6:
    limit("statically linked tlc", os.path.getsize(tlc) / 1e6, 60, "MB")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
