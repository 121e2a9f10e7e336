"""Compares the examples' table with libraries of this machine, on the CPU.

    python3 libraries.py TABLE

The library is PyTorch if it is installed, else NumPy; for GEMMs of fp32 also OpenBLAS. Speeds are in the units of the table. The
last number is the table's speed divided by the library's. Rows of GPUs, and tasks without a library function, are left out.
"""
import ctypes
import os
import re
import sys
import time

THREADS = len(os.sched_getaffinity(0))
try:
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(THREADS)
    np = None
except ImportError:
    torch = None
    try:
        import numpy as np
    except ImportError:
        np = None
try:
    openblas = ctypes.CDLL("libopenblas.so.0")
    openblas.openblas_set_num_threads(THREADS)
except (OSError, AttributeError):
    openblas = None


def seconds(f):
    """The time of the fastest of several calls."""
    f()
    best, end = float("inf"), time.perf_counter() + 0.05
    while True:
        begin = time.perf_counter()
        f()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def tensor(shape, dtype):
    if not torch:
        return np.random.default_rng(0).standard_normal(shape, np.float32) if dtype == "fp32" else None
    types = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    return torch.randn(shape).to(types[dtype]) if dtype in types else None


def softmax(x):
    if torch:
        return lambda: torch.softmax(x, 1)

    def by_numpy():
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)
    return by_numpy


def product(sizes, dtype, words):
    m, n, k = sizes
    x = tensor((k, m) if "At" in words else (m, k), dtype)
    y = tensor((n, k) if "Bt" in words else (k, n), dtype)
    if x is None:
        return None
    a, b = x.T if "At" in words else x, y.T if "Bt" in words else y
    if not openblas or dtype != "fp32":
        return (lambda: a @ b), None
    c = tensor((m, n), dtype)
    pointer = lambda t: ctypes.c_void_p(t.data_ptr() if torch else t.ctypes.data)
    integer, one, zero = ctypes.c_int, ctypes.c_float(1), ctypes.c_float(0)
    args = [integer(101), integer(112 if "At" in words else 111), integer(112 if "Bt" in words else 111), integer(m), integer(n), integer(k), one,
            pointer(x), integer(m if "At" in words else k), pointer(y), integer(k if "Bt" in words else n), zero, pointer(c), integer(n)]
    return (lambda: a @ b), (lambda kept=(x, y, c): openblas.cblas_sgemm(*args))


def task(kernel, what):
    """A function of the library for the task, a function of OpenBLAS or None, and operations or bytes. None: there is no function."""
    shape, *words = what.replace(" x ", "x").split()
    sizes, dtype = [int(n) for n in shape.split("x")], words[0]
    size = 4 if dtype in ("fp32", "i32") else 2
    if not re.fullmatch("fp32|fp16|bf16", dtype) or "gap" in words:
        return None
    if kernel.startswith("matmul"):
        found = product(sizes, dtype, words)
        return found and (*found, 2 * sizes[0] * sizes[1] * sizes[2])
    x = tensor(sizes, dtype)
    if x is None:
        return None
    elements = x.numel() if torch else x.size
    if kernel == "vector_add":
        y = tensor(sizes, dtype)
        return (lambda: x + y), None, 3 * elements * size
    if kernel.startswith("softmax"):
        return softmax(x), None, 2 * elements * size
    if kernel == "mean":
        axis = int(words[2])
        return (lambda: x.mean(axis)), None, (elements + elements // sizes[axis]) * size
    if kernel == "layer_norm" and torch:
        w = tensor(sizes[1:], dtype)
        return (lambda: F.layer_norm(x, sizes[1:], w, w)), None, 2 * elements * size
    if kernel == "attention" and torch:
        y, z, causal = tensor(sizes, dtype), tensor(sizes, dtype), "causal" in words
        return (lambda: F.scaled_dot_product_attention(x, y, z, is_causal=causal)), None, 4 * elements * sizes[2] * (0.5 if causal else 1)
    return None


def main():
    name, rows = f"PyTorch {torch.__version__}" if torch else f"NumPy {np.__version__}", []
    for line in open(sys.argv[1]):
        row = re.match(r"(\w+) +(\S.*?) +(cpu|interp) .*? ([\d.e+-]+) (GB/s|GFLOPS|TFLOPS) ", line)
        found = row and task(row[1], row[2])
        if not found:
            continue
        if not rows:
            print(f"\n{'kernel':18} {'size':34} {'speed':>15} {name:>23} {'OpenBLAS' if openblas else ''}")
        library, blas, work = found
        speed = float(row[4]) * {"GB/s": 1e9, "GFLOPS": 1e9, "TFLOPS": 1e12}[row[5]]
        rows = [f"{work / seconds(f) / 1e9:.3g} {speed * seconds(f) / work:8.2f}" for f in (library, blas) if f]
        print(f"{row[1]:18} {row[2]:34} {row[4]:>8} {row[5]:6} " + " ".join(f"{r:>23}" for r in rows), flush=True)


if torch or np:
    main()
