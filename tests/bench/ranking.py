"""How well libtl's model ranks configurations, without a measurement, against the times of all of them.

    python3 tests/bench/ranking.py BUILD [--seed S] [--first N] [--out FILE.jsonl] [--limit SECONDS] [--show]

The shapes are the ten products of docs/notes/measurements.md, 30 random products and 24 random attentions as in shapes.py,
and softmax and addition of a few sizes. For each kernel of a shape the tuner times all configurations. Printed, by kernel: the
best time divided by the best time among the model's first N (5), and by the time of its first one. --show prints the
worst shapes. --out has a line of JSON for each shape and kernel, with the model's bills and the times.
"""
import argparse
import collections
import json
import os
import random
import sys
import tempfile
import time

import torch
import triton

import libtl
import shapes
from harness import EXAMPLES, to_arg
from tuner import Tuner, compile_ahead

PRODUCTS = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192),
            (16, 8192, 8192), (8192, 8192, 512), (4096, 11008, 4096), (1000, 1000, 1000), (4095, 4097, 4093)]
ROWS = (64, 4096), (1024, 1000), (8192, 512), (8192, 4096), (4096, 8192), (65536, 256), (2048, 16384)
ELEMENTS = 1 << 16, 1000000, 1 << 22, 1 << 26
ALL = 1 << 20  # configurations that are ranked and timed


class Softmax(collections.namedtuple("Softmax", "rows columns type")):
    def tensors(self, device):
        return [torch.randn(self.rows, self.columns, device=device, dtype=getattr(torch, self.type)) for _ in range(2)]

    def configs(self):
        return [((triton.next_power_of_2(self.columns),), warps, 1) for warps in (1, 2, 4, 8, 16, 32)]

    def arguments(self, x, y):
        return [x, y, *[self.columns] * 3], lambda *_: (self.rows, 1, 1)


class Addition(collections.namedtuple("Addition", "elements type")):
    def tensors(self, device):
        return [torch.randn(self.elements, device=device, dtype=getattr(torch, self.type)) for _ in range(3)]

    def configs(self):
        return [((block,), warps, 1) for block in (128, 256, 512, 1024, 2048, 4096, 8192) for warps in (1, 2, 4, 8)]

    def arguments(self, *tensors):
        return [*tensors, self.elements], lambda block: (triton.cdiv(self.elements, block), 1, 1)


shapes.KERNELS |= {
    Softmax: [shapes.Kernel(f"{EXAMPLES}/softmax.tl", "softmax_kernel", ["BLOCK"], Softmax.configs, Softmax.arguments)],
    Addition: [shapes.Kernel(f"{EXAMPLES}/vector_add.tl", "add_kernel", ["BLOCK"], Addition.configs, Addition.arguments)]}


def all_shapes(seed):
    products = list(shapes.Matmul.shapes(random.Random(seed)))
    types = "float32", "float16"
    return ([Softmax(*rows, t) for t in types for rows in ROWS] + [Addition(n, t) for t in types for n in ELEMENTS] +
            [shapes.Matmul(*sizes, "float16", "row") for sizes in PRODUCTS] + random.Random(seed).sample(products, 30) +
            list(shapes.Attention.shapes(random.Random(seed)))[:24])


def measured(tl, shape, stream):
    """What --out has of each kernel of a shape."""
    tensors = shape.tensors("cuda")
    for kernel in shapes.KERNELS[type(shape)]:
        values, grid = kernel.arguments(shape, *tensors)
        configs = list(kernel.configs(shape))
        if len(configs) < 2:
            continue
        tuner = Tuner(tl, tl.kernel(kernel.path, kernel.function), kernel.names, configs, stream=stream, most=ALL, **shapes.TUNING)
        tuner.choice(list(map(to_arg, values)), grid)
        yield {"kernel": kernel.function, "shape": shape, "configurations": tuner.report()}
        tuner.close()


def score(row, first):
    """Of the first N by the model, and of the first one: the best time of all divided by theirs."""
    timed = sorted((c for c in row["configurations"] if c.get("cost") and c.get("rank")), key=lambda c: c["rank"])
    best = min(c["cost"] for c in timed)
    return best / min(c["cost"] for c in timed[:first]), best / timed[0]["cost"]


def summary(rows, first, show):
    by_kernel = collections.defaultdict(list)
    for row in rows:
        by_kernel[row["kernel"]].append((*score(row, first), row["shape"]))
    print(f"| kernel | shapes | first {first}: median | p10 | worst | within 3 % | first one: median | p10 | worst |\n|{'---|' * 9}")
    for kernel, scores in by_kernel.items():
        some, one = (sorted(s[i] for s in scores) for i in range(2))
        numbers = [f"{of[i]:.3f}" for of in (some, one) for i in (len(of) // 2, len(of) // 10, 0)]
        numbers.insert(3, str(sum(s >= 0.97 for s in some)))
        print(f"| {kernel} | {len(scores)} | {' | '.join(numbers)} |")
    for kernel, scores in by_kernel.items() if show else ():
        for some, one, shape in sorted(scores)[:5]:
            print(f"{kernel} {some:.2f} {one:.2f} {shape}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=5)
    parser.add_argument("--out", default=os.devnull)
    parser.add_argument("--limit", type=float, default=0)
    parser.add_argument("--show", action="store_true")
    given, start, rows = parser.parse_args(), time.perf_counter(), []
    with tempfile.TemporaryDirectory(prefix="ranking-") as cache, open(given.out, "w") as out:
        os.environ.update(TL_CACHE="1", TL_CACHE_DIR=cache, TL_CACHE_MB="8192")
        wanted = all_shapes(given.seed)
        jobs = [job for shape in wanted for job in shapes.jobs_of(shape)]
        compile_ahead(given.build, jobs, len(os.sched_getaffinity(0)), given.limit / 2 or None)
        torch.manual_seed(given.seed)
        torch.zeros(1, device="cuda")  # makes the context that libtl joins
        stream = torch.cuda.Stream()
        tl = libtl.Context(libtl.load(given.build))
        for shape in wanted:
            if 0 < given.limit < time.perf_counter() - start:
                break
            with torch.cuda.stream(stream):
                for row in measured(tl, shape, stream.cuda_stream):
                    rows.append(row)
                    print(json.dumps(row), file=out, flush=True)
    print(f"{torch.cuda.get_device_name()}, seed {given.seed}: {len(rows)} shapes and kernels")
    summary(rows, given.first, given.show)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
