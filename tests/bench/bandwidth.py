"""Rows whose time is that of moving bytes."""
import torch
import torch.nn.functional as F
import triton


def warps_for(n):
    """What autotuning tries for rows of n elements."""
    return [1, 2, 4] if n <= 512 else [2, 4, 8] if n <= 1024 else [4, 8, 16] if n <= 16384 else [4, 8, 16, 32]


def add(b):
    kernel = b.example("vector_add", "add_kernel")
    for n in [1 << k for k in range(20, 29, 2)] + [(1 << 25) + 3]:
        if not b.wants(f"add f32 {n}"):
            continue
        x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        out = torch.empty_like(x)
        b.row(f"add f32 {n}", kernel, lambda k: (triton.cdiv(n, k), 1, 1), lambda k: [x, y, out, n, k], out, lambda: x + y,
              [((k,), w, 1) for k, w in ((1024, 4), (1024, 8), (2048, 8))], bytes=12 * n)


def softmax(b):
    kernel = b.example("softmax", "softmax_kernel")
    for cols in (512, 781, 1000, 1024, 2048, 4096, 5000, 8192, 12288, 16384, 32768, 65536, 131072):
        rows = (1 << 27) // cols
        what = f"softmax f32 {rows}x{cols}"
        if not b.wants(what):
            continue
        x = torch.randn(rows, cols, device="cuda")
        out = torch.empty_like(x)
        b.row(what, kernel, lambda k: (rows, 1, 1), lambda k: [x, out, cols, cols, cols, k], out, lambda: torch.softmax(x, 1),
              [((triton.next_power_of_2(cols),), w, 1) for w in warps_for(cols)], bytes=8 * rows * cols, tolerance=1e-4)


def layer_norm(b):
    """The tutorial's kernel, and the one that keeps the row."""
    for name, kernel in (("layer_norm", b.example("layer_norm", "layer_norm_kernel")), ("layer_norm_row", b.kernel("layer_norm_row_kernel"))):
        for cols in (1000, 1024, 2048, 4096, 8192, 16384):
            rows = 8192
            what = f"{name} f16 {rows}x{cols}"
            if not b.wants(what):
                continue
            x = torch.randn(rows, cols, device="cuda", dtype=torch.float16)
            w, bias = torch.randn(cols, device="cuda").half(), torch.randn(cols, device="cuda").half()
            out, mean, rstd = torch.empty_like(x), torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda")
            whole = triton.next_power_of_2(cols)
            blocks = (whole, whole // 2) if name == "layer_norm" else (whole,)
            b.row(what, kernel, lambda k: (rows, 1, 1), lambda k: [x, out, w, bias, mean, rstd, cols, cols, cols, 1e-5, k], out,
                  lambda: F.layer_norm(x, (cols,), w, bias), [((k,), n, 1) for k in blocks for n in warps_for(k)],
                  bytes=4 * rows * cols, tolerance=4e-2)


def mean(b):
    rows, kernel = 8192, b.kernel("row_mean_kernel")
    for cols in (1024, 4096, 16384):
        what = f"mean f32 {rows}x{cols} of rows"
        if not b.wants(what):
            continue
        x, out = torch.randn(rows, cols, device="cuda"), torch.empty(rows, device="cuda")
        b.row(what, kernel, lambda k: (rows, 1, 1), lambda k: [x, out, cols, cols, k], out, lambda: x.mean(1),
              [((cols,), w, 1) for w in warps_for(cols)], bytes=4 * rows * cols, tolerance=1e-4)
    kernel = b.example("mean", "mean_kernel")
    for m, n, k in ((64, 1024, 1024), (1, 8192, 8192)):
        what = f"mean f32 {m}x{n}x{k} of dimension 1"
        if not b.wants(what):
            continue
        x, out = torch.randn(m, n, k, device="cuda"), torch.empty(m, k, device="cuda")
        b.row(what, kernel, lambda bn, bk: (m * triton.cdiv(k, bk), 1, 1), lambda bn, bk: [x, out, m, n, k, n * k, k, 1, bn, bk], out,
              lambda: x.mean(1), [(s, w, 1) for s in ((32, 64), (64, 32), (128, 32)) for w in (4, 8)], bytes=4 * m * n * k, tolerance=1e-4)


def rms_norm(b):
    rows, kernel = 8192, b.kernel("rms_norm_kernel")
    for cols in (1024, 4096, 8192, 16384):
        what = f"rms_norm f16 {rows}x{cols}"
        if not b.wants(what):
            continue
        x, w = torch.randn(rows, cols, device="cuda").half(), torch.randn(cols, device="cuda").half()
        out = torch.empty_like(x)
        b.row(what, kernel, lambda k: (rows, 1, 1), lambda k: [x, w, out, cols, cols, 1e-5, k], out,
              lambda: F.rms_norm(x, (cols,), w, 1e-5), [((triton.next_power_of_2(cols),), n, 1) for n in warps_for(cols)],
              bytes=4 * rows * cols, tolerance=4e-2)


def cross_entropy(b):
    kernel = b.kernel("cross_entropy_kernel")
    for rows, cols, dtype in ((8192, 4096, torch.float32), (4096, 32000, torch.float32), (4096, 50257, torch.float32), (4096, 128256, torch.float16)):
        what = f"cross_entropy {'f32' if dtype == torch.float32 else 'f16'} {rows}x{cols}"
        if not b.wants(what):
            continue
        x = torch.randn(rows, cols, device="cuda", dtype=dtype)
        target = torch.randint(0, cols, (rows,), device="cuda")
        out = torch.empty(rows, device="cuda")
        b.row(what, kernel, lambda k: (rows, 1, 1), lambda k: [x, target, out, cols, cols, k], out,
              lambda: F.cross_entropy(x, target, reduction="none"), [((k,), w, 1) for k in (2048, 4096) for w in (4, 8, 16)],
              bytes=x.element_size() * rows * cols, tolerance=2e-2)


def rows(b):
    for group in (add, softmax, layer_norm, mean, rms_norm, cross_entropy):
        group(b)
