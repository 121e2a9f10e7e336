"""Rows of attention and its gradients, beside cuDNN and FlashAttention through PyTorch.

Names: KIND BATCHxHEADSxLENGTHxDIMENSIONS full|causal TYPE. `shared` has 4 heads of queries for one of keys, `packed` has
sequences of several lengths in one tensor, `gradients` are dq, dk and dv together. A configuration of gradients is the tile
of the kernel for dk and dv, queries by keys, then that of the kernel for dq, or `sums`, where the former adds dq up by
atomics. Two numbers more are warps and stages of the kernel for dq.
"""
import torch
import torch.nn.functional as F
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

import fused_attention
from harness import Steps

TYPES = torch.float16, torch.bfloat16
BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "Flash": SDPBackend.FLASH_ATTENTION}
SHAPES = (4, 32, 1024), (4, 32, 4096), (1, 16, 16384)  # batch, heads, length
LENGTHS = [256 * (1 + i * 7 % 16) - 5 * i for i in range(16)]  # of packed sequences
PACKED = len(LENGTHS), 16, f"{min(LENGTHS)}-{max(LENGTHS)}"  # their number, heads, lengths
SEQUENCES = (1, 4096), (1, 65536), (4, 4096), (16, 4096), (32, 4096), (64, 4096), (128, 4096)  # to decode, and their length
SHARE = 4
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 4e-2}  # of results; ten times that of gradients, which are larger

# tiles (queries, keys), warps and stages, by the number of dimensions: those that need no more registers than there are
FORWARD = {64: [((64, 128), 4, 2), ((64, 64), 4, 2), ((64, 64), 4, 3), ((128, 64), 4, 2), ((128, 64), 8, 3), ((128, 128), 8, 2),
                ((128, 128), 8, 3)],
           128: [((64, 64), 4, 2), ((64, 64), 4, 3), ((64, 128), 4, 2), ((128, 64), 8, 2), ((128, 64), 8, 3), ((128, 128), 8, 2),
                 ((128, 128), 8, 3)],
           256: [((64, 32), 4, 2), ((64, 32), 4, 3), ((64, 64), 4, 2), ((128, 32), 8, 2), ((128, 32), 8, 3), ((128, 64), 8, 2)]}
FP8 = {64: [((64, 64), 4, 3), ((64, 128), 4, 2), ((128, 64), 8, 3), ((128, 128), 8, 2), ((128, 128), 8, 3)],
       128: [((64, 64), 4, 3), ((64, 128), 4, 2), ((128, 64), 8, 3), ((128, 128), 8, 2), ((128, 128), 8, 3)],
       256: [((64, 64), 4, 2), ((128, 64), 8, 2), ((128, 64), 8, 3), ((128, 128), 8, 2)]}
GRADIENTS = {64: [((64, 64, 64, 64), 4, 2), ((64, 64, 64, 128), 4, 2), ((64, 64, 128, 64, 8, 3), 4, 2), ((64, 64, 128, 128, 8, 2), 4, 2),
                  ((64, 128, 128, 64), 8, 2), ((64, 64, "sums"), 4, 2), ((64, 128, "sums"), 8, 2)],
             128: [((64, 64, 64, 64), 4, 2), ((64, 64, 128, 64, 8, 2), 4, 2), ((64, 128, 128, 64), 8, 2), ((64, 128, 128, 64, 8, 3), 8, 2),
                   ((64, 64, "sums"), 8, 2), ((64, 128, "sums"), 8, 2)],
             256: [((32, 64, 128, 32), 8, 2), ((64, 64, 128, 32), 8, 2), ((64, 64, 128, 64), 8, 1), ((32, 64, "sums"), 8, 2),
                   ((64, 64, "sums"), 8, 1)]}


def name_of(kind, z, h, n, d, causal, dtype):
    return f"{kind} {z}x{h}x{n}x{d} {'causal' if causal else 'full'} {str(dtype)[6:]}"


