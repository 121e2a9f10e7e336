"""Recorded launches of Triton kernels, which static.py compiles and replay.py launches.

A file of launches has one JSON object a line:
  kernel, file          the jit function and its source
  grid, warps, stages
  args                  for each parameter [name, is constexpr, kind, dtype, value, bytes, integers]; kinds are ptr,
                        int, float, bool, str, dtype and none; the value of a pointer is its alignment, and its bytes
                        are those up to the end of its allocation; integers, if there are any, is the path, from the
                        folder of LAUNCHES.jsonl, of a .npz with the memory's bytes before the launch
  case                  of record.py
  tlc_us, triton_us     measured times, if there are any"""
import argparse
import importlib
import importlib.util
import json
import math
import os
import sys

TRITON_NAMES = {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
                "fp64": "float64"}


def triton_name(dtype):
    """The name of a type in triton.language."""
    return TRITON_NAMES.get(dtype) or dtype.replace("u", "uint").replace("i", "int", dtype[0] == "i")


def parser(usage):
    p = argparse.ArgumentParser(usage=usage)
    p.add_argument("launches")
    p.add_argument("names", nargs="*")
    p.add_argument("--from", dest="folders", action="append", default=[], type=lambda text: tuple(text.split("=", 1)))
    p.add_argument("--below", type=float, default=math.inf)
    return p


def read(args):
    """The launches that the options select, as pairs of a number and a launch. file and root (the folder from which
    packages are imported) are paths of this machine."""
    selected = []
    with open(args.launches) as f:
        for number, launch in enumerate(map(json.loads, f)):
            ratio = launch["triton_us"] / launch["tlc_us"] if launch.get("tlc_us") else 0
            if "args" not in launch or ratio >= args.below:
                continue
            if args.names and not any(name in launch["kernel"] for name in args.names):
                continue
            launch["root"] = os.path.dirname(launch["file"])
            while os.path.exists(os.path.join(launch["root"], "__init__.py")):
                launch["root"] = os.path.dirname(launch["root"])
            for recorded, here in args.folders:
                if launch["file"].startswith(recorded):
                    launch["file"], launch["root"] = here + launch["file"][len(recorded):], here
            selected.append((number, launch))
    return selected


def without_inductor_heuristics():
    import torch._inductor.runtime.triton_helpers as helpers
    import torch._inductor.runtime.triton_heuristics as heuristics
    helpers.set_driver_to_gpu = lambda: None
    for name in ("pointwise", "reduction", "persistent_reduction", "cooperative_reduction", "template",
                 "user_autotune", "foreach", "split_scan"):
        setattr(heuristics, name, lambda *a, **k: lambda f: f)


def jit_function(launch):
    """Triton's JITFunction of a launch, without the decorators around it."""
    import triton
    file, root = launch["file"], launch["root"]
    if root not in sys.path:
        sys.path.insert(0, root)
    if os.path.exists(os.path.join(os.path.dirname(file), "__init__.py")):
        module = importlib.import_module(os.path.relpath(file, root)[:-3].replace("/", "."))
    else:
        if "torch._inductor" in open(file).read():
            without_inductor_heuristics()
        name = "launched_" + os.path.basename(file)[:-3]
        spec = importlib.util.spec_from_file_location(name, file)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    f = getattr(module, launch["kernel"])
    while not isinstance(f, triton.runtime.jit.JITFunction):
        f = f.fn
    return f
