"""Jit functions: Python functions that run as kernels."""

import ast
import functools
import inspect
import os
import re
import threading
import weakref

from . import _arguments, _core, _device, _variants, knobs
from ._source import Function, NotWritten, Sources, has_text, identity, is_jit, type_name
from .errors import ArgumentError, CompileError

__all__ = ["jit", "JITFunction", "KernelInterface", "KernelParam", "CompiledKernel", "constexpr_function",
           "ConstexprFunction", "MockTensor", "TensorWrapper", "reinterpret"]

# Options of Triton's that choose what libtl has no choice of; the values are those that change nothing. The library itself
# chooses the blocks of a program.
_IGNORED = {"num_ctas": None, "warp_size": (32, None),
            "allow_fp8e4nv": None, "supported_fp8_dtypes": None, "deprecated_fp8_dot_operand_dtypes": None,
            "default_dot_input_precision": None, "allowed_dot_input_precisions": None,
            "max_num_imprecise_acc_default": None, "extern_libs": None, "backend_name": None, "arch": None,
            "cluster_dims": None, "ptx_version": None, "ptx_options": None, "ir_override": (None,), "waves_per_eu": None,
            "matrix_instr_nonkdim": None, "kpack": None, "instrumentation_mode": None}
_core.set_ignored(frozenset(n for n, values in _IGNORED.items() if values is None))
_OPTIONS = {"num_warps", "num_stages", "maxnreg", "group_pids", "max_ctas", "debug", "sanitize_overflow",
            "launch_cooperative_grid", "launch_pdl", "enable_fp_fusion", "enable_reflect_ftz", "stream"}


_MOST_PARAMETERS = 256
_MOST_MODULES = 256  # of a kernel: devices and functions among its arguments


class KernelInterface:
    """A kernel: kernel[grid](arguments…)."""

    def run(self, *args, grid, warmup, **kwargs):
        raise NotImplementedError

    def warmup(self, *args, grid, **kwargs):
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid):
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


class KernelParam:
    """A parameter of a kernel."""

    def __init__(self, num, param, do_not_specialize, do_not_specialize_on_alignment):
        self.num, self._param = num, param
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment

    @property
    def name(self):
        return self._param.name

    @functools.cached_property
    def annotation(self):
        a = self._param.annotation
        return "" if a is inspect.Parameter.empty or not a else type_name(a)

    @functools.cached_property
    def annotation_type(self):
        a = self.annotation
        a = a[2:] if a.startswith("*k") else a[1:] if a.startswith("*") else a
        return self.annotation if a in {f"{s}{n}" for s in "iu" for n in (1, 8, 16, 32, 64)} | {
            "fp16", "bf16", "fp32", "fp64"} else ""

    @property
    def is_constexpr(self):
        return "constexpr" in self.annotation

    @property
    def is_const(self):
        return (self.annotation.startswith("*k") or "const" in self.annotation) and not self.is_constexpr

    @property
    def default(self):
        return self._param.default

    @property
    def has_default(self):
        return self._param.default is not inspect.Parameter.empty


class MockTensor:
    """Stands for a tensor of a dtype where a kernel is compiled without being launched."""

    def __init__(self, dtype, shape=None):
        self.dtype, self.shape = dtype, shape or [1]
        self.__tl_arg__ = _core.pointer(_arguments.dtype_number(dtype), 1 << 20, 0, -2, None)

    @staticmethod
    def wrap_dtype(arg):
        return MockTensor(arg) if type(arg).__module__ == "torch" and type(arg).__name__ == "dtype" else arg

    def stride(self):
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    def data_ptr(self):
        return 1 << 20

    def element_size(self):
        return _core.dtype_size(_arguments.dtype_number(self.dtype))


