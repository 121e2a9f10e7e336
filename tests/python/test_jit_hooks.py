"""Functions that are called when kernels are compiled and launched, and the caches that programs look into."""

import concurrent.futures
import types

import libtl
import libtl.language as tl
import libtl.triton_compat as triton
import numpy as np
import pytest
from libtl import knobs

RANDOM = np.random.default_rng(58)


def make_kernel(**options):
    """A kernel of its own for each test: out = x * factor + shift."""
    @libtl.jit(**options)
    def scale(x, out, factor, shift: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) * factor + shift)
    return scale


def check(kernel, factor=3, shift=1, n=64, **options):
    """Launches, and compares with NumPy. What the launch returned."""
    x = RANDOM.integers(-1000, 1000, n, dtype=np.int32)
    out = np.full(n, -77777777, np.int32)
    result = kernel[(1,)](x, out, factor, shift, n, **options)
    np.testing.assert_array_equal(out, x * factor + shift)
    return result


@pytest.fixture(autouse=True)
def _same_knobs():
    with knobs.runtime.scope(), knobs.cache.scope():
        yield
    for chain in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook, knobs.runtime.kernel_load_start_hook,
                  knobs.runtime.kernel_load_end_hook):
        for f in list(chain.calls):
            chain.remove(f)


def cache(kernel):
    return kernel.device_caches[triton.runtime.jit.get_device_key()][0]


def test_launch_hooks():
    seen = []
    kernel = make_kernel(launch_metadata=lambda grid, kernel, args: {"grid": grid, "factor": args["factor"],
                                                                     "warps": kernel.num_warps})
    check(kernel)  # compiled before the hooks are there
    enter, leave = (lambda m: seen.append(("enter", m.get()))), (lambda m: seen.append(("exit", m.get())))
    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.launch_exit_hook.add(leave)
    check(kernel, factor=5, num_warps=2)
    expected = {"name": "scale", "function": None, "stream": 0, "grid": (1,), "factor": 5, "warps": 2}
    assert seen == [("enter", expected), ("exit", expected)]
    knobs.runtime.launch_enter_hook.remove(enter)
    knobs.runtime.launch_exit_hook.remove(leave)
    check(kernel)
    assert len(seen) == 2


def test_hook_for_each_variant():
    calls = []
    knobs.runtime.jit_cache_hook = lambda **kw: calls.append(kw) and None
    kernel = make_kernel()
    for factor in (2, 3, 5, 16, 32, 1, 1):  # any, divisible by 16, equal to 1
        check(kernel, factor)
    assert len(calls) == 3 == len(cache(kernel))
    check(kernel, 3, shift=2)
    check(kernel, 3, num_warps=8)
    assert len(calls) == 5
    first = calls[0]
    assert first["fn"].jit_function is kernel and first["fn"].name.endswith("make_kernel.<locals>.scale")
    assert first["compile"]["signature"] == {"x": "*i32", "out": "*i32", "factor": "i32", "shift": "constexpr",
                                             "BLOCK": "constexpr"}
    assert first["compile"]["constants"] == {(3,): 1, (4,): 64}
    assert first["key"] in cache(kernel) and not first["is_manual_warmup"]
    assert calls[4]["compile"]["num_warps"] == 8


def test_unspecialized_parameters():
    for options, expected in (({"do_not_specialize": ["factor"]}, 1), ({"do_not_specialize_on_alignment": ["factor"]}, 2)):
        calls = []
        knobs.runtime.jit_cache_hook = lambda calls=calls, **kw: calls.append(kw) and None
        kernel = make_kernel(**options)
        for factor in (1, 2, 4, 16, 32):
            check(kernel, factor)
        assert len(calls) == expected


def test_hook_refuses():
    """A cache hook that returns a true value keeps the kernel from being compiled and launched."""
    knobs.runtime.jit_cache_hook = lambda **kw: True
    kernel = make_kernel()
    out = np.full(4, -5, np.int32)
    assert kernel[(1,)](out, out, 3, 1, 4) is None
    assert (out == -5).all() and not cache(kernel)
    knobs.runtime.jit_cache_hook = None
    check(kernel)


def test_hooks_around_compilation():
    seen = []
    knobs.runtime.jit_cache_hook = lambda **kw: seen.append("cache")
    knobs.runtime.jit_post_compile_hook = lambda **kw: seen.append("compiled " + str(kw["key"] in cache(kernel)))
    knobs.runtime.kernel_load_start_hook.add(lambda module, function, name, group, hash: seen.append("load " + hash))
    knobs.runtime.kernel_load_end_hook.add(lambda module, function, name, group, hash: seen.append("loaded " + hash))
    kernel = make_kernel()
    compiled = check(kernel)
    assert seen == ["cache", "load " + compiled.hash, "loaded " + compiled.hash, "compiled True"]


def test_cleared_cache_compiles_again():
    calls = []
    knobs.runtime.jit_cache_hook = lambda **kw: calls.append(kw) and None
    kernel = make_kernel()
    for clear in (lambda: cache(kernel).clear(), kernel.device_caches.clear, lambda: kernel.device_caches[0][0].clear()):
        check(kernel)
        check(kernel)
        clear()
    assert len(calls) == 3


def test_preload():
    data = []
    knobs.runtime.jit_cache_hook = lambda **kw: data.append(kw["compile"]["specialization_data"]) and None
    kernel, other = make_kernel(), make_other()
    hash_ = check(kernel, 48, 7).hash
    cache(kernel).clear()
    assert kernel.preload(data[0]).hash == hash_ and len(cache(kernel)) == 1
    check(kernel, 48, 7)
    assert len(data) == 1  # nothing was compiled
    check(kernel, 48, 8)
    assert len(data) == 2
    with pytest.raises(RuntimeError, match="Specialization data is for"):
        other.preload(data[0])


