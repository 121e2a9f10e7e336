"""deep.py TLC [KIND...]: kernels whose values are chains of operations, each of which reads the one before it twice, so
that a walk over operands without a memo takes 2^n steps; or as many accesses, branches or dots, which a pass may compare
each with each; or long sums. For the processor each kind must become an object of SOME operations within MOST_SECONDS.
For two GPUs, each kind of chain must become PTX within
MOST_SECONDS of CPU time with FEW operations, and placed IR, with all remarks, with MANY: within MOST_SECONDS too, on a
stack of STACK kilobytes, and in at most MOST_GROWTH times the time that a quarter of them takes: the least of up to
TRIES tries, since other processes share the caches. (LLVM itself is not linear; the passes must be.)"""
import os
import sys
import tempfile

tlc = sys.argv[1]
only = sys.argv[2:]
FEW, SOME, MANY = 60, 100, 4000
MOST_SECONDS = 10
MOST_GROWTH = 12  # 4 is linear, 16 quadratic; 4000 operations leave the caches that 1000 fit in
SHORT = 2  # seconds that are not compared
TRIES = 4
STACK = 2048  # a quarter of what threads have: 16,000 operations would fit

tiles = """import triton
import triton.language as tl


@triton.jit
def f(x_ptr, y_ptr, n, B: tl.constexpr):
    offs = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    y = tl.load(y_ptr + offs, mask=offs < n, other=0.0)
"""
integers = tiles.replace("    x = ", "    i = offs\n    x = ")
squares = """import triton
import triton.language as tl


@triton.jit
def f(x_ptr, y_ptr, n, B: tl.constexpr):
    rows = tl.arange(0, 32)
    offs = rows[:, None] * 32 + rows[None, :]
    x = tl.load(x_ptr + offs)
    v = tl.load(y_ptr + rows)
"""
dots = """import triton
import triton.language as tl


@triton.jit
def f(x_ptr, y_ptr, n, B: tl.constexpr):
    rows = tl.arange(0, 64)
    offs = rows[:, None] * 64 + rows[None, :]
    acc = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, n, 64):
"""
# name: (start, the n lines, end), each line with {i}
store = "    tl.store(x_ptr + offs, x, mask=offs < n)\n"
store2 = "    tl.store(x_ptr + offs, x)\n"
load = "        a = tl.load(x_ptr + offs + k)\n        b = tl.load(y_ptr + offs + k)\n"
dot = "        acc = tl.dot(a, b, acc)\n    tl.store(y_ptr + offs + n, acc)\n"
kinds = {
    "arithmetic": (tiles, "    x = x * x + y\n", store),
    "casts": (tiles, "    x = x.to(tl.float16).to(tl.float32) + x\n", store),
    "selects": (tiles, "    x = tl.where(x < y, x, x - y)\n", store),
    "conditions": (tiles + "    m = x < y\n", "    m = (m & (x < {i})) | (m ^ (y < {i}))\n", "    x = tl.where(m, x, y)\n" + store),
    "masks": (integers + "    m = i < n\n", "    i = i + (i >> 1)\n    m = m & (i < n - {i}) & (m | (i > {i}))\n", store.replace("offs < n", "m")),
    "addresses": (integers, "    i = i + (i ^ {i})\n", "    x += tl.load(x_ptr + i)\n" + store),
    "pointers": (tiles + "    p = x_ptr + offs\n", "    p = p + (x + {i} < y).to(tl.int32)\n", "    x += tl.load(p)\n" + store),
    "loads": (tiles, "    x += tl.load(y_ptr + offs + {i} * n)\n", store),
    "stores": (tiles, "    tl.store(y_ptr + offs + {i} * n, x, mask=offs < n)\n", store),
    "copies": (tiles, "    tl.store(y_ptr + offs + {i} * B, tl.load(x_ptr + offs + {i} * B))\n", store),
    "branch stores": (tiles, "    if n > {i}:\n        tl.store(y_ptr + {i}, n)\n", store),
    "unrolled stores": (tiles + "    for j in range(0, n):\n", "        tl.store(y_ptr + j * n + {i}, n)\n", store),
    "indirect loads": (integers, "    i = tl.load(y_ptr + i).to(tl.int32) + i\n", "    x += i\n" + store),
    "scalars": (tiles + "    s = n\n", "    s = s + s // {i}\n", "    x += tl.load(x_ptr + s)\n" + store),
    "sizes": (tiles + "    s = n\n", "    s = tl.cdiv(s + s % 7, 2) + s\n", "    for j in range(0, s, B):\n        x += tl.load(x_ptr + j + offs, mask=j + offs < n)\n" + store),
    "sums": (tiles + "    s = n\n", "    s = s + (n & {i}) * 16\n", "    x += tl.load(x_ptr + (s + offs) % n)\n" + store),
    "sums of tiles": (tiles + "    i = offs\n", "    i = i + (n & {i}) * 16\n", "    x += tl.load(x_ptr + i % n)\n" + store),
    "sums of rows": (squares + "    i = rows[:, None]\n", "    i = i - (n & {i}) * 16\n", "    x += tl.load(x_ptr + i * n + (rows[None, :] + i) % n)\n" + store2),
    "minima": (tiles + "    s = n\n", "    s = tl.minimum(s + s, n + {i})\n", "    x += tl.load(x_ptr + offs, mask=offs < s)\n" + store),
    "broadcasts": (squares, "    v = v + tl.sum(v[:, None] * v[None, :], 1) if {i} % 16 == 0 else v * v + {i}\n", "    x += v[:, None]\n" + store2),
    "outer products": (squares, "    x = x + x * v[:, None]\n    v = v * v\n", store2),
    "transposes": (squares, "    x = tl.trans(tl.trans(x) * v[:, None] + tl.trans(x))\n", store2),
    "reshapes": (squares, "    x = tl.reshape(tl.reshape(x, (1024,)) + {i}, (32, 32)) + x\n", store2),
    "conversions": (squares, "    x = x + tl.trans(x) if {i} % 16 == 0 else x * x\n", store2),
    "branches": (tiles, "    if n > {i}:\n        x = x * x + y\n", store),
    "loops": (tiles, "    for j in range(0, n):\n        x = x * x + y\n", store),
    "loop body": (tiles + "    for j in range(0, n):\n", "        x = x * x + y\n", store),
    "carried": (tiles + "    z = y\n    for j in range(0, n):\n", "        x, y, z = y + z, z + x, x * y\n", store),
    "pipelined addresses": (integers + "    for j in range(0, n):\n        i = offs + j\n", "        i = i + (i & {i})\n", "        x += tl.load(y_ptr + i)\n" + store),
    "pipelined masks": (integers + "    for j in range(0, n, B):\n        m = offs + j < n\n", "        m = m & (offs + j < n - {i}) & (m | (offs > {i}))\n",
                        "        x += tl.load(y_ptr + offs + j, mask=m)\n" + store),
    "dot operands": (dots + load, "        a = a * a + b\n", dot),
    "cast operands": (dots + load, "        a = a.to(tl.float32).to(tl.float16) + a\n", dot),
    "dot addresses": (dots + "        o = offs + k\n", "        o = o + (o & {i})\n", load.replace("offs + k", "o") + dot),
    "dot results": (dots + load + "        d = tl.dot(a, b)\n", "        d = d * d + acc\n", "        acc = d\n    tl.store(y_ptr + offs + n, acc)\n"),
    "with dot results": (dots + load + "        c = tl.load(x_ptr + n + offs + k)\n", "        c = c * {i} + 1\n",
                         "        acc += tl.dot(a, b) * c\n    tl.store(y_ptr + offs + n, acc)\n"),
    "loops of loads": (tiles, "    for j in range(0, n, B):\n        x += tl.load(y_ptr + offs + j)\n", store),
    "loops of sums": (tiles, "    for j in range(0, n, B):\n        x += tl.sum(tl.load(y_ptr + offs + j)) + {i}\n", store),
    "histograms": (integers + "    h = i\n", "    h += tl.histogram(i + {i}, B)\n", store.replace("x,", "h,")),
    "sums of parts": (tiles, "    x = tl.reshape(tl.sum(tl.reshape(x, (B // 16, 16)), 1)[:, None] + tl.arange(0, 16)[None, :], (B,))\n", store),
    "loops of dots": (dots.replace("    for k in range(0, n, 64):\n", "    a = tl.load(x_ptr + offs)\n"),
                      "    for k in tl.range(0, n, 64, num_stages=1):\n        acc = tl.dot(a, a, acc)\n", "    tl.store(y_ptr + offs + n, acc)\n"),
    "after dots": (dots + load + "        acc = tl.dot(a, b, acc)\n", "    acc = acc * acc + {i}\n", "    tl.store(y_ptr + offs + n, acc)\n"),
}
aligned = "*fp32:16,*fp32:16,i32:16"
types = {"indirect loads": "*i32,*i32,i32", "histograms": "*i32,*i32,i32", "sums": aligned, "sums of tiles": aligned, "sums of rows": aligned}


