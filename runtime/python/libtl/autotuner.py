"""The choice of a configuration: autotune, heuristics."""

import builtins
import functools
import inspect
import os
import threading
import time
import warnings

from . import _device, knobs
from ._cache import get_cache_manager
from ._core import version
from ._jit import JITFunction, KernelInterface
from .errors import ArgumentError, CompileError, Error, OutOfResources

__all__ = ["Config", "autotune", "heuristics", "Autotuner", "Heuristics", "PTXASError", "AutotunerError"]


class PTXASError(Error):
    """The driver's assembler refused a kernel."""


class AutotunerError(ArgumentError):
    """No configuration is left."""


class _Store:
    """The times of configurations on disk, for one key on one device."""

    def __init__(self, fn, key, configs):
        import hashlib
        gpu = _device.default_gpu()
        info = _device.device_info(f"cuda:{gpu}" if gpu >= 0 else None)
        text = repr((version(), info["name"], info["target"], fn.cache_key, key, [str(c) for c in configs]))
        self._files = get_cache_manager(hashlib.sha256(text.encode()).hexdigest())
        self._name, self._len = f"{fn.__name__}.autotune.json", len(configs)

    def read(self):
        """A list of the times of each configuration; None: there is none, or it is damaged."""
        import json
        path = self._files.get_file(self._name)
        try:
            with open(path or os.devnull, encoding="utf-8") as f:
                times = json.load(f)
        except (OSError, ValueError):
            return None
        good = isinstance(times, list) and len(times) == self._len and all(isinstance(t, list) for t in times)
        return times if good else None

    def write(self, times):
        import json
        self._files.put(json.dumps(times), self._name)


class Config:
    """A configuration to try.

    kwargs: values of compile-time parameters. num_warps, num_stages, maxnreg: options of a launch; None: the default.
    pre_hook: a function that is called with the arguments, as a dict, before a launch.
    """

    def __init__(self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None, ir_override=None):
        self.kwargs, self.num_warps, self.num_stages, self.num_ctas = kwargs, num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def __setstate__(self, state):
        self.__init__({})
        self.__dict__.update(state)

    def all_kwargs(self):
        options = {"num_warps": self.num_warps, "num_stages": self.num_stages, "num_ctas": self.num_ctas,
                   "maxnreg": self.maxnreg, "ir_override": self.ir_override}
        return {**self.kwargs, **{n: v for n, v in options.items() if v is not None}}

    def __str__(self):
        return ", ".join(f"{n}: {v}" for n, v in {**self.kwargs, "num_warps": self.num_warps, "num_ctas": self.num_ctas,
                                                  "num_stages": self.num_stages, "maxnreg": self.maxnreg}.items())

    def _key(self):
        return (*self.all_kwargs().items(), self.pre_hook)

    def __hash__(self):
        return hash(self._key())

    def __eq__(self, other):
        return isinstance(other, Config) and self._key() == other._key()


_measuring = threading.RLock()


