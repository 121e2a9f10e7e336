"""The variants of kernels that Python code sees: their keys, and the functions of libtl.knobs that are called for them.

The library itself decides what it compiles. A variant here is what Triton would compile: each type, compile-time value and
specialisation of the arguments. The key of a variant is a text.
"""

import contextlib
import contextvars
import re
import types

from . import _arguments, _core, knobs
from ._source import identity

__all__ = ["Caches", "LazyDict", "Variant", "argument_of", "arguments_of", "active_mode", "platform", "hooked"]

active_mode = contextvars.ContextVar("async_compile_active_mode", default=None)


class _Platform:
    """The names of devices. Triton's package replaces it by its driver's."""

    @staticmethod
    def key(spec):
        return spec

    @staticmethod
    def target():
        return types.SimpleNamespace(backend="libtl", arch=0, warp_size=32)


platform = _Platform


class _Cache(dict):
    """Compiled kernels by key. If one is removed, its next launch calls the hooks again; if all are, they are compiled anew."""

    def __init__(self, fn):
        self.fn, self.values_of = fn, {}

    def clear(self):
        self.fn._forget_all()

    def pop(self, *args):
        self.fn._forget()
        return super().pop(*args)

    def __delitem__(self, key):
        super().__delitem__(key)
        self.fn._forget()


class Caches(dict):
    """device_caches of a kernel: for each device a tuple, whose first element has the compiled kernels by key."""

    def __init__(self, fn):
        self.fn = fn

    def __missing__(self, device):
        if isinstance(device, int):  # as in older versions of Triton
            return self[platform.key(f"cuda:{device}")]
        self[device] = made = (_Cache(self.fn), {}, platform.target(), None, None)
        return made

    def empty(self):
        """Removes all kernels."""
        for made in self.values():
            dict.clear(made[0])
            made[0].values_of.clear()

    def clear(self):
        super().clear()
        self.fn._forget_all()


class LazyDict:
    """A dict, of which functions compute a part when it is asked for."""

    def __init__(self, data):
        self.data, self.extras = data, []

    def get(self):
        for f, args in self.extras:
            self.data = self.data | f(*args)
        self.extras.clear()
        return self.data

    def add(self, f, args):
        self.extras.append((f, args))


class _JitFunctionInfo:

    def __init__(self, fn):
        self.module, self.name, self.jit_function = fn.fn.__module__, fn.fn.__qualname__, fn


# --- types and specialisations of arguments

def _dtype(number):
    name = _core.dtype_names()[number]
    return "u1" if name == "i1" else name


def _integer(v, value, alignment):
    if v == 1 and value:
        return "constexpr", 1
    ty = "i32" if -2**31 <= v < 2**31 else "u64" if v >= 2**63 else "i64"
    return ty, "D" if value and alignment and v % 16 == 0 else ""


def specialize(v, const=False, value=True, alignment=True):
    """The type of an argument and what it is specialised for: ("*fp32", "D"), ("i32", ""), ("constexpr", 1)."""
    v = getattr(v, "__tl_arg__", v) if type(v).__name__ != "dtype" else v
    if v is None or type(v).__name__ in ("JITFunction", "ConstexprFunction", "constexpr"):
        return "constexpr", getattr(v, "cache_key", v)
    if isinstance(v, bool):
        return "u1", None
    if isinstance(v, int):
        return _integer(int(v), value, alignment)
    if isinstance(v, float):
        return "fp32", None
    if isinstance(v, (tuple, list)):
        all_ = [specialize(x) for x in v]
        types_, keys = [t for t, _ in all_], [k for _, k in all_]
        return (type(v)(*types_), type(v)(*keys)) if hasattr(v, "_fields") else (tuple(types_), tuple(keys))
    if hasattr(v, "block_shape"):
        base = _arguments.convert(v.base) if not isinstance(v.base, _core.Arg) else v.base
        return f"tensordesc<{_dtype(base.dtype)}{[int(n) for n in v.block_shape]}>", None
    arg = v if isinstance(v, _core.Arg) else _arguments.convert(v)
    if isinstance(arg, _core.Arg) and arg.is_pointer:
        aligned = value and alignment and arg.address % 16 == 0
        return ("*k" if const else "*") + _dtype(arg.dtype), "D" if aligned else ""
    if isinstance(arg, _core.Arg):
        return (_dtype(arg.dtype), "") if not hasattr(v, "name") else ("constexpr", v)
    return specialize(arg) if isinstance(arg, (int, float, tuple, list)) else ("constexpr", v)


