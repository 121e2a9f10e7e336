"""An H200 that is not there, for programs that only compile kernels or ask for their launches."""
import contextlib
import importlib.util
import os
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

SMALL = 1 << 16  # elements that are computed


def h200():
    """PyTorch and Triton (or libtl in its place) believe in an H200, in this process."""
    import triton
    from triton.backends.compiler import GPUTarget
    target = GPUTarget("cuda", 90, 32)
    properties = dict(
        name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, multiprocessor_count=132, warp_size=32,
        max_shared_mem=232448, shared_memory_per_block_optin=232448, max_num_regs=65536, warpSize=32,
        total_memory=150_000_000_000, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        gcnArchName="")
    says = dict(get_device_capability=(9, 0), get_device_name=properties["name"], device_count=1, current_device=0,
                is_available=True, get_device_properties=SimpleNamespace(**properties), get_arch_list=["sm_90"])
    for name, value in says.items():
        setattr(torch.cuda, name, lambda *a, value=value, **k: value)

    class Driver:
        utils = SimpleNamespace(get_device_properties=lambda *a: properties)
        get_current_target = lambda self: target
        get_current_device = lambda self: 0
        get_device_capability = lambda self: (9, 0)
        get_active_torch_device = lambda self: torch.device("cpu")

        def __getattr__(self, name):
            return lambda *a, **k: None

    triton.runtime.driver.set_active(Driver())
    return target


def on_cpu(f):
    """The function, to which "cuda" is the CPU."""
    cpu = lambda x: "cpu" if isinstance(x, (torch.device, str)) and str(x).startswith("cuda") else x
    return lambda *args, **kwargs: f(*map(cpu, args), **{name: cpu(x) for name, x in kwargs.items()})


class LargeFloatsUnset(TorchDispatchMode):
    """Operators do not compute large results of floats, new memory of integers is 0, and operators of C++ code find the
    host's memory too."""
    IN_PLACE = "add_ sub_ mul_ div_ copy_ fill_ zero_ normal_ uniform_ exp_ log_".split()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = {**(kwargs or {}), **({"device": "cpu"} if (kwargs or {}).get("device") else {})}
        schema, name = func._schema, func._schema.name.split("::")[1]
        unset = lambda t: t.dtype.is_floating_point and t.numel() >= SMALL
        if name in self.IN_PLACE and unset(args[0]):
            return args[0]
        if not schema.is_mutable and not any(x.alias_info for x in schema.returns) and name != "_local_scalar_dense":
            on = lambda device: lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
            there = {**kwargs, **({"device": "meta"} if "device" in kwargs else {})}
            moved, named = tree_map_only(torch.Tensor, on("meta"), (args, there))
            with contextlib.suppress(Exception):  # without a form for "meta"
                results = func(*moved, **named)
                if all(torch.is_tensor(t) and t.device.type == "meta" and unset(t) for t in tree_leaves(results)):
                    return tree_map_only(torch.Tensor, on("cpu"), results)
        results = func(*args, **kwargs)
        return results.zero_() if "empty" in name and not results.dtype.is_floating_point else results


def host_memory():
    """Tensors for "cuda" lie in host memory, and say that they are on the GPU. libtl, if it is found, is triton."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    if importlib.util.find_spec("libtl"):
        import libtl
        libtl.install()
    h200()
    torch.cuda._lazy_init = lambda: None
    torch.cuda.device = lambda *a: contextlib.nullcontext()
    for owner, name in (torch, "tensor"), (torch, "as_tensor"), (torch.Tensor, "to"):
        setattr(owner, name, on_cpu(getattr(owner, name)))
    real, gpu = torch.Tensor.device, torch.device("cuda", 0)
    torch.Tensor.device = property(lambda t: gpu if real.__get__(t).type == "cpu" else real.__get__(t))
    torch.Tensor.is_cuda = property(lambda t: t.device == gpu)
