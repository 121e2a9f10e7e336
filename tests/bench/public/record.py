#!/usr/bin/env python3
"""record.py LAUNCHES.jsonl [CASE...] [--dry] [--configs N]

Records the launches of Triton kernels that callers of public libraries make (cases.py, cases_inductor.py), in the form
of launches.py: the first for each kernel, constants, types and options. Integers in memory, up to 16 MiB of a tensor,
are recorded too. The libraries are imported from PYTHONPATH.

CASE...       only the cases of these names, or whose name contains one of these: liger., fla.gla
--list        prints the names of the cases
--dry         without a GPU: kernels do not run, and large floats are not computed. Libraries believe in an H200. With
              libtl on PYTHONPATH its jit functions are recorded, otherwise Triton's. Not for TorchInductor
--configs N   of an autotuned kernel that many configurations, from all of its list: with --dry all are recorded,
              otherwise the fastest; default: 1 with --dry, otherwise 3"""
import argparse
import contextlib
import hashlib
import inspect
import json
import math
import os
import sys
import time

import numpy
import torch

import launches
import pretend

NAMES = "i1 i8 i16 i32 i64 u8 u16 u32 u64 fp8e4nv fp8e5 fp16 bf16 fp32 fp64".split()
IN_TORCH = {"i1": "bool", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}  # where Triton's names differ
DTYPES = {getattr(torch, IN_TORCH.get(name, launches.triton_name(name))): name for name in NAMES}
INTEGERS_BYTES = 16 << 20


class NotRecorded(Exception):
    """An argument without a form."""


