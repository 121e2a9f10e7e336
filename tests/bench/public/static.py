#!/usr/bin/env python3
"""static.py LAUNCHES.jsonl [NAME...] [--tlc PATH] [--from FOLDER=FOLDER...] [--below RATIO] [--no-triton] [--jobs N]
[--json PATH] [--keep FOLDER]

Compares the code of tlc and of Triton for recorded launches, without a GPU. A regression of the code generator shows
here before it is timed: registers, spilled bytes, shared memory, resident blocks, and the instructions of the hot loop.

LAUNCHES.jsonl   recorded launches (launches.py)
NAME...          only kernels whose name contains one of these
--from A=B       sources recorded below folder A lie below folder B here; packages are imported from B
--below RATIO    only launches whose triton_us / tlc_us is less
--no-triton      tlc alone
--json PATH      writes all figures
--keep FOLDER    keeps PTX, SASS and Triton's GPU IR

Needs ptxas and nvdisasm (Triton's package contains both), and Triton and PyTorch for Triton's side. Triton's figures
are kept in ~/.cache/tlc-public."""
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import launches

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
MULTIPROCESSORS = 132  # of an H200: larger grids get the code for many programs
KINDS = [  # of SASS instructions, by the first part of their names; all others are "integer"
    ("mma", "[HIDQ]?G?MMA"),
    ("special", "MUFU"),
    ("shared", "LDS|STS|LDSM|STSM|ATOMS|LDGSTS"),
    ("shuffle", "SHFL"),
    ("global", "LDG|STG|LD|ST|RED|ATOM|ATOMG|UTMA.*|UBLKCP"),
    ("local", "LDL|STL"),
    ("barrier", "BAR|WARPSYNC|SYNCS"),
    ("convert", "F2F|F2FP|I2F.*|F2I.*|I2I|I2FP|F2IP"),
    ("float", "[FHD](ADD|MUL|FMA|MNMX|SET|SETP|SEL)2?|FFMA"),
    ("branch", "BRA|BSYNC|BSSY|EXIT|CALL|RET"),
]


def nvidia_tool(name):
    found = shutil.which(name)
    if not found:
        import triton
        found = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", name)
    return found


# --- the two compilers ------------------------------------------------------------------------------------------------

def literal(kind, dtype, value):
    """The Python text of a constexpr."""
    if kind == "dtype":
        return "tl." + launches.triton_name(dtype)
    if kind == "none":
        return "None"
    if kind == "bool":
        return str(bool(value))
    return repr(value) if kind == "str" else str(value)


def scalar_type(kind, dtype, value):
    if kind == "int" and not dtype:
        return "i32" if -2**31 <= value < 2**31 else "i64"
    return "i1" if kind == "bool" else dtype


def tlc_arguments(launch):
    types, options = [], []
    for name, constexpr, kind, dtype, value, *_ in launch["args"]:
        if constexpr or kind in ("none", "str", "dtype"):
            options += ["-D", f"{name}={literal(kind, dtype, value)}"]
            continue
        known = ":1" if kind == "int" and value == 1 else ""
        if kind in ("ptr", "int") and value % 16 == 0:
            known = ":16"
        types.append(f"{name}={'*' + dtype if kind == 'ptr' else scalar_type(kind, dtype, value)}{known}")
    if math.prod(launch["grid"]) > MULTIPROCESSORS:
        options.append("--persistent")
    return ["-k", launch["kernel"], "-s", ",".join(types), *options, "--num-warps", str(launch["warps"]),
            "--num-stages", str(launch["stages"])]


def compile_tlc(tlc, launch, out):
    """Seconds, and bytes of shared memory; or None, and an error."""
    command, start = [tlc, launch["file"], *tlc_arguments(launch), "--target", "sm_90a"], time.time()
    p = subprocess.run(command + ["-o", out], capture_output=True, text=True, timeout=120)
    if p.returncode:
        return None, p.stderr[-400:]
    seconds = time.time() - start
    subprocess.run(command + ["--emit", "image", "-o", out + ".image"], capture_output=True, timeout=120, check=True)
    said = subprocess.run([tlc, "show", out + ".image"], capture_output=True, text=True, check=True).stdout
    shared = re.search(r"(\d+) bytes of shared memory", said)
    return seconds, int(shared[1]) if shared else 0


