#!/usr/bin/env python3
"""static.py LAUNCHES.jsonl [NAME...] [--tlc PATH] [--from FOLDER=FOLDER...] [--jobs N] [--json PATH] [--keep FOLDER]

Compares the code of tlc and of Triton for recorded launches, without a GPU. A regression of the code generator shows
here before it is timed: registers, spilled bytes, shared memory, resident blocks, and the instructions of the hot loop.

LAUNCHES.jsonl   one launch a line, as launches.py writes them: kernel, file, grid, warps, stages, and args, a list of
                 [parameter, constexpr, kind, dtype, value]; the value of a pointer is its alignment
NAME...          only kernels whose name contains one of these
--from A=B       sources recorded below folder A lie below folder B here
--no-triton      tlc alone
--json PATH      writes all figures
--keep FOLDER    keeps PTX and SASS of both

Needs ptxas and nvdisasm (Triton's package contains both), PyTorch and Triton for the sources that import them."""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
MULTIPROCESSORS = 132  # of an H200: larger grids get the code for many programs
KINDS = [  # of SASS instructions
    ("mma", r"[HIDQ]?G?MMA"), ("special", "MUFU"), ("shared", "LDS|STS|LDSM|STSM|ATOMS|LDGSTS"), ("shuffle", "SHFL"),
    ("global", "LDG|STG|LD|ST|RED|ATOM|ATOMG|UTMA.*|UBLKCP"), ("local", "LDL|STL"), ("barrier", "BAR|WARPSYNC|SYNCS"),
    ("convert", "F2F|F2FP|I2F.*|F2I.*|I2I|I2FP|F2IP"), ("float", "FADD|FMUL|FFMA|FMNMX|FSEL|FSETP|HADD2|HMUL2|HFMA2|HMNMX2|FSET|DADD|DMUL|DFMA"),
    ("branch", "BRA|BSYNC|BSSY|EXIT|WARPSYNC|CALL|RET")]


def nvidia_tool(name):
    found = shutil.which(name)
    if not found:
        import triton
        found = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", name)
    return found


# --- the two compilers ------------------------------------------------------------------------------------------------


def literal(kind, dtype, value):
    """The Python text of a constexpr."""
    if kind == "none":
        return "None"
    if kind == "bool":
        return str(bool(value))
    if kind == "dtype":
        return "tl." + triton_name(dtype)
    return repr(value) if kind == "str" else str(value)


def triton_name(dtype):
    return {"fp8e4nv": "float8e4nv", "fp8e5": "float8e5", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32",
            "fp64": "float64", "i1": "int1"}.get(dtype) or dtype.replace("u", "uint").replace("i", "int", 1)


def int_type(dtype, value):
    return dtype or ("i32" if -2**31 <= value < 2**31 else "i64")


def tlc_arguments(launch):
    types, defines = [], []
    for name, constexpr, kind, dtype, value, *_ in launch["args"]:
        if constexpr or kind in ("none", "str", "dtype"):
            defines += ["-D", f"{name}={literal(kind, dtype, value)}"]
        elif kind == "ptr":
            types.append(f"{name}=*{dtype}" + (":16" if value % 16 == 0 else ""))
        elif kind == "int":
            t = int_type(dtype, value)
            types.append(f"{name}={t}" + (":1" if value == 1 else ":16" if value % 16 == 0 else ""))
        else:
            types.append(f"{name}={'i1' if kind == 'bool' else dtype}")
    return ["-k", launch["kernel"], "-s", ",".join(types), *defines, "--num-warps", str(launch["warps"]), "--num-stages",
            str(launch["stages"]), *(["--persistent"] if math.prod(launch["grid"]) > MULTIPROCESSORS else [])]


def compile_tlc(tlc, launch, file, out):
    """Seconds, and bytes of shared memory, or None and an error."""
    command, start = [tlc, file, *tlc_arguments(launch), "--target", "sm_90a"], time.time()
    p = subprocess.run(command + ["-o", out], capture_output=True, text=True, timeout=120)
    if p.returncode:
        return None, None, p.stderr[-400:]
    seconds = time.time() - start
    subprocess.run(command + ["--emit", "image", "-o", out + ".image"], capture_output=True, timeout=120)
    said = subprocess.run([tlc, "show", out + ".image"], capture_output=True, text=True).stdout
    shared = re.search(r"(\d+) bytes of shared memory", said)
    return seconds, int(shared[1]) if shared else 0, ""


