"""Devices: a context of libtl for each, and the device on which kernels with arguments in host memory run."""

import contextlib
import os
import sys
import threading

from . import _core
from .errors import DeviceError

__all__ = ["context", "device", "set_device", "get_device", "is_checked", "synchronize", "device_info"]

_lock = threading.RLock()
_contexts = {}
_process = os.getpid()
_host = os.environ.get("LIBTL_DEVICE") or "cpu"
_listeners = []  # functions that are called when the device for host memory changes


def _check(spec):
    kind = spec.partition(":")[0]
    if kind not in ("cpu", "interp", "sim"):
        raise ValueError(f"device {spec!r}: kernels with arguments in host memory run on \"cpu\", \"cpu:check\", "
                         '"interp", "sim" or "sim:N"')
    return spec


def context(spec):
    """The context of a device: "cuda:0", "cpu", "cpu:check", "interp", "sim", "sim:80"."""
    with _lock:
        if os.getpid() != _process and any(s.startswith("cuda") for s in _contexts):
            raise DeviceError("CUDA was in use before os.fork(), and a GPU cannot be used in the child process; start "
                              'processes with multiprocessing\'s "spawn" method')
        if spec not in _contexts:
            c = _new(spec)
            c.show_warnings()
            _contexts[spec] = c
        return _contexts[spec]


def _new(spec):
    """A GPU's context is PyTorch's where PyTorch is loaded, so that both share memory and streams."""
    torch = sys.modules.get("torch")
    if spec.startswith("cuda") and torch is not None and torch.cuda.is_available():
        with torch.cuda.device(int(spec.partition(":")[2] or 0)):
            torch.cuda.current_stream().query()  # makes the CUcontext current
            return _core.Context("")
    return _core.Context(spec)


def default_gpu():
    """The index of the GPU for which kernels without arguments in memory are compiled, PyTorch's current one; -1: the host."""
    torch = sys.modules.get("torch")
    return torch.cuda.current_device() if torch is not None and torch.cuda.is_available() else -1


def get_device():
    """The device on which kernels with arguments in host memory run."""
    return _host


def set_device(spec):
    """Chooses the device on which kernels with arguments in host memory run, in all threads.

    spec: "cpu" (the default, or $LIBTL_DEVICE): native code, unchecked. "cpu:check": each memory access is checked.
    "interp": the reference interpreter. "sim", "sim:80": the simulator of a GPU's PTX.
    """
    global _host
    spec = _check(spec)
    if spec != _host:
        _host = spec
        for f in _listeners:
            f()


@contextlib.contextmanager
def device(spec):
    """with libtl.device("interp"): … — set_device for a block of code."""
    before = _host
    set_device(spec)
    try:
        yield
    finally:
        set_device(before)


def is_checked(spec):
    """Must memory be announced to the device, so that it finds accesses outside of it?"""
    return spec != "cpu" and not spec.startswith("cuda")


def synchronize():
    """Waits for all kernels that were launched, on all devices. KernelError: one of them failed."""
    for c in list(_contexts.values()):
        c.synchronize()


def device_info(spec=None):
    """A dict that describes a device: kind, name, target, num_sms, shared_bytes, memory_bytes, capability, spec."""
    return context(spec or _host).info()


_check(_host)