def make_other():
    @libtl.jit
    def other(x, out, factor, shift: tl.constexpr, BLOCK: tl.constexpr):
        pass
    return other


def test_compilation_in_a_pool():
    kernel = make_kernel()
    mock = libtl.MockTensor(tl.int32)
    with concurrent.futures.ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        futures = [kernel.warmup(mock, mock, 3, shift, 64, grid=(1,)) for shift in range(6)]
        assert kernel.warmup(mock, mock, 3, 0, 64, grid=(1,)) is futures[0]
        check(kernel, 3, 0)
    assert [f.result().name for f in futures] == ["scale"] * 6
    with pytest.raises(libtl.CompileError, match="power of"):
        with concurrent.futures.ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
            kernel.warmup(mock, mock, 3, 0, 63, grid=(1,))


def test_options_that_libtl_does_not_have():
    kernel = make_kernel()
    with pytest.raises(libtl.ArgumentError, match="warp_size=64 is not supported"):
        check(kernel, warp_size=64)
    check(kernel, enable_fp_fusion=False)
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        check(kernel)
    with pytest.raises(KeyError, match="no_option"):
        check(kernel, no_option=1)
    check(kernel, num_ctas=2)


def test_debug():
    @libtl.jit
    def positive(x):
        tl.device_assert(tl.load(x) > 0, "x > 0")

    x = np.array([-1], np.int32)
    positive[(1,)](x)
    knobs.runtime.debug = True
    with pytest.raises(libtl.KernelError, match="x > 0"):
        positive[(1,)](x)
    knobs.runtime.debug = False
    positive[(1,)](x)


def test_kept_kernels_keep_no_memory():
    """A compiled kernel in device_caches does not keep the arrays that it was launched with."""
    import weakref

    class Array(np.ndarray):
        pass

    kernel = make_kernel()
    x = np.arange(64, dtype=np.int32).view(Array)
    kernel[(1,)](x, x, 3, 1, 64)
    gone = weakref.ref(x)
    del x
    assert gone() is None
    assert "x" in next(iter(cache(kernel).values())).asm["ttir"]


def test_files(tmp_path):
    knobs.cache.dir = str(tmp_path)
    files = triton.runtime.cache.get_cache_manager("0a")
    assert files.get_file("a.txt") is None and files.get_group("g") is None
    path = files.put(b"\x00bytes", "a.bin")
    text = files.put("text", "a.txt")
    files.put_group("g", {"a.bin": path, "a.txt": text})
    assert files.get_group("g") == {"a.bin": path, "a.txt": text}
    with open(files.get_file("a.bin"), "rb") as f:
        assert f.read() == b"\x00bytes"
    (tmp_path / "0a" / "a.bin").unlink()
    assert files.get_group("g") is None


def test_autotuning_listener():
    seen = []
    saved = knobs.autotuning.listener
    knobs.autotuning.listener = lambda **kw: seen.append(types.SimpleNamespace(**kw))
    try:
        @libtl.autotune([libtl.Config({"BLOCK": 32}), libtl.Config({"BLOCK": 64})], key=["n"], warmup=1, rep=1,
                        restore_value=["nothing"])
        @libtl.jit
        def fill(out, nothing, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, 5, mask=i < n)

        out = np.full(100, -1, np.int32)
        for _ in range(2):
            fill[lambda meta: (libtl.cdiv(100, meta["BLOCK"]),)](out, None, 100)
        assert (out == 5).all()
    finally:
        knobs.autotuning.listener = saved
    assert len(seen) == 1 and seen[0].best_config in seen[0].configs_timings and len(seen[0].configs_timings) == 2
    assert isinstance(seen[0].fn, libtl.JITFunction) and not seen[0].cache_hit


def test_times_on_disk(tmp_path):
    """With cache_results a second tuner of the same kernel runs nothing; other configurations are run."""
    knobs.cache.dir = str(tmp_path)
    runs = []

    def bench(call, quantiles):
        call()
        runs.append(1)
        return [float(len(runs))] * 3

    def tuner(*blocks):
        configs = [libtl.Config({"BLOCK": b}) for b in blocks]
        return libtl.autotune(configs, key=["n"], do_bench=bench, cache_results=True)(fill_kernel)

    out = np.full(100, -1, np.int32)
    for blocks, expected in (((32, 64), 2), ((32, 64), 2), ((32, 128), 4)):
        t = tuner(*blocks)
        t[lambda meta: (libtl.cdiv(100, meta["BLOCK"]),)](out, 100)
        assert (out == 5).all() and len(runs) == expected and t.best_config.kwargs["BLOCK"] == 32
    for f in tmp_path.glob("*/*.json"):
        f.write_text("damaged")
    tuner(32, 64)[lambda meta: (libtl.cdiv(100, meta["BLOCK"]),)](out, 100)
    assert len(runs) == 6


@libtl.jit
def fill_kernel(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 5, mask=i < n)


def test_cache_manager_of_the_environment(monkeypatch):
    """$TRITON_CACHE_MANAGER names a class, whose instances keep files."""
    monkeypatch.setenv("TRITON_CACHE_MANAGER", f"{CacheManagerOfTest.__module__}:{CacheManagerOfTest.__qualname__}")
    assert type(triton.runtime.cache.get_cache_manager("ab12")).__name__ == "CacheManagerOfTest"
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "no_such_module:Manager")
    with pytest.raises(RuntimeError, match="must be module:class"):
        triton.runtime.cache.get_cache_manager("ab12")


class CacheManagerOfTest(triton.runtime.cache.FileCacheManager):
    pass
