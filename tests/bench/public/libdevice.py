#!/usr/bin/env python3
"""libdevice.py [FUNCTION...] [--tlc PATH]

Compares the functions of libdevice in tlc and in Triton, without a GPU: the SASS instructions for sm_90a that a warp
with ordinary arguments executes, beyond those of a copy, and all instructions. Prints rows of a Markdown table.

Needs ptxas and nvdisasm (Triton's package contains both), and Triton."""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

import sass_thread
import static

LANES = 32
NAMES = {
    1: """acos acosh asin asinh atan atanh cbrt cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc erfcinv erfcx erfinv
          exp exp10 exp2 expm1 j0 j1 lgamma log log10 log1p log2 logb normcdf normcdfinv rcbrt round rsqrt sin sinh sinpi
          sqrt tan tanh tgamma y0 y1""",
    2: "atan2 copysign fdim fmod hypot nextafter pow remainder rhypot",
    3: "norm3d rnorm3d",
    4: "norm4d rnorm4d",
}
COUNT = {name: n for n, names in NAMES.items() for name in names.split()}
# intervals of ordinary arguments; -5 to 5 for other functions
ORDINARY = {**dict.fromkeys(("acos", "asin", "atanh", "erfinv"), (-1, 1)), "acosh": (1, 10), "erfcinv": (0, 2),
            **dict.fromkeys(("log", "log2", "log10", "rsqrt", "sqrt"), (0.01, 100)), "log1p": (-0.9, 10),
            **dict.fromkeys(("lgamma", "tgamma", "y0", "y1"), (0.1, 20)), "normcdfinv": (0, 1), "pow": (0.01, 10)}
OPERATIONS = {"copy": (1, "{}", ("fp32", "fp64")), "x / y": (2, "{} / {}", ("fp32", "fp64")),
              "x // y": (2, "{} // {}", ("i32", "u32", "i64", "u64")),
              "x % y": (2, "{} % {}", ("i32", "u32", "i64", "u64"))}
# Compiles the kernels listed in todo.json, for sm_90a.
TRITON = """
import importlib.util, json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
spec = importlib.util.spec_from_file_location("kernels", sys.argv[1] + "/kernels.py")
kernels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernels)
for kernel, count, dtype in json.load(open(sys.argv[1] + "/todo.json")):
    signature = {**{f"x{i}": "*" + dtype for i in range(count)}, "y": "*" + dtype}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(count + 1)}
    source = ASTSource(getattr(kernels, kernel), signature, {}, aligned)
    k = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    open(f"{sys.argv[1]}/{kernel}.{dtype}.triton", "w").write(k.asm["ptx"])
"""
Case = collections.namedtuple("Case", "name kernel count text dtype")


def cases(wanted):
    for i, (name, (count, text, dtypes)) in enumerate(OPERATIONS.items()):
        for dtype in dtypes:
            yield Case(name, f"operation{i}", count, text, dtype)
    for name, count in COUNT.items():
        for dtype in ("fp32", "fp64") if not wanted or name in wanted else ():
            yield Case(name, "k_" + name, count, f"libdevice.{name}({', '.join(['{}'] * count)})", dtype)


def source(case):
    loads = [f"tl.load(x{i} + i)" for i in range(case.count)]
    return f"""
@triton.jit
def {case.kernel}({''.join(f'x{i}, ' for i in range(case.count))}y):
    i = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.store(y + i, {case.text.format(*loads)})
"""


def argument(case, i, numbers):
    if "fp" not in case.dtype:
        return numbers.randrange(1, 1000 if i else 100000)
    x = numbers.uniform(*(-3, 3) if case.name == "pow" and i else ORDINARY.get(case.name, (-5, 5)))
    return sass_thread.bits_f32(x) if case.dtype == "fp32" else sass_thread.bits_f64(x)


def instructions(case, ptx):
    """Those that a warp executes: for each instruction, the most executions in a lane. And all."""
    subprocess.run([static.nvidia_tool("ptxas"), "-arch", "sm_90a", ptx, "-o", ptx + ".cubin"], check=True)
    sass = subprocess.run([static.nvidia_tool("nvdisasm"), "-c", ptx + ".cubin"], capture_output=True, text=True,
                          check=True).stdout
    code, labels = sass_thread.read_sass(sass)
    numbers, most = random.Random(1), collections.Counter()
    for _ in range(LANES):
        thread = sass_thread.Thread(code, labels, [argument(case, i, numbers) for i in range(case.count)])
        most |= collections.Counter(thread.run())
    return most.total(), len(code)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("names", nargs="*")
    p.add_argument("--tlc", default=os.path.join(static.ROOT, "build", "tlc"))
    args = p.parse_args()
    todo = list(cases(args.names))
    with tempfile.TemporaryDirectory() as work:
        with open(work + "/kernels.py", "w") as f:
            f.write("import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n")
            f.write("".join(map(source, todo)))
        with open(work + "/todo.json", "w") as f:
            json.dump([[c.kernel, c.count, c.dtype] for c in todo], f)
        subprocess.run([sys.executable, "-c", TRITON, work], check=True)
        print("| function | type | tlc | libdevice | ratio | all: tlc, libdevice |\n|---|---|---|---|---|---|")
        copies = {}
        for case in todo:
            base = f"{work}/{case.kernel}.{case.dtype}"
            signature = ",".join([f"*{case.dtype}:16"] * (case.count + 1))
            subprocess.run([args.tlc, work + "/kernels.py", "-k", case.kernel, "-s", signature, "--target", "sm_90a",
                            "-o", base + ".tlc"], check=True)
            counts = instructions(case, base + ".tlc") + instructions(case, base + ".triton")
            if case.name == "copy":
                copies[case.dtype[-2:]] = counts
                continue
            ours, all_ours, theirs, all_theirs = (a - b for a, b in zip(counts, copies[case.dtype[-2:]]))
            print(f"| `{case.name}` | `{case.dtype}` | {ours} | {theirs} | {ours / theirs:.2f} | {all_ours}, "
                  f"{all_theirs} |", flush=True)


main()
