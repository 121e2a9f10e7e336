"""Compiled kernels, autotuning, measuring, devices, threads and processes."""

import multiprocessing
import os
import sys
import threading
import time
from unittest import mock

import numpy as np
import pytest

import libtl
import libtl.language as tl
import libtl.testing


@libtl.jit
def scale(x, o, n, K: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) * K, mask=i < n)


def arrays(n=1000):
    return np.random.default_rng().standard_normal(n).astype("float32"), np.full(n, np.nan, "float32")


def test_compiled_kernel():
    k = scale.compile("*fp32:16", "*fp32:16", "i32", K=2, BLOCK=256, num_warps=8, device="sim")
    assert k.name == "scale" and k.num_warps == 8
    assert ".entry scale" in k.asm["ptx"] and "tt.func" in k.asm["ttir"]
    assert ".reqntid 256" in k.asm["ptx"] and k.resources["threads"] == 256
    assert "ld.global" in k.asm["ptx"] and "test_tools.py" in k.remarks
    with pytest.raises(KeyError, match="there are ttir"):
        k.asm["sass"]


def test_result_of_a_launch():
    x, o = arrays()
    k = scale[(4,)](x, o, 1000, K=3, BLOCK=256)
    del x, o
    assert "arith.mulf" in k.asm["ttir"] and k.num_stages == 3


def test_warmup_compiles_without_running():
    x, o = arrays()
    scale.warmup(x, o, 1000, K=2, BLOCK=256, grid=(4,))
    assert np.isnan(o).all()


