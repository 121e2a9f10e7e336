"""Matmul and attention of random shapes, compared with PyTorch.

    python3 tests/bench/shapes.py BUILD [matmul|attention] [--jobs N] [--seed S] [--out FILE.jsonl] [--limit SECONDS]

matmul: 60 by examples/matmul.tl and matmul_split_k.tl beside torch.matmul. M, N, K: log-uniform from 16 to 16384,
multiples of 8, 16 or 64, at most 4e12 operations; fp16 or bf16; B row-major or column-major. attention: 40 by examples/attention.tl, fp16, beside
the faster of cuDNN and Flash through PyTorch. 64, 128 or 256 dimensions; 512 to 16384 keys, log-uniform, multiples of
64; full or causal; 5e10 to 1e12 operations if all keys count. In half of them 4 heads of queries share one of keys. The
kernel has one number of heads: a head of keys is then an entry of its batch, in which keys have stride 0.

Ratios are the library's time divided by ours. `first` is the configuration that libtl's model expects to be the fastest,
without a measurement. `tuned` is its tuner's choice of all.
Results are compared with PyTorch's, those of products in fp32.

N processes compile all configurations first, into an empty disk cache. Then each shape is tuned and timed, in turns
with a cold L2 cache, behind work that hides the host. After SECONDS no shape begins, after half of them no compilation;
0: no limit. Needs a GPU, torch and triton; BUILD holds libtl.so. --out has a line of JSON for each shape.
"""
import argparse
import collections
import functools
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time

import torch
import torch.nn.functional as F
import triton

import attention
import libtl
from harness import EXAMPLES, differs, in_turns, to_arg
from tuner import CONFIGS, LARGER, NAMES, Tuner, compile_ahead

SPLIT_TILES = [((16, 64, 128), 4, 4), ((64, 64, 64), 4, 4), ((64, 64, 128), 4, 5), ((64, 128, 64), 4, 5),
               ((128, 128, 64), 4, 4), ((64, 256, 64), 4, 4), ((128, 256, 64), 8, 4)]
MOST_PROGRAMS = 6 * 132
REPEATS, HIDDEN_CYCLES, OURS = 20, 500_000, ("first", "tuned")
TUNING = {"warmup_ms": 1, "rep_ms": 3, "again": True}  # choices on disk do not tell layouts apart


def log_uniform(rng, least, most, multiple=1):
    x = math.exp(rng.uniform(math.log(least), math.log(most)))
    return max(multiple, round(x / multiple) * multiple)


@functools.cache
def workspace(device):
    """For matmul_split_k.tl: sums of parts, and counters of tiles, which are 0."""
    return (torch.empty(MOST_PROGRAMS * 128 * 256, device=device, dtype=torch.float32),
            torch.zeros(MOST_PROGRAMS, device=device, dtype=torch.int32))


