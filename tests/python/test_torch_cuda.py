"""Kernels of the package on a GPU, with PyTorch's tensors, streams and graphs."""

import threading

import pytest

torch = pytest.importorskip("torch")

import libtl  # noqa: E402
import libtl.language as tl  # noqa: E402
from libtl.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no GPU")


@libtl.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@libtl.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(c.dtype))


@libtl.autotune([libtl.Config({"BLOCK": b}, num_warps=w) for b in (128, 1024) for w in (2, 8)], key=["n"],
                restore_value=["o"])
@libtl.jit
def increase(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, i < n) + tl.load(o + i, i < n), i < n)


@libtl.jit
def gathered(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    j = (i * 7) % B
    tl.store(o + i, tl.load(x + (j[:, None] * B + j[None, :])).sum(1))


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan"), dtype=dtype, device="cuda")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64])
def test_add(dtype):
    n = int(torch.randint(1, 5000, ()))
    x, y = ((torch.randn(n, device="cuda") * 20).to(dtype) for _ in range(2))
    o = torch.empty_like(x).fill_(77)
    add[(libtl.cdiv(n, 512),)](x, y, o, n, BLOCK=512)
    torch.testing.assert_close(o, x + y, rtol=0, atol=0)


def test_views():
    """Views begin at addresses of their own; the memory outside of them stays as it is."""
    x, o = torch.randn(3000, device="cuda"), poisoned(3000)
    for first in 0, 1, 4, 7:
        o.fill_(float("nan"))
        add[(2,)](x[first:], x[first + 5:], o[first + 3:], 1000, BLOCK=512)
        torch.testing.assert_close(o[first + 3:first + 1003], x[first:first + 1000] + x[first + 5:first + 1005])
        assert o.isnan().sum() == 2000


def test_descriptors():
    m, n, k = 256, 384, 320
    a, b, c = (torch.randn(s, device="cuda").half() for s in ((m, k), (k, n), (m, n)))
    c.fill_(float("nan"))
    blocks = [(128, 64), (64, 128), (128, 128)]
    compiled = matmul[(2, 3)](*[TensorDescriptor.from_tensor(t, list(s)) for t, s in zip((a, b, c), blocks)], k,
                              BM=128, BN=128, BK=64, num_warps=8)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=2e-3, atol=2e-2)
    assert "wgmma" in compiled.asm["ptx"]
    assert compiled.asm["cubin"][:4] == b"\x7fELF" and compiled.n_regs > 16 and compiled.n_spills == 0


def test_autotune():
    for n in 1000, 100000:
        x, o = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        expected = x + o
        increase[lambda meta: (libtl.cdiv(n, meta["BLOCK"]),)](x, o, n)
        torch.testing.assert_close(o, expected)
        assert len(increase.configs_timings) == 4 and all(min(t) > 0 for t in increase.configs_timings.values())


def test_stream():
    """A launch is ordered after the work on PyTorch's current stream, and on no other."""
    stream = torch.cuda.Stream()
    x, o, other = torch.zeros(4096, device="cuda"), poisoned(4096), poisoned(4096)

    def launch(x, o):
        add[(8,)](x, x, o, 4096, BLOCK=512)

    launch(x, other)  # the driver may wait for all streams when it loads a kernel
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        x.fill_(3)
        launch(x, o)
        done = stream.record_event()
    launch(o, other)
    torch.cuda.current_stream().synchronize()
    assert not done.query(), "the launch on the default stream waited for the other stream"
    stream.synchronize()
    assert (o == 6).all()


def test_graph():
    """Launches are captured into a CUDA graph, and are repeated with the memory's new contents."""
    x, o = torch.zeros(1000, device="cuda"), poisoned(1000)
    add[(2,)](x, x, o, 1000, BLOCK=512)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add[(2,)](x, x, o, 1000, BLOCK=512)
        y = o * 2
    for v in 1, 5:
        x.fill_(v)
        o.fill_(float("nan"))
        graph.replay()
        assert (o == 2 * v).all() and (y == 4 * v).all()


def test_threads():
    results = [None] * 8

    def run(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            x, o = torch.full((1000,), float(i), device="cuda"), poisoned(1000)
            for block in 64, 128, 256, 512:
                add[(libtl.cdiv(1000, block),)](x, x, o, 1000, BLOCK=block)
            torch.cuda.current_stream().synchronize()
            results[i] = bool((o == 2 * i).all())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(results))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(results), results


@libtl.jit
def transpose(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    tl.store(o + at, tl.trans(tl.load(x + at)))


def test_out_of_resources():
    x = torch.randn(256, 256, device="cuda", dtype=torch.float64)
    o = torch.full_like(x, float("nan"))
    with pytest.raises(libtl.OutOfResources) as e:
        transpose[(1,)](x, o, 256, num_warps=16)
    assert e.value.required > e.value.limit > 200_000 and e.value.name == "shared memory"
    assert o.isnan().all()
    transpose[(1,)](x[:128, :128].contiguous(), o, 128, num_warps=16)
    assert (o.view(-1)[:128 * 128].view(128, 128) == x[:128, :128].T).all()


def test_host_memory():
    """Tensors of the CPU and the GPU in one launch are an error; the kernel runs where its tensors are."""
    x = torch.randn(100)
    with pytest.raises(ValueError, match="different devices"):
        add[(1,)](x.cuda(), x, x.cuda(), 100, BLOCK=128)
    o = torch.empty_like(x)
    add[(1,)](x, x, o, 100, BLOCK=128)
    torch.testing.assert_close(o, x + x)


def test_pinned_memory():
    x, o = torch.randn(1000).pin_memory(), poisoned(1000)
    add[(2,)](x.cuda(), x.cuda(), o, 1000, BLOCK=512)
    torch.testing.assert_close(o.cpu(), x + x)


def test_second_gpu():
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    x = torch.randn(1000, device="cuda:1")
    o = torch.full_like(x, float("nan"))
    add[(2,)](x, x, o, 1000, BLOCK=512)
    torch.testing.assert_close(o, x + x)


def test_interfaces():
    """Arrays of CuPy on the GPU."""
    cupy = pytest.importorskip("cupy")
    x, o = cupy.arange(1000, dtype="float32"), cupy.zeros(1000, dtype="float32")
    add[(2,)](x, x, o, 1000, BLOCK=512)
    libtl.synchronize()
    assert (o == 2 * x).all()


def test_benchmark():
    x = torch.randn(1 << 24, device="cuda")
    o = torch.empty_like(x)
    ms = libtl.testing.do_bench(lambda: add[(1 << 14,)](x, x, o, 1 << 24, BLOCK=1024))
    assert 0.02 < ms < 1, ms


def test_gather():
    compiled = gathered[(1,)](torch.ones(64, 64, device="cuda"), o := poisoned(64), B=64)
    assert (o == 64).all() and compiled.resources["threads"] == 128
    x = torch.randn(64, 64, device="cuda")
    gathered[(1,)](x, o, B=64)
    j = (torch.arange(64, device="cuda") * 7) % 64
    torch.testing.assert_close(o, x[j][:, j].sum(1), rtol=1e-5, atol=1e-4)