def _of_parameter(p, v):
    if p.is_constexpr:
        return "constexpr", getattr(v, "cache_key", v)
    ty, key = specialize(v, p.is_const, not p.do_not_specialize, not p.do_not_specialize_on_alignment)
    if p.annotation_type and not isinstance(ty, tuple):
        return p.annotation_type, None if p.annotation_type[:2] in ("u1", "fp", "bf") else key
    return ty, key


def _leaves(types_, values, path=()):
    """(path, type, value) of the elements of tuples."""
    for i, (t, v) in enumerate(zip(types_, values)):
        if isinstance(t, (tuple, list)):
            yield from _leaves(t, v, path + (i,))
        else:
            yield path + (i,), t, v


class Variant:
    """What a launch needs: `key`, `types` of the parameters, `constants` by path, `attrs`, `options`."""

    def __init__(self, fn, bound, options, spec):
        self.fn, self.spec = fn, spec
        specialized = [_of_parameter(p, bound[p.name]) for p in fn.params]
        self.types = [t for t, _ in specialized]
        values = [bound[p.name] for p in fn.params]
        self.constants = {path: v for path, t, v in _leaves(self.types, values) if t == "constexpr"}
        keys = ["" if t == "constexpr" else k for t, k in specialized]
        self.attrs = {path: [["tt.divisibility", 16]] for path, _, k in _leaves(self.types, keys) if k == "D"}
        self.options = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "enable_fp_fusion": bool(knobs.language.default_fp_fusion),
                        "launch_cooperative_grid": False, "extern_libs": None, "debug": False}
        self.options |= {n: v for n, v in options.items() if v is not None and n != "stream"}
        extern = self.options["extern_libs"]
        self.options["extern_libs"] = tuple(extern.items()) if isinstance(extern, dict) else extern
        self.key = f"{[identity(s) for s in specialized]}{sorted(self.options.items(), key=lambda o: o[0])}"
        self.cache = fn.device_caches[platform.key(spec)][0]

    @property
    def found(self):
        """The compiled kernel, or None."""
        return self.cache.get(self.key)

    def keep(self, compiled):
        self.cache[self.key] = compiled
        self.cache.values_of[self.key] = self.constants  # no other object has the addresses in the key

    def call(self, hook, is_warmup):
        """Calls a hook for the compilation. Its result; None if there is no hook."""
        if hook is None:
            return None
        names = [p.name for p in self.fn.params]
        o = self.options
        shown = ", ".join(f"{n}={o[n]}" for n in ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion",
                                                  "launch_cooperative_grid"))
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, self.types))
        compile_ = dict(o, key=self.key, signature=dict(zip(names, self.types)), device=0, constants=self.constants,
                        configs=[self.attrs], specialization_data=self.data(), is_warmup=is_warmup)
        return hook(key=self.key, repr=f"{self.fn.fn.__qualname__}[{shown}]({arguments})", fn=_JitFunctionInfo(self.fn),
                    compile=compile_, is_manual_warmup=is_warmup, already_compiled=False)

    # --- as text, for JITFunction.preload

    def data(self):
        """The variant as JSON."""
        import json
        names = [p.name for p in self.fn.params]
        return json.dumps({"name": _full_name(self.fn), "signature": dict(zip(names, self.types)), "key": self.key,
                           "constant_keys": [list(k) for k in self.constants],
                           "constant_vals": [_encode(v) for v in self.constants.values()],
                           "attrs_keys": [list(k) for k in self.attrs], "attrs_vals": list(self.attrs.values()),
                           "options": self.options, "target": dict(vars(platform.target()))}, default=str)


def _full_name(fn):
    return f"{fn.fn.__module__}.{fn.fn.__qualname__}"


functions = {}  # jit functions by module and qualified name, for `preload`


def _encode(v):
    if type(v).__name__ == "dtype":
        return {"dtype": v.name}
    if type(v).__name__ == "constexpr":
        return {"constexpr": _encode(v.value)}
    if type(v).__name__ == "JITFunction":
        return {"jit_function": f"{v.fn.__module__}:{v.fn.__qualname__}"}
    return [_encode(x) for x in v] if isinstance(v, (tuple, list)) else v