# Compiles launches for sm_90a in a process of its own, in which PyTorch and Triton believe in an H200. Each line of its
# input is a launch and the path for PTX.
TRITON = """
import json, os, sys, time
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path.insert(0, sys.argv[1])
import triton, launches, pretend
from triton.compiler import ASTSource

target = pretend.h200()

def compiled(launch, out):
    f = launches.jit_function(launch)
    signature, constants, attributes = {}, {}, {}
    for i, (name, constexpr, kind, dtype, value, *_) in enumerate(launch["args"]):
        specialized = kind == "int" and value == 1 and not f.params[i].do_not_specialize
        if constexpr or kind in ("none", "str", "dtype") or specialized:
            signature[name] = "constexpr"
            constants[(i,)] = {"none": lambda: None, "bool": lambda: bool(value), "float": lambda: float(value),
                               "dtype": lambda: getattr(triton.language, launches.triton_name(dtype))}.get(
                                   kind, lambda: value)()
            continue
        if kind == "ptr":
            signature[name] = "*" + dtype
        elif kind == "int":
            signature[name] = dtype or ("i32" if -2**31 <= value < 2**31 else "i64")
        else:
            signature[name] = "u1" if kind == "bool" else dtype
        if kind in ("ptr", "int") and value % 16 == 0:
            attributes[(i,)] = [["tt.divisibility", 16]]
    start = time.time()
    k = triton.compile(ASTSource(f, signature, constants, attributes), target=target,
                       options={"num_warps": launch["warps"], "num_stages": launch["stages"]})
    open(out, "w").write(k.asm["ptx"])
    open(out + ".ttgir", "w").write(k.asm["ttgir"])
    return time.time() - start, k.metadata.shared

for line in sys.stdin:
    try:
        answer = compiled(*json.loads(line))
    except Exception as e:
        answer = None, f"{type(e).__name__}: {e}"[-400:]
    print(json.dumps(answer), file=answers, flush=True)
"""
ours = threading.local()


def compile_triton(launch, out):
    """Seconds, and bytes of shared memory; or None, and an error. Each thread has one process."""
    if getattr(ours, "process", None) is None or ours.process.poll() is not None:
        ours.process = subprocess.Popen([sys.executable, "-c", TRITON, HERE], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    print(json.dumps([launch, out]), file=ours.process.stdin, flush=True)
    answer = ours.process.stdout.readline()
    return json.loads(answer) if answer else (None, f"Triton's process ended with {ours.process.wait()}")


# --- figures of the machine code --------------------------------------------------------------------------------------


def kind_of(opcode):
    base = opcode.split(".")[0]
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, base)), "integer")


def read_sass(sass):
    """The opcodes, and the counts by kind of each innermost loop."""
    opcodes, label_at, branches = [], {}, []
    for line in sass.splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            label_at[label[1]] = len(opcodes)
        op = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)(.*)", line)
        if not op or op[1] == "NOP":
            continue
        target = re.search(r"`\((\.L_x_\d+)\)", op[2])
        if op[1].startswith("BRA") and target:
            branches.append((len(opcodes), target[1]))
        opcodes.append(op[1])
    loops = [(label_at[t], at) for at, t in branches if label_at.get(t, at) < at]
    contains = lambda outer, inner: outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]
    innermost = [x for x in loops if not any(contains(x, y) for y in loops)]
    return opcodes, [collections.Counter(map(kind_of, opcodes[a:b + 1])) for a, b in innermost]


