"""A CUDA device of capability 9.0 for the conditions that select Triton's tests. Its tensors are the CPU's."""

import contextlib
import time
import types

import torch
from torch.overrides import TorchFunctionMode

PROPERTIES = {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32,
              "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120}


class _Event:
    """torch.cuda.Event by the host's clock."""

    def __init__(self, *args, **kwargs):
        self.time = 0.0

    def record(self, *args):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return (other.time - self.time) * 1e3


class _Generator:
    """torch.cuda.default_generators: a seed, and how many numbers were drawn."""

    offset = 0

    def initial_seed(self):
        return 17

    def get_offset(self):
        return self.offset

    def set_offset(self, n):
        self.offset = n


def _host(device):
    index = isinstance(device, int) and not isinstance(device, bool)
    name = isinstance(device, str) and device.startswith("cuda")
    return torch.device("cpu") if index or name or isinstance(device, torch.device) and device.type == "cuda" else device


class _OnHost(TorchFunctionMode):
    """Calls of PyTorch that name the device "cuda" make tensors of the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if "device" in kwargs:
            kwargs["device"] = _host(kwargs["device"])
        pinned = kwargs.pop("pin_memory", None)
        if name in ("cuda", "pin_memory"):
            return args[0]
        if pinned and name != "pin_memory":
            return func(*args, **kwargs)
        if name == "to":
            args = tuple(a if isinstance(a, int) else _host(a) for a in args)
        return func(*args, **kwargs)


def install():
    """Replaces the functions of torch.cuda that tests call."""
    stream = types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    properties = types.SimpleNamespace(
        multi_processor_count=PROPERTIES["multiprocessor_count"], name="sm_90", major=9, minor=0, total_memory=1 << 34,
        warp_size=32, shared_memory_per_block_optin=PROPERTIES["max_shared_mem"], max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=PROPERTIES["max_num_regs"])
    members = dict(
        is_available=lambda: True, get_device_capability=lambda *a: (9, 0), current_device=lambda: 0,
        device_count=lambda: 1, is_current_stream_capturing=lambda: False, current_stream=lambda *a: stream,
        device=lambda *a: contextlib.nullcontext(), get_device_name=lambda *a: "sm_90",
        get_device_properties=lambda *a: properties, Event=_Event, default_generators=(_Generator(),),
        **{n: lambda *a, **k: None for n in ("synchronize", "empty_cache", "set_device", "manual_seed",
                                             "manual_seed_all")})
    for name, member in members.items():
        setattr(torch.cuda, name, member)
    _OnHost().__enter__()
