"""Kernels compiled for types, as Triton's compiler returns them: TorchInductor launches them without a jit function."""

import functools
import hashlib
import re
import types

from . import _arguments, _core, _device, _jit, _variants
from .errors import CompileError

__all__ = ["Compiled", "compile_types"]

# what a runner's byte says of a parameter (runner.c)
_POINTER, _NUMBER, _CONSTANT, _UNSPECIALIZED = 32, 64, 96, 128


def _element(ty):
    """The dtype number of a type's text: "*fp32", "*kfp16", "i64"."""
    return _arguments.dtype_number(ty.lstrip("*").removeprefix("k") if ty.startswith("*") else ty)


class _Parameters:
    """The parameters of a kernel compiled for types.

    types: a byte for each parameter. values: the values of constants, else None. examples: arguments for which the
    kernel is compiled.
    """

    def __init__(self, fn, signature, constants, attrs, general):
        """constants, attrs: by path, a tuple of indices. general: the code must be right for pointers that overlap, and for
        memory of any size."""
        self.general, self.constants, self.attrs = general, constants, attrs
        self.types, self.values, self.examples, self.functions = bytearray(), [], [], []
        for i, p in enumerate(fn.params):
            divisible = any(a[0] == "tt.divisibility" and a[1] % 16 == 0 for a in attrs.get((i,), ()))
            self.add(p, signature.get(p.name, "constexpr"), (i,), divisible)

    def add(self, p, ty, path, divisible):
        constant = ty == "constexpr" or path in self.constants
        value = self.constants.get(path, p.default if p.has_default else None) if constant else None
        if constant:
            value = _jit._converted(value, self.functions, p.is_constexpr)
            self.types.append(_CONSTANT)
            example = value if p.is_constexpr or type(value) not in (int, float, bool) else _core.constant(value)
            value = example
        elif isinstance(ty, str) and ty.startswith("*"):
            number = _element(ty)
            self.types.append(_POINTER | number)
            # each pointer has memory of its own, or memory that overlaps that of the others in part
            i = len(self.types)
            start, size = ((1 << 40) + (i << 12), 1 << 40) if self.general else (i << 40, 1 << 20)
            example = _core.pointer(number, start + (0 if divisible else 8), size, -1, None)
        elif isinstance(ty, str) and not ty.startswith(("tensordesc", "nvTmaDesc")):
            number = _element(ty)
            self.types.append(_NUMBER | number)
            name = _core.dtype_names()[number]
            example = 0.5 if name.startswith(("fp", "bf")) else 16 if divisible else 7
            example = True if name == "i1" else _core.number(number, example)
        else:
            self.types.append(0)
            example = _jit._converted(_variants.argument_of(ty, path, self.constants, self.attrs), self.functions)
        if not constant and not divisible and self.types[-1]:
            self.types[-1] |= _UNSPECIALIZED
            example = _core.unspecialized(example)
        self.values.append(value)
        self.examples.append(example)

    def named(self, names):
        """Values and examples, where functions have their names in the module."""
        for f, name in zip(self.functions, names):
            f.name = name
        return tuple(map(_jit._named, self.values)), tuple(map(_jit._named, self.examples))


class _Asm(_jit.Asm):
    """The texts of a kernel by stage, and its machine code for other launchers, "cubin"."""

    def __init__(self, kernel):
        super().__init__(kernel.call)
        self._kernel = kernel

    def _machine_code(self):
        if not self._kernel.is_general:
            raise CompileError(f"{self._kernel.name}: only libtl can launch this code, so there is no cubin")
        return super()._machine_code()

    def __contains__(self, stage):
        return stage == "cubin" and self._kernel.is_general or super().__contains__(stage)

    def keys(self):
        return [*super().keys(), *(["cubin"] if self._kernel.is_general else [])]


