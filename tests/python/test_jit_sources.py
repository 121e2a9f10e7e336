"""The texts of kernels: changed texts, variables that change, annotations from decorators, texts and resources for GPUs."""

import ast
import importlib.util
import inspect
import linecache
import pickle
import types

import libtl
import libtl.language as tl
import libtl.triton_compat as triton
import numpy as np
import pytest
from libtl import _cubin, _source

FACTOR = 2
TABLE = [1, 2]
settings = types.ModuleType("settings")
settings.SHIFT = 5


def result(kernel, *arguments, dtype=np.int32, **options):
    out = np.full(1, -12345, dtype)
    kernel[(1,)](out, *arguments, **options)
    return out[0]


@libtl.jit
def inner(v):
    return v + 1


@libtl.jit
def outer(out, v):
    tl.store(out, inner(v) * 10)


def test_changed_text():
    text, key, inner_key = outer.src, outer.cache_key, inner.cache_key
    assert text.startswith("def outer(out, v):")
    assert result(outer, 4) == 50
    outer._unsafe_update_src(text.replace("* 10", "* 100"))
    assert result(outer, 4) == 500 and outer.cache_key != key
    outer._unsafe_update_src(text)
    assert result(outer, 4) == 50 and outer.cache_key == key
    inner._unsafe_update_src(inner.src.replace("+ 1", "+ 3"))
    assert result(outer, 4) == 70 and outer.cache_key != key
    inner._unsafe_update_src(inner.src.replace("+ 3", "+ 1"))
    assert outer.cache_key == key and inner.cache_key == inner_key
    with pytest.raises(AttributeError, match="_unsafe_update_src"):
        outer.src = text


def test_changed_text_in_messages():
    @libtl.jit
    def kernel(out):
        tl.store(out, 1)

    kernel._unsafe_update_src(kernel.src.replace("1)", "missing)"))
    with pytest.raises(libtl.CompileError, match="changed text of .*kernel>:.*'missing' is not defined"):
        result(kernel)


def test_changed_constexpr_function():
    @libtl.constexpr_function
    def five():
        return 5

    @libtl.jit
    def kernel(out):
        tl.store(out, five())

    assert result(kernel) == 5
    key = kernel.cache_key
    five._unsafe_update_src(five.src.replace("5", "6"))
    assert result(kernel) == 6 and kernel.cache_key != key


# --- variables: a kernel never has an old value


def test_changed_global():
    @libtl.jit
    def kernel(out):
        tl.store(out, FACTOR)

    global FACTOR
    key = triton.runtime.jit.get_device_key()
    for FACTOR in (2, 3, 2):
        assert result(kernel) == FACTOR
        (compiled,) = kernel.device_caches[key][0].values()
        assert f"%c{FACTOR}_i32" in compiled.asm["ttir"]


def test_changed_closure():
    value = 1

    @libtl.jit
    def kernel(out):
        tl.store(out, value)

    for value in (1, 7, 8):
        assert result(kernel) == value


def test_changed_constexpr_object():
    value = tl.constexpr(3)

    @libtl.jit
    def kernel(out):
        tl.store(out, value)

    assert result(kernel) == 3
    value.value = 4
    assert result(kernel) == 4


def test_changed_in_place():
    @libtl.jit
    def kernel(out):
        tl.store(out, TABLE[0] + len(TABLE))

    assert result(kernel) == 3
    TABLE.append(9)
    assert result(kernel) == 4
    TABLE[0] = 100
    assert result(kernel) == 103


def test_changed_attribute_of_a_module():
    @libtl.jit
    def kernel(out):
        tl.store(out, settings.SHIFT)

    assert result(kernel) == 5
    settings.SHIFT = 6
    assert result(kernel) == 6


def test_changed_variable_of_a_callee():
    shift = 1

    @libtl.jit
    def add(v):
        return v + shift

    @libtl.jit
    def kernel(out, v):
        tl.store(out, add(v))

    assert result(kernel, 10) == 11
    shift = 5
    assert result(kernel, 10) == 15
    assert kernel.used_global_vals == {}