class TensorWrapper:
    """A tensor whose elements are taken for another dtype."""

    def __init__(self, base, dtype):
        self.dtype, self.base = dtype, base
        self.shape = self.data = None
        for name in "data", "device", "shape":
            setattr(self, name, getattr(base, name, None))

    def data_ptr(self):
        return self.base.data_ptr()

    @property
    def __tl_arg__(self):
        base = _arguments.convert(self.base)
        return _core.pointer(_arguments.dtype_number(self.dtype), base.address, base.bytes, base.device, base)

    def stride(self, *args):
        return self.base.stride(*args)

    def element_size(self):
        return self.base.element_size()

    def cpu(self):
        return TensorWrapper(self.base.cpu(), self.dtype)

    def cuda(self):
        return TensorWrapper(self.base.cuda(), self.dtype)

    def to(self, device):
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes):
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other):
        self.base.copy_(other.base)
        return self

    def clone(self):
        return TensorWrapper(self.base.clone(), self.dtype)

    def untyped_storage(self):
        return self.base.untyped_storage()

    def __str__(self):
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor, dtype):
    """The tensor with elements of another dtype of the same size."""
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if hasattr(tensor, "data_ptr") or hasattr(tensor, "__array_interface__"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"cannot reinterpret a {type(tensor)}")


class Asm(dict):
    """The texts of a compiled kernel by stage: ttir, ttgir, llir, ptx, remarks, schedule, source; and its machine code,
    cubin, for tools that read it: libtl launches other parameters than the kernel's. A kernel for a CPU has those of a GPU
    too, of the same arguments."""

    _STAGES = ("ttir", "ttgir", "llir", "ptx")

    def __init__(self, call):
        super().__init__()
        self._call = call

    def __missing__(self, stage):
        if stage == "source":
            text = self._call._kernel.module.sources[0][4]
        elif stage in self._STAGES or stage in ("remarks", "schedule", "calls", "asm"):
            call = self._call._for_gpu() if stage in ("ttgir", "ptx", "schedule") else self._call
            text = call.dump(stage)
        elif stage == "cubin":
            text = self._machine_code()
        else:
            raise KeyError(f"{stage!r}; there are {', '.join(self._STAGES)}, cubin, remarks, schedule, calls and source")
        self[stage] = text
        return text

    def _machine_code(self):
        from . import _cubin
        return _cubin.assemble(self["ptx"], re.search(r"^\.target (\w+)", self["ptx"], re.M)[1])

    def __contains__(self, stage):
        return stage in self._STAGES

    def keys(self):
        return list(self._STAGES)

    def get(self, stage, default=None):
        return self[stage] if stage in self else default


class _Metadata:
    """The properties of a compiled kernel; those that cost a compilation are found when they are asked for."""

    num_ctas = 1

    def __init__(self, call):
        self._call = call
        self.name, self.num_warps, self.num_stages, self.hash = call.name, call.num_warps, call.num_stages, call.hash

    @property
    def shared(self):
        return self._call.shared


class CompiledKernel(_core.Call):
    """A kernel as it was launched or compiled for certain arguments: its texts and resources."""

    __slots__ = ()
    launch_enter_hook = launch_exit_hook = None

    @property
    def asm(self):
        return Asm(self)

    @property
    def remarks(self):
        """What the compiler chose for each load, store, dot and loop, with source lines."""
        return self.dump("remarks")

    @property
    def resources(self):
        """A dict: registers, local_bytes, threads, shared_bytes, blocks, resident."""
        return self._resources()

    def _for_gpu(self):
        """This call; for a kernel of a CPU, the same call compiled for a GPU."""
        module = self._kernel.module
        if self._kernel.context.info()["kind"] in ("cuda", "sim"):
            return self
        if "sim" not in module.elsewhere:
            module.elsewhere["sim"] = _core.Module(_device.context("sim"), module.sources)
        return self._on(module.elsewhere["sim"].kernel(self.name))

    @property
    def n_regs(self):
        """Registers of a thread of a GPU; 0 where there is none."""
        return self._for_gpu()._resources()["registers"]

    @property
    def n_spills(self):
        """Spilled registers of a thread of a GPU."""
        return self._for_gpu()._resources()["local_bytes"] // 4

    @property
    def shared(self):
        """Bytes of shared memory on a GPU."""
        return self._for_gpu()._resources()["shared_bytes"]

    @property
    def hash(self):
        """A hash of the kernel's sources and of the variant."""
        import hashlib
        texts = [s[:1] + s[2:3] + s[4:] for s in self._kernel.module.sources]
        return hashlib.sha256(repr((texts, self._variant)).encode()).hexdigest()

    @property
    def metadata(self):
        return _Metadata(self)

    def result(self):
        return self

    def _init_handles(self):
        self.prepare()


