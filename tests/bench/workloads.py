"""Rows of kernels as models use them, besides those that have goals of their own."""
import os

import torch
import torch.nn.functional as F
import triton

import harness
from harness import HERE, Kernel, size, untimed


BF16, F32, FP8 = torch.bfloat16, torch.float32, torch.float8_e4m3fn
def weights():  # k, n of narrow ones
    return size(((4096, 4096), (8192, 28672)), ((2048, 2048),))


def scaled():  # k = n, and m, of scaled blocks
    return size((4096, (16, 128, 4096)), (1024, (16, 128, 1024)))


def experts_of():  # how many, n, k, tokens
    return size((8, 4096, 2048, (128, 1024, 4096, 16384)), (8, 1024, 512, (128, 1024)))


def kernel(b, name):
    return Kernel(b, os.path.join(HERE, "workloads.tl"), name + "_kernel")


def randn(*shape, dtype=torch.float16):
    return torch.randn(*shape, device=harness.DEVICE).to(dtype)


def rand(*shape):
    return torch.rand(*shape, device=harness.DEVICE)


def empty(*shape, dtype=torch.float16):
    return torch.empty(*shape, device=harness.DEVICE, dtype=dtype)


def product(x, y, scale=None):
    """x y by PyTorch. Its products of fp16 on the CPU take 100 times as long as those of fp32, which a user would take there."""
    if harness.DEVICE == "cpu":
        x, y = x.float(), y.float()
    return (lambda: x @ y) if scale is None else lambda: (x @ y) * scale


def blocks(n, constexprs=(1024, 2048), warps=(4, 8)):
    return dict(grid=lambda k: (triton.cdiv(n, k), 1, 1), configs=[((k,), w, 1) for k in constexprs for w in warps])


def one_row(rows, cols, warps=(4, 8, 16)):
    return dict(grid=lambda k: (rows, 1, 1), configs=[((triton.next_power_of_2(cols),), w, 1) for w in warps])


def elementwise(b):
    n = size(1 << 25, 1 << 22)
    if b.wants("swiglu f16"):
        x, y = randn(n), randn(n)
        out = torch.empty_like(x)
        b.row("swiglu f16", kernel(b, "swiglu"), args=lambda k: [x, y, out, n, k], out=out, reference=lambda: F.silu(x) * y,
              bytes=6 * n,
              tolerance=4e-2, **blocks(n))
    if b.wants("gelu f16"):
        x = randn(n)
        out = torch.empty_like(x)
        b.row("gelu f16", kernel(b, "gelu"), args=lambda k: [x, out, n, k], out=out, reference=lambda: F.gelu(x), bytes=4 * n,
              tolerance=1e-2, **blocks(n))
    if b.wants("adam f32 bf16"):
        p, g, m, v = randn(n, dtype=F32), randn(n, dtype=BF16), torch.zeros(n, device=harness.DEVICE), torch.zeros(n, device=harness.DEVICE)
        out, first, second = torch.empty_like(p), torch.zeros_like(m), torch.zeros_like(v)

        def adam():
            first.mul_(0.9).add_(g, alpha=0.1)
            second.mul_(0.99).addcmul_(g.float(), g.float(), value=0.01)
            return torch.addcdiv(p, first, second.sqrt().add_(1e-8), value=0.0)
        b.row("adam f32 bf16", kernel(b, "adam"), args=lambda k: [p, g, m, v, out, n, 0.0, 0.9, 0.99, 1e-8, 0.0, k], out=out,
              reference=untimed(adam),
              bytes=26 * n, tolerance=1e-6, **blocks(n))


