"""Rows whose time is that of matrix products."""
import torch
import torch.nn.functional as F
import triton


def matmul(b):
    kernel = b.example("matmul", "matmul_kernel")
    for dtype, sizes in ((torch.float16, ((512, 512, 512), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4095, 4097, 4100))),
                         (torch.float32, ((2048, 2048, 2048),))):
        torch.backends.cuda.matmul.allow_tf32 = True
        for m, n, k in sizes:
            what = f"matmul {m}x{n}x{k} {str(dtype)[6:]}"
            if not b.wants(what):
                continue
            x, y = torch.randn(m, k, device="cuda", dtype=dtype), torch.randn(k, n, device="cuda", dtype=dtype)
            out = torch.empty(m, n, device="cuda", dtype=dtype)
            b.row(what, kernel, lambda bm, bn, bk, g: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
                  lambda bm, bn, bk, g: [x, y, out, m, n, k, k, 1, n, 1, n, 1, bm, bn, bk, g, None], out, lambda: x @ y,
                  [((128, 128, 32, 8), 4, 4), ((128, 128, 64, 8), 4, 3), ((128, 128, 64, 8), 8, 3), ((128, 256, 64, 8), 8, 3),
                   ((64, 64, 64, 8), 4, 4), ((64, 128, 32, 8), 4, 4)],
                  flops=2 * m * n * k, tolerance=2.0)


def attention(b):
    kernel = b.example("attention", "attention_kernel")
    for z, h, n, d, causal in ((4, 16, 1024, 64, False), (4, 32, 4096, 64, False), (4, 32, 4096, 64, True), (4, 16, 4096, 128, True)):
        what = f"attention {z}x{h}x{n}x{d} causal={causal}"
        if not b.wants(what):
            continue
        q, k, v = (torch.randn(z, h, n, d, device="cuda", dtype=torch.float16) for _ in range(3))
        out = torch.empty_like(q)
        strides = [h * n * d, n * d, d]
        b.row(what, kernel, lambda bm, bn: (triton.cdiv(n, bm), z * h, 1),
              lambda bm, bn: [q, k, v, out, 1 / d**0.5] + strides * 4 + [h, n, d, bm, bn, causal], out,
              lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
              [((128, 64), 4, 3), ((128, 64), 8, 3), ((64, 64), 4, 3), ((128, 128), 8, 2)],
              flops=4 * z * h * n * n * d * (0.5 if causal else 1))


def rows(b):
    matmul(b)
    attention(b)
