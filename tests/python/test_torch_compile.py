"""torch.compile with libtl: functions and models against PyTorch's own operators.

PYTHONPATH=build/python python3 tests/python/test_torch_compile.py [TestCase.test_name …]
$TORCH_DEVICE: cpu, the default, or cuda. $TORCH_LAUNCHER=static: PyTorch's static launcher launches the kernels on the GPU.
$TORCH_SHARE: a share of the functions, for example 1/4; the default is all.
"""

import os
import random
import sys
import threading
import unittest
import unittest.mock

try:
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"PyTorch is not installed: {e}") from None

import libtl
import libtl.torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch_functions  # noqa: E402

# results of the same expression, rounded in another order
TOLERANCES = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (2e-5, 2e-5),
              torch.float64: (1e-10, 1e-10)}
# functions for which TorchInductor calls PyTorch's operators
NO_KERNEL = {"median", "complex"}
ON_CPU = torch_functions.DEVICE == "cpu"


def enable():
    libtl.torch.enable(cpu=ON_CPU, static_launcher=os.environ.get("TORCH_LAUNCHER") == "static")


def generator(name):
    return torch.Generator().manual_seed(random.Random(name).randrange(1 << 30))


def widen(v):
    return v.double() if torch.is_tensor(v) and v.is_floating_point() else v


class Compiled(unittest.TestCase):
    """The base of tests that compile with libtl."""

    @classmethod
    def setUpClass(cls):
        enable()
        torch._inductor.config.force_disable_caches = True

    @classmethod
    def tearDownClass(cls):
        libtl.torch.disable()
        torch._inductor.config.force_disable_caches = False

    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(1)

    def close(self, got, expected, text):
        got, expected = (torch.utils._pytree.tree_leaves(v) for v in (got, expected))
        self.assertEqual(len(got), len(expected), text)
        for i, (g, e) in enumerate(zip(got, expected)):
            if e.is_floating_point():
                r, a = TOLERANCES[e.dtype]
                torch.testing.assert_close(g, e, rtol=r, atol=a, equal_nan=True, msg=lambda m: f"{text}, result {i}: {m}")
            else:
                torch.testing.assert_close(g, e, rtol=0, atol=0, msg=lambda m: f"{text}, result {i}: {m}")

    def compiled(self, f, *arguments, **options):
        """The result of the compiled function, and the number of kernels that libtl compiled."""
        before = libtl.torch.statistics()
        result = torch.compile(f, fullgraph=True, **options)(*arguments)
        after = libtl.torch.statistics()
        self.assertEqual(after.fallbacks, before.fallbacks)
        return result, after.compiled - before.compiled


class Functions(Compiled):
    """Each function of torch_functions.py."""


def function_test(name):
    def test(self):
        f, make = torch_functions.FUNCTIONS[name]
        arguments = make(generator(name))
        kept = [a.clone() for a in arguments]
        got, kernels = self.compiled(f, *arguments)
        self.close(arguments, kept, f"arguments of {name}")
        # half precision: the operators round each step, and compiled code does not
        half = any(a.dtype in (torch.float16, torch.bfloat16) for a in arguments)
        expected = f(*[widen(a) for a in arguments] if half else arguments)
        if half:
            leaves = torch.utils._pytree.tree_leaves
            expected = [e.to(g.dtype) for e, g in zip(leaves(expected), leaves(got))]
        self.close(got, expected, name)
        if name not in NO_KERNEL:
            self.assertGreater(kernels, 0, f"no kernel of {name} was compiled by libtl")
    return test


def _add_functions():
    part, _, of = os.environ.get("TORCH_SHARE", "1/1").partition("/")
    for i, name in enumerate(torch_functions.FUNCTIONS):
        if i % int(of) == int(part) % int(of):
            setattr(Functions, f"test_{name}", function_test(name))


_add_functions()


