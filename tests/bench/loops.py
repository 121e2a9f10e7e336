"""loops.py TLC COMMANDS [NVDISASM]: the loops of products that tlc makes of kernels beside those that Triton makes, by their instructions.

COMMANDS is what `test-random --sources DIR` writes (DIR/commands). Needs Triton, ptxas and nvdisasm, but no GPU. Prints, for each kernel, the
instructions of a warp for each multiply-add of its innermost loop, tlc's over Triton's, the worst first, and how many of some kinds each loop
has: loads that are not copies (LDG in place of LDGSTS or TMA), local memory (LDL, STL), and barriers are what to look at. Tiles that are too
small for all warps are computed by each of them in Triton's loops, which have more multiply-adds for the same work then."""
import importlib.machinery
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

KINDS = "LDG LDGSTS UTMALDG LDS STS LDSM STSM LDL STL BAR SHFL PRMT HGMMA QGMMA IGMMA HMMA IMMA".split()
TYPES = {"fp8e4m3": "fp8e4nv", "fp8e5m2": "fp8e5"}


def multiply_adds(instruction):
    """Of a warp."""
    warpgroup = re.match(r"[HQI]GMMA\.(\d+)x(\d+)x(\d+)", instruction)
    if warpgroup:
        m, n, k = map(int, warpgroup.groups())
        return m * n * k // 4
    warp = re.match(r"HMMA\.16(8|16)(4|8|16)?", instruction)
    if warp:
        return {"1684": 512, "1688": 1024, "16816": 2048}.get(instruction.split(".")[1], 2048)
    return 4096 if instruction.startswith(("IMMA", "QMMA")) else 0


def best_loop(nvdisasm, cubin):
    """(instructions, multiply-adds, how many of each kind) of the innermost loop with the fewest instructions for a product, or None."""
    text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    code, labels, loops = [], {}, {}
    for line in text.splitlines():
        label, instruction = re.match(r"\s*(\.L_x_\d+):", line), re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?);", line)
        if label:
            labels[label[1]] = len(code)
        elif instruction:
            code.append(re.sub(r"^@!?U?P\w+\s+", "", instruction[1].strip()))
    for i, instruction in enumerate(code):
        back = re.match(r"BRA.*`\((\.L_x_\d+)\)", instruction)
        if back and labels.get(back[1], len(code)) <= i:
            begin = labels[back[1]]
            loops[begin] = max(loops.get(begin, 0), i + 1)
    found = []
    for begin, end in loops.items():
        body = code[begin:end]
        work = sum(map(multiply_adds, body))
        inside = any(begin <= b and e <= end and (b, e) != (begin, end) and sum(map(multiply_adds, code[b:e])) for b, e in loops.items())
        if work and not inside:
            names = [i.split()[0].split(".")[0] for i in body]
            found.append((len(body), work, {k: names.count(k) for k in KINDS if k in names}))
    return min(found, key=lambda f: f[0] / f[1], default=None)


def read_command(command):
    """(file, kernel, constexprs, signature, warps, stages)"""
    words = shlex.split(command)
    options = dict(zip(words[1::2], words[2::2]))
    constexprs = dict(w.split("=", 1) for o, w in zip(words[1::2], words[2::2]) if o == "-D")
    return (words[0], options["-k"], {n: eval(v) for n, v in constexprs.items()}, options["-s"],
            int(options.get("--num-warps", 4)), int(options.get("--num-stages", 3)))


def by_triton(command, name):
    """The kernel's cubin."""
    path, kernel, constexprs, signature, warps, stages = read_command(command)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    function = getattr(module, kernel)
    order = [p.name for p in function.params]
    types, attributes = dict.fromkeys(constexprs, "constexpr"), {}
    for parameter in signature.split(","):
        n, type, divisor = re.match(r"(\w+)=([^:]+):?(\d*)", parameter).groups()
        pointer, type = type.startswith("*"), type.lstrip("*")
        if not pointer and divisor == "1":
            types[n], constexprs[n] = "constexpr", 1
            continue
        types[n] = "*" * pointer + TYPES.get(type, type)
        if divisor == "16":
            attributes[(order.index(n),)] = [["tt.divisibility", 16]]
    source = ASTSource(function, {n: types[n] for n in order}, {(order.index(n),): v for n, v in constexprs.items()}, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": stages}).asm["cubin"]


def by_tlc(tlc, command, to):
    subprocess.run(f"{tlc} {command} --target cuda:sm_90a --emit ptx -o {to}.ptx && ptxas -arch=sm_90a {to}.ptx -o {to}", shell=True,
                   capture_output=True, check=True)


def main(tlc, commands, nvdisasm="nvdisasm"):
    rows, left_out = [], 0
    with tempfile.TemporaryDirectory() as work, open(commands) as lines:
        for i, command in enumerate(map(str.strip, lines)):
            ours, theirs = f"{work}/{i}.tlc", f"{work}/{i}.triton"
            try:
                by_tlc(tlc, command, ours)
                with open(theirs, "wb") as f:
                    f.write(by_triton(command, f"kernel{i}"))
            except Exception as e:  # one of the two refuses the kernel, or the command is none that Triton can have
                left_out += 1
                print(f"{command.split()[0]}: {str(e).splitlines()[0][:100] if str(e) else type(e).__name__}", file=sys.stderr)
                continue
            x, y = best_loop(nvdisasm, ours), best_loop(nvdisasm, theirs)
            if x and y:
                rows.append((x[0] / x[1] / (y[0] / y[1]), x, y, command.split()[0]))
    for ratio, x, y, path in sorted(rows, key=lambda r: -r[0]):
        shown = ["{} for {}: {}".format(n, work, " ".join(f"{k} {c}" for k, c in kinds.items())) for n, work, kinds in (x, y)]
        print(f"{ratio:.2f} | {shown[0]} | {shown[1]} | {path}")
    print(f"{len(rows)} kernels, {left_out} left out")


if __name__ == "__main__":
    main(*sys.argv[1:])