def seconds(path, kind, target, emit):
    """CPU time of one process, or how it ended."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    pointers = types.get(kind, "*fp16,*fp16,i32" if "dot" in kind or "operands" in kind else "*fp32,*fp32,i32")
    run = f"ulimit -s {STACK if emit == 'ttgir' else 8192}; ulimit -t {MOST_SECONDS}; exec \"$@\""
    arguments = ["sh", "-c", run, "sh", tlc, path, "-s", pointers, "-D", "B=256", "--target", target,
                 "--remarks", "--emit", emit, "-o", os.devnull]
    pid = os.posix_spawnp("sh", arguments, os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    return f"status {status}" if status else used.ru_utime + used.ru_stime


def write(folder, kind, n):
    start, line, end = kinds[kind]
    path = os.path.join(folder, f"{kind}-{n}.tl".replace(" ", "-"))
    with open(path, "w") as f:
        f.write(start + "".join(line.replace("{i}", str(i + 3)) for i in range(n)) + end)
    return path


def grows_little(took):
    return len(took) < 3 or took[2] < max(MOST_GROWTH * took[1], SHORT)


def main():
    runs = {target: ((FEW, "ptx"), (MANY // 4, "ttgir"), (MANY, "ttgir")) for target in ("cuda:sm_80", "cuda:sm_90a")}
    runs["cpu"] = ((SOME, "obj"),)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in only or kinds:
            for target in runs:
                took = [seconds(write(folder, kind, n), kind, target, emit) for n, emit in runs[target]]
                for _ in range(TRIES - 1):
                    if any(isinstance(t, str) for t in took) or grows_little(took):
                        break
                    again = seconds(write(folder, kind, MANY), kind, target, "ttgir")
                    took[2] = again if isinstance(again, str) else min(took[2], again)
                fine = not any(isinstance(t, str) for t in took) and grows_little(took)
                print(f"{kind:24} {target:12}", *(t if isinstance(t, str) else f"{t:6.2f} s" for t in took),
                      "" if fine else "too much", flush=True)
                passed += fine
                failed += not fine
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


main()
