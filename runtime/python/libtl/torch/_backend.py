"""What changes in TorchInductor while libtl compiles its kernels. Each change is undone by disable()."""

import dataclasses
import hashlib
import importlib.util
import logging
import os
import sys
import threading
import types

from .. import _compiled, triton_compat
from ..errors import CompileError, OutOfResources

__all__ = ["enable", "disable", "is_enabled", "statistics"]

log = logging.getLogger("libtl.torch")
_MISSING = object()
_undo = []  # functions that restore what enable() has changed, in the order of the changes


@dataclasses.dataclass
class Statistics:
    """compiled: kernels that libtl compiled. fallbacks: kernels that Triton compiled, because libtl could not."""

    compiled: int = 0
    fallbacks: int = 0


_statistics = Statistics()
_lock = threading.Lock()  # of _statistics
_triton = threading.Lock()  # threads do not call Triton's compiler at the same time
_settings = {"static_launcher": False}


def statistics():
    """The numbers of kernels since the process began: a copy of a Statistics."""
    return dataclasses.replace(_statistics)


def is_enabled():
    """Does libtl compile TorchInductor's kernels?"""
    return bool(_undo)


# --- changes


def _set(owner, name, value):
    """Sets an attribute until disable()."""
    before = owner.__dict__.get(name, _MISSING) if isinstance(owner, (type, types.ModuleType)) else getattr(owner, name)
    setattr(owner, name, value)
    _undo.append(lambda: delattr(owner, name) if before is _MISSING else setattr(owner, name, before))


def _set_item(owner, name, value):
    before = owner.get(name, _MISSING)
    owner[name] = value
    _undo.append(lambda: owner.pop(name) if before is _MISSING else owner.__setitem__(name, before))


def _clear_caches():
    """What PyTorch has found out about Triton, and keeps."""
    import torch.utils._triton as names
    from torch._inductor import async_compile, codecache, utils
    theirs = [f for f in (*vars(codecache).values(), *vars(utils).values()) if "triton" in getattr(f, "__name__", "")]
    for f in (*vars(names).values(), codecache.CacheBase.get_system, *theirs):
        if hasattr(f, "cache_clear"):
            f.cache_clear()
    async_compile.CompiledTritonKernels.cache_clear()


class _Triton:
    """The package triton as TorchInductor's autotuner sees it: compile() is libtl's."""

    def __init__(self, triton):
        self.__triton = triton

    def __getattr__(self, name):
        return getattr(self.__triton, name)

    def compile(self, src, target=None, options=None, **rest):
        return _compile(self.__triton, src, target, options or {}, rest)


def _compile(triton, src, target, options, rest):
    try:
        kernel = _compile_here(src, target, options)
    except OutOfResources as e:
        raise triton.runtime.autotuner.OutOfResources(e.required, e.limit, e.name) from e
    except Exception as e:
        if triton is triton_compat or target.backend == "cpu":
            raise
        log.warning("%s is compiled by Triton: %s", getattr(src.fn, "__name__", src), e)
        with _lock:
            _statistics.fallbacks += 1
        with _triton:
            return triton.compile(src, target=target, options=options, **rest)
    with _lock:
        _statistics.compiled += 1
    return kernel


def _compile_here(src, target, options):
    spec = triton_compat._spec_of(target)
    from torch._inductor import config
    if target.backend == "cpu" or not (_settings["static_launcher"] or config.cpp_wrapper):
        return _compiled.compile_types(src, spec, options)
    try:
        kernel = _compiled.compile_types(src, spec, options, general=True)
    except CompileError as e:
        if config.cpp_wrapper:  # the wrapper launches the kernel itself
            raise
        log.info("%s is launched by libtl: %s", getattr(src.fn, "__name__", src), e)
        return _compiled.compile_types(src, spec, options)
    if _settings["static_launcher"]:
        _write_cubin(kernel)
    return kernel


def _write_cubin(kernel):
    """The file from which PyTorch's static launcher loads a kernel, and which PyTorch's caches keep."""
    import torch
    from torch._inductor.runtime.runtime_utils import triton_cache_dir, triton_hash_to_path_key
    device = torch.cuda.current_device() if torch.cuda.is_available() else 0
    folder = os.path.join(triton_cache_dir(device), triton_hash_to_path_key(kernel.hash))
    path = os.path.join(folder, f"{kernel.src.fn.__name__}.cubin")
    if os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    with open(f"{path}.{os.getpid()}", "wb") as f:
        f.write(kernel.asm["cubin"])
    os.replace(f.name, path)  # another process may write the same file


