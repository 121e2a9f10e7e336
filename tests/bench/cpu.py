"""The cpu device beside PyTorch on the same processor, the same tensors and as many threads, in turns.

    python3 tests/bench/cpu.py BUILD [FILTER[,FILTER]...]

Prints a Markdown table of the fastest of several calls each, in milliseconds; results are compared first. `copy` is PyTorch's copy
of as many bytes as the kernel must move. `OpenBLAS` is its cblas_sgemm, where libopenblas.so.0 is installed, on products of fp32.
A second table has Triton's interpreter mode on the same kernels (interpreted.py), where triton is installed: rows "interpreted ...".
Needs torch; BUILD holds libtl.so. Rows whose names contain a filter.
"""
import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import time

import libtl

libtl.keep_blocks()

import torch
import torch.nn.functional as F

import interpreted

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")
THREADS = len(os.sched_getaffinity(0))
TYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16", torch.int8: "int8", torch.int32: "int32",
         torch.int64: "int64"}
TOLERANCE = {torch.float32: 2e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3, torch.int32: 0}
torch.set_num_threads(THREADS)
torch.manual_seed(1)
tl = libtl.Context(libtl.load(sys.argv[1]), "cpu")
FILTERS = sys.argv[2].split(",") if len(sys.argv) > 2 else [""]


def load_openblas():
    """None where it is not installed."""
    try:
        blas = ctypes.CDLL("libopenblas.so.0")
    except OSError:
        return None
    blas.openblas_set_num_threads(THREADS)
    return blas


BLAS = load_openblas()


def sgemm(a, b):
    """What computes a b by OpenBLAS into the second value, or None: a and b are matrices whose rows or columns are contiguous."""
    if not BLAS or a.dtype != torch.float32:
        return None
    (m, k), n = a.shape, b.shape[1]
    out = torch.full((m, n), float("nan"))
    turned = [x.stride(1) != 1 for x in (a, b)]
    order = [ctypes.c_int(112 if t else 111) for t in turned]
    stride = [ctypes.c_int(x.stride(1 if t else 0)) for x, t in zip((a, b), turned)]
    pointer = lambda x: ctypes.c_void_p(x.data_ptr())
    given = (ctypes.c_int(101), *order, *map(ctypes.c_int, (m, n, k)), ctypes.c_float(1), pointer(a), stride[0], pointer(b), stride[1],
             ctypes.c_float(0), pointer(out), ctypes.c_int(n))
    return lambda: BLAS.cblas_sgemm(*given), out


def arg(x):
    return libtl.pointer(TYPES[x.dtype], x.data_ptr(), x.numel() * x.element_size()) if isinstance(x, torch.Tensor) else libtl.scalar(x)


def fastest(f, seconds=0.4):
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        f()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best * 1e3