# --- annotations and decorators


def annotated(**annotations):
    def decorate(fn):
        fn.__annotations__ = annotations
        return fn
    return decorate


@pytest.mark.parametrize("annotation, ir", [("tl.uint8", "i8"), (tl.int64, "i64"), ("i16", "i16"), (tl.float16, "f16"),
                                            (tl.float64, "f64")])
def test_annotations_of_decorators(annotation, ir):
    @libtl.jit
    @annotated(v=annotation)
    def kernel(out, v, w):
        tl.store(out, v + 0)
        tl.store(out, w)

    out = np.full(1, -1.0, np.float32)
    compiled = kernel[(1,)](out, 3.0 if ir[0] == "f" else 200, 4)
    assert f"%v: {ir}" in compiled.asm["ttir"] and out[0] == 4


def test_constexpr_by_decorator():
    @libtl.jit
    @annotated(N=tl.constexpr)
    def kernel(out, N):
        tl.store(out, tl.sum(tl.arange(0, N)))

    assert result(kernel, 16) == 120


def test_type_names():
    names = {"tl.float32": "fp32", tl.bfloat16: "bf16", "*fp16": "*fp16", "const float16*": "*kfp16", "uint8": "u8",
             "int32": "i32", tl.int1: "u1", tl.pointer_type(tl.int8): "*i8", "tl.constexpr": "constexpr"}
    assert {a: _source.type_name(a) for a in names} == names
    for name in ("u8", "i64", "fp16", "*i32"):
        assert _source.type_name(str(tl.str_to_ty(name)) if name[0] != "*" else tl.str_to_ty(name)) == name


def test_constexpr_without_specialisation():
    @libtl.jit(do_not_specialize=["N"])
    def kernel(out, N: tl.constexpr):
        tl.store(out, N)

    with pytest.raises(libtl.CompileError, match="N marked as constexpr and listed in do_not_specialize"):
        result(kernel, 1)


def test_result_must_be_used():
    @triton.must_use_result("squares cost much")
    @libtl.jit
    def square(v):
        return v * v

    @libtl.jit
    def careless(out):
        square(tl.load(out))

    with pytest.raises(libtl.CompileError, match="squares cost much"):
        result(careless)


# --- texts and resources


@libtl.jit
def copy(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def test_texts_for_a_gpu():
    x, out = np.arange(128, dtype=np.float32), np.full(128, -1, np.float32)
    compiled = copy[(1,)](x, out, 128)
    np.testing.assert_array_equal(out, x)
    assert ".visible .entry copy" in compiled.asm["ptx"] and "ttg.num-warps" in compiled.asm["ttgir"]
    assert compiled.asm["ptx"] == copy.compile("*fp32:16", "*fp32:16", 128, device="sim").asm["ptx"]
    assert compiled.asm["source"].endswith(copy.src) and compiled.shared == compiled.metadata.shared == 0
    assert compiled.hash == copy.warmup(x, out, 128).hash != copy.warmup(x, out, 64).hash
    with pytest.raises(KeyError, match="'sass'"):
        compiled.asm["sass"]


def test_compile():
    source = triton.compiler.ASTSource(copy, {"x": "*fp16", "out": "*fp16", "BLOCK": "constexpr"}, {"BLOCK": 64},
                                       {(0,): [["tt.divisibility", 16]]})
    target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
    ttir = triton.compile(source, target).asm["ttir"]
    assert "%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}" in ttir and "tensor<64x" in ttir
    assert "%out: !tt.ptr<f16> {tt.divisibility = 16" not in ttir
    with pytest.raises(NotImplementedError, match="not hip"):
        triton.compile(source, triton.backends.compiler.GPUTarget("hip", "gfx942", 64))
    with pytest.raises(TypeError, match="no values of BLOCK"):
        triton.compile(triton.compiler.ASTSource(copy, {"x": "*fp16", "out": "*fp16"}), target)


def test_descriptor_types():
    @libtl.jit
    def load(d, out):
        i = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out + i, d.load([0, 0]))

    compiled = triton.compile(triton.compiler.ASTSource(load, {"d": "tensordesc<fp16[8, 16]>", "out": "*fp16"}),
                              triton.backends.compiler.GPUTarget("cuda", 90, 32))
    assert "tensor<8x16xf16>" in compiled.asm["ttir"]


