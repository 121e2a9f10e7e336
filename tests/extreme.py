#!/usr/bin/env python3
# extreme.py TLC: each option that a user can set, with values at and beyond its ends and of wrong kinds: tlc compiles or says
# what is wrong (status 0 or 1), and never fails itself. Ends in "N passed, N failed". -v shows each.
import os
import subprocess
import sys
import tempfile

VALUES = ["-1", "0", "1", "3", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "1e30",
          "0.5", "True", "None", "'x'", "(1, 2)", "n"]

LINES = {
    "range": "for i in tl.range(0, n, {o}={v}):\n        tl.store(x + i, i)",
    "static_range": "for i in tl.static_range(0, 4, {o}={v}):\n        tl.store(x + i, i)",
    "load": "tl.store(x + r, tl.load(x + r, mask=r < n, {o}={v}))",
    "store": "tl.store(x + r, r, {o}={v})",
    "atomic_add": "tl.atomic_add(x + r, r, {o}={v})",
    "atomic_cas": "tl.atomic_cas(x + r, r, r, {o}={v})",
    "dot": "tl.store(x + r[:, None] + r[None, :], tl.dot(a, a, {o}={v}).to(tl.int32))",
    "sum": "tl.store(x, tl.sum(r, {o}={v}))",
    "cumsum": "tl.store(x + r, tl.cumsum(r, {o}={v}))",
    "sort": "tl.store(x + r, tl.sort(r, {o}={v}))",
    "arange": "tl.store(x + tl.arange(0, {v}), 1)",
    "arange start": "tl.store(x + tl.arange({v}, 16), 1)",
    "full": "tl.store(x, tl.full([{v}], 1, tl.int32).numel)",
    "reshape": "tl.store(x + r, tl.reshape(r, [{v}, 4]))",
    "permute": "tl.store(x, tl.permute(r[:, None], ({v}, 0)).numel)",
    "expand_dims": "tl.store(x, tl.expand_dims(r, {v}).numel)",
    "program_id": "tl.store(x, tl.program_id({v}))",
    "hints": "tl.store(x + tl.{o}(n, {v}), 1)",
    "cast": "tl.store(x + r, r.to(tl.float32).to(tl.float16, {o}={v}).to(tl.int32))",
    "histogram": "tl.store(x + r, tl.histogram(r, {v}))",
    "asm": "tl.store(x + r, tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [r], dtype=tl.int32, is_pure=True, pack={v}))",
    "descriptor": "d = tl.make_tensor_descriptor(x, [n, 16], [16, 1], [4, 16], {o}={v})\n    tl.store(x, tl.sum(tl.sum(d.load([0, 0]), 1), 0))",
    "block pointer": "b = tl.make_block_ptr(x, (n,), (1,), ({v},), (16,), (0,))\n    tl.store(b, r, {o}={v})",
    "rand": "tl.store(x + r, tl.randint(n, r, {v}))",
    "print": "tl.device_print('x', r, {o}={v})",
    "shift": "tl.store(x + r, (r << {v}) >> {v})",
    "slice": "t = (1, 2, 3)\n    tl.store(x, t[{v}])",
    "topk": "tl.store(x, tl.sum(tl.topk(r, {v})))",
    "gather": "tl.store(x + r, tl.gather(r, r, {v}))",
    "swizzle": "a0, b0 = tl.swizzle2d(n, n, n, n, {v})\n    tl.store(x + a0, b0)",
}
OPTIONS = {
    "range": ["num_stages", "loop_unroll_factor", "flatten", "warp_specialize", "disallow_acc_multi_buffer", "disable_licm", "step"],
    "static_range": ["step"],
    "load": ["cache_modifier", "eviction_policy", "volatile", "other", "boundary_check", "padding_option"],
    "store": ["cache_modifier", "eviction_policy", "mask"],
    "atomic_add": ["sem", "scope", "mask"],
    "atomic_cas": ["sem", "scope"],
    "dot": ["input_precision", "allow_tf32", "max_num_imprecise_acc", "out_dtype", "acc"],
    "sum": ["axis", "keep_dims", "dtype"],
    "cumsum": ["axis", "reverse", "dtype"],
    "sort": ["dim", "descending"],
    "hints": ["multiple_of", "max_contiguous", "max_constancy"],
    "cast": ["fp_downcast_rounding", "bitcast"],
    "descriptor": ["padding_option"],
    "block pointer": ["boundary_check"],
    "print": ["hex"],
}
COMMAND = ["--num-warps", "--num-stages", "--maxnreg", "--target", "--num-ctas"]

HEAD = "import triton\nimport triton.language as tl\n\n"
CONFIG = HEAD + "@triton.autotune(configs=[triton.Config({{}}, {o}={v})], key=['n'])\n@triton.jit\ndef k(x, n):\n    tl.store(x, n)\n"


def kernel(line):
    return HEAD + f"@triton.jit\ndef k(x, n):\n    r = tl.arange(0, 16)\n    a = (r[:, None] + r[None, :]).to(tl.float16)\n    {line}\n"


def main():
    tlc, loud, passed, failed = os.path.abspath(sys.argv[1]), "-v" in sys.argv, 0, 0
    cases = []
    for name, line in LINES.items():
        for option in OPTIONS.get(name, [""]):
            for v in VALUES:
                cases.append((f"{name} {option}={v}", kernel(line.format(o=option, v=v)), [], "compile"))
    for option in COMMAND:
        for v in VALUES[:11] + ["x", ""]:
            cases.append((f"{option}={v}", kernel("tl.store(x, n)"), [option, v], "compile"))
    for option in ("num_warps", "num_stages", "num_ctas", "maxnreg", "pre_hook"):
        for v in VALUES[:-1]:
            cases.append((f"Config {option}={v}", CONFIG.format(o=option, v=v), [], "run"))
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, text, options, how) in enumerate(cases):
            if i % STRIDE[0]:
                continue
            path = os.path.join(folder, "kernel.tl")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            command = [tlc, path, "-k", "k", "-s", "*i32:16,i32", "--target", "sm_90a", "-o", os.devnull] + options
            if how == "run":
                command = [tlc, "run", path, "-k", "k", "-g", "1", "--device", "interp", "x=i32[4]", "n=3"]
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
                code = run.returncode
            except subprocess.TimeoutExpired:
                code = "no end"
            good = code in (0, 1)
            passed, failed = passed + good, failed + (not good)
            if loud or not good:
                print(f"{name}: {code}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


STRIDE = [int(os.environ.get("EXTREME_STRIDE", "1"))]
sys.exit(main())