_core.set_call_type(CompiledKernel)
_functions = weakref.WeakSet()


@_device._listeners.append
def _device_changed():
    for f in list(_functions):
        f._use_device()


def _after_fork():
    """A child process must not use the GPU with its parent's contexts, nor release them."""
    for f in list(_functions):
        if any(index >= 0 for index in f._kernels):
            _of_parent.append(dict(f._kernels))
            _of_parent.append(f._modules)
            f._modules = {}
            f._forget()


_of_parent = []
os.register_at_fork(after_in_child=_after_fork)


def hash_of(sources):
    """A hash of the texts and lines of a kernel's sources, in hexadecimal digits."""
    import hashlib
    return hashlib.sha256(repr([(s[0], s[2], s[4]) for s in sources]).encode()).hexdigest()


class _HasText:
    """A Python function whose text the compiler reads: `fn`."""

    _changed_text = None
    hash = None  # Triton's programs set it to None when they change a text

    @property
    def src(self):
        """The text of the function from `def` on."""
        return Function.of(self).text

    @src.setter
    def src(self, text):
        raise AttributeError("src cannot be assigned to; call _unsafe_update_src(text)")

    def _unsafe_update_src(self, text):
        """Replaces the text of the function, from `def` on. All kernels are compiled anew."""
        self._changed_text = text
        for f in list(_functions):
            f._forget_all()

    @property
    def raw_src(self):
        return inspect.getsourcelines(self.fn)[0]

    @property
    def starting_line_number(self):
        return inspect.getsourcelines(self.fn)[1]

    def parse(self):
        """The syntax tree of the function."""
        return ast.parse(Function.of(self).text)

    @property
    def cache_key(self):
        """A hash of the function's text and of all that it refers to."""
        return hash_of(Sources(self).sources)

    @property
    def used_global_vals(self):
        """The variables whose values the function has: (name, id of the dict) -> (value, dict)."""
        return {(n, id(d)): (v, d) for d, n, v, *_ in Sources(self).watched if isinstance(d, dict) and not is_jit(v)
                and not callable(v)}

    @used_global_vals.setter
    def used_global_vals(self, unused):
        for f in list(_functions):
            f._forget_all()


