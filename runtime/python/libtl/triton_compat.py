"""Triton's package of libtl: `import libtl.triton_compat as triton`, or libtl.install() before `import triton`.

The module has the names of the package triton that programs import, and the submodules they import them from. What
belongs to Triton's own compiler raises NotImplementedError when it is used.
"""

import base64
import contextvars
import enum
import hashlib
import re
import subprocess
import sys
import types

from . import _cache, _compiled, _device, _jit, _source, _variants, knobs, language, testing
from . import cdiv, next_power_of_2
from ._aggregate import aggregate
from ._cubin import find_ptxas
from ._jit import (CompiledKernel, ConstexprFunction, JITFunction, KernelInterface, KernelParam, MockTensor,
                   TensorWrapper, constexpr_function, jit, reinterpret)
from .autotuner import Autotuner, AutotunerError, Config, Heuristics, PTXASError, autotune, heuristics
from .errors import CompileError as CompilationError
from .errors import CompileTimeAssertionFailure, OutOfResources
from .errors import Error as TritonError
from .errors import KernelError as InterpreterError
from .language.core import must_use_result
from .tools import disasm, tensor_descriptor

# the version of Triton whose language and package this is
__version__ = "3.9.0"


class UnsupportedLanguageConstruct(CompilationError):
    """A construct of Python that kernels cannot use."""


def _not_here(name):
    def f(*args, **kwargs):
        raise NotImplementedError(f"{name} belongs to Triton's own compiler, which libtl does not have")
    f.__name__ = f.__qualname__ = name.rpartition(".")[2]
    return f


# --- the driver


class GPUTarget:
    """A kind of device: backend "cuda", arch 90."""

    def __init__(self, backend, arch, warp_size):
        self.backend, self.arch, self.warp_size = backend, arch, warp_size

    def _key(self):
        return self.backend, self.arch, self.warp_size

    def __eq__(self, other):
        return isinstance(other, GPUTarget) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return "GPUTarget(backend={!r}, arch={!r}, warp_size={!r})".format(*self._key())


