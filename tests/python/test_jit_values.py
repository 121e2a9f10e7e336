"""Arguments that only Python has: functions of the language, enumerators, dicts, named tuples, aggregates."""

import enum
from typing import NamedTuple

import libtl
import libtl.language as tl
import libtl.triton_compat as triton
import numpy as np
import pytest


class Mode(enum.Enum):
    ADD = "add"
    MULTIPLY = 2


class Level(enum.IntEnum):
    LOW = 3
    HIGH = 11


class Pair(NamedTuple):
    first: object
    second: object


@triton.aggregate
class Range:
    start: tl.constexpr
    length: tl.constexpr

    def __init__(self, start, length):
        self.start = tl.constexpr(start + 1)
        self.length = tl.constexpr(length)


@libtl.jit
def double(v):
    return v * 2


@libtl.jit
def call(out, function: tl.constexpr):
    tl.store(out, function(5))


@libtl.jit
def read(out, values: tl.constexpr):
    tl.store(out, values["a"] + 10 * values["b"])


@libtl.jit
def choose(out, mode: tl.constexpr):
    if mode == Mode.ADD:
        tl.store(out, 1)
    else:
        tl.store(out, mode.value * 100)


@libtl.jit
def add_level(out, level):
    tl.store(out, level + Level.HIGH)


@libtl.jit
def nested(out, pair):
    tl.store(out, pair.first(pair.second.first) + pair.second.second["k"])


@libtl.jit
def extent(out, r: tl.constexpr):
    tl.store(out, r.start * 1000 + r.length)


@libtl.jit
def ignore(out, anything: tl.constexpr):
    tl.store(out, 4)


def result(kernel, *arguments):
    out = np.full(1, -12345, np.int32)
    kernel[(1,)](out, *arguments)
    return int(out[0])


def test_functions():
    assert result(call, double) == 10
    assert result(call, tl.abs) == 5


def test_dicts():
    assert result(read, {"a": 3, "b": 4}) == 43
    assert result(read, {"a": 3, "b": 5}) == 53
    assert result(read, {"a": 3, "b": 4}) == 43


def test_enumerators():
    assert result(choose, Mode.ADD) == 1
    assert result(choose, Mode.MULTIPLY) == 200
    assert result(add_level, Level.LOW) == 14


def test_nested_in_tuples():
    assert result(nested, Pair(double, Pair(7, {"k": 1}))) == 15
    assert result(nested, Pair(tl.abs, Pair(-7, {"k": 1}))) == 8


def test_aggregates():
    assert result(extent, Range(4, 5)) == 5005
    assert result(extent, Range(start=7, length=2)) == 8002
    assert Range(4, 5).start.value == 5


def test_equal_values_are_compiled_once():
    call_count = len(read._modules)
    for _ in range(3):
        assert result(read, {"a": 1, "b": 2}) == 21
    assert len(read._modules) <= call_count + 1


def test_true_is_not_one():
    @libtl.jit
    def kind(out, values: tl.constexpr):
        tl.store(out, 1 if values["v"] is True else 2)

    assert result(kind, {"v": 1}) == 2
    assert result(kind, {"v": True}) == 1


def test_objects_without_a_text():
    assert result(ignore, object()) == 4
    with pytest.raises(TypeError, match="builtins.object cannot be passed to a kernel"):
        result(add_level, object())


# --- aggregates in Python


@triton.aggregate
class Base:
    a: tl.constexpr
    b: tl.constexpr = 42


@triton.aggregate
class Derived(Base):
    c: tl.constexpr = tl.constexpr(7)


def test_fields():
    d = Derived(1, c=3)
    assert (d.a.value, d.b.value, d.c.value) == (1, 42, 3)
    assert tl.aggregate_replace(d, b=5).b.value == 5 and d.b.value == 42
    with pytest.raises(AttributeError, match="immutable aggregate Derived"):
        d.a = tl.constexpr(2)
    for arguments, names, message in (((), {}, "missing required argument: 'a'"), ((1, 2, 3, 4), {}, "5 were given"),
                                      ((1,), {"a": 1}, "multiple values"), ((1,), {"z": 1}, "unexpected keyword")):
        with pytest.raises(TypeError, match=message):
            Derived(*arguments, **names)
    with pytest.raises(TypeError, match="has no field 'z'"):
        tl.aggregate_replace(d, z=1)
    with pytest.raises(TypeError, match="only inherit from other aggregates"):
        triton.aggregate(type("Other", (type("Plain", (), {}),), {}))