def wanted(b, kind, types, dimensions, shapes):
    """The name and the parameters of each row that is asked for."""
    for dtype in types:
        for d in dimensions:
            for z, h, n in shapes:
                for causal in False, True:
                    what = name_of(kind, z, h, n, d, causal, dtype)
                    if b.wants(what):
                        yield what, z, h, n, d, causal, dtype


def flops_of(z, h, n, d, causal):
    return 4 * z * h * n * n * d * (0.5 if causal else 1)


def randn(*shape, dtype):
    return torch.randn(*shape, device="cuda").to(dtype)


def forced(backend, f):
    """What runs f by one of PyTorch's backends."""
    def run():
        with sdpa_kernel([BACKENDS[backend]]):
            return f()
    return run


def forward(b):
    kernel = b.example("attention", "attention_kernel")
    for what, z, h, n, d, causal, dtype in wanted(b, "attention", TYPES, FORWARD, SHAPES):
        q, k, v = (randn(z, h, n, d, dtype=dtype) for _ in range(3))
        out, strides = torch.empty_like(q), [h * n * d, n * d, d]
        by_torch = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        tutorial = None
        if dtype == torch.float16 and d <= 128:
            tutorial = fused_attention.launcher(q, k, v, out, d**-0.5, causal), fused_attention.configs(d, causal)
        b.row(what, kernel, lambda bm, bn: (triton.cdiv(n, bm), z * h, 1),
              lambda bm, bn: [q, k, v, out, d**-0.5] + strides * 4 + [h, n, d, bm, bn, causal], out, by_torch,
              FORWARD[d], flops=flops_of(z, h, n, d, causal), tolerance=TOLERANCE[dtype], tutorial=tutorial,
              anchors={name: forced(name, by_torch) for name in BACKENDS})