def movement(b):
    if b.wants("rope f16"):
        tokens, heads, head = size((8192, 32, 128), (1024, 32, 128))
        x, angle = randn(tokens, heads, head), torch.rand(tokens, head // 2, device=harness.DEVICE) * 6
        cos, sin, out = angle.cos(), angle.sin(), torch.empty_like(x)

        def rope():
            a, c = x.float().chunk(2, 2)
            return torch.cat((a * cos[:, None] - c * sin[:, None], c * cos[:, None] + a * sin[:, None]), 2).half()
        b.row("rope f16", kernel(b, "rope"), lambda *_: (tokens, 1, 1), lambda *c: [x, cos, sin, out, heads, *c], out, rope,
              [((head, heads), w, 1) for w in (2, 4, 8)], bytes=4 * x.numel() + 8 * cos.numel())
    for n in size((8192, 8000), (2048, 2000)):
        if b.wants(f"transpose f16 {n}"):
            x, out = randn(n, n), randn(n, n)
            b.row(f"transpose f16 {n}", kernel(b, "transpose"), lambda m, k: (triton.cdiv(n, m), triton.cdiv(n, k), 1),
                  lambda m, k: [x, out, n, n, m, k],
                  out, lambda: x.T.contiguous(), [((m, k), w, 1) for m, k in ((32, 32), (64, 64), (64, 128))
               for w in (4, 8)], bytes=4 * n * n)
    rows, width = size((32768, 1024), (4096, 1024))
    if b.wants("embedding f16"):
        table, index, out = randn(50000, width), torch.randint(0, 50000, (rows,), device=harness.DEVICE), randn(rows, width)
        b.row("embedding f16", kernel(b, "embedding"), lambda k: (rows, triton.cdiv(width, k), 1),
              lambda k: [table, index, out, width, k], out,
              lambda: table[index], [((k,), w, 1) for k in (512, 1024) for w in (1, 2, 4)], bytes=4 * rows * width)
    if b.wants("scatter_add f32"):
        x, index = randn(rows, width, dtype=F32), torch.randint(0, 50000, (rows,), device=harness.DEVICE)
        out, sums = torch.zeros(50000, width, device=harness.DEVICE), torch.zeros(50000, width, device=harness.DEVICE)
        b.row("scatter_add f32", kernel(b, "scatter_add"), lambda k: (rows, triton.cdiv(width, k), 1),
              lambda k: [x, index, out, width, k], out,
              untimed(lambda: sums.index_add_(0, index, x)), [((k,), w, 1) for k in (512, 1024) for w in (1, 2,
                  4)], bytes=12 * rows * width, tolerance=1e-4, adds=True)


def along_rows(b):
    rows, cols = size((8192, 4096), (1024, 4096))
    if b.wants("cumsum f32"):
        x = randn(rows, cols, dtype=F32)
        out = torch.empty_like(x)
        b.row("cumsum f32", kernel(b, "cumsum"), args=lambda k: [x, out, cols, k], out=out, reference=lambda: x.cumsum(1),
              bytes=8 * x.numel(), **one_row(rows, cols))
    if b.wants("argmax f32"):
        x, out = randn(rows, cols, dtype=F32), torch.empty(rows, device=harness.DEVICE, dtype=torch.int32)
        b.row("argmax f32", kernel(b, "argmax"), args=lambda k: [x, out, cols, k], out=out, reference=lambda: x.argmax(1),
              bytes=4 * x.numel(), **one_row(rows, cols))
    if b.wants("quantize f16"):
        x, out, scale = randn(rows, cols), torch.empty(rows, cols, device=harness.DEVICE, dtype=torch.int8), torch.empty(rows,
            device=harness.DEVICE)

        def quantize():
            s = x.float().abs().amax(1, keepdim=True) / 127
            return (x.float() / s).round().to(torch.int8)
        b.row("quantize f16", kernel(b, "quantize"), args=lambda k: [x, out, scale, cols, k], out=out, reference=quantize,
              bytes=3 * x.numel(), tolerance=1,
              **one_row(rows, cols))
    if b.wants("column_sum f16"):
        x, out = randn(rows, cols), torch.empty(cols, device=harness.DEVICE)
        b.row("column_sum f16", kernel(b, "column_sum"), lambda m, n: (triton.cdiv(cols, n), 1, 1),
              lambda m, n: [x, out, rows, cols, m, n], out,
              lambda: x.sum(0, dtype=F32), [(s, w, 1) for s in ((64, 32), (128, 32), (64, 64))
               for w in (4, 8)], bytes=2 * x.numel())
    if b.wants("layer_norm_backward f16"):
        x, dy, w = randn(rows, cols), randn(rows, cols), randn(cols)
        out, mean, rstd = torch.empty_like(x), x.float().mean(1), 1 / (x.float().var(1, correction=0) + 1e-5).sqrt()
        theirs = (mean[:, None], rstd[:, None]) if harness.DEVICE == "cuda" else torch.ops.aten.native_layer_norm(x, [cols], w, w, 1e-5)[1:]
        b.row("layer_norm_backward f16", kernel(b, "layer_norm_backward"), args=lambda k: [dy, x, w, mean, rstd, out, cols, k],
              out=out,
              reference=lambda: torch.ops.aten.native_layer_norm_backward(dy, x, [cols], *theirs, w, None,
                                                                          [True, False, False])[0],
              bytes=6 * x.numel(), tolerance=4e-2, **one_row(rows, cols))
    if b.wants("matvec f16"):
        m, k = size((16384, 8192), (4096, 4096))
        a, x, out = randn(m, k), randn(k), randn(m)
        b.row("matvec f16", kernel(b, "matvec"), lambda bm, bk: (m // bm, 1, 1), lambda bm, bk: [a, x, out, m, k, bm, bk],
              out, lambda: a @ x,
              [(s, w, st) for s in ((16, 128), (4, 512), (8, 512), (16, 256)) for w in (4, 8) for st in (1,
                  3)], bytes=2 * a.numel(), tolerance=1)
    if b.wants("recurrence f32"):
        n, width = size((2048, 16384), (512, 4096))
        a, x = torch.rand(n, width, device=harness.DEVICE), randn(n, width, dtype=F32)
        out = torch.empty_like(x)

        def recurrence():
            y, state = torch.empty_like(x), torch.zeros(width, device=harness.DEVICE)
            for t in range(n):
                state = a[t] * state + x[t]
                y[t] = state
            return y
        b.row("recurrence f32", kernel(b, "recurrence"), lambda t, w: (width // w, 1, 1),
              lambda t, w: [a, x, out, n, width, t, w], out, untimed(recurrence),
              [(s, w, 1) for s in ((64, 32), (32, 64), (64, 64), (128, 32))
               for w in (4, 8)], bytes=12 * x.numel(), tolerance=1e-3)
    m, n = size((16384, 4096), (2048, 4096))
    if b.wants("logsumexp0 f16"):
        x, out = randn(m, n), empty(n, dtype=F32)
        b.row("logsumexp0 f16", kernel(b, "logsumexp0"), lambda bm, bn: (triton.cdiv(n, bn), 1, 1), lambda *c: [x, out, m, n, *c],
              out, lambda: x.float().logsumexp(0), [(s, w, 1) for s in ((64, 32), (128, 32), (64, 64))
               for w in (4, 8)], bytes=2 * x.numel())
    if b.wants("welford f16"):
        rows, cols = size((16384, 4096), (1024, 4096))
        x, out = randn(rows, cols) + 1, empty(2, rows, dtype=F32)

        def welford():
            var, mean = torch.var_mean(x.float(), 1, correction=0)
            return torch.stack((mean, var))
        b.row("welford f16", kernel(b, "welford"), args=lambda k: [x, out[0], out[1], cols, k], out=out,
              reference=untimed(welford), bytes=2 * x.numel(),
              tolerance=1e-3, **one_row(rows, cols))


def slices_of_64(m):
    """Configurations of products of m rows with half as long a slice of k, of which more fit beside converted weights."""
    return [((128, 128, 64), 4, 4), ((128, 128, 64), 4, 6), ((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4)] if m >= 128 else []


def narrow_weights(b):
    """x w with w in 8 and 4 bits; torch has the same weights in fp16."""
    for k, n in weights():
        for m in 1, 16, 128:
            blocks = ((16,) if m <= 16 else (64, 128)), (32, 64, 128), (3, 5)
            given = dict(flops=2 * m * n * k, tolerance=0.5, peak=torch.float16)
            wide = f" {k}x{n}" * (n > 4096)
            if b.wants(f"dequant int8 {m}{wide}"):
                x, w, scale = randn(m, k), torch.randint(-128, 128, (k, n), device=harness.DEVICE, dtype=torch.int8), rand(n) / k
                full, out = w.half() * scale.half(), empty(m, n)
                b.row(f"dequant int8 {m}{wide}", kernel(b, "dequant"), lambda bm, bn, bk: (triton.cdiv(m, bm), n // bn, 1),
                      lambda *c: [x, w, scale, out, m, n, k, *c], out, product(x, full),
                      [((bm, bn, 128), 4, st) for bm in blocks[0] for bn in blocks[1] for st in blocks[2]] + slices_of_64(m),
                      bytes=k * n + 2 * m * (k + n), **given)
            if b.wants(f"dequant int4 {m}{wide}"):
                x, w = randn(m, k), torch.randint(-2**31, 2**31 - 1, (k // 8, n), device=harness.DEVICE, dtype=torch.int32)
                scale, out = rand(k // 128, n).half() / 64, empty(m, n)
                shifts = torch.arange(8, device=harness.DEVICE, dtype=torch.int32)[None, :, None] * 4
                full = (((w[:, None, :] >> shifts) & 15) - 8).reshape(k, n).half() * scale.repeat_interleave(128, 0)
                b.row(f"dequant int4 {m}{wide}", kernel(b, "int4"), lambda bm, bn, *_: (triton.cdiv(m, bm), n // bn, 1),
                      lambda *c: [x, w, scale, out, m, n, k, *c], out, product(x, full),
                      [((bm, bn, 128, 128), 4, st) for bm in blocks[0] for bn in blocks[1] for st in blocks[2]] +
                      [((*c, 128), w, st) for c, w, st in slices_of_64(m)],
                      bytes=k * n // 2 + k * n // 64 + 2 * m * (k + n), **given)


def few_rows(b):
    """The same with several programs for each tile, which share k."""
    for k, n in weights():
        for bits in 8, 4:
            for m in 1, 16:
                what = f"few rows int{bits} {m}{f' {k}x{n}' * (n > 4096)}"
                if not b.wants(what):
                    continue
                x, out = randn(m, k), empty(m, n)
                if bits == 8:
                    w, scale = torch.randint(-128, 128, (k, n), device=harness.DEVICE, dtype=torch.int8), rand(n) / k
                    full = w.half() * scale.half()
                else:
                    w, scale = torch.randint(-2**31, 2**31 - 1, (k // 8, n), device=harness.DEVICE, dtype=torch.int32), rand(k // 128, n).half() / 64
                    shifts = torch.arange(8, device=harness.DEVICE, dtype=torch.int32)[None, :, None] * 4
                    full = (((w[:, None, :] >> shifts) & 15) - 8).reshape(k, n).half() * scale.repeat_interleave(128, 0)
                part, count = empty(8 * 16 * n, dtype=F32), torch.zeros(n, device=harness.DEVICE, dtype=torch.int32)
                b.row(what, kernel(b, "few_rows"), lambda bm, bn, bk, bits, splits: (n // bn, splits, 1),
                      lambda *c: [x, w, scale, out, part, count, m, n, k, *c], out, product(x, full),
                      [((16, bn, 128, bits, splits), 4, st) for bn, splits in ((32, 2), (32, 4), (64, 2), (64, 4), (64, 8), (128, 4),
                                                                               (128, 8)) for st in (4, 6)],
                      bytes=k * n * bits // 8 + (k * n // 64 if bits == 4 else 4 * n) + 2 * m * (k + n), flops=2 * m * n * k,
                      tolerance=0.5, peak=torch.float16)


def scaled_blocks(b):
    n = k = scaled()[0]
    for m in scaled()[1]:
        what = f"block_scaled fp8{f' {m}' * (m < 4096)}"
        if not b.wants(what):
            continue
        x, w = randn(m, k).to(FP8), randn(n, k).to(FP8)
        xs, ws, out = rand(m, k // 128), rand(n // 128, k // 128), empty(m, n, dtype=BF16)
        wide = lambda t: t.repeat_interleave(128, 1)
        product = lambda: (x.float() * wide(xs)) @ (w.float() * wide(ws.repeat_interleave(128, 0))).T
        columns = xs.T.contiguous().T  # as cuBLAS takes them
        for name, scales in ((what, xs), (f"{what} columns", columns)):
            if m <= 128 and scales is columns:
                continue
            b.row(name, kernel(b, "block_scaled"), lambda bm, bn, *_: (triton.cdiv(m, bm) * (n // bn), 1, 1),
                  lambda *c: [x, w, scales, ws, out, m, n, k, *scales.stride(), *c], out, untimed(product),
                  [((64, 128, 128, 8), 4, 3), ((128, 128, 128, 8), 4, 3)] + [((128, 128, 128, 8), 8, st) for st in (3, 4, 5)]
                  if m > 128 else [((min(m, 64), bn, 128, 8), 4, st) for bn in (32, 64, 128) for st in (3, 4)],
                  bytes=k * n + m * (k + 2 * n), flops=2 * m * n * k, tolerance=2, peak=FP8,
                  anchors={"cuBLAS": lambda: torch._scaled_mm(x, w.T, scale_a=columns, scale_b=ws.T, out_dtype=BF16)})


def experts(b):
    """A layer of experts, one for each token, beside PyTorch's product of groups, whose tokens are in the experts' order."""
    count, n, k, several = experts_of()
    for tokens in several:
        what = f"experts bf16{f' {tokens}' * (tokens != 4096)}"
        if not b.wants(what):
            continue
        x, w, out = randn(tokens, k, dtype=BF16), randn(count, n, k, dtype=BF16) / 45, empty(tokens, n, dtype=BF16)
        chosen = torch.randint(0, count, (tokens,)).tolist()
        theirs = [[t for t in range(tokens) if chosen[t] == e] for e in range(count)]
        order = sum(theirs, [])
        numbers = lambda found, dtype=torch.int32: torch.tensor(found, device=harness.DEVICE, dtype=dtype)

        def sorted_tokens(bm):
            padded = [t + [tokens] * (-len(t) % bm) for t in theirs]
            return numbers(sum(padded, [])), numbers([e for e, t in enumerate(padded) for _ in range(len(t) // bm)])
        prepared = {bm: sorted_tokens(bm) for bm in (16, 32, 64, 128)}
        tokens_of = [numbers(t, torch.int64) for t in theirs]

        def layer():
            y = torch.empty_like(out)
            for t, matrix in zip(tokens_of, w):
                y[t] = x[t] @ matrix.T
            return y
        ends = numbers([len(sum(theirs[: e + 1], [])) for e in range(count)])
        in_order = x[numbers(order, torch.int64)]
        back = numbers(sorted(range(tokens), key=order.__getitem__), torch.int64)
        b.row(what, kernel(b, "experts"), lambda bm, bn, bk: (len(prepared[bm][1]), n // bn, 1),
              lambda bm, *c: [x, w, out, *prepared[bm], tokens, n, k, bm, *c], out, untimed(layer),
              [((bm, bn, 128), 4, st) for bm, bn in ((16, 32), (16, 64), (16, 128), (32, 64), (32, 128)) for st in (3, 4)]
              if tokens <= 128 else
              [((64, 128, 64), 4, 3), ((64, 256, 64), 4, 5), ((128, 128, 64), 4, 3), ((128, 128, 64), 8, 6), ((128, 256, 64), 8, 3)],
              bytes=2 * (count * n * k + tokens * (n + k)), flops=2 * tokens * n * k, tolerance=0.1, peak=BF16,
              anchors={"grouped_mm": (lambda: torch._grouped_mm(in_order, w.transpose(1, 2), offs=ends), lambda y: y[back])})


def products(b):
    if b.wants("linear gelu f16"):
        m, n, k = size((4096, 11008, 4096), (512, 2048, 1024))
        x, w, bias, out = randn(m, k), randn(n, k) / 64, randn(n), randn(m, n)
        b.row("linear gelu f16", kernel(b, "linear"), lambda bm, bn, *_: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
              lambda *c: [x, w, bias, out, m, n, k, *c], out, lambda: F.gelu(F.linear(x, w, bias)),
              [((128, 256, 64, 8), 8, 3), ((128, 256, 64, 8), 8, 4), ((128, 128, 64, 8), 4, 3),
               ((128, 128, 64, 8), 8, 4)], flops=2 * m * n * k, tolerance=2e-2)
    if b.wants("gate_up f16"):
        m, n, k = size((4096, 11008, 4096), (512, 2048, 1024))
        x, w, out = randn(m, k), randn(2 * n, k) / 64, randn(m, n)

        def gated():
            gate, up = F.linear(x, w).chunk(2, 1)
            return F.silu(gate) * up
        b.row("gate_up f16", kernel(b, "gate_up"), lambda bm, bn, *_: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
              lambda *c: [x, w[:n], w[n:], out, m, n, k, *c], out, gated,
              [((128, 128, 64, 8), 8, 3), ((128, 128, 64, 8), 8, 4), ((128, 128, 64, 8), 4, 3),
               ((64, 128, 64, 8), 4, 3)], flops=4 * m * n * k, tolerance=2e-2,
              anchors={"cuBLAS, products alone": lambda: [F.linear(x, w)] and None})
    if b.wants("split_k f16"):
        m, n, k = size((64, 4096, 8192), (64, 1024, 2048))
        x, w, out = randn(m, k), randn(k, n), torch.zeros(m, n, device=harness.DEVICE)
        b.row("split_k f16", kernel(b, "split_k"), lambda bm, bn, bk, s: (triton.cdiv(m, bm) * triton.cdiv(n, bn), s, 1),
              lambda *c: [x, w, out, m, n, k, *c], out,
              product(x, w), [((64, bn, 64, s), 4, st) for bn in (64, 128) for s in (4, 8) for st in (3, 5)] +
              [((64, 64, 64, 2), 8, 8), ((64, 64, 64, 4), 8, 5), ((64, 128, 64, 4), 8, 5)], flops=2 * m * n * k, tolerance=0.5, adds=True)
    if b.wants("batched f16"):
        m, n, k, batch = size((512, 512, 128, 128), (256, 256, 128, 32))
        x, w, out = randn(batch, m, k), randn(batch, k, n), randn(batch, m, n)
        b.row("batched f16", kernel(b, "batched"), lambda bm, bn, bk: (triton.cdiv(m, bm), triton.cdiv(n, bn), batch),
              lambda *c: [x, w, out, m, n, k, *c], out,
              product(x, w), [((128, 128, 64), 4, 3), ((128, 128, 64), 8, 3), ((128, 64, 64), 4, 3),
                              ((128, 256, 64), 8, 3)], flops=2 * batch * m * n * k, tolerance=0.1)
    narrow_weights(b)
    few_rows(b)
    scaled_blocks(b)
    experts(b)
    if b.wants("convolution f16"):
        images, side, channels, n = size((32, 56, 128, 128), (2, 56, 128, 128))
        x, w, out = randn(images, side, side, channels), randn(3, 3, channels, n) / 34, randn(images, side, side, n)
        y, v = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        b.row("convolution f16", kernel(b, "convolution"), lambda bm, bn, bk: (images * side * side // bm, n // bn, 1),
              lambda *c: [x, w, out, side, side, channels, n, *c], out, lambda: F.conv2d(y, v, padding=1).permute(0, 2, 3, 1),
              [((128, 128, 64), 4, 3), ((128, 128, 64), 8, 4), ((64, 128, 64), 4, 4),
               ((128, 64, 64), 4, 4)], flops=18 * images * side * side * channels * n, tolerance=5e-2)
    for m in 16, 128:
        if b.wants(f"fp8_weights {m}"):
            wide, k = size((16384, 8192), (2048, 1024))
            x, w, scale, out = randn(m, k, dtype=BF16), randn(wide, k).to(FP8), rand(wide) / 64, empty(m, wide, dtype=BF16)
            b.row(f"fp8_weights {m}", kernel(b, "fp8_weights"), lambda bm, bn, bk: (triton.cdiv(m, bm), wide // bn, 1),
                  lambda *c: [x, w, scale, out, m, wide, k, *c], out,
                  untimed(lambda: ((x.float() @ w.float().T) * scale).to(BF16)),
                  [((bm, bn, 128), 4, st) for bm in ((16,) if m == 16 else (64, 128)) for bn in (64,
                      128) for st in (3, 4)] + slices_of_64(m), flops=2 * m * wide * k, tolerance=0.1)
        if b.wants(f"int2 {m}"):
            wide = k = size(16384, 2048)
            x, w, scale, out = randn(m, k), torch.randint(0, 256, (k // 4, wide), device=harness.DEVICE,
                                                          dtype=torch.uint8), rand(wide).half() / 64, empty(m, wide)
            full = torch.stack([(w >> s) & 3 for s in (0, 2, 4, 6)], 1).view(k, wide).half() - 1
            b.row(f"int2 {m}", kernel(b, "int2"), lambda bm, bn, bk: (triton.cdiv(m, bm), wide // bn, 1),
                  lambda *c: [x, w, scale, out, m, wide, k, *c], out,
                  product(x, full, scale), [((bm, bn, 128), 4, st) for bm in ((16,) if m == 16 else (64, 128)) for bn in (64,
                      128) for st in (3, 4)] + slices_of_64(m), flops=2 * m * wide * k, tolerance=0.1)
        if b.wants(f"codebook {m}"):
            wide = k = size(8192, 1024)
            x, w, code, scale = randn(m, k), torch.randint(0, 256, (wide, k // 2), device=harness.DEVICE, dtype=torch.uint8), randn(16,
                dtype=F32), rand(wide, k // 64) / 64
            full = (torch.stack((code[(w & 15).int()], code[(w >> 4).int()]), 2).view(wide, k // 64,
                64) * scale[..., None]).view(wide, k).half()
            out = empty(m, wide)
            b.row(f"codebook {m}", kernel(b, "codebook"), lambda bm, bn, bk: (triton.cdiv(m, bm), wide // bn, 1),
                  lambda *c: [x, w, code, scale, out, m, wide, k, *c], out,
                  product(x, full.T), [((bm, bn, 64), w, 3) for bm in ((16,) if m == 16 else (64,)) for bn in (32, 64,
                      128) for w in (4, 8)], flops=2 * m * wide * k, tolerance=5e-2)
    if b.wants("ieee_matmul f32"):
        s = size(2048, 1024)
        x, w, out = randn(s, s, dtype=F32), randn(s, s, dtype=F32), empty(s, s, dtype=F32)
        b.row("ieee_matmul f32", kernel(b, "ieee_matmul"), lambda bm, bn, bk: (s // bm, s // bn, 1),
              lambda *c: [x, w, out, s, s, s, *c], out, lambda: x @ w,
              [((64, 64, 16), 4, 2), ((64, 64, 32), 4, 2), ((128, 64, 16), 4, 3), ((128, 64, 16), 8, 3),
               ((128, 128, 16), 8, 3)], flops=2 * s**3, tolerance=1e-2)


def sequences(b):
    for sequences, heads, length in size(((64, 8, 4096), (8, 8, 4096)), ((8, 2, 2048),)):
        what, group, head, page = f"decode f16 {sequences}", 8, 128, 64
        if not b.wants(what):
            continue
        pages = sequences * length // page
        q, k, v = randn(sequences, heads * group, head), randn(pages, page, heads, head), randn(pages, page, heads, head)
        table = torch.randperm(pages, device=harness.DEVICE).int().reshape(sequences, -1)
        lengths, out = torch.full((sequences,), length - 17, device=harness.DEVICE, dtype=torch.int32), torch.empty_like(q)
        flat = lambda t: t[table.long()].reshape(sequences, length, heads, head)[:, : length - 17].transpose(1,
            2).repeat_interleave(group, 1)
        attention = lambda: F.scaled_dot_product_attention(q[:, :, None], flat(k), flat(v))[:, :, 0]
        b.row(what, kernel(b, "decode"), lambda *_: (sequences, heads, 1), lambda *c: [q, k, v, table, lengths, out, head**-0.5,
            heads, length // page, *c], out,
              untimed(attention), [((head, group, page), w, st) for w in (2, 4, 8) for st in (2, 3,
                  4)], bytes=4 * k.numel(), tolerance=1e-2)
    if b.wants("attention_backward f16"):
        heads, n, head = size((64, 4096, 64), (8, 1024, 64))
        q, k, v, do = (randn(heads, n, head) for _ in range(4))
        for t in q, k, v:
            t.requires_grad_()
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        if harness.DEVICE == "cpu":
            flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        o, lse, *_ = flash(q[None], k[None], v[None], 0.0, True)
        through = o if harness.DEVICE == "cuda" else F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)
        leaves = q, k, v
        dk = untimed(lambda: torch.autograd.grad(through, leaves, do[None], retain_graph=True)[1])
        q, k, v, lse, delta = q.detach(), k.detach(), v.detach(), lse.detach()[0].contiguous(), (o[0] * do).sum(-1, dtype=F32).detach()
        out, dvs = torch.empty_like(k), torch.empty_like(k)
        b.row("attention_backward f16", kernel(b, "attention_backward"), lambda hd, bm, bn: (n // bn, heads, 1),
              lambda *c: [q, k, v, do, lse, delta, out, dvs, n, head**-0.5, *c], out, dk,
              [((head, bm, bn), w, st) for bm, bn in ((32, 128), (64, 64), (64, 128), (128, 128)) for w in (4, 8) for st in (2,
                  3)], flops=4 * heads * n * n * head, tolerance=2e-2)
    if b.wants("linear_attention bf16"):
        heads, n, head = size((256, 2048, 128), (16, 1024, 128))
        q, k, v = (randn(heads, n, head, dtype=BF16) / 4 for _ in range(3))
        out = torch.empty_like(q)
        product = lambda: (q.float() @ k.float().transpose(1, 2)).tril() @ v.float()
        b.row("linear_attention bf16", kernel(b, "linear_attention"), lambda *_: (heads, 1, 1), lambda *c: [q, k, v, out, n, *c],
              out, untimed(product),
              [((head, 64), w, st) for w in (4, 8) for st in (1, 2, 3)], bytes=8 * q.numel(), tolerance=0.5)
    if b.wants("latent_decode bf16"):
        sequences, heads, latent, rope, page, length = size((64, 128, 512, 64, 64, 2048), (4, 32, 512, 64, 64, 1024))
        q, kv = randn(sequences, heads, latent + rope, dtype=BF16), randn(sequences * length // page, page, latent + rope,
                                                                          dtype=BF16)
        table, lengths = torch.randperm(len(kv), device=harness.DEVICE).int().view(sequences, -1), torch.full((sequences,), length - 17,
            device=harness.DEVICE, dtype=torch.int32)
        out, scale = empty(sequences, heads, latent, dtype=BF16), (latent + rope) ** -0.5

        def sequence(i):
            keys = kv[table[i].long()].view(length, latent + rope)[: length - 17].float()
            return ((q[i].float() @ keys.T) * scale).softmax(1) @ keys[:, :latent]
        attention = lambda: torch.stack([sequence(i).to(BF16) for i in range(sequences)])
        b.row("latent_decode bf16", kernel(b, "latent_decode"), lambda *_: (sequences, heads // 16, 1),
              lambda *c: [q, kv, table, lengths, out, scale, length // page, *c], out,
              untimed(attention), [((latent, rope, page, heads), w, st) for w in (4, 8) for st in (1,
                  2)], flops=2 * sequences * heads * length * (2 * latent + rope), tolerance=3e-2)
    if b.wants("window bf16"):
        batch, length, heads, share, window, head = size((2, 4096, 32, 4, 1024, 128), (1, 2048, 8, 4, 512, 128))
        q, k, v = randn(batch, length, heads, head, dtype=BF16), *(randn(batch, length, heads // share, head,
                                                                         dtype=BF16) for _ in range(2))
        out = torch.empty_like(q)
        ago = torch.arange(length, device=harness.DEVICE)[:, None] - torch.arange(length, device=harness.DEVICE)
        mask = (ago >= 0) & (ago < window)
        wide = lambda t: t.transpose(1, 2).repeat_interleave(share, 1)
        attention = lambda: torch.cat([F.scaled_dot_product_attention(q[i : i + 1].transpose(1, 2), wide(k[i : i + 1]), wide(v[i : i + 1]),
                                                              attn_mask=mask) for i in range(batch)]).transpose(1, 2)
        b.row("window bf16", kernel(b, "window"), lambda h, bm, bn: (triton.cdiv(length, bm), batch * heads, 1),
              lambda *c: [q, k, v, out, length, heads, share, window, head**-0.5, *c], out, untimed(attention),
              [((head, bm, bn), w, st) for bm, bn, w in ((128, 64, 8), (128, 128, 8), (64, 64, 4)) for st in (2,
                  3)], flops=4 * batch * heads * length * window * head, tolerance=5e-2)
    if b.wants("gated_linear bf16"):
        heads, n, head = size((256, 2048, 128), (16, 1024, 128))
        q, k, v = (randn(heads, n, head, dtype=BF16) / 4 for _ in range(3))
        g, out = -rand(heads, n) * 0.1, torch.empty_like(q)
        sums = g.cumsum(1)
        decays = lambda h: (sums[h, :, None] - sums[h]).clamp(max=0).exp().tril()
        product = lambda: torch.stack([((q[h].float() @ k[h].float().T) * decays(h) @ v[h].float()).to(BF16) for h in range(heads)])
        b.row("gated_linear bf16", kernel(b, "gated_linear"), lambda *_: (heads, 1, 1), lambda *c: [q, k, v, g, out, n, *c], out,
              untimed(product),
              [((head, 64), w, st) for w in (4, 8) for st in (1, 2, 3)], bytes=8 * q.numel(), tolerance=0.3)
    if b.wants("delta_rule bf16"):
        heads, length, d = size((128, 512, 128), (16, 256, 128))
        q, k, v = randn(heads, length, d, dtype=BF16) / 11, F.normalize(randn(heads, length, d, dtype=F32),
                                                                        dim=2).to(BF16), randn(heads, length, d, dtype=BF16)
        beta, out = rand(heads, length), empty(heads, length, d, dtype=BF16)

        def delta_rule():
            state, y = torch.zeros(heads, d, d, device=harness.DEVICE), torch.empty_like(out)
            for t in range(length):
                key = k[:, t, :, None].float()
                state = state + key * ((v[:, t].float() - (state * key).sum(1)) * beta[:, t, None])[:, None]
                y[:, t] = (state * q[:, t, :, None].float()).sum(1)
            return y
        b.row("delta_rule bf16", kernel(b, "delta_rule"), lambda _, k: (d // k, heads, 1),
              lambda *c: [q, k, v, beta, out, length, *c], out, untimed(delta_rule),
              [((d, k), w, 1) for k, w in ((8, 1), (16, 1), (16, 2), (32, 2), (32, 4))], bytes=8 * q.numel(), tolerance=5e-2)


def rows(b):
    for group in (elementwise, movement, along_rows, products, sequences):
        group(b)
