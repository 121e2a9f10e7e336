"""Rows whose time is that of matrix products."""
import torch
import triton

# BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, then warps and stages: those of Triton's tutorial and those that suit wgmma
TILES = [((128, 256, 64, 8), 8, 3), ((128, 256, 64, 8), 8, 4), ((256, 128, 64, 8), 8, 4), ((128, 128, 64, 8), 4, 3),
         ((128, 128, 64, 8), 8, 4), ((64, 256, 64, 8), 4, 4), ((128, 64, 64, 8), 4, 4), ((64, 64, 64, 8), 4, 5), ((64, 32, 64, 8), 4, 5), ((64, 128, 32, 8), 4, 4), ((128, 128, 32, 8), 8, 3),
         ((128, 128, 32, 8), 4, 3), ((64, 128, 64, 8), 4, 3), ((128, 64, 64, 8), 4, 8), ((64, 128, 64, 8), 4, 8)]
FLAT = [((16, 64, 128, 8), 4, 4), ((16, 128, 128, 8), 4, 4), ((16, 128, 64, 8), 4, 5), ((16, 64, 256, 8), 4, 3), ((16, 32, 128, 8), 4, 5)]
WORDS = [((128, 128, 32, 8), 4, 3), ((128, 128, 32, 8), 8, 4), ((128, 256, 32, 8), 8, 3), ((128, 256, 32, 8), 8, 4),
         ((256, 128, 32, 8), 8, 3), ((256, 128, 32, 8), 8, 4), ((64, 128, 32, 8), 4, 4)]
BYTES = [((128, 256, 128, 8), 8, 3), ((128, 256, 128, 8), 8, 4), ((256, 128, 128, 8), 8, 4), ((128, 128, 128, 8), 4, 3), ((128, 128, 128, 8), 8, 4), ((256, 128, 128, 8), 8, 3), ((64, 256, 128, 8), 4, 4)]
SHAPES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16, 8192, 8192),
          (8192, 8192, 512), (4096, 11008, 4096), (1000, 1000, 1000), (3000, 3000, 3000), (4088, 4088, 4088), (5000, 5000, 5000), (4095, 4097, 4093)]
PERSISTENT = [(2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 512), (4096, 11008, 4096)]


def product(b, what, x, y, out, reference, tiles, tolerance, persistent=False, anchors={}):
    """out = x y; both may be transposes of row-major matrices. `persistent`: at most one program a multiprocessor."""
    (m, k), n = x.shape, y.shape[1]
    kernel = b.example("matmul_persistent", "matmul_persistent_kernel") if persistent else b.example("matmul", "matmul_kernel")
    limit = torch.cuda.get_device_properties(0).multi_processor_count if persistent else m * n
    b.row(what, kernel, lambda bm, bn, bk, g: (min(triton.cdiv(m, bm) * triton.cdiv(n, bn), limit), 1, 1),
          lambda *tile: [x, y, out, m, n, k, *x.stride(), *y.stride(), n, 1, *tile] + [None] * (not persistent), out, reference, tiles,
          flops=2 * m * n * k, tolerance=tolerance, anchors=anchors)


def matmul(b):
    for dtype in torch.float16, torch.bfloat16:
        for m, n, k in SHAPES:
            what = f"matmul {m}x{n}x{k} {str(dtype)[6:]}"
            if b.wants(what):
                x, y = (torch.randn(*s, device="cuda", dtype=dtype) for s in ((m, k), (k, n)))
                product(b, what, x, y, torch.empty(m, n, device="cuda", dtype=dtype), lambda: x @ y, FLAT if m == 16 else TILES,
                        k**0.5 / (100 if dtype == torch.float16 else 12))
    for m, n, k in PERSISTENT:
        what = f"persistent matmul {m}x{n}x{k} float16"
        if b.wants(what):
            x, y = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
            product(b, what, x, y, torch.empty(m, n, device="cuda", dtype=torch.float16), lambda: x @ y, TILES[:5], k**0.5 / 100, True)