def _decode(v):
    if isinstance(v, list):
        return tuple(map(_decode, v))
    if not isinstance(v, dict):
        return v
    from .language import core
    (kind, inner), = v.items()
    if kind == "dtype":
        return core.dtype(inner)
    if kind == "constexpr":
        return core.constexpr(_decode(inner))
    if inner not in functions:
        raise RuntimeError(f"preload: there is no jit function {inner}")
    return functions[inner]


def decode(fn, text):
    """The arguments, options and key of a variant from its JSON. RuntimeError: it is of another kernel or target."""
    import json
    data = json.loads(text)
    if data["name"] != _full_name(fn):
        raise RuntimeError(f"Specialization data is for {data['name']} but trying to preload for {_full_name(fn)}")
    target = dict(vars(platform.target()))
    if data["target"] != target:
        raise RuntimeError(f"Specialization data is for {data['target']} but trying to preload for {target}")
    constants = dict(zip(map(tuple, data["constant_keys"]), map(_decode, data["constant_vals"])))
    attrs = dict(zip(map(tuple, data["attrs_keys"]), data["attrs_vals"]))
    return arguments_of(fn, data["signature"], constants, attrs), data["options"], data["key"]


def arguments_of(fn, signature, constants, attrs):
    """Arguments of these types, by name. constants, attrs: by path, a tuple of indices."""
    return {p.name: argument_of(signature.get(p.name), (i,), constants, attrs) for i, p in enumerate(fn.params)
            if p.name in signature or (i,) in constants}


def argument_of(ty, path, constants, attrs):
    """An argument of the type: a text, or a tuple of types. path: of the parameter, or of an element of its tuple."""
    from ._jit import of_type
    if path in constants:
        return constants[path]
    if isinstance(ty, (tuple, list)):
        items = [argument_of(t, path + (i,), constants, attrs) for i, t in enumerate(ty)]
        return type(ty)(*items) if hasattr(ty, "_fields") else tuple(items)
    if ty is None or ty == "constexpr":
        return None
    if ty.startswith("tensordesc<"):
        return _descriptor(ty)
    aligned = any(a[0] == "tt.divisibility" for a in attrs.get(path, ()))
    return of_type(f"{ty}:16" if aligned else f"{ty}:8" if ty.startswith("*") else ty)


def _descriptor(ty):
    m = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]*)\].*>", ty)
    if m is None:
        raise TypeError(f"there is no type {ty!r}; a descriptor is tensordesc<fp16[64, 64]>")
    block = [int(n) for n in m[2].split(",")]
    shape = [max(n, 16) for n in block]
    strides = [1]
    for n in shape[:0:-1]:
        strides.insert(0, strides[0] * n)
    base = _core.pointer(_arguments.dtype_number(m[1]), 1 << 20, 0, -2, None)
    return _core.descriptor(base, shape, strides, block, False, False)


# --- hooks of launches

def _metadata(fn, compiled, grid, bound, options):
    """What the hooks of a launch receive."""
    data = LazyDict({"name": compiled.name, "function": None, "stream": options.get("stream") or 0})
    if fn.launch_metadata is not None:
        data.add(fn.launch_metadata, (grid, compiled.metadata, dict(bound)))
    return data


@contextlib.contextmanager
def hooked(fn, compiled, grid, bound, options, is_new):
    """Calls the hooks before and after the launch in the block."""
    r = knobs.runtime
    load = [h if is_new and knobs.is_set(h) else None for h in (r.kernel_load_start_hook, r.kernel_load_end_hook)]
    launch = [h if knobs.is_set(h) else None for h in (r.launch_enter_hook, r.launch_exit_hook)]
    metadata = _metadata(fn, compiled, grid, bound, options) if any(launch) else None
    if load[0]:
        load[0](None, None, compiled.name, {}, compiled.hash)
    if launch[0]:
        launch[0](metadata)
    yield
    if launch[1]:
        launch[1](metadata)
    if load[1]:
        load[1](compiled._kernel.module, compiled._kernel, compiled.name, {}, compiled.hash)
