"""Our kernels beside Triton's and PyTorch's: the same kernel text, the same tensors, the same stream, one process.

    python3 tests/bench/bench.py BUILD [FILTER]

Prints a Markdown table of median times; each result of ours is also compared with PyTorch's. Needs a GPU, torch and
triton; BUILD holds libtl.so. The columns "best" are over the configurations listed with each kernel.
"""
import ctypes
import importlib.util
import os
import sys
import time

import torch
import torch.nn.functional as F
import triton
import triton.testing

build = sys.argv[1]
wanted = sys.argv[2] if len(sys.argv) > 2 else ""
examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
lib = ctypes.CDLL(os.path.join(build, "libtl.so"))

DTYPES = {torch.int32: 3, torch.float16: 11, torch.bfloat16: 12, torch.float32: 13, torch.float64: 14}


class Value(ctypes.Union):
    _fields_ = [("ptr", ctypes.c_void_p), ("i", ctypes.c_int64), ("f", ctypes.c_double)]


class Arg(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("dtype", ctypes.c_int), ("typed", ctypes.c_bool), ("value", Value)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("num_warps", ctypes.c_int), ("num_stages", ctypes.c_int),
                ("group_pids", ctypes.c_int), ("debug", ctypes.c_bool), ("stream", ctypes.c_void_p)]


lib.tl_error.restype = ctypes.c_char_p
lib.tl_error.argtypes = [ctypes.c_void_p]
context = ctypes.c_void_p()


def must(status):
    if status:
        sys.exit(f"tlc: {lib.tl_error(context).decode()}")


def to_arg(v):
    if isinstance(v, torch.Tensor):
        return Arg(1, DTYPES[v.dtype], True, Value(ptr=v.data_ptr()))
    if isinstance(v, bool):
        return Arg(4, 0, True, Value(i=v))
    if isinstance(v, int):
        return Arg(2, 3, False, Value(i=v))
    if isinstance(v, float):
        return Arg(3, 13, True, Value(f=v))
    return Arg(0, 3, False, Value(i=0))


class Kernel:
    """A kernel of examples/, compiled by both."""

    def __init__(self, name, function):
        path = os.path.join(examples, name + ".tl")
        loader = importlib.machinery.SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(module)
        self.triton = getattr(module, function)
        m, self.ours = ctypes.c_void_p(), ctypes.c_void_p()
        must(lib.tl_module_load(context, path.encode(), ctypes.byref(m)))
        must(lib.tl_module_kernel(m, function.encode(), ctypes.byref(self.ours)))

    def launcher(self, grid, args, warps, stages):
        array = (Arg * len(args))(*map(to_arg, args))
        config = Config((ctypes.c_uint32 * 3)(*grid), warps, stages, 0, False, torch.cuda.current_stream().cuda_stream)
        launch, kernel, ref = lib.tl_launch, self.ours, ctypes.byref(config)
        n = ctypes.c_size_t(len(args))
        return lambda: must(launch(kernel, ref, array, n))


def measure(f):
    """Median milliseconds with a cold L2 cache."""
    return triton.testing.do_bench(f, warmup=10, rep=60, return_mode="median")


def first(f):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    f()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3


def row(what, kernel, grid, args, out, reference, configs, bytes=0, flops=0, tolerance=1e-2):
    """grid and args are functions of the constexprs of a configuration (constexprs, warps, stages)."""
    if wanted not in what:
        return
    times, notes = {}, {}
    expected = reference()
    for who in ("tlc", "triton"):
        best = None
        for constexprs, warps, stages in configs:
            a, g = args(*constexprs), grid(*constexprs)
            if who == "tlc":
                run = kernel.launcher(g, a, warps, stages)
            else:
                run = lambda: kernel.triton[g](*a, num_warps=warps, num_stages=stages)
            out.fill_(float("nan"))
            try:
                compile_ms = first(run)
                error = (out.float() - expected.float()).abs().max().item()
                if not error <= tolerance:
                    notes[who] = f"{who} WRONG: {error:.3g}"
                ms = measure(run)
            except Exception as e:
                notes[who] = f"{who}: {type(e).__name__}"
                continue
            if best is None or ms < best[0]:
                best = ms, constexprs, warps, stages, compile_ms
        times[who] = best
    library = measure(reference)
    ours, theirs = times["tlc"], times["triton"]
    rate = lambda ms: f"{flops / ms / 1e9:.0f} TFLOPS" if flops else f"{bytes / ms / 1e6:.0f} GB/s"
    if not ours or not theirs:
        print(f"| {what} | | | | | {notes} |", flush=True)
        return
    print(f"| {what} | {ours[0] * 1e3:.1f} | {theirs[0] * 1e3:.1f} | {library * 1e3:.1f} | {rate(ours[0])} | "
          f"{theirs[0] / ours[0]:.2f} | {library / ours[0]:.2f} | {ours[4]:.0f} | {theirs[4]:.0f} | "
          f"{','.join(map(str, ours[1]))} w{ours[2]} s{ours[3]} | {' '.join(notes.values())} |", flush=True)