def resident_blocks(registers, shared, warps):
    """Blocks that a multiprocessor of an H200 holds at the same time."""
    registers = -(-registers // 8) * 8 * 32
    blocks = [32, 64 // warps, 65536 // registers // warps]
    return min(blocks + ([228 * 1024 // (shared + 1024)] if shared else []))


def figures(ptx, warps, shared, keep):
    with tempfile.TemporaryDirectory() as folder:
        cubin, start = os.path.join(folder, "k.cubin"), time.time()
        p = subprocess.run([nvidia_tool("ptxas"), "-arch", "sm_90a", "-v", ptx, "-o", cubin], capture_output=True,
                           text=True, timeout=300)
        seconds = time.time() - start
        if p.returncode:
            return {"error": p.stderr[-300:]}
        sass = subprocess.run([nvidia_tool("nvdisasm"), "-c", cubin], capture_output=True, text=True, check=True).stdout
    if keep:
        open(ptx + ".sass", "w").write(sass)
    number = lambda pattern: sum(map(int, re.findall(pattern, p.stderr)))
    opcodes, loops = read_sass(sass)
    hot = max(loops, key=lambda kinds: (kinds["mma"], sum(kinds.values())), default=collections.Counter())
    registers = number(r"Used (\d+) registers")
    return {"registers": registers, "spill": number(r"(\d+) bytes spill stores"), "shared": shared,
            "blocks": resident_blocks(registers, shared, warps), "instructions": len(opcodes),
            "loop": sum(hot.values()), "loop_kinds": hot, "kinds": collections.Counter(map(kind_of, opcodes)),
            "ptxas_s": seconds}


def measured(compiled, ptx, launch, keep):
    seconds, shared = compiled
    if seconds is None:
        return {"error": shared}
    return {**figures(ptx, launch["warps"], shared, keep), "compile_s": seconds}


def triton_figures(launch, base, args):
    """From the cache if the launch and the source are the same."""
    code = [[x[:6] for x in launch["args"]], launch["kernel"], launch["warps"], launch["stages"]]
    text = json.dumps(code) + open(launch["file"]).read()
    cached = os.path.join(args.cache, hashlib.sha256(text.encode()).hexdigest()[:20] + ".json")
    if os.path.exists(cached) and not args.keep:
        return json.load(open(cached))
    row = measured(compile_triton(launch, base + ".triton.ptx"), base + ".triton.ptx", launch, args.keep)
    if "error" not in row:
        json.dump(row, open(cached, "w"))
    return row


def compare(task):
    number, launch, args = task
    base = os.path.join(args.keep or args.work, f"{number:03}-{launch['kernel'][:60]}")
    row = {"kernel": launch["kernel"], "number": number, "tlc_us": launch.get("tlc_us"),
           "triton_us": launch.get("triton_us")}
    try:
        row["tlc"] = measured(compile_tlc(args.tlc, launch, base + ".tlc.ptx"), base + ".tlc.ptx", launch,
                              args.keep)
        row["triton"] = {} if args.no_triton else triton_figures(launch, base, args)
    except (subprocess.SubprocessError, OSError) as e:
        row.setdefault("tlc", {"error": str(e)})
        row.setdefault("triton", {"error": str(e)})
    return row


COLUMNS = [("registers", 9), ("spill", 11), ("shared", 15), ("blocks", 7), ("instructions", 12), ("loop", 11),
           ("ptxas_s", 9)]


def show(row):
    both, cells = [row["tlc"], row["triton"]], []
    for name, width in COLUMNS:
        texts = ["-" if name not in x else f"{x[name]:.1f}" if name == "ptxas_s" else str(x[name]) for x in both]
        cells.append(f"{'/'.join(texts):>{width}}")
    times = f"{row['triton_us'] / row['tlc_us']:5.2f} {row['tlc_us']:8.1f}" if row["tlc_us"] else " " * 14
    errors = " ".join(x["error"].strip().splitlines()[-1][:90] for x in both if x.get("error"))
    print(f"{row['number']:3} {times} {row['kernel'][:44]:44} {' '.join(cells)} {errors}", flush=True)


def main():
    p = launches.parser(__doc__)
    p.add_argument("--tlc", default=os.path.join(ROOT, "build", "tlc"))
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--no-triton", action="store_true")
    p.add_argument("--json")
    p.add_argument("--keep")
    args = p.parse_intermixed_args()
    args.cache = os.path.expanduser("~/.cache/tlc-public")
    args.tlc = os.path.abspath(args.tlc)
    for folder in filter(None, (args.cache, args.keep)):
        os.makedirs(folder, exist_ok=True)

    print(f"{'':3} ratio   tlc µs {'kernel':44} " + " ".join(f"{name:>{width}}" for name, width in COLUMNS) +
          "  (tlc/Triton)")
    rows = []
    with tempfile.TemporaryDirectory() as args.work, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for row in pool.map(compare, [(number, launch, args) for number, launch in launches.read(args)]):
            rows.append(row)
            show(row)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f)


if __name__ == "__main__":
    main()