def test_autotune():
    tried = []

    @libtl.autotune([libtl.Config({"BLOCK": b}, num_warps=4, pre_hook=lambda args: tried.append(args["BLOCK"]))
                     for b in (64, 256)], key=["n"], warmup=1, rep=1)
    @libtl.jit
    def kernel(x, o, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    for n in 1000, 700:
        x, o = arrays(n)
        kernel[lambda meta: (libtl.cdiv(n, meta["BLOCK"]),)](x, o, n)
        np.testing.assert_array_equal(o, x + 1)
    assert {64, 256} <= set(tried) and kernel.best_config.kwargs["BLOCK"] in (64, 256) and len(kernel.cache) == 2
    with pytest.raises(libtl.ArgumentError, match="'m' is not a parameter"):
        libtl.autotune([libtl.Config({})], key=[], restore_value=["m"])(scale)
    with pytest.warns(UserWarning, match="the key 'm' is not a parameter"):
        libtl.autotune([libtl.Config({})], key=["m"])(scale)


def test_autotuned_launches_need_no_python(monkeypatch):
    """After its first launch, a configuration is launched by the extension, with all options that autotune passes."""
    @libtl.autotune([libtl.Config({"BLOCK": b}, num_stages=s) for b in (64, 128) for s in (2, 3)], key=["n"],
                    warmup=1, rep=1)
    @libtl.jit
    def kernel(x, o, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    x, o = arrays(1000)
    launches, do = [], libtl.JITFunction._do
    monkeypatch.setattr(libtl.JITFunction, "_do", lambda *a: (launches.append(a), do(*a))[1])
    for _ in range(5):
        kernel[lambda meta: (libtl.cdiv(1000, meta["BLOCK"]),)](x, o, 1000)
    np.testing.assert_array_equal(o, x + 1)
    assert len(launches) == 4


def test_autotune_in_threads():
    """Threads that launch an autotuned kernel measure once for each key, and get right results."""
    measured = []

    @libtl.autotune([libtl.Config({"BLOCK": b}, pre_hook=lambda args: args["o"].fill(0)) for b in (64, 128)], key=["n"],
                    do_bench=lambda f, quantiles: (measured.append(f()), [1.0] * 3)[1])
    @libtl.jit
    def kernel(x, o, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(o + i, tl.load(x + i, mask=i < n), mask=i < n)

    def run(results):
        for n in 100, 500, 300, 100:
            x, o = arrays(n)
            kernel[lambda meta: (libtl.cdiv(n, meta["BLOCK"]),)](x, o, n)
            results.append((o == x).all())

    results = [[] for _ in range(8)]
    threads = [threading.Thread(target=run, args=(r,)) for r in results]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(r == [True] * 4 for r in results) and len(measured) == 2 * 3


def test_estimates():
    """The expected cost of a launch: bytes as they are counted by hand; more of everything takes longer."""
    x, o = arrays(4096)
    expected = scale.estimate(x, o, 3000, K=2, BLOCK=1024, grid=lambda meta: (libtl.cdiv(3000, meta["BLOCK"]),))
    assert expected["blocks"] == 3 and expected["bytes"] * 3 == 2 * 4 * 3000 and expected["device"] == "cpu"
    times = [scale.estimate(x, o, n, 2, BLOCK=1024, grid=(n // 1024,))["us"] for n in (1 << 20, 1 << 24, 1 << 28)]
    assert 0 < times[0] < times[1] < times[2] and np.isnan(o).all()
    with pytest.raises(libtl.CompileError):
        scale.estimate(x, o, 3000, K=2, BLOCK=100, grid=(1,))
    with pytest.raises(libtl.ArgumentError, match="without programs"):
        scale.estimate(x, o, 3000, K=2, BLOCK=128, grid=(0,))


@pytest.mark.parametrize("most", (None, 1, 2, 3))
def test_autotune_the_most_promising(most, monkeypatch):
    """On a GPU only some configurations are tried, the fastest ones by the model; on a CPU all."""
    tried = []

    def bench(call, quantiles):
        call()
        tried.append(None)
        return [float(len(tried))] * 3

    configs = [libtl.Config({"BLOCK": 128 << i}, num_warps=w) for i in range(3) for w in (1, 8)]
    tuned = lambda **kw: libtl.autotune(configs, key=["n"], do_bench=bench, **kw)(
        libtl.heuristics({"K": lambda args: 3})(scale))
    for by_option in True, False:
        if not by_option and most:
            monkeypatch.setenv("LIBTL_AUTOTUNE_MOST", str(most))
        kernel = tuned(most=most) if by_option else tuned()
        for device in "sim", "cpu":
            x, o = arrays(700)
            tried.clear()
            with libtl.device(device):
                kernel.cache.clear()
                kernel[lambda meta: (libtl.cdiv(700, meta["BLOCK"]),)](x, o, 700)
            np.testing.assert_array_equal(o, x * 3)
            number = most if most and device == "sim" else len(configs)
            assert len(tried) == (number if number > 1 else 0) and len(kernel.configs_timings) == number
    times = {kernel.estimate(x, o, 700, grid=(3,), **c.all_kwargs())["us"] for c in configs}
    assert len(times) == len(configs)


def test_autotune_restores():
    @libtl.autotune([libtl.Config({"BLOCK": b}) for b in (64, 128)], key=[], restore_value=["x"], reset_to_zero=["count"],
                    warmup=1, rep=1)
    @libtl.jit
    def kernel(x, count, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)
        tl.atomic_add(count, 1)

    x, count = np.zeros(128, "int32"), np.zeros(1, "int32")
    kernel[lambda meta: (128 // meta["BLOCK"],)](x, count, 128)
    assert (x == 1).all() and count[0] == 128 // kernel.best_config.kwargs["BLOCK"]


def test_autotune_skips_what_does_not_compile():
    @libtl.autotune([libtl.Config({"BLOCK": b}) for b in (100, 128)], key=[], warmup=1, rep=1)
    @libtl.jit
    def kernel(o, BLOCK: tl.constexpr):
        tl.store(o + tl.arange(0, BLOCK), 1)

    o = np.zeros(128, "int32")
    kernel[(1,)](o)
    assert kernel.best_config.kwargs["BLOCK"] == 128 and o.all()


def test_heuristics():
    @libtl.heuristics({"BLOCK": lambda args: libtl.next_power_of_2(args["n"])})
    @libtl.jit
    def kernel(x, o, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)

    x, o = arrays(77)
    kernel[(1,)](x, o, 77)
    np.testing.assert_array_equal(o, x)


def test_hooks():
    seen = []

    @libtl.jit
    def kernel(o, v):
        tl.store(o, v)

    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    kernel[(1,)](np.zeros(1), v=1.0)
    assert seen == [(1, {"v": 1.0})]


def test_measuring(capsys, tmp_path):
    x, o = arrays()
    f = lambda: scale[(4,)](x, o, 1000, K=2, BLOCK=256)  # noqa: E731
    low, median, high = libtl.testing.do_bench(f, warmup=1, rep=5, quantiles=[0.1, 0.5, 0.9])
    assert 0 < low <= median <= high
    assert len(libtl.testing.do_bench(f, warmup=1, rep=5, return_mode="all")) >= 1
    libtl.testing.assert_close(o, 2 * x, atol=0)
    with pytest.raises(AssertionError):
        libtl.testing.assert_close(o, 3 * x)

    @libtl.testing.perf_report(libtl.testing.Benchmark(["n"], [1, 2], "line", ["a", "b"], ["A", "B"], "plot", {"k": 10}))
    def bench(n, line, k):
        return n * k + (line == "b")

    bench.run(print_data=True, save_path=str(tmp_path))
    assert "11" in capsys.readouterr().out
    assert (tmp_path / "plot.csv").read_text() == "n,A,B\n1,10,11\n2,20,21\n"


def test_do_bench_takes_its_time():
    """The time between two runs counts, too, so that a benchmark of a short function ends in time."""
    def between(fn, runs, grad_to_none):
        for _ in range(runs):
            fn()
            time.sleep(0.001)
        return [1e-3] * runs

    count = []
    with mock.patch.object(libtl.testing, "_timed_host", between), mock.patch.object(libtl.testing, "_cuda", lambda: None):
        libtl.testing.do_bench(lambda: count.append(0), warmup=20, rep=100)
    assert 10 < len(count) < 140


def test_devices():
    assert libtl.get_device() == "cpu" and libtl.device_info()["kind"] == "cpu"
    with libtl.device("sim:80"):
        assert libtl.device_info()["target"] == "cuda:sm_80"
    with pytest.raises(ValueError, match='device "gpu"|device \'gpu\''):
        libtl.set_device("gpu")
    x, o = arrays()
    scale[(4,)](x, o, 1000, K=2, BLOCK=256, device="interp")
    np.testing.assert_array_equal(o, 2 * x)

    @libtl.jit(device="interp")
    def kernel(o):
        tl.store(o + tl.program_id(0), tl.program_id(0))

    with pytest.raises(libtl.KernelError):
        kernel[(5,)](np.zeros(4, "int32"))


def test_sim_finds_races():
    @libtl.jit
    def kernel(o):
        tl.store(o, tl.program_id(0))

    with libtl.device("sim"), pytest.raises(libtl.RaceError):
        kernel[(2,)](np.zeros(1, "int32"))


def test_threads():
    """Threads launch and compile the same kernels at once."""
    errors = []

    def work(k):
        try:
            for _ in range(20):
                x, o = arrays()
                scale[(4,)](x, o, 1000, K=k, BLOCK=256)
                np.testing.assert_array_equal(o, k * x)
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k % 3 + 2,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def child(queue):
    x, o = arrays()
    scale[(4,)](x, o, 1000, K=2, BLOCK=256)
    queue.put(bool((o == 2 * x).all()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    """A child process launches kernels, as DataLoader's workers do, also after its parent did."""
    if method == "fork" and "LIBTL_PYTHON" in os.environ:
        pytest.skip("qemu does not fork a process that has threads")
    x, o = arrays()
    scale[(4,)](x, o, 1000, K=2, BLOCK=256)
    context = multiprocessing.get_context(method)
    context.set_executable(os.environ.get("LIBTL_PYTHON", sys.executable))
    queue = context.Queue()
    p = context.Process(target=child, args=(queue,))
    p.start()
    assert queue.get(timeout=120)
    p.join(60)
    assert p.exitcode == 0


def test_launches_do_not_leak():
    """Memory does not grow with the number of launches."""
    x, o = arrays()

    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(2000):
        scale[(0,)](x, o, 1000, K=2, BLOCK=256)
    before = resident()
    for _ in range(50000):
        scale[(0,)](x, o, 1000, K=2, BLOCK=256)
    assert resident() - before < 4 << 20


def test_fp_fusion():
    """enable_fp_fusion=False rounds each product."""

    @libtl.jit
    def kernel(x, y, z, o):
        i = tl.arange(0, 1024)
        tl.store(o + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))

    x, y = arrays(1024)[0], arrays(1024)[0]
    z, o = -x * y, np.full(1024, np.nan, "float32")
    kernel[(1,)](x, y, z, o, enable_fp_fusion=False)
    assert (o == 0).all()
    kernel[(1,)](x, y, z, o)
    np.testing.assert_array_equal(o, (x.astype("float64") * y + z).astype("float32"))
    assert o.any()