TRITON = """
import importlib, json, os, sys, time
launch, file, root, module, out = json.loads(sys.argv[1]), *sys.argv[2:6]
sys.path.insert(0, root)
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaDriver
from triton.compiler import ASTSource
import torch
from types import SimpleNamespace
h200 = dict(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, multiprocessor_count=132, warp_size=32,
            max_shared_mem=232448, max_num_regs=65536, total_memory=150_000_000_000, warpSize=32,
            max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, gcnArchName="")
for name, value in dict(get_device_capability=(9, 0), get_device_name="NVIDIA H200", device_count=1, current_device=0,
                        is_available=True, get_device_properties=SimpleNamespace(**h200), get_arch_list=["sm_90"]).items():
    setattr(torch.cuda, name, lambda *a, value=value, **k: value)
class Driver:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_device_capability(self): return (9, 0)
    def get_benchmarker(self): return None
    def get_active_torch_device(self): return torch.device("cpu")
    utils = SimpleNamespace(get_device_properties=lambda *a: h200)
    def __getattr__(self, n): return lambda *a, **k: None
triton.runtime.driver.set_active(Driver())
if "/ind/" in file or not module:
    import importlib.util
    import torch._inductor.runtime.triton_helpers as helpers
    import torch._inductor.runtime.triton_heuristics as th
    helpers.set_driver_to_gpu = lambda: None
    keep = lambda *a, **k: (lambda f: f)
    for n in "pointwise reduction persistent_reduction cooperative_reduction template user_autotune foreach split_scan".split():
        setattr(th, n, keep)
    spec = importlib.util.spec_from_file_location("m", file)
    m = importlib.util.module_from_spec(spec)
    sys.modules["m"] = m
    spec.loader.exec_module(m)
else:
    m = importlib.import_module(module)
f = getattr(m, launch["kernel"])
while not isinstance(f, triton.runtime.jit.JITFunction):
    f = f.fn
import triton.language as tl
signature, constants, attrs = {}, {}, {}
for i, (name, constexpr, kind, dtype, value, *_) in enumerate(launch["args"]):
    if constexpr or kind in ("none", "str", "dtype") or kind == "int" and value == 1 and not f.params[i].do_not_specialize:
        signature[name] = "constexpr"
        constants[(i,)] = None if kind == "none" else bool(value) if kind == "bool" else float(value) if kind == "float" else value
        continue
    signature[name] = "*" + dtype if kind == "ptr" else (dtype or ("i32" if -2**31 <= value < 2**31 else "i64")) if kind == "int" else "u1" if kind == "bool" else dtype
    if kind in ("ptr", "int") and value % 16 == 0:
        attrs[(i,)] = [["tt.divisibility", 16]]
start = time.time()
k = triton.compile(ASTSource(f, signature, constants, attrs), target=GPUTarget("cuda", 90, 32),
                   options={"num_warps": launch["warps"], "num_stages": launch["stages"]})
open(out, "w").write(k.asm["ptx"])
open(out + ".ttgir", "w").write(k.asm["ttgir"])
print(json.dumps([time.time() - start, k.metadata.shared]))
"""


def compile_triton(launch, file, root, module, out):
    p = subprocess.run([sys.executable, "-c", TRITON, json.dumps(launch), file, root, module, out], capture_output=True,
                       text=True, timeout=600)
    if p.returncode:
        return None, None, p.stderr[-400:]
    seconds, shared = json.loads(p.stdout.splitlines()[-1])
    return seconds, shared, ""


# --- figures of the machine code ---------------------------------------------------------------------------------------


def kind_of(opcode):
    base = opcode.split(".")[0]
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, base)), "integer")


def loops(sass):
    """Instructions of each innermost loop: (count, Counter of kinds)."""
    ops, label_at, branches = [], {}, []
    for line in sass.splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            label_at[label[1]] = len(ops)
        op = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)", line)
        if op:
            target = re.search(r"`\((\.L_x_\d+)\)", op[2])
            if op[1].startswith("BRA") and target:
                branches.append((len(ops), target[1]))
            if op[1] != "NOP":
                ops.append(op[1])
    backward = [(label_at[t], at) for at, t in branches if label_at.get(t, 1 << 30) < at]
    innermost = [(a, b) for a, b in backward if not any((c, d) != (a, b) and a <= c and d <= b for c, d in backward)]
    return ops, [collections.Counter(map(kind_of, ops[a:b + 1])) for a, b in innermost]