def test_texts_live_as_long_as_the_kernel():
    """Text arguments are the kernel's own: a later text does not change what it was compiled for."""
    @libtl.jit
    def kernel(out, word: tl.constexpr):
        tl.store(out, 1 if word == "ab-1" else 2)

    out = np.full(1, -1, np.int32)
    compiled = [kernel[(1,)](out, "-".join(["ab", str(i)])) for i in range(40)]
    assert ["%c1_i32" in k.asm["ttir"] for k in compiled] == [i == 1 for i in range(40)]


def test_out_of_shared_memory():
    @libtl.jit
    def product(a, b, c):
        i = tl.arange(0, 128)
        o = i[:, None] * 128 + i[None, :]
        tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o)))

    types_ = ["*fp64:16"] * 3
    with pytest.raises(libtl.OutOfResources, match="out of resource: shared memory, Required: 262144") as e:
        product.compile(*types_, num_warps=8, device="sim:75")
    assert (e.value.required, e.value.limit, e.value.name) == (262144, 65536, "shared memory")
    assert isinstance(e.value, libtl.CompileError) and e.value.line > 0 and "a tile in shared memory" in str(e.value)
    copied = pickle.loads(pickle.dumps(e.value))
    assert str(copied) == str(e.value) and copied.limit == 65536 and copied.line == e.value.line


ODD = '''
def decorated(*args, **kwargs):
    return lambda f: f

@decorated(
    1, text="""
definitely not a definition
    """,
)
@decorated()
def first(
    x, y=(1,
2),
):
    """A text
that is not indented."""
    a = x + \\
1
# a comment that is not indented
    return (a,
y)

class Outer:
    @decorated()
    def second(self):
        if self:
            return """
x"""

        # the end
# a comment that is not indented

        return 1
    # a comment after it

    def third(self): return 2
if True:
\tdef fifth(x):
\t\treturn x

async_ = 1
def last(x): return [
    x]'''


def test_text_of_odd_functions(tmp_path):
    """The text is that of inspect, from `def` to the last statement."""
    path = tmp_path / "odd_functions.py"
    path.write_text(ODD)
    spec = importlib.util.spec_from_file_location("odd_functions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for f in module.first, module.Outer.second, module.Outer.third, module.fifth, module.last:
        lines, start = inspect.getsourcelines(f)
        margin = lines[0][:len(lines[0]) - len(lines[0].lstrip())]
        text = "".join(line.removeprefix(margin) for line in lines)
        tree = ast.parse(text).body[0]
        expected = "".join(text.splitlines(True)[tree.lineno - 1:tree.end_lineno])
        got = _source.Function(f)
        assert (got.text, got.line, got.file) == (expected, start + tree.lineno - 1, str(path))
        assert ast.unparse(got.tree.body) == ast.unparse(tree.body)
    path.write_text("# another line\n\n" + ODD)
    linecache.checkcache(str(path))
    with pytest.raises(_source.NotWritten, match="the file has changed since it was imported"):
        _source.Function(module.Outer.second)


def test_machine_code():
    """The cubin of a kernel that libtl launches, for tools that read it."""
    if not _cubin.find_ptxas():
        pytest.skip("there is no ptxas")

    @libtl.jit
    def double(x):
        tl.store(x + tl.arange(0, 64), 2 * tl.load(x + tl.arange(0, 64)))

    k = double.compile("*fp32:16", device="sim")
    assert k.asm["cubin"][:4] == b"\x7fELF"
    with pytest.raises(KeyError, match="there are ttir, ttgir, llir, ptx, cubin"):
        k.asm["sass"]