def row(name, path, kernel, grid, args, out, reference, moved=None, flops=None, tolerance=None, blas=None):
    """blas: what computes the same by OpenBLAS, and its result."""
    if not any(f in name for f in FILTERS):
        return
    begin = time.perf_counter()
    launch = tl.launcher(tl.kernel(path, kernel), grid, [arg(a) for a in args], 4, 3)
    launch()
    compiled = (time.perf_counter() - begin) * 1e3
    want = reference()
    error = (out.double() - want.double()).abs().max().item() / max(want.double().abs().max().item(), 1e-30)
    ours, theirs, copy, anchor = [], [], [], []
    if blas:
        blas[0]()
        off = (blas[1].double() - want.double()).abs().max().item() / want.double().abs().max().item()
        assert off <= TOLERANCE[torch.float32], f"{name}: OpenBLAS is off by {off:.1e}"
    if moved:
        source = torch.empty(moved // 2, dtype=torch.uint8).fill_(1)
        target = torch.empty_like(source)
    for _ in range(5):
        ours.append(fastest(launch))
        theirs.append(fastest(reference))
        if blas:
            anchor.append(fastest(blas[0]))
        if moved:
            copy.append(fastest(lambda: target.copy_(source), 0.1))
    ours, theirs = min(ours), min(theirs)
    rate = f"{flops / ours / 1e6:.0f} GFLOPS" if flops else ""
    share = f"{min(copy) / ours:.2f}" if moved else ""
    blas_cells = f"{min(anchor):.3f} | {min(anchor) / ours:.2f}" if blas else " | "
    wrong = "" if error <= (tolerance or TOLERANCE[out.dtype]) else f" WRONG {error:.1e}"
    print(f"| {name} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.2f} | {blas_cells} | {share} | {rate} | {compiled:.0f} |{wrong}", flush=True)


def up(n):
    return 1 << (n - 1).bit_length()


print("| row | cpu ms | PyTorch ms | PyTorch/cpu | OpenBLAS ms | OpenBLAS/cpu | copy/cpu | rate | first call ms |\n"
      "|---|---|---|---|---|---|---|---|---|")
mine, plain = os.path.join(HERE, "cpu.tl"), os.path.join(HERE, "kernels.tl")
for t, short in ((torch.float32, "fp32"), (torch.bfloat16, "bf16"), (torch.float16, "fp16")):
    size = 4 if t == torch.float32 else 2
    x, y = torch.randn(1 << 23).to(t), torch.randn(1 << 23).to(t)
    out = torch.empty_like(x)
    n = x.numel()
    row(f"add {short} 2^23", os.path.join(EXAMPLES, "vector_add.tl"), "add_kernel", (n // 4096,), [x, y, out, n, 4096], out, lambda: torch.add(x, y), 3 * n * size)
    row(f"gelu {short} 2^23", mine, "gelu_kernel", (n // 4096,), [x, out, n, 4096], out, lambda: F.gelu(x), 2 * n * size)
    for cols in (1000, 4096):
        x = torch.randn(4096, cols).to(t)
        out = torch.empty_like(x)
        weight, bias, sums = torch.randn(cols).to(t), torch.randn(cols).to(t), torch.empty(4096)
        n = x.numel()
        row(f"softmax {short} 4096 x {cols}", os.path.join(EXAMPLES, "softmax.tl"), "softmax_kernel", (4096,), [x, out, cols, cols, cols, up(cols)], out,
            lambda: torch.softmax(x, 1), 2 * n * size)
        row(f"layer norm {short} 4096 x {cols}", mine, "layer_norm_kernel", (4096,), [x, weight, bias, out, cols, cols, 1e-5, up(cols)], out,
            lambda: F.layer_norm(x, (cols,), weight, bias), 2 * n * size)
        row(f"rms norm {short} 4096 x {cols}", plain, "rms_norm_kernel", (4096,), [x, weight, out, cols, cols, 1e-5, up(cols)], out,
            lambda: F.rms_norm(x, (cols,), weight, 1e-5), 2 * n * size)
        row(f"mean of rows {short} 4096 x {cols}", plain, "row_mean_kernel", (4096,), [x, sums, cols, cols, up(cols)], sums,
            lambda: torch.mean(x, 1, dtype=torch.float32), n * size)
        columns = torch.empty(cols)
        row(f"mean of columns {short} 4096 x {cols}", mine, "column_mean_kernel", ((cols + 511) // 512,), [x, columns, cols, 4096, cols, 8, 512], columns,
            lambda: torch.mean(x, 0, dtype=torch.float32), n * size)
        labels = torch.randint(0, cols, (4096,))
        row(f"cross entropy {short} 4096 x {cols}", mine, "cross_entropy_kernel", (4096,), [x, labels, sums, cols, cols, up(cols)], sums,
            lambda: F.cross_entropy(x.float(), labels, reduction="none"), n * size)
    for m, n, k in ((512, 512, 512), (1000, 1000, 1000), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (4095, 4097, 4093)):
        if t == torch.float16:
            continue
        a, b = torch.randn(m, k).to(t), torch.randn(k, n).to(t)
        out = torch.empty(m, n).to(t)
        if t == torch.float32:
            bm, bn, bk, group = (128, 128, 128, 8) if m <= 1024 else (512, 512, 256, 1)
        else:
            bm, bn, bk, group = (128, 128, 256, 8) if m <= 512 else (256, 256, 256, 4)
        grid = (-(-m // bm)) * (-(-n // bn))
        row(f"matmul {short} {m} x {n} x {k}", mine, "matmul_kernel", (grid,), [a, b, out, m, n, k, k, n, n, bm, bn, bk, group], out, lambda: a @ b,
            flops=2 * m * n * k, blas=sgemm(a, b))
    block = 128 if t == torch.float32 else 256
    for turned in ("neither", "a", "b"):
        if t == torch.float16:
            continue
        a, b, out = torch.randn(1024, 1024).to(t), torch.randn(1024, 1024).to(t), torch.empty(1024, 1024).to(t)
        if turned == "a":
            a = a.T
        elif turned == "b":
            b = b.T
        row(f"matmul {short} 1024 x 1024 x 1024, {turned} transposed", os.path.join(EXAMPLES, "matmul.tl"), "matmul_kernel", ((1024 // block) ** 2,),
            [a, b, out, 1024, 1024, 1024, *a.stride(), *b.stride(), 1024, 1, block, block, block, 8], out, lambda: a @ b, flops=2 * 1024**3,
            tolerance=2e-3 if t == torch.float32 else None, blas=sgemm(a, b))  # tf32
    if short == "bf16":
        a, b = (torch.randint(-128, 128, (2048, 2048)).to(torch.int8) for _ in range(2))
        out = torch.empty(2048, 2048, dtype=torch.int32)
        row("matmul int8 2048 x 2048 x 2048", mine, "matmul_kernel", (64,), [a, b, out, 2048, 2048, 2048, 2048, 2048, 2048, 256, 256, 256, 4], out,
            lambda: torch._int_mm(a, b), flops=2 * 2048**3)
    if t == torch.float16:
        continue
    for causal in (False, True):
        q, k, v = (torch.randn(1, 8, 2048, 64).to(t) for _ in range(3))
        out = torch.empty_like(q)
        keys = 256 if t == torch.bfloat16 and not causal else 128
        row(f"attention {short} 8 x 2048 x 64{' causal' * causal}", mine, "attention_kernel", (2048 // 128, 8), [q, k, v, out, 0.125, 2048, 64, 128, keys, causal], out,
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), flops=4 * 8 * 2048 * 2048 * 64 // (1 + causal))

chosen = [name for name in interpreted.ROWS if any(f in f"interpreted {name}" for f in FILTERS)]
if chosen and importlib.util.find_spec("triton"):
    print("\n| row | cpu ms | Triton's interpreter ms | interpreter/cpu |\n|---|---|---|---|")
    theirs = json.loads(subprocess.run([sys.executable, os.path.join(HERE, "interpreted.py")], env={**os.environ, "TRITON_INTERPRET": "1"},
                                       stdout=subprocess.PIPE, check=True).stdout)
    for name in chosen:
        path, kernel, grid, args, out, expected = interpreted.ROWS[name]()
        launch = tl.launcher(tl.kernel(path, kernel), grid, [arg(a) for a in args], 4, 3)
        launch()
        bad, ours = interpreted.wrong(out, expected), fastest(launch)
        times = f"{theirs[name]:.1f} | {theirs[name] / ours:.0f}" if theirs[name] else "WRONG | "
        print(f"| interpreted {name} | {ours:.4f} | {times} |{' WRONG' * bad}", flush=True)