def main():
    torch.manual_seed(0)
    x = torch.zeros(1, device="cuda")
    must(lib.tl_context_from_cuda(None, ctypes.byref(context)))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}\n")
    print("| kernel | tlc µs | Triton µs | torch µs | tlc | Triton/tlc | torch/tlc | tlc compile ms | Triton compile ms | tlc's best | |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")

    add = Kernel("vector_add", "add_kernel")
    for n in (1 << 20, 1 << 25, (1 << 25) + 3):
        x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        out = torch.empty_like(x)
        row(f"vector_add {n}", add, lambda b: (triton.cdiv(n, b), 1, 1), lambda b: [x, y, out, n, b], out,
            lambda: x + y, [((1024,), 4, 1)], bytes=12 * n)

    softmax = Kernel("softmax", "softmax_kernel")
    for rows, cols in ((4096, 1024), (16384, 1024), (4096, 4096), (4096, 8192), (8192, 781), (4096, 5000)):
        x = torch.randn(rows, cols, device="cuda")
        out = torch.empty_like(x)
        row(f"softmax {rows}x{cols} fp32", softmax, lambda b: (rows, 1, 1),
            lambda b: [x, out, cols, cols, cols, b], out, lambda: torch.softmax(x, 1),
            [((triton.next_power_of_2(cols),), w, 1) for w in (4, 8, 16)], bytes=8 * rows * cols)

    norm = Kernel("layer_norm", "layer_norm_kernel")
    for rows, cols in ((4096, 4096), (4096, 8192), (8192, 1000)):
        x = torch.randn(rows, cols, device="cuda", dtype=torch.float16)
        w, b = torch.randn(cols, device="cuda").half(), torch.randn(cols, device="cuda").half()
        out, mean, rstd = torch.empty_like(x), torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")
        row(f"layer_norm {rows}x{cols} fp16", norm, lambda B: (rows, 1, 1),
            lambda B: [x, out, w, b, mean, rstd, cols, cols, cols, 1e-5, B], out,
            lambda: F.layer_norm(x, (cols,), w, b), [((1024,), 4, 3), ((4096,), 8, 3), ((2048,), 4, 3)],
            bytes=4 * rows * cols, tolerance=4e-2)

    matmul = Kernel("matmul", "matmul_kernel")
    for dtype, sizes in ((torch.float16, ((512, 512, 512), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4095, 4097, 4100))),
                         (torch.float32, ((2048, 2048, 2048),))):
        torch.backends.cuda.matmul.allow_tf32 = True
        for m, n, k in sizes:
            a, b = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(k, n, device="cuda", dtype=dtype)
            out = torch.empty(m, n, device="cuda", dtype=dtype)
            row(f"matmul {m}x{n}x{k} {str(dtype)[6:]}", matmul,
                lambda bm, bn, bk, g: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
                lambda bm, bn, bk, g: [a, b, out, m, n, k, k, 1, n, 1, n, 1, bm, bn, bk, g, None], out, lambda: a @ b,
                [((128, 128, 32, 8), 4, 4), ((128, 128, 64, 8), 4, 3), ((128, 128, 64, 8), 8, 3), ((128, 256, 64, 8), 8, 3),
                 ((64, 64, 64, 8), 4, 4), ((64, 128, 32, 8), 4, 4)],
                flops=2 * m * n * k, tolerance=2.0)

    attention = Kernel("attention", "attention_kernel")
    for z, h, n, d, causal in ((4, 16, 1024, 64, False), (4, 32, 4096, 64, False), (4, 32, 4096, 64, True), (4, 16, 4096, 128, True)):
        q, k, v = (torch.randn(z, h, n, d, device="cuda", dtype=torch.float16) for _ in range(3))
        out = torch.empty_like(q)
        strides = [h * n * d, n * d, d]
        row(f"attention {z}x{h}x{n}x{d} causal={causal}", attention, lambda bm, bn: (triton.cdiv(n, bm), z * h, 1),
            lambda bm, bn: [q, k, v, out, 1 / d**0.5] + strides * 4 + [h, n, d, bm, bn, causal], out,
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            [((128, 64), 4, 3), ((128, 64), 8, 3), ((64, 64), 4, 3), ((128, 128), 8, 2)],
            flops=4 * z * h * n * n * d * (0.5 if causal else 1))


main()