class _Driver:
    """The device that kernels run on: the current GPU, or where there is none the CPU."""

    @property
    def _torch(self):
        torch = sys.modules.get("torch")
        return torch if torch is not None and torch.cuda.is_available() else None

    def get_current_target(self):
        if self._torch:
            major, minor = self._torch.cuda.get_device_capability()
            return GPUTarget("cuda", 10 * major + minor, 32)
        return GPUTarget("cpu", _device.device_info()["capability"], 0)

    def get_current_device(self):
        return self._torch.cuda.current_device() if self._torch else 0

    def set_current_device(self, device):
        if self._torch:
            self._torch.cuda.set_device(device)

    def get_current_stream(self, device=None):
        return self._torch.cuda.current_stream(device).cuda_stream if self._torch else 0

    def get_active_torch_device(self):
        import torch
        return torch.device("cuda", self.get_current_device()) if self._torch else torch.device("cpu")

    def get_device_interface(self):
        import torch
        return torch.cuda if self._torch else torch.cpu

    def get_benchmarker(self):
        return testing.do_bench

    def get_empty_cache_for_benchmark(self):
        import torch
        return torch.empty((256 << 20) // 4, dtype=torch.int32, device=self.get_active_torch_device())

    def clear_cache(self, cache):
        cache.zero_()

    @staticmethod
    def is_active():
        return True

    @property
    def utils(self):
        return types.SimpleNamespace(get_device_properties=self._properties)

    def _properties(self, device):
        info = _device.device_info(f"cuda:{device}" if self._torch else None)
        return {"max_shared_mem": info["shared_bytes"], "multiprocessor_count": info["num_sms"], "max_num_regs": 65536,
                "warpSize": 32, "sm_clock_rate": 0, "mem_clock_rate": 0, "mem_bus_width": 0}


class _CpuDriver(_Driver):
    """The CPU, whether there is a GPU or not."""

    _torch = None

    def get_current_target(self):
        return GPUTarget("cpu", 0, 0)


class _CudaDriver(_Driver):
    """The current GPU."""

    @staticmethod
    def is_active():
        return _Driver()._torch is not None


class _DriverConfig:
    """triton.runtime.driver: the active driver. The name is that of a module, too, which has the object as `driver`."""

    def __init__(self):
        self.driver = self
        self.default = self.active = (_CudaDriver if _CudaDriver.is_active() else _CpuDriver)()

    def set_active(self, driver):
        self.active = driver

    def reset_active(self):
        self.active = self.default


# --- compiling


class ASTSource:
    """A jit function with the types of its parameters: for triton.compile.

    signature: type by name: "*fp32", "i32", "constexpr", "tensordesc<fp16[64, 64]>", a tuple of types. constexprs, attrs: by
    name, index, or path of indices in tuples.
    """

    def __init__(self, fn, signature, constexprs=None, attrs=None):
        self.fn, self.signature, self.name, self.ext = fn, signature, fn.__name__, "ttir"

        def path(k):
            return (fn.arg_names.index(k),) if isinstance(k, str) else (k,) if isinstance(k, int) else tuple(k)

        self.constants = self.constexprs = {path(k): v for k, v in (constexprs or {}).items()}
        self.attrs = {path(k): v for k, v in (attrs or {}).items()}

    def hash(self):
        text = repr((self.fn.cache_key, sorted(self.signature.items()), sorted(self.constants.items(), key=str),
                     sorted(self.attrs.items())))
        return hashlib.sha256(text.encode()).hexdigest()


def compile(src, target=None, options=None, _env_vars=None):
    """Compiles a jit function for types. target: a GPUTarget; None: the device that is present."""
    if not isinstance(src, ASTSource):
        raise NotImplementedError("triton.compile: libtl compiles an ASTSource; for IR text use `tlc FILE.ttir`")
    if target is not None and target.backend not in ("cuda", "cpu"):
        raise NotImplementedError(f"triton.compile: libtl compiles for the targets cuda and cpu, not {target.backend}")
    arguments = _variants.arguments_of(src.fn, src.signature, src.constants, src.attrs)
    known = {n: v for n, v in (options or {}).items() if n in _jit._OPTIONS}
    if target is not None and target.backend == "cuda":
        known["device"] = "sim" if target.arch == 90 else f"sim:{target.arch}"
    return src.fn._compile_only(arguments, known)


def _spec_of(target):
    """The device for a target: a GPU that is present, or for another GPU the simulator, which compiles the same PTX."""
    if target is None:
        target = _Driver().get_current_target()
    if target.backend == "cpu":
        return _device.get_device()
    current = _Driver().get_current_target()
    if current.backend == "cuda" and current.arch == int(target.arch):
        return f"cuda:{_Driver().get_current_device()}"
    return f"sim:{target.arch}"


class BaseBackend:
    """A backend of Triton, with what PyTorch asks of one."""

    def __init__(self, target):
        self.target = target

    @staticmethod
    def supports_target(target):
        return target.backend == "cpu"

    def hash(self):
        return f"{_compiled.build()} {self.target.backend} {self.target.arch}"

    def parse_options(self, options):
        names = ("fp8e5", "fp8e4nv", "fp8e4b15")
        known = dict(num_warps=4, num_stages=3, num_ctas=1, debug=False, maxnreg=None, sanitize_overflow=False,
                     enable_fp_fusion=True, launch_cooperative_grid=False, launch_pdl=False, extern_libs=None,
                     supported_fp8_dtypes=names, arch=self.target.arch, backend_name=self.target.backend)
        return types.SimpleNamespace(**{n: (options or {}).get(n, v) for n, v in known.items()})


def triton_key():
    """A text that changes with the compiler."""
    return _compiled.build()


def _base32(key):
    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def _base64(key):
    return base64.urlsafe_b64encode(bytes.fromhex(key)).decode().rstrip("=")


# --- memory that kernels ask for


class NullAllocator:
    """The allocator where none is set."""

    def __call__(self, size, alignment, stream):
        raise RuntimeError("kernels of libtl allocate their memory themselves")


_allocator = contextvars.ContextVar("_allocator", default=NullAllocator())
_profile_allocator = contextvars.ContextVar("_profile_allocator", default=NullAllocator())


def set_allocator(allocator):
    """Sets Triton's allocator of scratch memory, which kernels of libtl do not need."""
    _allocator.set(allocator)


# --- the modules


class FutureKernel:
    """A kernel that is being compiled. It has the members of the compiled kernel, and waits for it when they are asked for."""

    def __init__(self, finalize_compile, future):
        self.finalize_compile, self.future, self.kernel = finalize_compile, future, None

    def result(self, ignore_errors=False):
        """Waits. The kernel; None: it failed, and errors are ignored."""
        if self.kernel is None:
            try:
                kernel = self.future.result()
            except Exception:
                if ignore_errors:
                    return None
                raise
            self.kernel = kernel
            self.finalize_compile(kernel)
        return self.kernel

    def __getattr__(self, name):
        return getattr(self.result(), name)


class AsyncCompileMode:
    """with AsyncCompileMode(executor): warmups compile in the pool; at the end all are waited for."""

    def __init__(self, executor, *, ignore_errors=False):
        self.executor, self.ignore_errors, self.future_kernels = executor, ignore_errors, {}

    def submit(self, key, compile_fn, finalize_fn):
        if key not in self.future_kernels:
            self.future_kernels[key] = FutureKernel(finalize_fn, self.executor.submit(compile_fn))
        return self.future_kernels[key]

    def __enter__(self):
        if _variants.active_mode.get() is not None:
            raise RuntimeError("Another AsyncCompileMode is already active")
        _variants.active_mode.set(self)
        return self

    def __exit__(self, *error):
        _variants.active_mode.set(None)
        for f in list(self.future_kernels.values()):
            f.result(self.ignore_errors)


class PROPAGATE_NAN(enum.IntEnum):
    NONE = 0
    ALL = 0xFFFF


def _module(name, **members):
    m = types.ModuleType(name)
    m.__dict__.update(members)
    m.__libtl__ = True
    return m


def _get_ptxas(arch=None):
    """ptxas with its path and its version."""
    path = find_ptxas()
    if path is None:
        raise RuntimeError("there is no ptxas in $PATH, $CUDA_HOME, /usr/local/cuda or Triton's package; set TRITON_PTXAS_PATH")
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return types.SimpleNamespace(path=path, version=re.search(r"release ([\d.]+)", text)[1])


_driver = _DriverConfig()


def _device_key(spec=None):
    """The key of the active driver's device in device_caches."""
    return f"{_driver.active.get_current_target().backend}:{_driver.active.get_current_device()}"


_variants.platform = types.SimpleNamespace(key=_device_key, target=lambda: _driver.active.get_current_target())


def _modules():
    """The submodules of triton by name."""
    driver = _driver
    short = {n: n for n in _source.TYPES} | _source.SHORT | {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
    jit_names = dict(jit=jit, JITFunction=JITFunction, JITCallable=JITFunction, KernelInterface=KernelInterface,
                     KernelParam=KernelParam, TensorWrapper=TensorWrapper, MockTensor=MockTensor, reinterpret=reinterpret,
                     constexpr_function=constexpr_function, ConstexprFunction=ConstexprFunction,
                     get_device_key=_device_key, mangle_type=lambda v, specialize=False: _variants.specialize(
                         v, value=specialize)[0],
                     native_specialize_impl=_not_here("native_specialize_impl"),
                     specialize_impl=_not_here("specialize_impl"), type_canonicalisation_dict=short)
    tuner = dict(Autotuner=Autotuner, Heuristics=Heuristics, Config=Config, autotune=autotune, heuristics=heuristics,
                 OutOfResources=OutOfResources, PTXASError=PTXASError)
    error_names = dict(CompilationError=CompilationError, CompileTimeAssertionFailure=CompileTimeAssertionFailure,
                       UnsupportedLanguageConstruct=UnsupportedLanguageConstruct)
    compiler = dict(ASTSource=ASTSource, compile=compile, CompiledKernel=CompiledKernel, triton_key=triton_key,
                    get_cache_key=lambda src, *rest: src.hash(), make_backend=BaseBackend,
                    IRSource=_not_here("IRSource"), LazyDict=_variants.LazyDict, **error_names)
    async_names = dict(AsyncCompileMode=AsyncCompileMode, FutureKernel=FutureKernel,
                       active_mode=_variants.active_mode)
    allocation = dict(_allocator=_allocator, _profile_allocator=_profile_allocator, set_allocator=set_allocator,
                      NullAllocator=NullAllocator)
    extra, nvidia = language.extra, _module("triton.backends.nvidia")
    found = {
        "language": language, "language.core": language.core, "language.math": language.math,
        "language.random": language.random, "language.standard": language.standard,
        "language.target_info": language.target_info, "language.extra": extra, "language.extra.cuda": extra.cuda,
        "language.extra.libdevice": extra.libdevice, "language.extra.cuda.libdevice": extra.libdevice,
        "language.extra.cuda.gdc": extra.cuda, "language.extra.cuda.utils": extra.cuda,
        "runtime": _module("triton.runtime", driver=driver, InterpreterError=InterpreterError, **jit_names, **tuner),
        "runtime.jit": _module("triton.runtime.jit", **jit_names),
        "runtime.autotuner": _module("triton.runtime.autotuner", **tuner),
        "runtime.driver": driver,
        "runtime.errors": _module("triton.runtime.errors", OutOfResources=OutOfResources, PTXASError=PTXASError,
                                  InterpreterError=InterpreterError, TritonError=TritonError,
                                  AutotunerError=AutotunerError),
        "runtime.cache": _module("triton.runtime.cache", _base32=_base32, _base64=_base64, triton_key=triton_key,
                                 **{n: getattr(_cache, n) for n in _cache.__all__}),
        "runtime.interpreter": _module("triton.runtime.interpreter", InterpretedFunction=type("InterpretedFunction", (), {}),
                                       InterpreterError=InterpreterError),
        "runtime._allocation": _module("triton.runtime._allocation", **allocation),
        "runtime._async_compile": _module("triton.runtime._async_compile", **async_names),
        "compiler": _module("triton.compiler", **compiler),
        "compiler.compiler": _module("triton.compiler.compiler", **compiler),
        "compiler.errors": _module("triton.compiler.errors", **error_names),
        "compiler.code_generator": _module("triton.compiler.code_generator", ast_to_ttir=_not_here("ast_to_ttir")),
        "errors": _module("triton.errors", TritonError=TritonError),
        "backends": _module("triton.backends", BaseBackend=BaseBackend, backends={
            name: types.SimpleNamespace(driver=d, compiler=BaseBackend) for name, d in (("cpu", _CpuDriver),
                                                                                      ("nvidia", _CudaDriver))}),
        "backends.compiler": _module("triton.backends.compiler", GPUTarget=GPUTarget,
                                     BaseBackend=BaseBackend),
        "backends.driver": _module("triton.backends.driver", DriverBase=_Driver, GPUDriver=_Driver),
        "backends.nvidia": nvidia,
        "backends.nvidia.driver": _module("triton.backends.nvidia.driver", CudaDriver=_CudaDriver,
                                          make_tensordesc_arg=_not_here("make_tensordesc_arg")),
        "backends.nvidia.compiler": _module("triton.backends.nvidia.compiler", get_ptxas=_get_ptxas),
        "tools": _module("triton.tools"),
        "tools.disasm": disasm,
        "tools.tensor_descriptor": tensor_descriptor,
        "testing": testing,
        "knobs": knobs,
        "_C": _module("triton._C"),
        "_C.libtriton": _module("triton._C.libtriton", ir=_module("triton._C.libtriton.ir", PROPAGATE_NAN=PROPAGATE_NAN)),
    }
    for name, m in found.items():
        parent, _, own = name.rpartition(".")
        if parent in found and isinstance(found[parent], types.ModuleType):
            setattr(found[parent], own, m)
        if hasattr(m, "__libtl__"):
            m.__path__ = []
    return found


_found = _modules()
for _name, _m in _found.items():
    if "." not in _name:
        globals()[_name] = _m
runtime, compiler, knobs, backends, tools = (_found[_n] for _n in ("runtime", "compiler", "knobs", "backends", "tools"))
language.core._aggregate = aggregate

__all__ = ["AsyncCompileMode", "aggregate", "autotune", "cdiv", "CompilationError", "compile", "Config",
           "constexpr_function", "FutureKernel", "heuristics", "InterpreterError", "jit", "JITFunction",
           "KernelInterface", "language", "MockTensor", "must_use_result", "next_power_of_2", "OutOfResources",
           "reinterpret", "runtime", "set_allocator", "TensorWrapper", "TritonError", "testing", "tools"]


def install():
    """Makes `import triton` mean this module. RuntimeError: another triton has been imported."""
    other = sys.modules.get("triton")
    me = sys.modules[__name__]
    if other is me:
        return
    if other is not None:
        raise RuntimeError("libtl.install() must come before `import triton`, and before other packages import it; "
                           f"it is already loaded from {getattr(other, '__file__', '?')}")
    sys.modules["triton"] = me
    for name, m in _found.items():
        sys.modules["triton." + name] = m