class JITFunction(_HasText, _core.Launcher, KernelInterface):
    """A Python function that runs as a kernel. `kernel[grid](arguments…, num_warps=…)` launches it."""

    def __init__(self, fn, version=None, do_not_specialize=None, do_not_specialize_on_alignment=None, debug=None,
                 noinline=None, repr=None, launch_metadata=None, device=None):
        self.fn, self.noinline, self.debug, self._device = fn, noinline, debug, device and _device._check(device)
        self.launch_metadata, self.version, self._repr = launch_metadata, version, repr
        self.do_not_specialize, self.do_not_specialize_on_alignment = do_not_specialize, do_not_specialize_on_alignment
        functools.update_wrapper(self, fn)
        self.signature = inspect.signature(fn)
        names = set(self.signature.parameters) | set(range(len(self.signature.parameters)))
        for option, given in (("do_not_specialize", do_not_specialize),
                              ("do_not_specialize_on_alignment", do_not_specialize_on_alignment)):
            if isinstance(given, str) or not set(given or ()) <= names:
                raise ArgumentError(f"{option}={given!r}: it must be a list of parameters of {fn.__name__}, of "
                                    f"{', '.join(self.signature.parameters)}")
        self.params = []
        for i, p in enumerate(self.signature.parameters.values()):
            any_value, any_alignment = (
                bool(names) and (i in names or p.name in names)
                for names in (do_not_specialize, do_not_specialize_on_alignment))
            self.params.append(KernelParam(i, p, any_value, any_alignment))
        self.arg_names = [p.name for p in self.params]
        self.constexprs = [p.num for p in self.params if p.is_constexpr]
        kinds = {p.kind for p in self.signature.parameters.values()}
        # the extension binds parameters that have a position and a name
        self._binds_in_python = bool(kinds - {inspect.Parameter.POSITIONAL_OR_KEYWORD})
        if inspect.Parameter.VAR_KEYWORD in kinds:
            raise TypeError(f"{fn.__name__}: a kernel cannot take **{self.arg_names[-1]}")
        if len(self.params) > _MOST_PARAMETERS:
            raise TypeError(f"{fn.__name__} has {len(self.params)} parameters; a kernel has at most {_MOST_PARAMETERS}")
        self.pre_run_hooks = []
        self._lock = threading.RLock()
        self._modules = {}
        _core.Launcher.__init__(
            self, tuple(self.arg_names),
            bytes(p.is_constexpr | 2 * (p.do_not_specialize or p.do_not_specialize_on_alignment)
                  | 4 * (p.do_not_specialize_on_alignment and not p.do_not_specialize) for p in self.params),
            {p.name: p.default for p in self.params if p.has_default})
        self.device_caches = _variants.Caches(self)
        self._use_device()
        _functions.add(self)
        _variants.functions[f"{fn.__module__}:{fn.__qualname__}"] = self

    __getitem__ = _core.Launcher.__getitem__

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.fn.__name__} is a kernel: launch it with {self.fn.__name__}[grid](…)")

    def __repr__(self):
        return f"JITFunction({self.fn.__module__}:{self.fn.__qualname__})"

    def __reduce__(self):
        return _by_name, (self.fn.__module__, self.fn.__qualname__)

    # --- launching

    def run(self, *args, grid, warmup, **kwargs):
        """Launches the kernel, or with `warmup` only compiles it."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    def warmup(self, *args, grid=None, **kwargs):
        """Compiles the kernel for these arguments; dtypes of PyTorch stand for tensors. The CompiledKernel."""
        args = [MockTensor.wrap_dtype(a) for a in args]
        return self._do(grid, args, {n: MockTensor.wrap_dtype(a) for n, a in kwargs.items()}, True)

    def preload(self, specialization_data):
        """Compiles the variant that a hook got as compile["specialization_data"]. The CompiledKernel."""
        bound, options, key = _variants.decode(self, specialization_data)
        known = {n: v for n, v in options.items() if n in _OPTIONS}
        compiled = self._compile_only(bound, known)
        self.device_caches[_variants.platform.key(self._spec(-1))][0][key] = compiled
        return compiled

    def _compile_only(self, bound, options):
        """The kernel for these arguments, compiled; no hook is called."""
        values, spec, kernel, options = self._converted(self._with_defaults(bound), dict(options))
        compiled = self._launch(kernel, None, values, options)
        compiled.prepare()
        return compiled

    def _with_defaults(self, bound):
        missing = [p.name for p in self.params if p.name not in bound and not p.has_default]
        if missing:
            raise TypeError(f"{self.fn.__name__}: there are no values of {', '.join(missing)}")
        return {p.name: bound.get(p.name, p.default) for p in self.params}

    def compile(self, *args, **kwargs):
        """Compiles the kernel. An argument may be a value, or a type: a dtype or a text ("*fp32", "i32", "fp32"). The
        CompiledKernel has the texts of all stages and the resources."""
        return self.warmup(*[of_type(a) for a in args], **{
            n: of_type(a) if n in self.arg_names and n not in self._constexpr_names() else a for n, a in kwargs.items()})

    def estimate(self, *args, grid, **kwargs):
        """The expected cost of a launch on a GPU, as a dict: `us` in microseconds, for comparisons of configurations, the
        demands of a block (tl_estimate in tl.h), and `device`, the kind of device that the launch would run on. No machine
        code is generated. For arguments in host memory the GPU is an H100."""
        bound, given = self._bind(args, kwargs)
        values, _, kernel, options = self._converted(bound, given, False)
        call = self._launch(kernel, None, values, options)
        expected = call._for_gpu()._estimate(grid(dict(bound)) if callable(grid) else grid)
        return {**expected, "device": call._kernel.context.info()["kind"]}

    def _constexpr_names(self):
        return {p.name for p in self.params if p.is_constexpr}

    def add_pre_run_hook(self, hook):
        """hook(*args, **kwargs) is called before each launch."""
        self.pre_run_hooks.append(hook)
        self._use_device()

    @property
    def device(self):
        """Where the kernel runs with arguments in host memory; None: on the device of libtl.set_device."""
        return self._device

    @device.setter
    def device(self, spec):
        self._device = spec and _device._check(spec)
        self._use_device()

    def _use_device(self):
        spec = self.device or _device.get_device()
        self._kernels.pop(-1, None)
        self._runs_python = bool(self.pre_run_hooks or _device.is_checked(spec) or self._binds_in_python or self.debug)

    def _spec(self, index, given=None):
        """The device for memory on the host (-1) or on a GPU."""
        if index >= 0:
            if given not in (None, f"cuda:{index}", "cuda"):
                raise ArgumentError(f'the device "{given}" cannot use memory of a GPU; pass tensors on the CPU: x.cpu()')
            return f"cuda:{index}"
        return _device._check(given) if given else self.device or _device.get_device()

    def _kernel(self, index):
        """The kernel for a device without functions among its arguments. The extension calls it."""
        return self._compiled_for(self._spec(index), ())[0]

    def _compiled_for(self, spec, values):
        """The kernel of a module that contains these functions and values, and their names."""
        with self._lock:
            key = spec, *map(identity, values)
            found = self._modules.pop(key, None)
            if found and not _core.changed(found[2].watched):
                self._modules[key] = found  # the last one used
                return found[0], [found[1][id(v)] for v in found[3]]
            both = [p.name for p in self.params if p.is_constexpr and p.do_not_specialize]
            if both:
                raise CompileError(f"error: {self.fn.__name__}: {both[0]} marked as constexpr and listed in "
                                   "do_not_specialize")
            try:
                sources = Sources(self, values)
            except NotWritten as e:
                raise CompileError(f"error: {e}") from None
            module = _core.Module(_device.context(spec), tuple(sources.sources))
            if found:
                self.device_caches.empty()
            if not values:
                # the kernels that launches find without Python code are those of this module
                if _core.changed(self._watched):
                    self._forget()
                self._watched[:] = sources.watched
            # the values are kept, so that no other object has their addresses
            self._modules[key] = module.kernel(self.fn.__name__), sources.names, sources, values
            if len(self._modules) > _MOST_MODULES:
                del self._modules[next(iter(self._modules))]
            return self._modules[key][0], [sources.names[id(v)] for v in values]

    def _forget_all(self):
        """The kernel is compiled anew at its next launch."""
        with self._lock:
            self._modules.clear()
            self.device_caches.empty()
            self._forget()

    def _bind(self, args, kwargs):
        named = {n: v for n, v in kwargs.items() if n in self.arg_names}
        options = {n: v for n, v in kwargs.items() if n not in self.arg_names}
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        return bound.arguments, self._options(options)

    def _options(self, given):
        options = {}
        for name, v in given.items():
            if name in _OPTIONS or name == "device":
                options[name] = v
            elif name not in _IGNORED:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised; {self.fn.__name__} has the "
                               f"parameters {', '.join(self.arg_names)}, and a launch the options {', '.join(sorted(_OPTIONS))}")
            elif _IGNORED[name] is not None and v not in _IGNORED[name]:
                raise ArgumentError(f"{name}={v!r} is not supported; it must be {_IGNORED[name][0]}")
            else:
                options[name] = v
        if self.debug or knobs.runtime.debug:
            options["debug"] = bool(options.get("debug", self.debug) or knobs.runtime.debug)
        return options

    def _run(self, grid, args, kwargs):
        """A launch with all that Python code can do. The extension calls it."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        return self._do(grid, args, kwargs, False)

    def _converted(self, bound, options, is_warmup=True):
        """The arguments as objects of the extension, the device, the kernel, and the options of the extension."""
        options = {n: v for n, v in options.items() if n in _OPTIONS or n == "device"}
        functions = []
        converted = [_converted(bound[p.name], functions, p.is_constexpr) for p in self.params]
        index, given = max(_places(converted), default=-2), options.pop("device", None)
        if index == -2 and is_warmup and not (given or self.device):
            index = _device.default_gpu()
        spec = self._spec(index, given)
        kernel, names = self._compiled_for(spec, tuple(f.value for f in functions))
        for f, name in zip(functions, names):
            f.name = name
        return tuple(map(_named, converted)), spec, kernel, options

    def _do(self, grid, args, kwargs, is_warmup):
        """A launch or a warmup, with the hooks."""
        bound, given = self._bind(args, kwargs)
        values, spec, kernel, options = self._converted(bound, given, is_warmup)
        variant = _variants.Variant(self, bound, given, spec)
        compiled = variant.found
        is_new = compiled is None
        if is_new:
            if variant.call(knobs.runtime.jit_cache_hook, is_warmup):
                return None
            compiled = self._launch(kernel, None, _without_memory(values), options)
        if is_warmup:
            return _warm(compiled, variant) if is_new else compiled
        self._check_read_only(compiled, values)
        if callable(grid):
            grid = grid(dict(bound))
        if grid is None:
            raise TypeError("axis 0 of the grid is None; it must be an integer")
        kept = self._announce(spec, bound.values())
        with _variants.hooked(self, compiled.result(), grid, bound, options, is_new):
            result = self._launch(kernel, grid, values, options)
        del kept
        if is_new:
            variant.keep(compiled)
            variant.call(knobs.runtime.jit_post_compile_hook, False)
        return result

    def _check_read_only(self, compiled, values):
        """Raises ArgumentError if the kernel writes memory that must not be written."""
        read_only = [n for n, v in zip(self.arg_names, values) if isinstance(v, _core.Arg) and v.is_read_only]
        for line in compiled.result().dump("accesses").splitlines() if read_only else ():
            name, _, kinds = line.partition(":")
            if name in read_only and "written" in kinds.split():
                raise ArgumentError(f"{self.fn.__name__} writes {name!r}, which is a read-only array\n"
                                    "      = hint: pass a copy, or an array with the flag WRITEABLE")

    @staticmethod
    def _announce(spec, values):
        """Buffers of the tensors' memory, on devices that check accesses."""
        if not _device.is_checked(spec):
            return None
        buffers = {}
        for v in _tensors(values):
            address, size = _arguments.memory(v)
            if size and address not in buffers:
                buffers[address] = _device.context(spec).wrap(address, size)
        return buffers

    # --- what other code asks of Triton's JITFunction

    @property
    def module(self):
        return self.fn.__module__

    def create_binder(self):
        return None

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


