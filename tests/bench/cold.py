"""What a first call costs: each step timed in fresh processes, nothing cached.

    python3 tests/bench/cold.py BUILD [FILTER[,FILTER]...] [--json PATH] [--rounds N]

Prints a Markdown table of medians in milliseconds for four kernels of examples/, each at one configuration, the same for
both compilers. Needs a GPU and triton, not torch; BUILD holds libtl.so. About 25 s a kernel with 5 rounds.

- first: in libtl with a CUDA context given, from source to a checked result: tl_context_from_cuda, tl_module_load,
  tl_launch, tl_synchronize. The library's own loading (dlopen) is a column of its own.
- JIT: cuModuleLoadDataEx of the very same PTX and asking for the function, by the driver alone; beside it the same of
  Triton's PTX.
- PTX: from source to PTX, in libtl (tl_module_load, tl_kernel_dump) and in Triton (by its own account, to which import,
  hashing of its own files and ptxas do not count).

The goals: first <= 1.2 JIT + 15 ms; JIT <= that of Triton's PTX; PTX <= 1/10 of Triton's.
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import libtl

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
ONE = {"float32": ("f", 4), "float16": ("e", 2)}  # struct's letter, bytes
TRITON = {"float32": "*fp32", "float16": "*fp16"}


class Case:
    """Arguments in order, buffers as (dtype, elements) filled with ones; every element of the last is `expected` then."""

    def __init__(self, file, function, args, grid, warps, stages, expected):
        self.path, self.function = os.path.join(EXAMPLES, file + ".tl"), function
        self.args, self.grid, self.warps, self.stages, self.expected = args, grid, warps, stages, expected


def attention(heads, n, d):
    x = ("float16", heads * n * d)
    return Case("attention", "attention_kernel", [x, x, x, x, 1 / d**0.5] + [heads * n * d, n * d, d] * 4 + [heads, n, d, 128, 64, False],
                (n // 128, heads, 1), 4, 3, 1.0)


CASES = {
    "add": Case("vector_add", "add_kernel", [("float32", 1 << 20)] * 3 + [1 << 20, 1024], (1024, 1, 1), 4, 3, 2.0),
    "softmax 1024": Case("softmax", "softmax_kernel", [("float32", 1 << 20)] * 2 + [1024, 1024, 1024, 1024], (1024, 1, 1), 4, 3, 1 / 1024),
    "matmul 128x256x64": Case("matmul", "matmul_kernel", [("float16", 512 * 512)] * 3 + [512, 512, 512, 512, 1, 512, 1, 512, 1, 128, 256, 64, 8, None],
                              (8, 1, 1), 8, 3, 512.0),
    "attention 128x64x64": attention(8, 1024, 64),
}


def elapsed(begin):
    return (time.perf_counter() - begin) * 1e3


class Driver:
    """The CUDA driver, with device 0's primary context current."""

    def __init__(self):
        self.lib, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()

    def call(self, function, *args):
        status = getattr(self.lib, function)(*args)
        if status:
            sys.exit(f"{function}: error {status}")

    def buffer(self, dtype, elements, value):
        """Device memory filled with `value`."""
        letter, size = ONE[dtype]
        address, data = ctypes.c_uint64(), struct.pack(letter, value) * elements
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(elements * size))
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address.value

    def read(self, address, dtype, elements):
        letter, size = ONE[dtype]
        data = ctypes.create_string_buffer(elements * size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(elements * size))
        return struct.unpack(f"{elements}{letter}", data.raw)


# --- what a fresh process does; each returns a dictionary -------------------------------------------------------------

def device_args(driver, case):
    """libtl's arguments, and the address of the output, which holds NaN."""
    outputs = [i for i, a in enumerate(case.args) if isinstance(a, tuple)][-1:]
    args, address = [], 0
    for i, a in enumerate(case.args):
        if isinstance(a, tuple):
            address = driver.buffer(*a, float("nan") if i in outputs else 1.0)
            args.append(libtl.pointer(a[0], address))
        else:
            args.append(libtl.scalar(a))
    return args, address


def do_first(case, build):
    driver = Driver()
    args, out = device_args(driver, case)
    begin = time.perf_counter()
    lib = libtl.load(build)
    loading = elapsed(begin)
    begin = time.perf_counter()
    tl = libtl.Context(lib)
    tl.launcher(tl.kernel(case.path, case.function), case.grid, args, case.warps, case.stages)()
    tl.synchronize()
    took = elapsed(begin)
    dtype, elements = [a for a in case.args if isinstance(a, tuple)][-1]
    wrong = sum(not abs(v - case.expected) <= 1e-3 * case.expected for v in driver.read(out, dtype, elements))
    if wrong:
        sys.exit(f"{case.function}: {wrong} of {elements} elements are wrong")
    return {"load": loading, "first": took, "device": driver.name}


def do_ptx(case, build, path):
    driver = Driver()
    args, _ = device_args(driver, case)
    tl = libtl.Context(libtl.load(build))
    begin = time.perf_counter()
    text = tl.dump(tl.kernel(case.path, case.function), args, case.warps, case.stages, "ptx")
    took = elapsed(begin)
    with open(path, "w") as f:
        f.write(text)
    return {"ptx": took}