class Recording:
    def __init__(self, path):
        self.file, self.folder, self.seen, self.tuning = open(path, "w"), path + ".integers", set(), 0

    @contextlib.contextmanager
    def reporting(self, kernel):
        try:
            yield
        except NotRecorded as e:
            print(f"{self.case}: {kernel} is not recorded: {e}", file=sys.stderr)

    def stored(self, tensor, size):
        """The path of the file of a tensor's integers; None: all are 0, or there are too many."""
        if not torch.is_tensor(tensor) or tensor.dtype.is_floating_point or not 0 < size <= INTEGERS_BYTES:
            return tensor if isinstance(tensor, str) else None
        values = torch.as_strided(tensor.detach(), (size // tensor.element_size(),), (1,), tensor.storage_offset())
        values = values.cpu().view(torch.uint8).numpy()
        if not values.any():
            return None
        name = hashlib.sha256(values.tobytes()).hexdigest()[:20] + ".npz"
        os.makedirs(self.folder, exist_ok=True)
        numpy.savez_compressed(os.path.join(self.folder, name), values)
        return os.path.join(os.path.basename(self.folder), name)

    def argument(self, name, constexpr, value, dtype=None):
        """The form of an argument, with the tensor in place of its integers. dtype: of a number."""
        value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
        if torch.is_tensor(value):
            if value.dtype not in DTYPES:
                raise NotRecorded(f"{name}: {value.dtype}")
            size = value.untyped_storage().nbytes() - value.storage_offset() * value.element_size()
            return [name, constexpr, "ptr", dtype or DTYPES[value.dtype], math.gcd(value.data_ptr(), 16), size, value]
        if type(value).__module__.endswith("language.core") and type(value).__name__ == "dtype":
            return [name, constexpr, "dtype", str(value).replace("uint", "u").replace("int", "i"), None, 0]
        if isinstance(value, torch.dtype) and value in DTYPES:
            return [name, constexpr, "dtype", DTYPES[value], None, 0]
        for kind, of in (("none", type(None)), ("bool", bool), ("int", int), ("float", float), ("str", str)):
            if isinstance(value, of):
                dtype = dtype or {"bool": "i1", "float": "fp32"}.get(kind)
                return [name, constexpr, kind, dtype, of(value) if kind != "none" else None, 0]
        raise NotRecorded(f"{name}: {type(value).__name__}")

    def write(self, kernel, file, grid, warps, stages, args):
        code = [x if x[1] else x[:4] + [x[2] in ("ptr", "int") and (x[4] % 16 == 0, x[4] == 1)] for x in args]
        key = json.dumps([kernel, file, warps, stages, code])
        if key not in self.seen:
            self.seen.add(key)
            args = [[*x[:6], *(self.stored(v, x[5]) for v in x[6:])] for x in args]
            print(json.dumps({"case": self.case, "kernel": kernel, "file": file, "grid": [int(x) for x in grid],
                              "warps": warps, "stages": stages, "args": args}), file=self.file, flush=True)


def hook_jit(recording, dry):
    import triton
    jit, real = triton.runtime.jit.JITFunction, triton.runtime.jit.JITFunction.run

    def run(self, *args, grid, warmup, **kwargs):
        if not warmup and not recording.tuning:
            bound = {p.name: p.default for p in self.params if p.has_default}
            bound.update(zip((p.name for p in self.params), args))
            bound.update(kwargs)
            with recording.reporting(self.fn.__name__):
                written = [recording.argument(p.name, p.is_constexpr, bound[p.name]) for p in self.params]
                recording.write(self.fn.__name__, self.fn.__code__.co_filename,
                                grid(bound) if callable(grid) else grid, kwargs.get("num_warps", 4),
                                kwargs.get("num_stages", 3), written)
        return None if dry else real(self, *args, grid=grid, warmup=warmup, **kwargs)

    jit.run = run
    if dry:
        jit.__getitem__ = lambda self, grid: lambda *a, **k: self.run(*a, grid=grid, warmup=False, **k)


def hook_autotuner(recording, dry, count):
    import triton
    tuner = triton.runtime.autotuner.Autotuner
    real_prune, real_bench = tuner.prune_configs, tuner._bench

    def few(self, kwargs):
        configs = list(real_prune(self, kwargs))
        n = min(count, len(configs))
        return [configs[(2 * i + 1) * len(configs) // (2 * n)] for i in range(n)]

    def bench(self, *args, **kwargs):
        recording.tuning += 1
        try:
            return real_bench(self, *args, **kwargs)
        finally:
            recording.tuning -= 1

    def run_each(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        for config in few(self, kwargs):
            self.fn.run(*args, **{**kwargs, **config.all_kwargs()})

    tuner.prune_configs, tuner._bench = few, bench
    if dry:
        tuner.run = run_each


def hook_inductor(recording):
    from torch._inductor.runtime import triton_heuristics
    tuner, known = triton_heuristics.CachingAutotuner, {}
    real = tuner.run

    def run(self, *args, **kwargs):
        if id(self) in known:
            return real(self, *args, **kwargs)
        known[id(self)], before = self, None
        with recording.reporting(self.fn.__name__):
            before = [recording.argument("", False, x) if torch.is_tensor(x) else x for x in args]
            before = [[*x[:6], recording.stored(x[6], x[5])] if isinstance(x, list) else x for x in before]
        result = real(self, *args, **kwargs)
        if before is None:
            return result
        config, constants = self.launchers[0].config, dict(self.triton_meta.get("constants", {}))
        given, written = dict(zip(inspect.signature(self.launchers[0]).parameters, before)), []
        with recording.reporting(self.fn.__name__):
            for i, (name, dtype) in enumerate(self.triton_meta["signature"].items()):
                value = config.kwargs.get(name, constants.get(name, constants.get((i,), given.get(name))))
                constexpr = dtype == "constexpr"
                written.append([name, False, "ptr", dtype.lstrip("*"), *value[4:]] if isinstance(value, list) else
                               recording.argument(name, constexpr, value, None if constexpr else dtype))
            jit = self.fn if self.fn.fn else self._reload_kernel().fn  # a copy from another process has no function
            recording.write(jit.__name__, jit.fn.__code__.co_filename, self._interpret_args_grid(args, config)[1],
                            config.num_warps, config.num_stages, written)
        return result

    tuner.run = run


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("launches")
    p.add_argument("names", nargs="*")
    p.add_argument("--list", action="store_true")
    p.add_argument("--dry", action="store_true")
    p.add_argument("--configs", type=int)
    args = p.parse_intermixed_args()
    if args.dry:
        pretend.host_memory()
    recording = Recording(args.launches)
    hook_jit(recording, args.dry)
    hook_autotuner(recording, args.dry, args.configs or (1 if args.dry else 3))
    from cases import CASES
    if not args.dry:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.abspath(args.launches) + ".inductor")
        hook_inductor(recording)
        from cases_inductor import CASES as more
        CASES = {**CASES, **more}
    with pretend.LargeFloatsUnset() if args.dry else contextlib.nullcontext():
        for name, run in CASES.items():
            if args.names and not any(x == name if x in CASES else x in name for x in args.names):
                continue
            if args.list:
                print(name)
                continue
            recording.case, start, before, error = name, time.time(), len(recording.seen), ""
            torch.manual_seed(0)
            try:
                run()
            except Exception as e:
                error = f"{type(e).__name__}: {str(e)[:300]}"
            print(f"{name}: {len(recording.seen) - before} kernels, {time.time() - start:.1f} s {error}", flush=True)


if __name__ == "__main__":
    main()