def _by_name(module, qualname):
    import importlib
    v = importlib.import_module(module)
    for part in qualname.split("."):
        v = getattr(v, part)
    return v


def of_type(v):
    """An argument of a type: "*fp32:16", "i32", a dtype."""
    if isinstance(v, str) and v.lstrip("*k").split(":")[0].replace("int", "i") and v[:1] in "*iufb":
        name, _, divisor = v.partition(":")
        try:
            number = _arguments.dtype_number(name.lstrip("*").removeprefix("k"))
        except TypeError:
            return v
        if v.startswith("*"):
            return _core.pointer(number, (1 << 20) + (0 if not divisor or divisor == "16" else 8), 0, -2, None)
        value = 16 if divisor == "16" else 1 if divisor == "1" else 7
        return _core.number(number, 0.5 if name[0] in "fb" and name != "bool" else value)
    return MockTensor.wrap_dtype(v)


class _Named:
    """An argument that the kernel's source gives a name: a function, or a compile-time value that only Python has."""

    def __init__(self, value):
        self.value, self.name = value, None


def _converted(v, named, constexpr=False):
    """The argument as an object of the extension; those that need a name are collected. Kernels can only tell one object
    without a text from another: as a tl.constexpr it is a text."""
    if is_jit(v):
        named.append(_Named(v))
        return named[-1]
    if type(v) in (int, float, bool, str, type(None), _core.Arg):
        return v
    if isinstance(v, (tuple, list)):
        items = [_converted(x, named) for x in v]
        return type(v)(*items) if hasattr(v, "_fields") else tuple(items)
    c = _arguments.convert(v)
    if c is NotImplemented and constexpr and not has_text(v):
        return repr(v)
    if c is NotImplemented:
        named.append(_Named(v.value if type(v).__name__ == "constexpr" and hasattr(v, "value") else v))
        return named[-1]
    return _converted(c, named) if isinstance(c, (tuple, list)) else c