def resident_blocks(registers, shared, warps):
    registers = -(-registers // 8) * 8 * 32
    blocks = [32, 64 // warps, 65536 // registers // warps]
    return min(blocks + ([228 * 1024 // (shared + 1024)] if shared else []))


def figures(ptx, warps, shared, keep):
    with tempfile.TemporaryDirectory() as folder:
        cubin, start = os.path.join(folder, "k.cubin"), time.time()
        p = subprocess.run([nvidia_tool("ptxas"), "-arch", "sm_90a", "-v", ptx, "-o", cubin], capture_output=True, text=True,
                           timeout=300)
        seconds = time.time() - start
        if p.returncode:
            return {"error": p.stderr[-300:]}
        sass = subprocess.run([nvidia_tool("nvdisasm"), "-c", cubin], capture_output=True, text=True).stdout
    if keep:
        open(ptx + ".sass", "w").write(sass)
    number = lambda pattern: sum(map(int, re.findall(pattern, p.stderr)))
    ops, bodies = loops(sass)
    hot = max(bodies, key=lambda b: (b["mma"], sum(b.values())), default=collections.Counter())
    registers = number(r"Used (\d+) registers")
    return {"registers": registers, "spill": number(r"(\d+) bytes spill stores"), "shared": shared,
            "blocks": resident_blocks(registers, shared, warps), "instructions": len(ops),
            "loop": sum(hot.values()), "loop_kinds": hot, "kinds": collections.Counter(map(kind_of, ops)),
            "ptxas_s": seconds}


def compare(task):
    launch, args, folders, number = task
    file = launch["file"]
    for recorded, here in folders:
        if file.startswith(recorded):
            file = here + file[len(recorded):]
    root = next((here for _, here in folders if file.startswith(here)), os.path.dirname(file))
    module = os.path.relpath(file, root)[:-3].replace("/", ".") if "/ind/" not in file else ""
    base = os.path.join(args.keep or args.work, f"{number:03}-{launch['kernel'][:60]}")
    row = {"kernel": launch["kernel"], "case": launch.get("case") or launch.get("model"), "number": number}
    if "triton_us" in launch:
        row["measured"] = launch["triton_us"] / launch["tlc_us"]
        row["us"] = launch["tlc_us"]
    try:
        seconds, shared, why = compile_tlc(args.tlc, launch, file, base + ".tlc.ptx")
        row["tlc"] = {"error": why} if seconds is None else figures(base + ".tlc.ptx", launch["warps"], shared, args.keep)
        row["tlc"]["compile_s"] = seconds
        if not args.no_triton:
            key = hashlib.sha256(json.dumps([launch["args"], launch["kernel"], file, launch["warps"], launch["stages"]]).encode()).hexdigest()[:20]
            cached = os.path.join(args.cache, key + ".json")
            if os.path.exists(cached):
                row["triton"] = json.load(open(cached))
            else:
                seconds, shared, why = compile_triton(launch, file, root, module, base + ".triton.ptx")
                row["triton"] = {"error": why} if seconds is None else figures(base + ".triton.ptx", launch["warps"], shared, args.keep)
                row["triton"]["compile_s"] = seconds
                if "error" not in row["triton"]:
                    json.dump(row["triton"], open(cached, "w"))
    except subprocess.TimeoutExpired as e:
        row.setdefault("tlc", {"error": "timeout"}), row.setdefault("triton", {"error": "timeout"})
    return row


def show(row):
    both = [row.get("tlc", {}), row.get("triton", {})]
    cells = []
    for name in ("registers", "spill", "shared", "blocks", "instructions", "loop", "ptxas_s"):
        cells.append("/".join("-" if name not in x else f"{x[name]:.1f}" if name == "ptxas_s" else str(x[name]) for x in both))
    errors = " ".join(x["error"].strip().splitlines()[-1][:90] for x in both if x.get("error"))
    times = f"{row['measured']:5.2f} {row['us']:7.1f}" if "measured" in row else " " * 13
    print(f"{row['number']:3} {times} {row['kernel'][:44]:44} " + " ".join(f"{c:>{w}}" for c, w in zip(cells, (9, 11, 15, 7, 11, 11, 9))), errors, flush=True)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("launches")
    p.add_argument("names", nargs="*")
    p.add_argument("--tlc", default=os.path.join(ROOT, "build", "tlc"))
    p.add_argument("--from", dest="folders", action="append", default=[])
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--no-triton", action="store_true")
    p.add_argument("--below", type=float, default=99)
    p.add_argument("--json")
    p.add_argument("--keep")
    p.add_argument("--cache", default=os.path.expanduser("~/.cache/tlc-public"))
    args = p.parse_intermixed_args()
    os.makedirs(args.cache, exist_ok=True)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    launches = [json.loads(line) for line in open(args.launches)]
    launches = [(i, x) for i, x in enumerate(launches) if "args" in x and (not args.names or any(n in x["kernel"] for n in args.names))]
    launches = [(i, x) for i, x in launches if args.below > 90 or x.get("triton_us", 9e9) / x.get("tlc_us", 1) < args.below]
    folders = [f.split("=") for f in args.folders]
    print(f"{'':3} {'measured':>8} {'us':>4} {'kernel':44} tlc/Triton: registers spilled shared blocks instructions hot-loop ptxas-s")
    with tempfile.TemporaryDirectory() as args.work, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = []
        for row in pool.map(compare, [(x, args, folders, i) for i, x in launches]):
            rows.append(row)
            show(row)
    if args.json:
        json.dump(rows, open(args.json, "w"))


main()
