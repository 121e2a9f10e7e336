"""compile_time.py: the time from a Python function to PTX, by the package libtl and by Triton.

It needs no GPU, but Python with Triton and libtl (PYTHONPATH=build/python, or the wheel). The kernels are those of
examples/, with the types and values that they state. Each compiler runs in a process of its own, in turns, without
caches; each figure is the median of REPEATS compilations of a new function. Triton's time ends with PTX: its assembler is
left out.
"""

import importlib.machinery
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples")
KERNELS = [("vector_add", "add_kernel"), ("softmax", "softmax_kernel"), ("layer_norm", "layer_norm_kernel"),
           ("matmul", "matmul_kernel"), ("attention", "attention_kernel")]
REPEATS = 5


def function(file, name):
    loader = importlib.machinery.SourceFileLoader(f"example_{file}", os.path.join(EXAMPLES, file + ".tl"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return getattr(module, name)


def types(fn):
    """The type of each parameter that is not a compile-time value, and the compile-time values."""
    signature, constants = {}, {}
    for p in fn.params:
        written = fn.fn.__annotations__[p.name]
        if p.is_constexpr:
            constants[p.name] = p.default
        else:
            signature[p.name] = "i32" if written is int else written.split(" | ")[0]
    return signature, constants


def by_libtl(fn):
    signature, constants = types(fn)
    start = time.perf_counter()
    k = fn.compile(**signature, **constants, device="sim")
    elapsed = time.perf_counter() - start
    assert ".entry" in k.asm["ptx"]
    return elapsed


def by_triton(fn):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    signature, constants = types(fn)
    attrs = {(fn.arg_names.index(n),): [["tt.divisibility", 16]] for n, t in signature.items() if t.endswith(":16")}
    constants |= {n: 1 for n, t in signature.items() if t.endswith(":1")}
    plain = {n: "constexpr" if n in constants else signature[n].partition(":")[0] for n in fn.arg_names}
    seen = []
    triton.knobs.compilation.listener = lambda *, times, **rest: seen.append(times)
    triton.compile(ASTSource(fn, plain, constants, attrs), target=GPUTarget("cuda", 90, 32))
    return (seen[0].ir_initialization + sum(us for stage, us in seen[0].lowering_stages if stage != "cubin")) * 1e-6


def measure(compiler):
    """Milliseconds by kernel."""
    if compiler == "libtl":
        import libtl
        libtl.install()
    result = {}
    for file, name in KERNELS:
        times = [(by_libtl if compiler == "libtl" else by_triton)(function(file, name)) for _ in range(REPEATS)]
        result[file] = statistics.median(times) * 1e3
    print(json.dumps(result))


def main():
    environment = {**os.environ, "TL_CACHE": "0", "TRITON_ALWAYS_COMPILE": "1"}
    runs = {"libtl": [], "triton": []}
    for _ in range(3):
        for compiler, all_ in runs.items():
            r = subprocess.run([sys.executable, __file__, compiler], env=environment, check=True, capture_output=True, text=True)
            all_.append(json.loads(r.stdout.splitlines()[-1]))
    print("| kernel | libtl ms | Triton ms | Triton/libtl |\n|---|---|---|---|")
    for file, _ in KERNELS:
        ours, theirs = (statistics.median(run[file] for run in runs[c]) for c in ("libtl", "triton"))
        print(f"| {file} | {ours:.1f} | {theirs:.0f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