def _hash_with_backend(original):
    """The key of TorchInductor's caches: that of Triton, and libtl's build."""

    def triton_hash_with_backend():
        theirs = "" if original is None else original()
        return hashlib.sha256(f"{theirs} {_compiled.build()}".encode()).hexdigest().upper()

    triton_hash_with_backend.cache_clear = lambda: None
    return triton_hash_with_backend


def _key(original):
    return lambda: f"{original()} {_compiled.build()}"


# --- Triton's package


def _provide_triton():
    """The package triton, which is libtl's own where Triton is not installed."""
    if "triton" not in sys.modules and importlib.util.find_spec("triton") is None:
        compat = sys.modules.get("torch._inductor.runtime.triton_compat")
        if compat is not None and not compat.HAS_TRITON:
            raise RuntimeError("TorchInductor has been imported without Triton; call libtl.torch.enable() before the first "
                               "torch.compile")
        triton_compat.install()
        import torch.utils._triton
        torch.utils._triton.has_triton_package.cache_clear()
    import triton
    return triton


def _add_cpu(triton):
    """A backend for the CPU in Triton's package."""
    if triton is triton_compat or "cpu" in triton.backends.backends:
        return
    ours = triton_compat.backends.backends["cpu"]
    _set_item(triton.backends.backends, "cpu", types.SimpleNamespace(driver=_InactiveDriver, compiler=ours.compiler))
    driver = triton.runtime.driver
    active = driver._active  # None: not chosen yet
    _undo.append(lambda: setattr(driver, "_active", active))
    if not any(b.driver.is_active() for b in triton.backends.backends.values()):
        driver.set_active(_InactiveDriver())


class _InactiveDriver(triton_compat._CpuDriver):
    """The CPU beside Triton's own drivers, which choose the driver of a GPU."""

    @staticmethod
    def is_active():
        return False


def enable(cpu=None, static_launcher=False):
    """Compiles TorchInductor's kernels with libtl from now on. Functions that are compiled already stay as they are.

    cpu: also kernels for the CPU, instead of TorchInductor's C++; None: where PyTorch has no GPU. Where Triton is
    installed and libtl cannot compile a kernel for a GPU, Triton does, and the log "libtl.torch" has the reason.
    static_launcher: on GPUs PyTorch's static launcher launches the kernels, from cubins that PyTorch's caches keep, where
    the code allows it; else libtl launches them. The code is then right for tensors that overlap and of any size.
    RuntimeError: TorchInductor was imported before, without Triton.
    """
    if is_enabled():
        return
    import torch
    triton = _provide_triton()
    _set_item(_settings, "static_launcher", static_launcher)
    try:
        _change(torch, triton, not torch.cuda.is_available() if cpu is None else cpu)
    except BaseException:
        disable()
        raise
    _clear_caches()


def _change(torch, triton, cpu):
    from torch._inductor import config
    from torch._inductor.runtime import triton_compat as theirs
    from torch._inductor.runtime import triton_heuristics
    from . import _accesses, _threads

    _set(triton_heuristics, "triton", _Triton(triton))
    if triton is not triton_compat:
        _set(theirs, "triton_key", _key(theirs.triton_key))
    original = torch.utils._triton.triton_hash_with_backend if torch.cuda.is_available() else None
    _set(torch.utils._triton, "triton_hash_with_backend", _hash_with_backend(original))
    _accesses.install(_set)
    # threads, and no worker processes, which would start when async_compile is imported
    threads = config.compile_threads or config.decide_compile_threads()
    _set_config(config, "compile_threads", 1)
    if threads > 1:
        _threads.install(_set, threads)
    if cpu:
        _add_cpu(triton)
        _set_config(config, "cpu_backend", "triton")


def _set_config(config, name, value):
    before = getattr(config, name)
    setattr(config, name, value)
    _undo.append(lambda: setattr(config, name, before))


def disable():
    """Undoes enable(). Functions that were compiled meanwhile stay as they are."""
    if not is_enabled():
        return
    while _undo:
        _undo.pop()()
    _clear_caches()
