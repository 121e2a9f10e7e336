"""Code for GPUs, as TorchInductor asks for it, compiled without a GPU.

PYTHONPATH=build/python python3 tests/python/test_torch_gpu_code.py
"""

import os
import re
import tempfile
import types
import unittest
from unittest import mock

try:
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"PyTorch is not installed: {e}") from None

import libtl
import libtl.language as tl
import libtl.torch
from libtl import _compiled, _cubin, triton_compat
from libtl.torch import _backend

TARGET = triton_compat.GPUTarget("cuda", 90, 32)


@libtl.jit
def shifted(x, y, n, k, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i + k, tl.load(x + i, i < n) * 2, i < n)


@libtl.jit
def repeated(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    for j in range(4):
        tl.store(y + i + j * B, tl.load(x + i + j * B, i < n) * 2, i < n)


@libtl.jit
def product(a, b, c, M, N, K, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    at = tl.arange(0, 32)
    total = tl.zeros((B, B), tl.float32)
    for s in range(0, K, 32):
        total += tl.dot(tl.load(a + i[:, None] * K + (s + at)[None, :]), tl.load(b + (s + at)[:, None] * N + j[None, :]))
    tl.store(c + i[:, None] * N + j[None, :], total)


def source(fn, signature, constants, divisible):
    return triton_compat.ASTSource(fn, signature, constants, {(i,): [["tt.divisibility", 16]] for i in divisible})


SHIFTED = dict(x="*fp32", y="*fp32", n="i32", k="i64", B="constexpr")
PRODUCT = dict(a="*fp16", b="*fp16", c="*fp32", M="i32", N="i32", K="i32", B="constexpr")


class GpuCode(unittest.TestCase):

    def test_types(self):
        """Parameters have the types of the signature, and constants none."""
        k = triton_compat.compile(source(shifted, SHIFTED, {"B": 128}, (0, 1)), TARGET, {"num_warps": 2})
        head = k.asm["ptx"].partition("{")[0]
        self.assertEqual([p.split()[1] for p in head.splitlines() if ".param" in p], [".u64", ".u64", ".u32", ".u64"])
        self.assertIn(".reqntid 64,", k.asm["ptx"])
        self.assertEqual((k.metadata.num_warps, k.metadata.name, k.metadata.num_ctas), (2, "shifted", 1))
        self.assertNotIn("cubin", k.asm)

    def test_hash(self):
        """The hash depends on all that the code depends on."""
        def compiled(warps=4, dtype="*fp32", block=128, general=False):
            src = source(shifted, {**SHIFTED, "x": dtype}, {"B": block}, (0, 1))
            return _compiled.compile_types(src, "sim:90", {"num_warps": warps}, general)

        first = compiled().hash
        self.assertEqual(first, compiled().hash)
        for change in dict(warps=8), dict(dtype="*fp16"), dict(block=64), dict(general=True):
            self.assertNotEqual(first, compiled(**change).hash, change)

    def test_general(self):
        """Code for other launchers is right for pointers that overlap, and for offsets of more than 32 bits."""
        src = source(repeated, dict(x="*fp32", y="*fp32", n="i32", B="constexpr"), {"B": 128}, (0, 1))
        separate, general = (_compiled.compile_types(src, "sim:90", {}, g).dump("ptx") for g in (False, True))

        def order(ptx):
            return re.findall(r"bar\.sync|ld\.global|st\.global", ptx)

        # the load of an iteration waits for the stores of the iteration before
        self.assertEqual(order(separate), ["ld.global", "bar.sync", "st.global"])
        self.assertEqual(order(general), ["bar.sync", "ld.global", "bar.sync", "st.global"])
        self.assertNotIn("setp.lt.s64", separate)
        self.assertIn("setp.lt.s64", general)

    def test_general_product(self):
        k = _compiled.compile_types(source(product, PRODUCT, {"B": 128}, range(6)), "sim:90", {"num_warps": 8}, general=True)
        self.assertTrue(k.is_general)
        self.assertGreater(k.metadata.shared, 0)
        self.assertNotIn("// for launches", k.asm["ptx"])

    @unittest.skipUnless(_cubin.find_ptxas(), "there is no ptxas")
    def test_static_launcher(self):
        """PyTorch's static launcher finds its file, and takes the kernel."""
        libtl.torch.enable(static_launcher=True)
        from torch._inductor.runtime import triton_heuristics
        from torch._inductor.runtime.hints import HeuristicType
        try:
            with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder):
                src = source(shifted, SHIFTED, {"B": 128}, (0, 1))
                k = triton_heuristics.triton.compile(src, target=TARGET, options={"num_warps": 4})
                self.assertEqual(k.asm["cubin"][:4], b"\x7fELF")
                files = [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs]
                self.assertEqual([os.path.basename(f) for f in files], ["shifted.cubin"])
                with open(files[0], "rb") as f:
                    self.assertEqual(f.read(), k.asm["cubin"])
                static = triton_heuristics.StaticTritonCompileResult.can_statically_launch(
                    k, {}, {"device_type": "cuda", "device": 0}, HeuristicType.POINTWISE)
                self.assertIsNotNone(static)
                self.assertEqual((static.name, static.num_warps, static.arg_tys), ("shifted", 4, "OOil"))
        finally:
            libtl.torch.disable()

    def test_fallback(self):
        """A kernel that libtl cannot compile is Triton's on a GPU, and an error on the CPU."""
        @libtl.jit
        def wrong(x):
            tl.store(x, undefined_name)  # noqa: F821

        src = source(wrong, dict(x="*fp32"), {}, ())
        theirs = types.SimpleNamespace(compile=lambda src, target, options: "Triton's")
        before = libtl.torch.statistics()
        with self.assertLogs("libtl.torch", "WARNING") as log:
            self.assertEqual(_backend._compile(theirs, src, TARGET, {}, {}), "Triton's")
        self.assertIn("undefined_name", log.output[0])
        after = libtl.torch.statistics()
        self.assertEqual((after.fallbacks - before.fallbacks, after.compiled), (1, before.compiled))
        with self.assertRaisesRegex(libtl.CompileError, "undefined_name"):
            _backend._compile(theirs, src, triton_compat.GPUTarget("cpu", 0, 0), {}, {})


if __name__ == "__main__":
    unittest.main()
