"""Settings, under Triton's names: libtl.knobs.runtime.debug, .launch_enter_hook, ….

A setting has the value that was assigned to it, or else that of its environment variable, or else its default. Those of
Triton's own compiler have no effect. Functions that are called when kernels are compiled, loaded and launched:

runtime.jit_cache_hook, jit_post_compile_hook: before and after a variant of a kernel is compiled, with key, repr, fn
(module, name, jit_function), compile (a dict), is_manual_warmup, already_compiled. If the former returns a true value,
nothing is compiled or launched.
runtime.kernel_load_start_hook, kernel_load_end_hook: around the first launch of a variant, with module, function, name,
metadata_group, hash. Chains: .add(f), .remove(f).
runtime.launch_enter_hook, launch_exit_hook: around each launch, with an object whose get() has name, function, stream,
and what the kernel's launch_metadata returns. Chains.
autotuning.listener: after an autotuner has chosen, with fn, key, best_config, configs_timings, duration, cache_hit.
"""

import contextlib
import os

from . import _core

propagate_env = True  # assigned values are also written to the environment
_UNSET = object()


class HookChain:
    """Functions that are called one after another."""

    def __init__(self, reversed=False):
        self.calls, self.reversed = [], reversed

    def add(self, func):
        if func not in self.calls:
            self.calls.append(func)
        _look()

    def remove(self, func):
        if func in self.calls:
            self.calls.remove(func)
        _look()

    def __call__(self, *args, **kwargs):
        for f in self.calls[::-1] if self.reversed else list(self.calls):
            f(*args, **kwargs)


def _class(text):
    """The class of the text "module:name"."""
    import importlib
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as e:
        raise RuntimeError(f"{text!r} must be module:class: {e}") from None


class env_base:
    """A setting with an environment variable. kind: str, bool, int, or _class."""

    def __init__(self, key, default=None, kind=str):
        self.key, self.default, self.kind = key, default, kind

    def __set_name__(self, owner, name):
        self.name = name

    def get(self):
        text = os.environ.get(self.key)
        if text is None:
            return self.default() if callable(self.default) else self.default
        if self.kind is bool:
            return text.lower() in ("1", "y", "on", "yes", "true")
        try:
            return self.kind(text)
        except ValueError:
            raise RuntimeError(f"{self.key}={text}: it must be an integer") from None

    def __get__(self, obj, owner=None):
        if obj is None:
            return self
        v = obj.__dict__.get(self.name, _UNSET)
        return self.get() if v is _UNSET else v

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value
        if propagate_env and isinstance(value, (str, int)):
            os.environ[self.key] = str(int(value)) if isinstance(value, bool) else str(value)
        elif propagate_env and value is None:
            os.environ.pop(self.key, None)

    def __delete__(self, obj):
        obj.__dict__.pop(self.name, None)


class base_knobs:
    """A group of settings."""

    @property
    def knob_descriptors(self):
        return {n: v for n, v in type(self).__dict__.items() if isinstance(v, env_base)}

    @property
    def knobs(self):
        return {n: getattr(self, n) for n in self.knob_descriptors}

    def copy(self):
        other = type(self)()
        other.__dict__.update(self.__dict__)
        return other

    def reset(self):
        """Forgets the values that were assigned to settings with an environment variable."""
        for name in self.knob_descriptors:
            delattr(self, name)
        return self

    @contextlib.contextmanager
    def scope(self):
        """Assignments in the block are undone after it."""
        values = dict(self.__dict__)
        variables = {d.key: os.environ.get(d.key) for d in self.knob_descriptors.values()}
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(values)
            for key, text in variables.items():
                if text is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = text
            _look()


class runtime_knobs(base_knobs):
    """Launches and hooks."""

    interpret = env_base("TRITON_INTERPRET", False, bool)
    override_arch = env_base("TRITON_OVERRIDE_ARCH")
    debug = env_base("TRITON_DEBUG", False, bool).get()
    launch_enter_hook, launch_exit_hook = HookChain(), HookChain(reversed=True)
    kernel_load_start_hook, kernel_load_end_hook = HookChain(), HookChain(reversed=True)
    kernel_unload_hook = HookChain()
    jit_cache_hook = jit_post_compile_hook = add_stages_inspection_hook = None

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        _look()