def do_jit(path):
    driver = Driver()
    with open(path, "rb") as f:
        text = f.read()
    name = re.search(rb"\.entry\s+(\w+)", text)[1]
    module, function, registers = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    begin = time.perf_counter()
    driver.call("cuModuleLoadDataEx", ctypes.byref(module), text, 0, None, None)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, name)
    driver.call("cuFuncGetAttribute", ctypes.byref(registers), 4, function)  # where loading is lazy, it happens here
    return {"jit": elapsed(begin), "registers": registers.value}


def triton_compile(case):
    """(what Triton compiled, its milliseconds to PTX, those of ptxas), with Triton's specialisation of the same arguments:
    pointers and integers divisible by 16, integers equal to 1."""
    import triton
    import triton.runtime.cache
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from load import load_python
    kernel = getattr(load_python(case.path), case.function)
    signature, constants, divisible = {}, {}, {}
    for i, (parameter, value) in enumerate(zip(kernel.params, case.args)):
        if parameter.is_constexpr or value == 1:
            signature[parameter.name], constants[parameter.name] = "constexpr", value
            continue
        buffer = isinstance(value, tuple)
        signature[parameter.name] = TRITON[value[0]] if buffer else "i32" if isinstance(value, int) else "fp32"
        if buffer or isinstance(value, int) and value % 16 == 0:
            divisible[(i,)] = [["tt.divisibility", 16]]
    times = {}
    triton.runtime.cache.triton_key()  # remembered by Triton
    triton.knobs.compilation.listener = lambda **given: times.update(given["times"].lowering_stages, ir=given["times"].ir_initialization)
    built = triton.compile(ASTSource(kernel, signature, constants, divisible), target=GPUTarget("cuda", 90, 32),
                           options={"num_warps": case.warps, "num_stages": case.stages})
    return built, sum(times[k] for k in ("ir", "ttir", "ttgir", "llir", "ptx")) / 1e3, times["cubin"] / 1e3


def do_triton(case, path):
    built, ptx, ptxas = triton_compile(case)
    with open(path, "w") as f:
        f.write(built.asm["ptx"])
    return {"ptx": ptx, "ptxas": ptxas}


# --- the table --------------------------------------------------------------------------------------------------------

COLUMNS = ("kernel", "first ms", "JIT ms", "1.2 JIT + 15", "JIT of Triton's PTX ms", "its JIT/ours", "PTX ms", "Triton's PTX ms", "Triton/tlc",
           "libtl load ms", "PTX bytes", "Triton's PTX bytes", "registers", "with Triton's PTX", "Triton's ptxas ms")


def fresh(*what):
    """The dictionary that a fresh process prints."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "CUDA_CACHE_DISABLE": "1", "TRITON_ALWAYS_COMPILE": "1", "TRITON_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, __file__, *what, "--worker"], env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def row(name, build, rounds, folder):
    ours, theirs = os.path.join(folder, "tlc.ptx"), os.path.join(folder, "triton.ptx")
    seen = {}
    for i in range(rounds):
        steps = [("tlc", "ptx", name, build, ours), ("first", "first", name, build), ("jit", "jit", ours)]
        if i < (rounds + 1) // 2:  # the longest step
            steps.append(("triton", "triton", name, theirs))
        for key, *what in steps + [("their jit", "jit", theirs)]:
            for k, v in fresh(*what).items():
                seen.setdefault((key, k), []).append(v)
    value = lambda *key: seen[key][0] if isinstance(seen[key][0], str) else statistics.median(seen[key])
    first, jit, their_jit, ptx, their_ptx = (value(*k) for k in (("first", "first"), ("jit", "jit"), ("their jit", "jit"), ("tlc", "ptx"), ("triton", "ptx")))
    cells = (name, first, jit, 1.2 * jit + 15, their_jit, their_jit / jit, ptx, their_ptx, their_ptx / ptx, value("first", "load"),
             os.path.getsize(ours), os.path.getsize(theirs), int(value("jit", "registers")), int(value("their jit", "registers")), value("triton", "ptxas"))
    shown = (str(c) if isinstance(c, (str, int)) else f"{c:.2f}" if "/" in k else f"{c:.1f}" for k, c in zip(COLUMNS, cells))
    print(f"| {' | '.join(shown)} |", flush=True)
    return {**dict(zip(COLUMNS, cells)), "device": value("first", "device"), "all": {" ".join(k): v for k, v in seen.items()}}


def worker(task, *given):
    if task == "jit":
        return do_jit(*given)
    return {"first": do_first, "ptx": do_ptx, "triton": do_triton}[task](CASES[given[0]], *given[1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(name, given.build, given.rounds, folder) for name in CASES if any(f in name for f in given.filter.split(","))]
    if given.json:
        with open(given.json, "w") as f:
            json.dump({"rows": rows}, f, indent=1)


if __name__ == "__main__":
    if sys.argv[-1] == "--worker":
        print(json.dumps(worker(*sys.argv[1:-1])))
    else:
        main()
