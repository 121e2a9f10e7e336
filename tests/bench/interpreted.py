"""Triton's interpreter mode on kernels of cpu.py, in a process of its own, as the mode holds for a whole process.

    TRITON_INTERPRET=1 python3 tests/bench/interpreted.py

Prints JSON: for each of ROWS the milliseconds of the fastest call, null where its result is wrong. Needs torch and triton.
"""
import json
import os
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "examples")


def add():
    n = 1 << 18
    x, y, out = torch.randn(n), torch.randn(n), torch.full((n,), float("nan"))
    return os.path.join(EXAMPLES, "vector_add.tl"), "add_kernel", (n // 1024, 1, 1), [x, y, out, n, 1024], out, x + y


def softmax():
    x, out = torch.randn(1024, 1000), torch.full((1024, 1000), float("nan"))
    return os.path.join(EXAMPLES, "softmax.tl"), "softmax_kernel", (1024, 1, 1), [x, out, 1000, 1000, 1000, 1024], out, torch.softmax(x, 1)


def matmul():
    n = 512
    a, b, out = torch.randn(n, n), torch.randn(n, n), torch.full((n, n), float("nan"))
    args = [a, b, out, n, n, n, n, n, n, 64, 64, 64, 8]
    return os.path.join(HERE, "cpu.tl"), "matmul_kernel", ((n // 64) ** 2, 1, 1), args, out, a @ b


ROWS = {"add fp32 2^18": add, "softmax fp32 1024 x 1000": softmax, "matmul fp32 512 x 512 x 512": matmul}  # path, kernel, grid, args, out, expected


def wrong(out, expected):
    return not torch.allclose(out, expected, rtol=1e-4, atol=1e-4 * expected.abs().max().item())


def main():
    from load import load_python  # triton reads the environment as it is imported

    times = {}
    for name, make in ROWS.items():
        path, kernel, grid, args, out, expected = make()
        launch, spans = getattr(load_python(path), kernel)[grid], []
        for _ in range(3):
            begin = time.perf_counter()
            launch(*args)
            spans.append((time.perf_counter() - begin) * 1e3)
        times[name] = None if wrong(out, expected) else min(spans)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