class Compiled:
    """A kernel compiled for types.

    hash: a text of hexadecimal digits. src: what it was compiled from. metadata: name, num_warps, num_stages, shared
    and others under Triton's names. asm: the texts by stage. n_regs, n_spills: registers of a thread, and spilled
    registers. run: launches the kernel, as Triton's launchers do. is_general: any launcher may launch asm["cubin"], with
    the kernel's arguments alone.
    """

    function = module = packed_metadata = None

    def __init__(self, src, key, call, run, options, general):
        self.is_general = general
        self.src, self.hash, self.call, self.run = src, key, call, run
        resources = call.resources
        self.n_regs, self.n_spills = resources["registers"], resources["local_bytes"] // 4
        self.shared = resources["shared_bytes"]
        self.n_max_threads = resources["threads"]
        self.name = call.name
        self.metadata = types.SimpleNamespace(
            name=call.name, num_warps=call.num_warps, num_stages=call.num_stages, num_ctas=1, shared=self.shared, hash=key,
            launch_pdl=options.get("launch_pdl", False), global_scratch_size=0, global_scratch_align=1,
            launch_cooperative_grid=options.get("launch_cooperative_grid", False), profile_scratch_size=0,
            profile_scratch_align=1, tensordesc_meta=[], tmem_size=0)

    @property
    def asm(self):
        return _Asm(self)

    @property
    def num_warps(self):
        return self.metadata.num_warps

    @property
    def remarks(self):
        """What the compiler chose for each load, store, dot and loop, with source lines."""
        return self.call.remarks

    @property
    def resources(self):
        """A dict: registers, local_bytes, threads, shared_bytes, blocks, resident."""
        return self.call.resources

    def dump(self, stage):
        """The text of a stage: ttir, ttgir, llir, ptx, remarks, schedule."""
        return self.call.dump(stage)

    def _init_handles(self):
        return None

    def result(self):
        return self

    def launch_metadata(self, grid, stream, *args):
        """The argument of launch hooks."""
        return types.SimpleNamespace(get=lambda: {"name": self.name, "grid": grid, "stream": stream})

    def __getitem__(self, grid):
        grid = (*grid, 1, 1)[:3] if isinstance(grid, (tuple, list)) else (grid, 1, 1)

        def launch(*args, stream=0):
            self.run(*grid, stream, None, None, None, None, None, *args)

        return launch


@functools.cache
def build():
    """A text that differs between builds of the compiler."""
    return f"libtl {_core.version()} {_core.build_identity()}"


def _jit_function(fn):
    """libtl's function for Triton's."""
    if isinstance(fn, _jit.JITFunction):
        return fn
    own = fn.__dict__.get("__libtl__")
    if own is None or own.fn is not fn.fn:
        own = fn.__dict__["__libtl__"] = _jit.JITFunction(fn.fn, do_not_specialize=getattr(fn, "do_not_specialize", None))
    return own


def _announcing(run, spec):
    """run, on a device that checks accesses, and so must know the memory of the tensors."""

    def announced(*arguments):
        buffers = _jit.JITFunction._announce(spec, arguments)
        run(*arguments)
        del buffers

    return announced


def _check_general(call, parameters):
    """CompileError: another launcher than libtl's cannot launch the code."""
    ptx, resources = call.dump("ptx"), call.resources
    count = len(re.findall(r"\.param ", ptx.partition("{")[0]))
    why = ("it runs on clusters of blocks" if resources["blocks"] > 1
           else "it has parameters that libtl computes" if count != parameters
           else "its launches are restricted" if "// for launches" in ptx
           else None)
    if why:
        raise CompileError(f"error: {call.name} can be launched by libtl only: {why}")


def _by_path(fn, values):
    """Values by path, a tuple of indices. The keys may also be names or indices of parameters."""
    return {k if isinstance(k, tuple) else (fn.arg_names.index(k) if isinstance(k, str) else k,): v
            for k, v in (values or {}).items()}


def compile_types(src, spec, options, general=False):
    """Compiles a kernel for the types of its parameters.

    general: for a GPU, code that any launcher may launch, with the kernel's arguments alone. CompileError: there is none.

    src: has fn, signature, constants and attrs, like Triton's ASTSource. spec: a device. options: those of a launch;
    others are ignored.
    """
    fn = _jit_function(src.fn)
    signature = {name if isinstance(name, str) else fn.arg_names[name]: ty for name, ty in src.signature.items()}
    constants, attrs = (_by_path(fn, values) for values in (src.constants, src.attrs))
    p = _Parameters(fn, signature, constants, attrs, general)
    options = {n: v for n, v in options.items() if n in _jit._OPTIONS and v is not None}
    kernel, names = fn._compiled_for(spec, tuple(f.value for f in p.functions))
    values, examples = p.named(names)
    call = fn._launch(kernel, None, examples, options)
    call.prepare()
    if general:
        _check_general(call, sum(t & _CONSTANT != _CONSTANT for t in p.types))
    index = int(spec.partition(":")[2] or 0) if spec.startswith("cuda") else -1
    run = _core.runner(kernel, bytes(p.types), values, options, index)
    run = _announcing(run, spec) if _device.is_checked(spec) else run
    text = repr((build(), _jit.hash_of(kernel.module.sources), spec, _device.context(spec).info()["target"],
                 sorted(signature.items()), sorted((n, repr(v)) for n, v in constants.items()), sorted(attrs.items(), key=str),
                 sorted(options.items()), general))
    return Compiled(src, hashlib.sha256(text.encode()).hexdigest(), call, run, options, general)