class compilation_knobs(base_knobs):
    """Triton's compiler."""

    override = env_base("TRITON_KERNEL_OVERRIDE", False, bool)
    dump_ir = env_base("TRITON_KERNEL_DUMP", False, bool)
    store_binary_only = env_base("TRITON_STORE_BINARY_ONLY", False, bool)
    always_compile = env_base("TRITON_ALWAYS_COMPILE", False, bool)
    use_ir_loc = env_base("USE_IR_LOC")
    enable_asan = env_base("TRITON_ENABLE_ASAN", False, bool)
    disable_line_info = env_base("TRITON_DISABLE_LINE_INFO", False, bool)
    front_end_debugging = env_base("TRITON_FRONT_END_DEBUGGING", False, bool)
    allow_non_constexpr_globals = env_base("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", False, bool)
    instrumentation_mode, listener = "", None


class autotuning_knobs(base_knobs):
    """The choice of configurations."""

    cache = env_base("TRITON_CACHE_AUTOTUNING", False, bool)
    print = env_base("TRITON_PRINT_AUTOTUNING", False, bool)
    most = env_base("LIBTL_AUTOTUNE_MOST", None, int)  # configurations to try; see libtl.autotune
    listener = None


class cache_knobs(base_knobs):
    """Triton's cache on disk. libtl's own is at $TL_CACHE_DIR."""

    home_dir = env_base("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dir = env_base("TRITON_CACHE_DIR", lambda: os.path.join(cache.home_dir, ".triton", "cache"))
    dump_dir = env_base("TRITON_DUMP_DIR", lambda: os.path.join(cache.home_dir, ".triton", "dump"))
    override_dir = env_base("TRITON_OVERRIDE_DIR", lambda: os.path.join(cache.home_dir, ".triton", "override"))
    manager_class = env_base("TRITON_CACHE_MANAGER", None, _class)
    remote_manager_class = env_base("TRITON_REMOTE_CACHE_BACKEND", None, _class)


class language_knobs(base_knobs):
    """The language."""

    fp32_default = env_base("TRITON_F32_DEFAULT")
    default_fp_fusion = env_base("TRITON_DEFAULT_FP_FUSION", True, bool)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        _look()


class _Tool:
    """A program of NVIDIA's, which libtl does not need."""

    path, version = None, "13.0"


class nvidia_knobs(base_knobs):
    """NVIDIA's tools."""

    ptxas, cuobjdump, nvdisasm = _Tool(), None, None
    dump_nvptx = env_base("NVPTX_ENABLE_DUMP", False, bool)
    disable_ptxas_opt = env_base("DISABLE_PTXAS_OPT", False, bool)
    ptxas_options = env_base("PTXAS_OPTIONS")
    libdevice_path = env_base("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_base("TRITON_LIBCUDA_PATH")


class build_knobs(base_knobs):
    """The compiler of C for Triton's launchers."""

    cc = env_base("CC")
    impl = None


class redis_knobs(base_knobs):
    """A cache in a database."""

    host = env_base("TRITON_REDIS_HOST", "localhost")
    port = env_base("TRITON_REDIS_PORT", 6379, int)


class proton_knobs(base_knobs):
    """Triton's profiler."""

    disable = env_base("TRITON_PROTON_DISABLE", False, bool)


runtime, compilation, autotuning, cache = runtime_knobs(), compilation_knobs(), autotuning_knobs(), cache_knobs()
language, nvidia, build = language_knobs(), nvidia_knobs(), build_knobs()
redis, proton = redis_knobs(), proton_knobs()


def is_set(hook):
    return bool(hook.calls) if isinstance(hook, HookChain) else hook is not None


def _look():
    """Tells the extension what concerns each launch: hooks, for which Python code runs, and options."""
    _core.set_usual_options({"enable_fp_fusion": bool(language.default_fp_fusion)})
    _core.set_hooked(bool(runtime.debug) or is_set(runtime.launch_enter_hook) or is_set(runtime.launch_exit_hook))


def refresh_knobs():
    """Reads TRITON_DEBUG again."""
    runtime.debug = env_base("TRITON_DEBUG", False, bool).get()


_look()