def ways(b):
    """The same product by loops that are written in other ways."""
    for m, n, k in (4096, 4096, 4096), (8192, 8192, 512):
        for way in "index", "carried", "down", "while", "pointer", "choice", "minimum", "even", "even_down":
            what = f"{way} matmul {m}x{n}x{k} float16"
            if b.wants(what):
                x, y = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
                out = torch.empty(m, n, device="cuda", dtype=torch.float16)
                b.row(what, b.kernel(f"{way}_kernel", "ways.tl"), lambda bm, bn, bk, g: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
                      lambda *tile: [x, y, out, m, n, k, *tile], out, lambda: x @ y, TILES[:5], flops=2 * m * n * k, tolerance=k**0.5 / 100)


def tiles(b):
    """The same product by a program a multiprocessor, written as for Triton; by descriptors the second operand is contiguous along k."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    for m, n, k in (4096, 4096, 4096), (8192, 8192, 512):
        for way in "nest", "nest_descriptors", "flat", "flat_descriptors":
            what = f"tiles by {way} matmul {m}x{n}x{k} float16"
            if b.wants(what):
                x, y = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
                y = y.T.contiguous() if "descriptors" in way else y
                out = torch.empty(m, n, device="cuda", dtype=torch.float16)
                b.row(what, b.kernel(way, "tiles.tl"), lambda *_: (programs, 1, 1), lambda *tile: [x, y, out, m, n, k, *tile, programs], out,
                      lambda: x @ (y.T if "descriptors" in way else y), TILES[:5], flops=2 * m * n * k, tolerance=k**0.5 / 100)
        for way in "flat_end", "flat_steps":
            what = f"tiles by {way} matmul {m}x{n}x{k} float16"
            if b.wants(what):
                x, y = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
                out = torch.empty(m, n, device="cuda", dtype=torch.float16)

                def steps(bm, bn, bk, _):
                    all = triton.cdiv(m, bm) * triton.cdiv(n, bn)
                    each = [triton.cdiv(all - p, programs) * triton.cdiv(k, bk) for p in range(programs)]
                    return torch.tensor(each, device="cuda", dtype=torch.int32) if way == "flat_steps" else None
                steps_of = {tile: steps(*tile) for tile, *_ in TILES[:5]}
                b.row(what, b.kernel("flat_end", "tiles.tl"), lambda *_: (programs, 1, 1),
                      lambda *tile: [x, y, out, steps_of[tile], m, n, k, *tile, programs], out, lambda: x @ y, TILES[:5],
                      flops=2 * m * n * k, tolerance=k**0.5 / 100)
    for batches, m, n, k in (8, 4096, 4096, 512), (16, 1000, 1008, 520):
        what = f"tiles by batched matmul {batches}x{m}x{n}x{k} float16"
        if b.wants(what):
            x, y = (torch.randn(batches, *s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
            out = torch.empty(batches, m, n, device="cuda", dtype=torch.float16)
            b.row(what, b.kernel("batched", "tiles.tl"), lambda *_: (programs, 1, 1),
                  lambda *tile: [x, y, out, batches, m, n, k, m * k, k * n, m * n, *tile, programs], out, lambda: torch.bmm(x, y), TILES[:5],
                  flops=2 * batches * m * n * k, tolerance=k**0.5 / 100)


def templates(b):
    """Products of constant sizes, as the templates of PyTorch's compiler have them."""
    for batches, m, n, k in (1, 4096, 4096, 4096), (1, 4000, 4080, 4048), (8, 4096, 4096, 512), (16, 1000, 1008, 520):
        what = f"template {batches}x{m}x{n}x{k} float16"
        if b.wants(what):
            x, y = (torch.randn(batches, *s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
            out = torch.empty(batches, m, n, device="cuda", dtype=torch.float16)
            b.row(what, b.kernel("template_batched" if batches > 1 else "template", "templates.tl"),
                  lambda bm, bn, bk, g: (triton.cdiv(m, bm) * triton.cdiv(n, bn), batches, 1), lambda *tile: [x, y, out, m, n, k, *tile], out,
                  lambda: torch.bmm(x, y), TILES[:5], flops=2 * batches * m * n * k, tolerance=k**0.5 / 100)


def blocks(b):
    """The same product through masks, block pointers and descriptors made in the kernel."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    for m, n, k in (4096, 4096, 4096), (4000, 4080, 4048), (8192, 8192, 512):
        for how in "pointers", "blocks", "descriptors":
            what = f"{how} matmul {m}x{n}x{k} float16"
            if b.wants(what):
                x, y = (torch.randn(*s, device="cuda", dtype=torch.float16) for s in ((m, k), (k, n)))
                out = torch.empty(m, n, device="cuda", dtype=torch.float16)
                b.row(what, b.kernel(f"matmul_{how}_kernel"), lambda bm, bn, bk, g: (triton.cdiv(m, bm) * triton.cdiv(n, bn), 1, 1),
                      lambda *tile: [x, y, out, m, n, k, *tile], out, lambda: x @ y, TILES[:5], flops=2 * m * n * k, tolerance=k**0.5 / 100)


def narrow(b):
    """Other element types, at 4096³ and 8192³; the second operand of the one-byte types is contiguous along k unless row-major."""
    one = torch.tensor(1.0, device="cuda")
    for n, persistent in (4096, False), (8192, False), (4096, True), (8192, True):
        what = f"{'persistent ' * persistent}matmul {n}x{n}x{n} float8_e4m3"
        if b.wants(what):
            x, y = (torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
            product(b, what, x, y.T, torch.empty(n, n, device="cuda", dtype=torch.float16),
                    lambda: torch._scaled_mm(x, y.T, scale_a=one, scale_b=one, out_dtype=torch.float16, use_fast_accum=True), BYTES, n**0.5 / 8, persistent)
    n = 4096
    for lie in " row-major", " A transposed", " A transposed row-major":
        what = f"matmul {n}x{n}x{n} float8_e4m3{lie}"
        if b.wants(what):
            x, y = (torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
            along, turned = x.contiguous(), y.T.contiguous()  # cuBLAS takes no other
            x, y = x.T.contiguous().T if "A" in lie else x, y if "row-major" in lie else turned.T
            product(b, what, x, y, torch.empty(n, n, device="cuda", dtype=torch.float16),
                    lambda: torch._scaled_mm(along, turned.T, scale_a=one, scale_b=one, out_dtype=torch.float16, use_fast_accum=True), BYTES, n**0.5 / 8)
    for row_major in False, True:
        what = f"matmul {n}x{n}x{n} int8{' row-major' * row_major}"
        if b.wants(what):
            x, y = (torch.randint(-128, 128, (n, n), device="cuda", dtype=torch.int8) for _ in range(2))
            y = y if row_major else y.T
            product(b, what, x, y, torch.empty(n, n, device="cuda", dtype=torch.int32), lambda: torch._int_mm(x, y), BYTES, 0)
    for lie, persistent in ("", False), (" B transposed", False), (" A transposed", False), (" A and B transposed", False), ("", True):
        what = f"{'persistent ' * persistent}matmul {n}x{n}x{n} tf32{lie}"
        if b.wants(what):
            torch.backends.cuda.matmul.allow_tf32 = True
            x, y = (torch.randn(n, n, device="cuda") for _ in range(2))
            x, y = x.T if "A" in lie else x, y.T if "B" in lie else y
            plain, turned = (x.contiguous(), y.contiguous()), y.T.contiguous().T
            anchors = {"cuBLAS row-major": lambda: plain[0] @ plain[1], "cuBLAS B transposed": lambda: plain[0] @ turned} if lie else {}
            product(b, what, x, y, torch.empty(n, n, device="cuda"), lambda: x @ y, WORDS, n**0.5 / 50, persistent, anchors)


def rows(b):
    matmul(b)
    ways(b)
    tiles(b)
    templates(b)
    blocks(b)
    narrow(b)