def _places(values):
    """The devices of the pointers."""
    for v in values:
        if isinstance(v, _core.Arg):
            yield v.device
        elif isinstance(v, (tuple, list)):
            yield from _places(v)


def _mapped(f, v):
    """The value with its elements replaced, those of tuples too."""
    if isinstance(v, (tuple, list)):
        items = [_mapped(f, x) for x in v]
        return type(v)(*items) if hasattr(v, "_fields") else tuple(items)
    return f(v)


def _named(v):
    return _mapped(lambda x: _core.function(x.name) if isinstance(x, _Named) else x, v)


def _without_memory(values):
    """The arguments without the tensors that they keep, for a kernel that is kept without being launched."""
    return _mapped(lambda x: x.detached() if isinstance(x, _core.Arg) else x, values)


def _warm(compiled, variant):
    """Compiles, at once or in the pool of an AsyncCompileMode."""
    def finish(unused):
        variant.keep(compiled)
        variant.call(knobs.runtime.jit_post_compile_hook, True)

    mode = _variants.active_mode.get()
    if mode is not None:
        future = mode.submit((variant.fn, variant.key), lambda: compiled.prepare() or compiled, finish)
        variant.keep(future)
        return future
    compiled.prepare()
    finish(compiled)
    return compiled


def _tensors(values):
    for v in values:
        if isinstance(v, (tuple, list)):
            yield from _tensors(v)
        elif hasattr(v, "block_shape") and hasattr(v, "base"):
            yield v.base
        elif isinstance(v, TensorWrapper):
            yield v.base
        elif hasattr(v, "untyped_storage") or hasattr(v, "__array_interface__") and getattr(v, "shape", ()) != ():
            yield v
        elif isinstance(v, _core.Arg) and v.bytes:
            yield v


