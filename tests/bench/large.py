"""large.py BUILD: tensors whose offsets do not fit 32 bits, on a GPU, beside the same in parts that fit, and torch.

  matmul    C of 65,536 x 65,536 fp16 (8 GB), and in four parts of its rows
  x | 64    2^32 int8 elements, and in four parts
The sources compute offsets in 32 bits; compiled by Triton they would write to other memory.
"""
import os
import sys

import torch

import libtl

top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def time(f, rounds=5):
    f()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        f()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[rounds // 2]


def tensor(x, first=0):
    """From element `first` on."""
    return libtl.pointer(str(x.dtype).split(".")[1], x.data_ptr() + first * x.element_size(), (x.numel() - first) * x.element_size())


def matmul(context):
    n, k, block_m, block_n, block_k = 65536, 1024, 128, 256, 64
    a, b = torch.randn(n, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
    c = torch.full((n, n), float("nan"), device="cuda", dtype=torch.float16)
    kernel = context.kernel(os.path.join(top, "examples", "matmul.tl"), "matmul_kernel")

    def launcher(first, rows):
        part = c[first:first + rows]
        args = [tensor(a[first:first + rows]), tensor(b), tensor(part)] + [libtl.scalar(v) for v in (rows, n, k, k, 1, n, 1, n, 1, block_m, block_n, block_k, 8, None)]
        return context.launcher(kernel, (rows // block_m * (n // block_n), 1, 1), args, 8, 3)

    whole, parts = launcher(0, n), [launcher(i * n // 4, n // 4) for i in range(4)]
    whole()
    torch.cuda.synchronize()
    wrong = 0
    for i in torch.randint(0, n, (40,)).tolist() + [0, n - 1]:
        want = a[i].float() @ b.float()
        wrong += int(((c[i].float() - want).abs() > 0.5).sum() + c[i].isnan().sum())
    print(f"matmul {n}x{n}x{k} fp16: {wrong} of 42 rows' elements are wrong")
    ours, parts = time(whole), time(lambda: [f() for f in parts])
    torchs = time(lambda: torch.matmul(a, b, out=c))
    flops = 2 * n * n * k / 1e9
    print(f"  TFLOPS: whole {flops / ours:.0f}, in four parts of 32-bit offsets {flops / parts:.0f}, cuBLAS {flops / torchs:.0f}")
    return wrong


def set_bit(context):
    n, block = 1 << 32, 4096
    x = torch.randint(-60, 60, (n,), device="cuda", dtype=torch.int8)
    before = x.clone()
    kernel = context.kernel(os.path.join(top, "tests", "run", "memory.tl"), "large_flat")

    def launcher(first, count):
        return context.launcher(kernel, (count // block, 1, 1), [tensor(x[first:first + count])] + [libtl.scalar(v) for v in (count, 0, block)], 4, 3)

    whole, parts = launcher(0, n), [launcher(i * n // 4, n // 4) for i in range(4)]
    whole()
    torch.cuda.synchronize()
    wrong = sum(int((x[i:i + n // 8] != before[i:i + n // 8] | 64).sum()) for i in range(0, n, n // 8))
    ours, fours, torchs = time(whole), time(lambda: [f() for f in parts]), time(lambda: x.bitwise_or_(64))
    print(f"x | 64, 2^32 int8: {wrong} elements are wrong\n"
          f"  GB/s: whole {2 * n / ours / 1e6:.0f}, in four parts {2 * n / fours / 1e6:.0f}, torch {2 * n / torchs / 1e6:.0f}")
    return wrong


def main():
    torch.cuda.init()
    torch.empty(1, device="cuda")
    context = libtl.Context(libtl.load(sys.argv[1]))
    wrong = [matmul(context), set_bit(context)]
    print(f"{wrong.count(0)} passed, {2 - wrong.count(0)} failed")
    sys.exit(wrong != [0, 0])


main()