class Autotuner(KernelInterface):
    """A kernel that is launched with the fastest of several configurations, chosen at the first launch for each key."""

    def __init__(self, fn, arg_names, configs, key, reset_to_zero=None, restore_value=None, pre_hook=None,
                 post_hook=None, prune_configs_by=None, warmup=None, rep=None, use_cuda_graph=False, do_bench=None,
                 cache_results=False, most=None):
        functools.update_wrapper(self, _function_of(fn))
        self.configs, self.most = list(configs) or [Config({})], most
        self.keys, self.arg_names, self.fn = list(key), arg_names, fn
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.cache, self.use_cuda_graph = {}, use_cuda_graph
        self.cache_results = cache_results or knobs.autotuning.cache
        self.num_warmups, self.num_reps, self.user_defined_do_bench = warmup, rep, do_bench is not None
        self._do_bench = do_bench
        for name in (*self.reset_to_zero, *self.restore_value, *self.keys):
            if name not in arg_names:
                text = f"{name!r} is not a parameter of {getattr(fn, '__name__', fn)}; there are {', '.join(arg_names)}"
                if name not in self.keys:
                    raise ArgumentError(text)
                warnings.warn(f"autotune: the key {text}", stacklevel=3)  # Triton ignores it
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook = pre_hook or self._save
        self.post_hook = post_hook or self._restore
        prune = prune_configs_by or {}
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        self.early_config_prune = prune.get("early_config_prune")
        self.base_fn = _function_of(fn)
        self.best_config, self.nargs, self.bench_time, self._saved = None, None, None, {}

    def _save(self, kwargs, reset_only=False):
        for name in self.reset_to_zero:
            if kwargs[name] is not None:
                _zero(kwargs[name])
        if not reset_only:
            self._saved = {name: _copy(kwargs[name]) for name in self.restore_value if kwargs[name] is not None}

    def _restore(self, kwargs, exception=None):
        for name, value in self._saved.items():
            _assign(kwargs[name], value)
        self._saved = {}

    def _bench(self, *args, config, **meta):
        conflicts = meta.keys() & config.kwargs.keys()
        if conflicts:
            raise ValueError(f"{', '.join(sorted(conflicts))}: given by the launch and by a configuration")
        values = dict(meta, **config.all_kwargs())
        named = {**self.nargs, **values}

        def call():
            if config.pre_hook:
                config.pre_hook(named)
            self.pre_hook(named)
            try:
                self.fn.run(*args, **values)
            except Exception as e:
                self.post_hook(named, exception=e)
                raise
            self.post_hook(named, exception=None)

        bench = self._do_bench or _default_bench(self.num_warmups, self.num_reps)
        try:
            return bench(call, quantiles=(0.5, 0.2, 0.8))
        except (OutOfResources, CompileError, PTXASError, ArgumentError) as e:
            self._refused = e
            return [float("inf")] * 3

    def run(self, *args, **kwargs):
        named = dict(zip(self.arg_names, args))
        if len(self.configs) > 1:
            everything = {**named, **kwargs}
            values = {n: v for n, v in everything.items() if n in self.arg_names}
            key = tuple(_hashable(values[n]) for n in self.keys if n in values)
            key += tuple(str(v.dtype) for v in values.values() if hasattr(v, "dtype"))
            if key not in self.cache:
                self._tune(key, args, kwargs, everything)
            config = self.cache[key]
        else:
            config = self.configs[0]
        self.best_config = config
        values = {**kwargs, **config.all_kwargs()}
        if config.pre_hook is not None:
            config.pre_hook({**named, **values})
        return self.fn.run(*args, **values)

    def _tune(self, key, args, kwargs, everything):
        """Chooses the configuration for a key. One thread measures at a time."""
        with _measuring:
            if key in self.cache:  # another thread has chosen
                return
            self.nargs = dict(zip(self.arg_names, args))
            try:
                config, stored = self._choose(args, kwargs, everything, key)
            finally:
                self.nargs = None
            self.cache[key] = config
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=_jit_function_of(self.fn), key=key, best_config=config, configs_timings=self.configs_timings,
                duration=None if stored else self.bench_time, cache_hit=stored)
        if knobs.autotuning.print:
            print(f"Triton autotuning for function {self.base_fn.__name__},\nwith key as {key},\n"
                  f"finished after {self.bench_time:.2f}s,\nbest config selected: {config};")

    def _choose(self, args, kwargs, everything, key):
        """The fastest configuration, and whether its times were on disk."""
        configs = self._most_promising(self.prune_configs(kwargs), args, kwargs)
        kept = self.cache_results and not any(c.pre_hook for c in configs)
        store = _Store(_jit_function_of(self.fn), key, configs) if kept else None
        times = store.read() if store else None
        stored = times is not None
        start = time.perf_counter()
        if not stored:
            times = [self._bench(*args, config=c, **kwargs) for c in configs] if len(configs) > 1 else [[0.0]]
        self.bench_time = time.perf_counter() - start
        timings = dict(zip(configs, times))
        best = builtins.min(timings, key=timings.get)
        if timings[best][0] == float("inf"):
            raise self._refused
        if store and not stored:
            store.write(times)
        self.pre_hook(everything, reset_only=True)
        self.configs_timings = timings
        return best, stored

    def _most_promising(self, configs, args, kwargs):
        """The configurations that libtl's model of the GPU expects to be the fastest, if the number of trials is limited.
        All of them for a kernel that runs on a CPU."""
        most = self.most or knobs.autotuning.most
        if not most or len(configs) <= most:
            return configs
        kwargs = {n: v for n, v in kwargs.items() if n != "warmup"}
        costs = {}
        for c in configs:
            try:
                expected = self.fn.estimate(*args, **{**kwargs, **c.all_kwargs()})
            except (CompileError, ArgumentError):  # a trial would fail, too
                expected = {"us": float("inf"), "device": None}
            if expected["device"] in ("cpu", "interp"):
                return configs
            costs[c] = expected["us"]
        return sorted(configs, key=costs.get)[:most]

    def estimate(self, *args, **kwargs):
        return self.fn.estimate(*args, **kwargs)

    def prune_configs(self, kwargs):
        configs = self.configs
        if self.early_config_prune:
            configs = self.early_config_prune(configs, self.nargs, **kwargs)
            if not configs:
                raise AutotunerError("Autotuner error: No valid autotuner configs after pruning. `early_config_prune` "
                                     "should return at least one config.")
        if self.perf_model:
            top = self.configs_top_k
            top = int(len(self.configs) * top) if isinstance(top, float) and top <= 1.0 else top
            if not isinstance(top, int):
                raise TypeError("top_k must be an integer, or a fraction of the configurations")
            if len(configs) > top:
                cost = {c: self.perf_model(**{**self.nargs, **kwargs, **c.all_kwargs()}) for c in configs}
                configs = sorted(configs, key=cost.get)[:top]
        return list(configs)

    def warmup(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        result = [self.fn.warmup(*args, **{**kwargs, **c.all_kwargs()}) for c in self.prune_configs(kwargs)]
        self.nargs = None
        return result

    def preload(self, specialization_data):
        return self.fn.preload(specialization_data)


class Heuristics(KernelInterface):
    """A kernel some of whose compile-time parameters are computed from the other arguments."""

    def __init__(self, fn, arg_names, values):
        functools.update_wrapper(self, _function_of(fn))
        self.fn, self.values, self.arg_names = fn, values, arg_names

    def _with_values(self, args, kwargs):
        for name, f in self.values.items():
            kwargs[name] = f({**dict(zip(self.arg_names, args)), **kwargs})
        return kwargs

    def run(self, *args, **kwargs):
        return self.fn.run(*args, **self._with_values(args, kwargs))

    def warmup(self, *args, **kwargs):
        return self.fn.warmup(*args, **self._with_values(args, kwargs))

    def estimate(self, *args, **kwargs):
        return self.fn.estimate(*args, **self._with_values(args, kwargs))


def _function_of(fn):
    """The Python function under the decorators."""
    while not inspect.isfunction(fn):
        fn = fn.fn
    return fn


def _jit_function_of(fn):
    """The kernel under the decorators."""
    while not isinstance(fn, JITFunction):
        fn = fn.fn
    return fn


def _hashable(v):
    try:
        hash(v)
        return v
    except TypeError:
        return str(v)


def _zero(t):
    t.zero_() if hasattr(t, "zero_") else t.fill(0)


def _copy(t):
    return t.clone() if hasattr(t, "clone") else t.copy()


def _assign(t, value):
    if hasattr(t, "copy_"):
        t.copy_(value)
    else:
        t[...] = value


def _default_bench(warmup, rep):
    from .testing import do_bench
    return functools.partial(do_bench, warmup=25 if warmup is None else warmup, rep=100 if rep is None else rep)


def autotune(configs, key, prune_configs_by=None, reset_to_zero=None, restore_value=None, pre_hook=None, post_hook=None,
             warmup=None, rep=None, use_cuda_graph=False, do_bench=None, cache_results=False, most=None):
    """Launches a jit function with the fastest of `configs`, chosen anew where a parameter named in `key` changes.

    reset_to_zero, restore_value: names of tensors that are set to 0, or restored, before each trial. prune_configs_by: a
    dict with early_config_prune(configs, arguments, **kwargs), or perf_model(**arguments) and top_k. pre_hook(arguments,
    reset_only), post_hook(arguments, exception): functions around each trial. warmup, rep: milliseconds. do_bench: a
    function like libtl.testing.do_bench. cache_results: times are kept in files, below knobs.cache.dir. most: only so many
    configurations are tried on a GPU, the fastest ones by libtl's model; with 1 none is timed. None: all, or the number in
    knobs.autotuning.most (LIBTL_AUTOTUNE_MOST).
    """

    def decorate(fn):
        return Autotuner(fn, fn.arg_names, configs, key, reset_to_zero, restore_value, pre_hook, post_hook,
                         prune_configs_by, warmup, rep, use_cuda_graph, do_bench, cache_results, most)

    return decorate


def heuristics(values):
    """Computes compile-time parameters: a dict of functions of the arguments, by the parameter's name."""

    def decorate(fn):
        return Heuristics(fn, fn.arg_names, values)

    return decorate