@functools.cache
def _unwrap():
    from .language import core
    return core._unwrap


class ConstexprFunction(_HasText):
    """A Python function that runs while a kernel is compiled."""

    def __init__(self, fn):
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.__wrapped__ = fn

    def __get__(self, instance, owner):
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args, **kwargs):
        unwrap = _unwrap()
        return self.fn(*map(unwrap, args), **{n: unwrap(v) for n, v in kwargs.items()})


def constexpr_function(fn):
    """The function runs while a kernel is compiled, on compile-time values."""
    return ConstexprFunction(fn)


def jit(fn=None, *, version=None, repr=None, launch_metadata=None, do_not_specialize=None,
        do_not_specialize_on_alignment=None, debug=None, noinline=None, device=None):
    """Makes a kernel of a Python function.

    do_not_specialize: names or indices of parameters on whose values the code must not depend.
    do_not_specialize_on_alignment: likewise, of addresses. debug: tl.device_assert and integer overflow are checked.
    device: where the kernel runs with arguments in host memory: "cpu", "cpu:check", "interp", "sim"; None: that of
    libtl.set_device.
    """

    def decorate(fn):
        if isinstance(fn, JITFunction):
            return fn
        return JITFunction(fn, version, do_not_specialize, do_not_specialize_on_alignment, debug, noinline, repr,
                           launch_metadata, device)

    return decorate(fn) if fn is not None else decorate