def shared(b):
    kernel = b.kernel("shared_attention_kernel", "attention.tl")
    for what, z, h, n, d, causal, dtype in wanted(b, "shared attention", TYPES, (64, 128), SHAPES):
        q, k, v = (randn(z, heads, n, d, dtype=dtype) for heads in (h, h // SHARE, h // SHARE))
        out = torch.empty_like(q)
        by_torch = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        b.row(what, kernel, lambda bm, bn: (triton.cdiv(n, bm), h, z),
              lambda bm, bn: [q, k, v, out, None, d**-0.5, n, h, SHARE, d, bm, bn, causal], out, by_torch,
              FORWARD[d], flops=flops_of(z, h, n, d, causal), tolerance=TOLERANCE[dtype],
              anchors={name: forced(name, by_torch) for name in BACKENDS})


def starts_of(lengths):
    """The first row of each sequence, and the end of the last."""
    starts = [0]
    for n in lengths:
        starts.append(starts[-1] + n)
    return starts, torch.tensor(starts, device="cuda", dtype=torch.int32)


def packed_anchors(q, k, v, start, longest, causal, scale):
    """PyTorch's operators behind its functions for packed sequences, which have other names and arguments in each version."""
    sizes, ops = (start, start, longest, longest), torch.ops.aten
    return {"cuDNN": lambda: ops._cudnn_attention_forward(q, k, v, None, *sizes, True, 0.0, causal, False, scale=scale)[0],
            "Flash": lambda: ops._flash_attention_forward(q, k, v, *sizes, 0.0, causal, False, scale=scale)[0]}


def packed(b):
    kernel, heads = b.kernel("shared_attention_kernel", "attention.tl"), PACKED[1]
    for what, _, _, _, d, causal, dtype in wanted(b, "packed attention", TYPES, (64, 128), [PACKED]):
        starts, start = starts_of(LENGTHS)
        q, k, v = (randn(starts[-1], heads, d, dtype=dtype) for _ in range(3))
        out, longest = torch.empty_like(q), max(LENGTHS)
        expected = torch.empty_like(q)
        for i, j in zip(starts, starts[1:]):
            one = [t[i:j].transpose(0, 1)[None] for t in (q, k, v)]
            expected[i:j] = F.scaled_dot_product_attention(*one, is_causal=causal)[0].transpose(0, 1)
        b.row(what, kernel, lambda bm, bn: (triton.cdiv(longest, bm), heads, len(LENGTHS)),
              lambda bm, bn: [q, k, v, out, start, d**-0.5, longest, heads, 1, d, bm, bn, causal], out, expected,
              FORWARD[d], flops=sum(flops_of(1, heads, n, d, causal) for n in LENGTHS),
              tolerance=TOLERANCE[dtype], anchors=packed_anchors(q, k, v, start, longest, causal, d**-0.5))


def ways(b):
    """The same attention by loops that are written in other ways, beside cuDNN's of all keys, or up to the diagonal, or with a bias."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    kernel = b.kernel("attention_ways_kernel", "attention_ways.tl")
    for d, n in (128, 4096), (64, 4096), (128, 4000):
        for way in "diagonal", "masked", "while", "descriptors", "mask", "bias", "lengths":
            sequences, heads = (4, 16) if way == "lengths" else (1, 64)
            what = f"{way} attention {sequences}x{heads}x{n}x{d} float16"
            if not b.wants(what) or (n % 128 and way not in ("masked", "lengths")):
                continue
            apart = way == "lengths"
            q, k, v = (randn(*((sequences * n, heads, d) if apart else (heads, n, d)), dtype=torch.float16) for _ in range(3))
            view = lambda t: t.view(sequences, n, heads, d).transpose(1, 2) if apart else t[None]
            extra = {"mask": (torch.rand(n, n, device="cuda") < 0.7).to(torch.int8), "bias": randn(n, n, dtype=torch.float16),
                     "lengths": torch.arange(sequences + 1, device="cuda", dtype=torch.int32) * n}.get(way)
            bias = {"mask": lambda: torch.where(extra != 0, 0.0, -1e30).half(), "bias": lambda: extra}.get(way, lambda: None)()
            causal = way == "diagonal"
            run = lambda: F.scaled_dot_product_attention(*map(view, (q, k, v)), attn_mask=bias, is_causal=causal)
            out = torch.empty_like(q)

            def like():  # of another shape
                forced("cuDNN", run)()
            flat_out = run().transpose(1, 2).reshape(q.shape) if apart else run()[0]
            b.row(what, kernel, lambda bm, bn: (triton.cdiv(n, bm), heads, sequences),
                  lambda bm, bn: [q, k, v, out, q if extra is None else extra, d**-0.5, n, heads, d, bm, bn, way], out, flat_out,
                  FORWARD[d], flops=flops_of(sequences, heads, n, d, causal), tolerance=TOLERANCE[q.dtype],
                  anchors={"cuDNN": like if apart else forced("cuDNN", lambda: run()[0])} if bias is None else {"PyTorch": lambda: run()[0]})


def fp8(b):
    """Beside cuDNN with fp16, since PyTorch has no attention for fp8."""
    kernel, dtype = b.kernel("fp8_attention_kernel", "attention.tl"), torch.float8_e4m3fn
    for what, z, h, n, d, causal, dtype in wanted(b, "fp8 attention", (dtype, ), FP8, SHAPES):
        q, k, v = (randn(z, h, n, d, dtype=dtype) for _ in range(3))
        turned, out = v.transpose(2, 3).contiguous(), torch.empty(z, h, n, d, device="cuda", dtype=torch.float16)
        wide = [t.half() for t in (q, k, v)]
        by_torch = lambda: F.scaled_dot_product_attention(*wide, is_causal=causal)

        def like():
            forced("cuDNN", by_torch)()
        b.row(what, kernel, lambda bm, bn: (triton.cdiv(n, bm), z * h, 1),
              lambda bm, bn: [q, k, turned, out, d**-0.5, 1.0, n, d, bm, bn, causal], out, by_torch(),
              FP8[d], flops=flops_of(z, h, n, d, causal), tolerance=0.2, anchors={"cuDNN fp16": like})


def sums_of_exponentials(q, k, causal, scale):
    """The log of the sum of each row; one head of k serves some of q."""
    n, share = q.shape[2], q.shape[1] // k.shape[1]
    rows, keys = q.flatten(0, 1), k.repeat_interleave(share, 1).flatten(0, 1)
    unseen = torch.ones(n, n, device="cuda", dtype=torch.bool).triu(1) if causal else None
    lse, several = torch.empty(rows.shape[:2], device="cuda"), max(1, 2**29 // n**2)  # heads at a time, of 2 GB
    for i in range(0, len(rows), several):
        s = rows[i : i + several].float() @ keys[i : i + several].float().transpose(1, 2) * scale
        lse[i : i + several] = (s.masked_fill_(unseen, -float("inf")) if causal else s).logsumexp(2)
    return lse.view(q.shape[:3])


def gradients_row(b, what, q, k, v, o, do, lse, start, longest, batch, causal, gradients, flops, anchors):
    """The row of all three gradients: q (…, heads, n, d) or, with the start of each sequence, (total, heads, d)."""
    d, heads = q.shape[-1], q.shape[1]
    share = heads // k.shape[1]
    kernels = {name: b.kernel(name + "_kernel", "attention.tl")
               for name in ("delta", "gradient_of_keys", "gradient_of_queries", "scaled")}
    out, delta = torch.empty(q.numel() + 2 * k.numel(), device="cuda", dtype=q.dtype), torch.empty_like(lse)
    dq, dk, dv = (x.view(like.shape) for x, like in zip(out.split([q.numel(), k.numel(), k.numel()]), (q, k, v)))
    sums = torch.empty(q.shape, device="cuda", dtype=torch.float32)
    rows, scale = q.numel() // d, d**-0.5
    block = 4096 // d

    def launches(bm, bn, *queries):
        added = queries == ("sums",)
        shape = [start, scale, longest, heads, share, d]
        steps = [(kernels["delta"], (triton.cdiv(rows, block), 1, 1), [o, do, delta, sums if added else None, rows, d, block]),
                 (kernels["gradient_of_keys"], (triton.cdiv(longest, bn), heads // share, batch),
                  [q, k, v, do, lse, delta, dk, dv, sums if added else None, *shape, bm, bn, causal])]
        if added:
            return steps + [(kernels["scaled"], (triton.cdiv(q.numel(), 2048), 1, 1), [sums, dq, scale, q.numel(), 2048])]
        tile, own = queries[:2], queries[2:]
        of_queries = (kernels["gradient_of_queries"], (triton.cdiv(longest, tile[0]), heads, batch),
                      [q, k, v, do, lse, delta, dq, *shape, *tile, causal])
        return steps + [of_queries + ((own, ) if own else ())]
    expected = gradients()
    b.row(what, Steps(launches), None, None, out, expected, GRADIENTS[d], flops=2.5 * flops, tolerance=10 * TOLERANCE[q.dtype],
          anchors=anchors)


def flat(tensors):
    return torch.cat([t.flatten() for t in tensors])


def ready(do, q, k, v, run):
    """What computes the gradients of run(q, k, v), which has been done."""
    inputs = [t.detach().requires_grad_() for t in (q, k, v)]
    o = run(*inputs)
    return lambda: torch.autograd.grad(o, inputs, do, retain_graph=True)


def backward_anchors(do, q, k, v, runs):
    """What computes the gradients by each of the functions in `runs`, each of which does its forward pass at the first call."""
    def later(run):
        prepared = []

        def gradients():
            if not prepared:
                prepared.append(ready(do, q, k, v, run))
            return prepared[0]()
        return gradients, flat
    return {name: later(run) for name, run in runs.items()}


def gradients(b):
    for kind, share in ("gradients", 1), ("shared gradients", SHARE):
        for what, z, h, n, d, causal, dtype in wanted(b, kind, TYPES, [d for d in GRADIENTS if share == 1 or d <= 128], SHAPES):
            q, do = (randn(z, h, n, d, dtype=dtype) for _ in range(2))
            k, v = (randn(z, h // share, n, d, dtype=dtype) for _ in range(2))
            run = lambda *x: F.scaled_dot_product_attention(*x, is_causal=causal, enable_gqa=share > 1)
            by = lambda name: lambda *x: forced(name, lambda: run(*x))()
            gradients_row(b, what, q, k, v, run(q, k, v), do, sums_of_exponentials(q, k, causal, d**-0.5), None, n, z,
                          causal, lambda: flat(ready(do, q, k, v, run)()), flops_of(z, h, n, d, causal),
                          backward_anchors(do, q, k, v, {name: by(name) for name in BACKENDS}))


def packed_gradients(b):
    heads = PACKED[1]
    for what, _, _, _, d, causal, dtype in wanted(b, "packed gradients", TYPES, (64, 128), [PACKED]):
        starts, start = starts_of(LENGTHS)
        q, k, v, do = (randn(starts[-1], heads, d, dtype=dtype) for _ in range(4))
        o, lse = torch.empty_like(q), torch.empty(starts[-1], heads, device="cuda")
        found = [torch.empty_like(q) for _ in range(3)]
        for i, j in zip(starts, starts[1:]):
            one = [t[i:j].transpose(0, 1)[None].contiguous() for t in (q, k, v)]
            run = lambda *x: F.scaled_dot_product_attention(*x, is_causal=causal)
            o[i:j] = run(*one)[0].transpose(0, 1)
            lse[i:j] = sums_of_exponentials(*one[:2], causal, d**-0.5)[0].T
            for whole, part in zip(found, ready(do[i:j].transpose(0, 1)[None].contiguous(), *one, run)()):
                whole[i:j] = part[0].transpose(0, 1)
        runs = {name: lambda *x, name=name: packed_anchors(*x, start, max(LENGTHS), causal, d**-0.5)[name]()
                for name in BACKENDS}
        gradients_row(b, what, q, k, v, o, do, lse, start, max(LENGTHS), len(LENGTHS), causal, lambda: flat(found),
                      sum(flops_of(1, heads, n, d, causal) for n in LENGTHS), backward_anchors(do, q, k, v, runs))


def decode(b):
    kernel, heads, group, d, page = b.kernel("split_decode_kernel", "attention.tl"), 8, 8, 128, 64
    for sequences, length in SEQUENCES:
        what = f"split decode {sequences}x{heads * group}x{length}x{d} float16"
        if not b.wants(what):
            continue
        pages, left = sequences * length // page, length - 17
        q = randn(sequences, heads * group, d, dtype=torch.float16)
        k, v = (randn(pages, page, heads, d, dtype=torch.float16) for _ in range(2))
        table = torch.randperm(pages, device="cuda").int().view(sequences, -1)
        lengths, out = torch.full((sequences,), left, device="cuda", dtype=torch.int32), torch.empty_like(q)
        expected = torch.empty_like(q)
        for i in range(sequences):
            keys, values = (t[table[i].long()].view(length, heads, d)[:left].transpose(0, 1)[None] for t in (k, v))
            expected[i] = F.scaled_dot_product_attention(q[i][None, :, None], keys, values, enable_gqa=True)[0, :, 0]
        most = 64
        part = torch.empty(sequences * heads * most * 16 * d, device="cuda")
        state = torch.empty(sequences * heads * most * 32, device="cuda")
        count = torch.zeros(sequences * heads, device="cuda", dtype=torch.int32)
        whole = max(1, 132 // (sequences * heads))  # programs for each head, to fill the multiprocessors once
        splits = {1 << max(0, whole.bit_length() - 1 + i) for i in (0, 1, 2)}
        b.row(what, kernel, lambda *c: (sequences, heads, c[3]),
              lambda *c: [q, k, v, table, lengths, out, part, state, count, d**-0.5, heads, length // page, *c], out, expected,
              [((d, group, page, s), w, st) for s in sorted(splits) if s <= most for w, st in ((4, 3), (4, 4), (8, 2))],
              bytes=4 * sequences * left * heads * d, tolerance=1e-2)


def rows(b):
    for group in (forward, shared, packed, ways, fp8, gradients, packed_gradients, decode):
        group(b)