class Models(Compiled):
    """Forward and backward passes, and a step of an optimiser."""

    def check(self, name):
        make, data = torch_functions.MODELS[name]
        model = make()
        x = data(generator(name)).requires_grad_()
        weights = torch.randn(model(x).shape)
        names = [n for n, _ in model.named_parameters()]

        def loss(x):
            return (model(x) * weights).sum()

        expected = torch.autograd.grad(loss(x), [x, *model.parameters()])
        value, kernels = self.compiled(loss, x)
        got = torch.autograd.grad(value, [x, *model.parameters()])
        self.assertGreater(kernels, 0)
        for n, g, e in zip(["x", *names], got, expected):
            torch.testing.assert_close(g, e, rtol=2e-4, atol=2e-4, msg=lambda m: f"{name}, gradient of {n}: {m}")

    def test_mlp(self):
        self.check("mlp")

    def test_transformer(self):
        self.check("transformer")

    def test_residual(self):
        self.check("residual")

    def test_recurrent(self):
        self.check("recurrent")

    def optimiser(self, make):
        results = []
        for compiles in False, True:
            torch.manual_seed(2)
            parameters = [torch.randn(33, 7, requires_grad=True), torch.randn(50, requires_grad=True)]
            optimiser = make(parameters)
            step = torch.compile(optimiser.step) if compiles else optimiser.step
            before = libtl.torch.statistics().compiled
            for _ in range(3):
                for p in parameters:
                    p.grad = torch.randn(p.shape)
                step()
            if compiles:
                self.assertGreater(libtl.torch.statistics().compiled, before)
            results.append([p.detach() for p in parameters])
        self.close(results[1], results[0], "parameters")

    def test_sgd(self):
        self.optimiser(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True))

    def test_adam(self):
        self.optimiser(lambda p: torch.optim.AdamW(p, torch.tensor(0.01), capturable=not ON_CPU))


class Behaviour(Compiled):
    """Shapes that change, random numbers, wrong indices, and arguments that are written."""

    def test_dynamic_shapes(self):
        f = torch.compile(lambda x: (x * 2).sum(1) + x.shape[0], dynamic=True)
        before = libtl.torch.statistics().compiled
        for n, m in (3, 5), (16, 32), (17, 1), (64, 1000), (5, 3):
            x = torch.randn(n, m)
            self.close(f(x), (x * 2).sum(1) + n, f"{n} × {m}")
        self.assertGreater(libtl.torch.statistics().compiled, before)

    def test_random_numbers(self):
        x = torch.ones(100000)
        got, kernels = self.compiled(lambda x: torch.nn.functional.dropout(x, 0.25), x)
        self.assertGreater(kernels, 0)
        kept = got != 0
        self.assertAlmostEqual(kept.double().mean().item(), 0.75, delta=0.01)
        self.close(got[kept], torch.full_like(got[kept], 1 / 0.75), "kept elements")
        got, _ = self.compiled(lambda x: torch.randn_like(x), x)
        self.assertAlmostEqual(got.mean().item(), 0, delta=0.02)
        self.assertAlmostEqual(got.std().item(), 1, delta=0.02)
        got, _ = self.compiled(lambda x: torch.rand_like(x), x)
        self.assertTrue(((got >= 0) & (got < 1)).all())
        self.assertAlmostEqual(got.mean().item(), 0.5, delta=0.01)

    def test_mutation(self):
        x, y = torch.randn(100), torch.randn(100)
        expected = y + x.sin()

        def f(x, y):
            y.add_(x.sin())
            return y * 2

        got, kernels = self.compiled(f, x, y)
        self.assertGreater(kernels, 0)
        self.close([y, got], [expected, expected * 2], "y")

    @unittest.skipUnless(ON_CPU, "a failed assertion ends the CUDA context")
    def test_wrong_index(self):
        x, good = torch.randn(64, 3), torch.randint(0, 64, (50,))
        f = torch.compile(lambda x, i: x[i] + 1)
        self.close(f(x, good), x[good] + 1, "x[i]")
        wrong = good.clone()
        wrong[17] = 64
        with self.assertRaisesRegex(libtl.KernelError, "index out of bounds"):
            f(x, wrong)

    def test_separate_rounding(self):
        """config.emulate_precision_casts rounds products before they are added."""
        x, y = torch.randn(4096), torch.randn(4096)
        z = -(x * y)
        with torch._inductor.config.patch(emulate_precision_casts=True):
            self.assertEqual(torch.compile(lambda x, y, z: x * y + z)(x, y, z).count_nonzero(), 0)
        torch._dynamo.reset()
        self.assertNotEqual(torch.compile(lambda x, y, z: x * y + z)(x, y, z).count_nonzero(), 0)

    def test_integers_wrap(self):
        """Assertions are on, and yet sums and products may overflow, as PyTorch's do."""
        x = torch.randint(-2**31, 2**31, (1000,)).int()
        i = torch.randint(0, 1000, (1000,))
        got, _ = self.compiled(lambda x, i: x[i] * 1103515245 + 12345, x, i)
        self.close(got, x[i] * 1103515245 + 12345, "x")

    def test_threads(self):
        """Threads compile the kernels of a function, and an error of a thread is the function's."""
        from libtl.torch import _backend
        x, names = torch.randn(37, 53), set()

        def f(x):
            return x.sum(0).softmax(0), x.sum(1).cumsum(0), x.t().contiguous().sin()

        def compiled(src, target, options, compile_here=_backend._compile_here):
            names.add(threading.current_thread().name)
            if failing:
                raise libtl.CompileError("error: this kernel fails")
            return compile_here(src, target, options)

        with unittest.mock.patch.object(_backend, "_compile_here", compiled):
            for failing in False, True:
                torch._dynamo.reset()
                if failing and ON_CPU:
                    with self.assertRaisesRegex(Exception, "this kernel fails"):
                        torch.compile(f, fullgraph=True)(x)
                else:
                    self.close(torch.compile(f, fullgraph=True)(x), f(x), "f")
        one = os.environ.get("TORCHINDUCTOR_COMPILE_THREADS", str(os.cpu_count())) == "1"
        self.assertTrue(one or all(n.startswith("libtl") for n in names), names)

    def test_large_index(self):
        """Numbers have the types that the code was compiled for."""
        f = torch.compile(lambda x, k: x * k, dynamic=True)
        x = torch.arange(10)
        for k in 3, 2**40, -5:
            self.close(f(x, k), x * k, f"{k}")


