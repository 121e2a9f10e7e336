"""Users' own kernels in code that torch.compile compiles with libtl.

PYTHONPATH=build/python python3 tests/python/test_torch_kernels.py
$TORCH_DEVICE: cpu, the default, or cuda.
"""

import os
import unittest

try:
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"PyTorch is not installed: {e}") from None

import libtl
import libtl.torch

DEVICE = os.environ.get("TORCH_DEVICE", "cpu")
torch.set_default_device(DEVICE)
if DEVICE == "cuda":
    libtl.install()  # the kernels of this file are libtl's also where Triton is installed
libtl.torch.enable(cpu=DEVICE == "cpu")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from libtl.torch import _accesses  # noqa: E402


@triton.jit
def scale_and_add(x, y, total, n, factor, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, i < n)
    tl.atomic_add(total + i, v, i < n)
    tl.store(y + i, v * factor, i < n)


@triton.jit
def store_twice(x, y, n, B: tl.constexpr, swaps: tl.constexpr):
    i = tl.arange(0, B)
    a, b = (y, x) if swaps else (x, y)
    for start in range(0, n, B):
        tl.store(b + start + i, tl.load(a + start + i, start + i < n), start + i < n)


@triton.autotune(configs=[triton.Config({"B": 64}), triton.Config({"B": 256})], key=["n"])
@triton.jit
def negate(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, -tl.load(x + i, i < n), i < n)


class Accesses(unittest.TestCase):
    """What a kernel reads and writes, from its IR."""

    def found(self, kernel, **arguments):
        read, written, _ = _accesses.accesses(kernel, arguments)
        return sorted(read), sorted(written)

    def test_accesses(self):
        x = torch.zeros(64, device="cpu")
        self.assertEqual(self.found(scale_and_add, x=x, y=x.clone(), total=x.clone(), n=64, factor=2.0, B=64),
                         (["total", "x"], ["total", "y"]))

    def test_constants(self):
        """The accesses depend on compile-time values."""
        x, y = torch.zeros(64, device="cpu"), torch.zeros(64, device="cpu")
        self.assertEqual(self.found(store_twice, x=x, y=y, n=64, B=16, swaps=False), (["x"], ["y"]))
        self.assertEqual(self.found(store_twice, x=x, y=y, n=64, B=16, swaps=True), (["y"], ["x"]))

    def test_torch_asks(self):
        from torch._higher_order_ops import triton_kernel_wrap as wrap
        x = torch.zeros(64, device="cpu")
        arguments = negate, {"x": x, "y": x.clone(), "n": 64}, {}
        with self.assertNoLogs("libtl.torch"):
            if not hasattr(wrap, "identify_accessed_tensors"):  # PyTorch 2.11
                self.assertEqual(wrap.identify_mutated_tensors(*arguments), ["y"])
                return
            a = wrap.identify_accessed_tensors(*arguments)
        self.assertEqual([d.name for d in a.read_writes.reads], ["x"])
        self.assertEqual([d.name for d in a.read_writes.writes], ["y"])
        self.assertTrue(a.can_fuse_epilogue)


class Kernels(unittest.TestCase):

    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)

    def test_kernel(self):
        def f(x, total):
            y = torch.full_like(x, float("nan"))
            scale_and_add[(triton.cdiv(x.numel(), 128),)](x, y, total, x.numel(), 2.5, 128)
            return y + x.cos()

        x, total = torch.randn(1000), torch.randn(1000)
        before, kernels = total.clone(), libtl.torch.statistics().compiled
        got = torch.compile(f, fullgraph=True)(x, total)
        torch.testing.assert_close(got, x * 2.5 + x.cos())
        torch.testing.assert_close(total, before + x)
        self.assertGreater(libtl.torch.statistics().compiled - kernels, 1)

    @unittest.skipUnless(DEVICE == "cpu", "a GPU has no device that checks accesses")
    def test_checked(self):
        """On a device that checks accesses, a kernel that leaves a tensor's memory is an error."""
        def f(x, n):
            y = torch.full_like(x, float("nan"))
            scale_and_add[(triton.cdiv(n, 128),)](x, y, torch.zeros_like(x), n, 2.0, 128)
            return y.sin()

        x = torch.randn(1000)
        with libtl.device("cpu:check"):
            torch.testing.assert_close(torch.compile(f, fullgraph=True)(x, 1000), (x * 2).sin())
            torch._dynamo.reset()
            with self.assertRaises(libtl.KernelError):
                torch.compile(f, fullgraph=True)(x, 100000)

    def test_autotuned(self):
        def f(x):
            y = torch.full_like(x, float("nan"))
            negate[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, y, x.numel())
            return y.exp()

        x = torch.randn(777)
        torch.testing.assert_close(torch.compile(f, fullgraph=True)(x), (-x).exp())


if __name__ == "__main__":
    unittest.main()
