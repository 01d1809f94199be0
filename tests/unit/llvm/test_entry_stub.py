"""Native gates: which arguments they take, what they hand on of them and of hidden arguments, and overlap."""

from __future__ import annotations

import collections
import sys
from typing import Any

import numpy as np
import pytest

from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.signature.specs import Signature, StaticSpec, TupleSpec, signature_of, spec_of
from tests.helpers.entry_stub_programs import (
    Probe,
    Slow,
    address,
    bits,
    probe_of,
)
from tests.helpers.entry_stub_values import SCALARS, Point, reads_globals, table


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "complex64"]
)
def test_array_slots(dtype: str) -> None:
    x = np.ones((3, 4), dtype)
    probe = probe_of(x)
    assert probe.slots(x) == [id(x), address(x), 3, 4, *x.strides]
    for other in (
        "bool",
        "int8",
        "int32",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        ">f8",
        "O",
        "S8",
    ):
        if np.dtype(other) != np.dtype(dtype):
            assert not probe.takes(np.ones((3, 4), other))


VIEWS = {
    "C": np.ones((4, 6)),
    "F": np.ones((6, 4)).T,
    "S": np.ones((8, 8))[:4, :6],
    "A": np.ones((8, 12))[::2, ::2],
    "S negative": np.ones((4, 8))[::-1, :6],
    "A negative": np.ones((4, 6))[:, ::-1],
    "one row": np.ones((1, 6)),
    "one column": np.ones((4, 8))[:, :1],
    "empty": np.ones((0, 6)),
    "rank 1": np.ones(6),
    "rank 3": np.ones((2, 3, 4)),
    "rank 0": np.ones(()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_gate_takes_exactly_its_spec(name: str) -> None:
    x = VIEWS[name]
    probe = probe_of(x)
    assert probe.slots(x) == [id(x), address(x), *x.shape, *x.strides]
    for other in VIEWS.values():
        assert probe.takes(other) == (spec_of(other) == spec_of(x))
        frozen = other.view()
        frozen.flags.writeable = False
        assert not probe.takes(frozen)
        assert Probe(signature_of([frozen])).takes(frozen)


def test_arrays_that_are_objects() -> None:
    x = np.ones(3)
    probe = probe_of(x)
    unaligned = np.zeros(25, "u1")[1:].view("f8")
    itself = np.lib.stride_tricks.as_strided(np.ones(9), (3, 3), (8, 8))
    spread = np.broadcast_arrays(np.ones(1), np.ones(3))[0]
    masked = np.ma.ones(3)
    others: list[Any] = [np.ones(3, ">f8"), unaligned, spread, np.ones(3).view(np.recarray), masked, np.matrix([1.0])]
    for value in [*others, [1.0], 1.0, np.float64(1), None, "x", object()]:
        assert not probe.takes(value)
    strided = probe_of(np.ones((8, 8))[::2, ::2])
    assert not strided.takes(itself[:, ::2])
    assert not probe_of(np.ones((8, 8))[:3, :3]).takes(itself)
    for value in [*others, itself]:
        opaque = probe_of(value)
        assert opaque.slots(value) == [id(value)]
        assert not opaque.takes(x)  # an array with a better spec


def test_equal_dtype_objects() -> None:
    copied = np.frombuffer(bytes(24), dtype=np.dtype("f8").newbyteorder("="))
    x = np.ones(3)
    y = x.view()
    y.dtype = np.dtype("f8").newbyteorder("S").newbyteorder("S")
    probe = probe_of(x)
    assert probe.takes(y)
    marked = np.ones(3, np.dtype("f8", metadata={"unit": "m"}))
    assert marked.dtype is not np.dtype("f8")
    assert not probe.takes(marked)
    assert not probe.takes(copied)  # read-only


@pytest.mark.parametrize("index", range(len(SCALARS)))
def test_scalar_arguments(index: int) -> None:
    value, expected = SCALARS[index]
    probe = probe_of(value)
    assert probe.slots(value) == expected
    for other, _ in SCALARS:
        assert probe.takes(other) == (type(other) is type(value))
    assert not probe.takes(None)
    assert not probe.takes(2**63)
    assert not probe.takes(np.ones(()))


def test_huge_ints_are_objects() -> None:
    probe = probe_of(2**63)
    assert probe.takes(2**63)
    assert probe.takes(-(10**40))
    assert not probe.takes(5)


def test_none_static_and_object() -> None:
    marker = object()
    values = [
        None,
        "axis",
        "a" * 3,
        3,
        0.0,
        -0.0,
        True,
        np,
        np.mean,
        int,
        np.dtype("f8"),
        (1, ("a", None)),
        (),
        2**70,
        marker,
    ]
    for value in values:
        probe = Probe(Signature((StaticSpec(value),)))
        assert probe.slots(value) == []
        for other in values:
            assert probe.takes(other) is (StaticSpec(other) == StaticSpec(value)), (value, other)
    assert Probe(Signature((StaticSpec("axis"),))).takes("".join(["ax", "is"]))
    assert Probe(Signature((StaticSpec(2**70),))).takes(2**69 * 2)
    assert Probe(Signature((StaticSpec(float("nan")),))).takes(float("nan"))
    assert Probe(Signature((StaticSpec(1j),))).takes(1j)
    assert not Probe(Signature((StaticSpec(1),))).takes(True)
    assert not Probe(Signature((StaticSpec("1"),))).takes(np.str_("1"))
    assert probe_of({}).takes({1: 2})
    assert not probe_of({}).takes(collections.OrderedDict())


def test_sequences() -> None:
    x = np.ones(3)
    probe = probe_of((1, [2.0, x], None), slice(None, 5))
    assert probe.slots((7, [3.0, x], None), slice(None, 6)) == [7, bits(3.0), id(x), address(x), 3, 8, 6]
    good: Any = (1, [2.0, x], None)
    for bad in (
        (1, [2.0, x]),
        [1, [2.0, x], None],
        (1, (2.0, x), None),
        (1, [2, x], None),
        (1, [2.0, x, 1], None),
        Point(1, 2),
    ):
        assert not probe.takes(bad, slice(None, 5))
    assert not probe.takes(good, slice(0, 5))
    assert not probe.takes(good, 5)
    assert Probe(Signature((TupleSpec(()), TupleSpec((), "list")))).takes((), [])
    long = probe_of(list(range(100)))
    assert long.takes(list(range(50)))
    assert not long.takes([1, 2])


def test_counts_and_keywords_go_on() -> None:
    probe = probe_of(1, 2)
    assert probe.slots(3, 4) == [3, 4]
    for args, kwargs in (((1,), {}), ((), {}), ((1, 2, 3), {}), ((1,), {"y": 2}), ((1, 2), {"z": 3})):
        assert probe.f(*args, **kwargs) == "slow"
        assert probe.slow.calls[-1] == (args, kwargs)


def test_next_can_be_a_gate_and_can_change() -> None:
    ints, floats = probe_of(1), probe_of(1.0)
    slow = Slow()
    function = AcceleratedFunction(lambda x: None, slow)
    install(function, [ints.handle, floats.handle])
    assert function(1) is None and function(1.0) is None and function("a") == "slow"
    install(function, [floats.handle, ints.handle])
    assert function(1) is None and function(1.0) is None and function("a") == "slow"
    install(function, [floats.handle])
    assert function(1.0) is None and function(1) == "slow"
    install(function, [])
    assert function(1.0) == "slow" and function(1, a=2) == "slow"
    assert slow.calls[-1] == ((1,), {"a": 2})


def test_overlapping_arguments() -> None:
    x = np.zeros(20)
    calls = [
        (x[:5], x[5:10]),
        (x[:5], x[4:10]),
        (x[5:10], x[:5]),
        (x[5:10], x[:6]),
        (x, x),
        (x[3:3], x),
        (x[3:3], x[3:3]),
        (x[:8:2], x[8::2]),
        (x[:9:2], x[8::2]),
        (x[7::-1], x[8:]),
        (x[8::-1], x[8:]),
        (x[::-2], x[1::2]),
    ]
    for args in calls:
        own = signature_of(args)
        probe = Probe(own)
        for other in calls:
            assert probe.takes(*other) is (signature_of(other) == own), (args, other)
    two = x.reshape(4, 5)
    grid = [(two[:2], two[2:]), (two[:3], two[2:]), (two[:, :2], two[:, 2:]), (two.T[:2], two[2:])]
    for args in grid:
        probe = Probe(signature_of(args))
        for other in grid:
            assert probe.takes(*other) is (signature_of(other) == probe.handle.signature)
    blind = Probe(Signature((spec_of(x), spec_of(x))))
    assert blind.takes(x, x) and blind.takes(x, x[:3])


def test_hidden_globals_are_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [
        (("global", name), value) for name, value in (("scale", 2.0), ("table", table), ("np", np), ("len", len))
    ]
    probe = Probe(signature_of([], sources), function=reads_globals)  # type: ignore[arg-type]
    module = sys.modules[reads_globals.__module__]
    assert probe.slots() == [bits(2.0), id(table), address(table), 4, 8]
    monkeypatch.setattr(module, "scale", 3.0)
    assert probe.slots()[0] == bits(3.0)
    monkeypatch.setattr(module, "scale", 3)
    assert not probe.takes()
    monkeypatch.setattr(module, "scale", 4.0)
    assert probe.takes()
    monkeypatch.setattr(module, "len", abs, raising=False)
    assert not probe.takes()
    monkeypatch.delattr(module, "len")
    assert probe.takes()
    monkeypatch.setattr(module, "np", sys)
    assert not probe.takes()
    monkeypatch.undo()
    monkeypatch.delattr(module, "table")
    assert not probe.takes()


class Holder:
    def __init__(self) -> None:
        self.scale = 2.0


def test_globals_that_are_attributes_of_an_object() -> None:
    holder = Holder()
    exec("def reads():\n    return scale", vars(holder))
    probe = Probe(signature_of([], [(("global", "scale"), 2.0)]), function=vars(holder)["reads"])
    for value in (2.0, 3.0, 4.0):
        holder.scale = value
        assert probe.slots() == [bits(value)]
    names = dict(vars(holder))
    vars(holder).clear()
    assert not probe.takes()
    vars(holder).update(reversed(names.items()))
    assert probe.slots() == [bits(4.0)]


def test_hidden_cells() -> None:
    def outer() -> Any:
        factor = 2.0
        late: Any

        def inner() -> Any:
            return factor, late

        def change(value: Any) -> None:
            nonlocal factor
            factor = value

        def set_late(value: Any) -> None:
            nonlocal late
            late = value

        return inner, change, set_late

    inner, change, set_late = outer()
    probe = Probe(signature_of([], [(("cell", 0), 2.0), (("cell", 1), 1)]), function=inner)
    assert not probe.takes()  # an empty cell
    set_late(7)
    assert probe.slots() == [bits(2.0), 7]
    change(5.0)
    assert probe.slots() == [bits(5.0), 7]
    change("a")
    assert not probe.takes()


def test_hidden_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = signature_of([], [(("attribute", "math", "pi"), 3.0)])
    probe = Probe(signature)
    import math

    assert probe.slots() == [bits(math.pi)]
    monkeypatch.setattr(math, "pi", 3.0)
    assert probe.slots() == [bits(3.0)]
    monkeypatch.delattr(math, "pi")
    assert not probe.takes()


def test_hidden_objects_are_held_during_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.ones(30_000)
    monkeypatch.setattr(sys.modules[reads_globals.__module__], "table", array)
    probe = Probe(signature_of([], [(("global", "table"), array)]), function=reads_globals)
    before = sys.getrefcount(array)
    for _ in range(100):
        assert probe.takes()
    assert sys.getrefcount(array) == before