class Matmul(collections.namedtuple("Matmul", "M N K type layout")):
    libraries = ("torch",)

    @classmethod
    def shapes(cls, rng):
        for i in range(60):
            sizes = [16384] * 3
            while 2 * math.prod(sizes) > 4e12:
                sizes = [log_uniform(rng, 16, 16384, (8, 16, 64)[i % 3]) for _ in range(3)]
            yield cls(*sizes, ("float16", "bfloat16")[i % 2], ("row", "column")[i // 2 % 2])

    def tensors(self, device):
        """The last one is the result."""
        make = lambda *size: torch.randn(*size, device=device, dtype=getattr(torch, self.type))
        b = make(self.K, self.N) if self.layout == "row" else make(self.N, self.K).t()
        return make(self.M, self.K), b, make(self.M, self.N)

    def configs(self):
        """(values, warps, stages)"""
        return CONFIGS + LARGER

    def arguments(self, a, b, c):
        """Those before the values of a configuration, and the grid as a function of these values."""
        return ([a, b, c, self.M, self.N, self.K, *a.stride(), *b.stride(), *c.stride()],
                lambda bm, bn, *_: (triton.cdiv(self.M, bm) * triton.cdiv(self.N, bn), 1, 1))

    def split_configs(self):
        """Of matmul_split_k.tl: parts of several steps each, in a few waves of programs."""
        for (bm, bn, bk), warps, stages in SPLIT_TILES:
            tiles, steps = triton.cdiv(self.M, bm) * triton.cdiv(self.N, bn), triton.cdiv(self.K, bk)
            for parts in (2, 3, 4, 6, 8, 16, 32):
                if tiles * parts <= MOST_PROGRAMS and steps >= 2 * parts:
                    yield (bm, bn, bk, 8, parts), warps, stages

    def split_arguments(self, a, b, c):
        parts, arrived = workspace(a.device.type)
        values, grid = self.arguments(a, b, c)
        return values[:3] + [parts, arrived] + values[3:], lambda *v: (grid(*v)[0], v[-1], 1)

    def by_libraries(self, a, b, c):
        return {"torch": lambda: torch.matmul(a, b, out=c)}

    def expected(self, a, b, c):
        """The result in fp32, and by how much an element may differ."""
        return a.float() @ b.float(), self.K**0.5 / {"float16": 100, "bfloat16": 12}[self.type]


class Attention(collections.namedtuple("Attention", "batch heads shared keys dim causal")):
    libraries = ("cuDNN", "Flash")  # `shared` is the number of heads of keys

    @classmethod
    def shapes(cls, rng):
        for i in range(40):
            d, causal, share, operations = (64, 128, 256)[i % 3], i // 3 % 2 == 1, (1, 4)[i // 6 % 2], 0
            while not 5e10 <= operations <= 1e12:
                n, heads = log_uniform(rng, 512, 16384, 64), share * rng.choice((1, 2, 4, 8, 16))
                batch = round(log_uniform(rng, 5e10, 1e12) / (4 * heads * n * n * d))
                operations = 4 * batch * heads * n * n * d
            yield cls(batch, heads, heads // share, n, d, causal)

    def tensors(self, device):
        return [torch.randn(self.batch, heads, self.keys, self.dim, device=device, dtype=torch.float16)
                for heads in (self.heads, self.shared, self.shared, self.heads)]

    def configs(self):
        tiles = dict.fromkeys([((128, 64), 8, 3)] + attention.FORWARD[self.dim])
        return [((self.dim, *tile, self.causal), *rest) for tile, *rest in tiles]

    def arguments(self, q, k, v, out):
        n, d, share = self.keys, self.dim, self.heads // self.shared
        heads, own = (self.heads, n * d) if share == 1 else (share, 0)
        queries, keys = [heads * n * d, n * d, d], [heads * own or n * d, own, d]
        return ([q, k, v, out, d**-0.5, *queries, *keys, *keys, *queries, heads, n],
                lambda d, bm, *_: (triton.cdiv(n, bm), self.batch * self.heads, 1))

    def by_libraries(self, q, k, v, out):
        given = {"is_causal": self.causal, "enable_gqa": self.heads != self.shared}
        run = lambda: F.scaled_dot_product_attention(q, k, v, **given)
        return {name: attention.forced(name, run) for name in self.libraries}

    def expected(self, *tensors):
        return self.by_libraries(*tensors)["Flash"]().float(), attention.TOLERANCE[torch.float16]


KINDS = {"matmul": Matmul, "attention": Attention}
Kernel = collections.namedtuple("Kernel", "path function names configs arguments")  # names: what a configuration sets
KERNELS = {
    Matmul: [Kernel(f"{EXAMPLES}/matmul.tl", "matmul_kernel", NAMES, Matmul.configs, Matmul.arguments),
             Kernel(f"{EXAMPLES}/matmul_split_k.tl", "matmul_split_k_kernel", [*NAMES, "SPLIT_K"], Matmul.split_configs,
                    Matmul.split_arguments)],
    Attention: [Kernel(f"{EXAMPLES}/attention.tl", "attention_kernel", ["HEAD_DIM", "BLOCK_M", "BLOCK_N", "CAUSAL"],
                       Attention.configs, Attention.arguments)]}


def jobs_of(shape):
    """Those of compile_ahead."""
    for kernel in KERNELS[type(shape)]:
        values, grid = kernel.arguments(shape, *shape.tensors("meta"))
        told = [(str(v.dtype)[6:], v.nbytes) if isinstance(v, torch.Tensor) else v for v in values]
        for chosen, warps, stages in kernel.configs(shape):
            yield kernel.path, kernel.function, grid(*chosen), [*told, *chosen], warps, stages


class Bench:
    def __init__(self, build, device=None, stream=None):
        self.tl, self.stream = libtl.Context(libtl.load(build), device), stream
        self.functions = {k.function: self.tl.kernel(k.path, k.function) for k in sum(KERNELS.values(), [])}

    def choose(self, shape, tensors, most):
        """Of all kernels and configurations, or of `most` for each kernel by the model (1: without a measurement): the
        fastest one's text, and what launches it."""
        found, expected = [], {}
        for kernel in KERNELS[type(shape)]:
            values, grid = kernel.arguments(shape, *tensors)
            function, configs = self.functions[kernel.function], list(kernel.configs(shape))
            if not configs:
                continue
            tuner = Tuner(self.tl, function, kernel.names, configs, stream=self.stream, most=most, **TUNING)
            out, chosen, run = tuner.choice(list(map(to_arg, values)), grid)
            text = f"{kernel.function} {','.join(map(str, chosen))} w{out.config.num_warps} s{out.config.num_stages}"
            found.append((text, run))
            expected[text] = min((c["estimate"]["us"] for c in tuner.report() if c.get("rank") == 1), default=0)
            tuner.close()
        times = expected if most == 1 else in_turns(dict(found), REPEATS, HIDDEN_CYCLES) if len(found) > 1 else {}
        return min(found, key=lambda f: times.get(f[0], 0))

    def row(self, shape, device="cuda"):
        """What --out has of a shape."""
        tensors, runs, notes, config, seconds = shape.tensors(device), {}, [], {}, {}
        expected, tolerance = shape.expected(*tensors)
        choices = {who: lambda most=most: self.choose(shape, tensors, most) for who, most in zip(OURS, (1, 0))}
        choices |= {who: lambda run=run: ("", run) for who, run in shape.by_libraries(*tensors).items()}
        for who, choose in choices.items():
            tensors[-1].fill_(float("nan"))
            try:
                begin = time.perf_counter()
                config[who], run = choose()
                seconds[who] = time.perf_counter() - begin
                run()
                runs[who] = run
            except (libtl.TlError, RuntimeError) as e:  # a backend of PyTorch may refuse
                notes.append(f"{who}: {str(e).splitlines()[0]}")
                continue
            wrong = who in OURS and differs(tensors[-1], expected, tolerance)
            if wrong:
                notes.append(f"{who} WRONG: {wrong}")
        us = {who: ms * 1e3 for who, ms in in_turns(runs, REPEATS, HIDDEN_CYCLES).items()}
        library = min((us[who] for who in shape.libraries if who in us), default=None)
        ratio = {who: library / us[who] for who in OURS if library and who in us}
        return {**shape._asdict(), "us": us, "ratio": ratio, "config": config, "tuning_s": seconds.get("tuned"),
                "wrong": sum("WRONG" in note for note in notes), "notes": notes}


def cells(shape, row):
    known = lambda part, who, digits: f"{row[part][who]:.{digits}f}" if who in row[part] else "–"
    ours = [known(part, who, digits) for who in OURS for part, digits in (("us", 1), ("ratio", 2))]
    return [*map(str, shape), *(known("us", who, 1) for who in shape.libraries), *ours, row["config"].get("tuned", "–"),
            f"{row['tuning_s'] or 0:.2f}", "; ".join(row["notes"])]


def report(name, rows, planned):
    print(f"\n{name}: {len(rows)} of {planned} shapes, {sum(r['wrong'] for r in rows)} wrong results")
    for who in OURS:
        of = sorted(r["ratio"][who] for r in rows if who in r["ratio"]) or [math.nan]
        print(f"{who}: median {statistics.median(of):.2f}, p10 {of[len(of) // 10]:.2f}, worst {of[0]:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("kind", nargs="?", choices=list(KINDS))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=os.devnull)
    parser.add_argument("--limit", type=float, default=0)
    given, start = parser.parse_args(), time.perf_counter()
    wanted = {name: list(KINDS[name].shapes(random.Random(given.seed))) for name in KINDS if given.kind in (None, name)}
    with tempfile.TemporaryDirectory(prefix="shapes-") as cache, open(given.out, "w") as out:
        os.environ.update(TL_CACHE="1", TL_CACHE_DIR=cache, TL_CACHE_MB="8192")
        jobs = [job for shapes in wanted.values() for shape in shapes for job in jobs_of(shape)]
        compile_ahead(given.build, jobs, given.jobs, given.limit / 2 or None)
        torch.manual_seed(given.seed)
        torch.zeros(1, device="cuda")  # makes the context that libtl joins
        stream = torch.cuda.Stream()
        bench = Bench(given.build, stream=stream.cuda_stream)
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, seed {given.seed}")
        for name, shapes in wanted.items():
            times = [f"{who} µs" for who in shapes[0].libraries] + ["first µs", "ratio", "tuned µs", "ratio"]
            columns, rows = [*shapes[0]._fields, *times, "tuned", "tuning s", ""], []
            print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
            for shape in shapes:
                if 0 < given.limit < time.perf_counter() - start:
                    break
                with torch.cuda.stream(stream):
                    rows.append(bench.row(shape))
                print(f"| {' | '.join(cells(shape, rows[-1]))} |", flush=True)
                print(json.dumps({"kind": name, **rows[-1]}), file=out, flush=True)
            report(name, rows, len(shapes))
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