class Switch(unittest.TestCase):
    """enable() and disable()."""

    @classmethod
    def setUpClass(cls):
        libtl.torch.enable()  # so that the package triton is there before TorchInductor is imported
        libtl.torch.disable()

    def test_restores(self):
        from torch._higher_order_ops import triton_kernel_wrap
        from torch._inductor import config
        from torch._inductor.runtime import triton_compat, triton_heuristics
        import torch.utils._triton

        def state():
            return (config.cpu_backend, config.compile_threads, triton_heuristics.triton, triton_compat.triton_key,
                    torch.utils._triton.triton_hash_with_backend, *vars(triton_kernel_wrap).values())

        before = state()
        for cpu in False, True:
            libtl.torch.enable(cpu=cpu)
            self.assertTrue(libtl.torch.is_enabled())
            self.assertEqual(config.cpu_backend, "triton" if cpu else before[0])
            libtl.torch.enable()
            libtl.torch.disable()
            self.assertFalse(libtl.torch.is_enabled())
            self.assertEqual(state(), before)
            libtl.torch.disable()

    def test_keys(self):
        """The keys of TorchInductor's caches contain libtl's build."""
        from torch._inductor.codecache import CacheBase
        import torch.utils._triton
        from libtl import _compiled
        libtl.torch.enable(cpu=True)
        try:
            if "version" in CacheBase.get_system():  # PyTorch 2.11 has none without a GPU
                self.assertIn(_compiled.build(), str(CacheBase.get_system()))
            key, build = torch.utils._triton.triton_hash_with_backend(), _compiled.build
            try:
                _compiled.build = lambda: "another build"
                self.assertNotEqual(torch.utils._triton.triton_hash_with_backend(), key)
            finally:
                _compiled.build = build
        finally:
            libtl.torch.disable()


if __name__ == "__main__":
    unittest.main()
