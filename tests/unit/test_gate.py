"""Native gates: what they take, what they hand on, what they give back, and that no reference is lost or gained."""

from __future__ import annotations

import collections
import gc
import struct
import sys
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from parakeet_py.config import options
from parakeet_py.llvm.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.gate import load_gate
from parakeet_py.llvm.gate_ir import gate_ir
from parakeet_py.llvm.runtime import runtime
from parakeet_py.result_tree import ResultLeaf, ResultListOf, ResultStatic, ResultTuple
from parakeet_py.signature import (
    HiddenSpec,
    ObjectSpec,
    ScalarSpec,
    Signature,
    StaticSpec,
    TupleSpec,
    signature_of,
    spec_of,
)
from tests.unit.gate_programs import (
    Failure,
    Probe,
    Slow,
    address,
    bits,
    blocks_entry,
    fail,
    function_of,
    make_gate,
    probe_of,
)

Point = collections.namedtuple("Point", "x y")
OBJECT = ResultLeaf(0, "object")
CALLS = 10_000


def array_leaf(index: int = 0, rank: int = 1, dtype: str = "float64") -> ResultLeaf:
    return ResultLeaf(index, "array", dtype, rank=rank)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


# ---- arguments -------------------------------------------------------------------------------------------------------


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


SCALARS: list[tuple[Any, list[int]]] = [
    (True, [1]),
    (False, [0]),
    (-5, [-5]),
    (2**63 - 1, [2**63 - 1]),
    (-(2**63), [-(2**63)]),
    (-0.0, [bits(-0.0)]),
    (1.5 - 2j, [bits(1.5), bits(-2.0)]),
    (np.True_, [1]),
    (np.int8(-1), [0xFF]),
    (np.uint8(200), [200]),
    (np.int16(-2), [0xFFFE]),
    (np.uint16(65535), [0xFFFF]),
    (np.int32(-3), [0xFFFFFFFD]),
    (np.uint32(7), [7]),
    (np.int64(-4), [-4]),
    (np.uint64(2**64 - 1), [-1]),
    (np.float16(1.5), [0x3E00]),
    (np.float32(1.5), [0x3FC00000]),
    (np.float64(1.5), [bits(1.5)]),
    (np.complex64(1 + 2j), [0x40000000_3F800000]),
    (np.complex128(1 + 2j), [bits(1.0), bits(2.0)]),
]


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


# ---- overlap ---------------------------------------------------------------------------------------------------------


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


# ---- hidden arguments ------------------------------------------------------------------------------------------------

scale = 2.0
table = np.ones(4)


def reads_globals() -> Any:
    return scale, table, np, len


def test_hidden_globals_are_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [
        (("global", name), value) for name, value in (("scale", 2.0), ("table", table), ("np", np), ("len", len))
    ]
    probe = Probe(signature_of([], sources), function=reads_globals)  # type: ignore[arg-type]
    module = sys.modules[__name__]
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
    monkeypatch.setattr(sys.modules[__name__], "table", array)
    probe = Probe(signature_of([], [(("global", "table"), array)]), function=reads_globals)
    before = sys.getrefcount(array)
    for _ in range(100):
        assert probe.takes()
    assert sys.getrefcount(array) == before


# ---- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(SCALARS)))
def test_scalar_results(index: int) -> None:
    value, slots = SCALARS[index]
    spec = spec_of(value)
    assert isinstance(spec, ScalarSpec)
    packed = b"".join((slot & (2**64 - 1)).to_bytes(8, "little") for slot in slots)
    probe = Probe(Signature(()), ResultLeaf(0, "scalar", spec.dtype, spec.python), packed)
    got = probe.f()
    assert type(got) is type(value)
    assert got == value and str(got) == str(value)
    if spec.dtype == "bool":
        assert got is value
    assert got.__sizeof__() == value.__sizeof__()


def test_python_int_from_uint64() -> None:
    probe = Probe(Signature(()), ResultLeaf(0, "scalar", "uint64", True), words(-1))
    assert probe.f() == 2**64 - 1


def test_numpy_scalars_are_freed() -> None:
    probe = Probe(Signature(()), ResultLeaf(0, "scalar", "complex128"), struct.pack("<2d", 1, 2))
    probe.f()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(CALLS):
        probe.f()
    assert tracemalloc.get_traced_memory()[0] - before < 10_000
    tracemalloc.stop()


def test_containers_and_statics() -> None:
    marker = object()
    one = ResultLeaf(0, "scalar", "int64", True)
    two = ResultLeaf(1, "scalar", "float64")
    tree = ResultTuple(
        (
            one,
            ResultTuple((two, ResultStatic(None), ResultStatic(marker)), "list"),
            ResultTuple(()),
            ResultTuple((), "list"),
            ResultTuple((one, two), type=Point),
            ResultStatic(("a", 1)),
        )
    )
    probe = Probe(Signature(()), tree, words(42, bits(2.5)))
    references = sys.getrefcount(marker)
    got = probe.f()
    assert got == (42, [2.5, None, marker], (), [], Point(42, 2.5), ("a", 1))
    assert type(got[4]) is Point and type(got[1][0]) is np.float64
    assert got[1][0] is got[4].y
    counts = sys.getrefcount(got), sys.getrefcount(got[1]), sys.getrefcount(got[4])
    assert counts == (2, 2, 2)
    del got
    for _ in range(CALLS):
        probe.f()
    assert sys.getrefcount(marker) == references
    assert probe.f()[1] is not probe.f()[1]


def test_a_namedtuple_that_refuses() -> None:
    class Picky(Point):
        def __new__(cls, x: Any, y: Any) -> Any:
            raise ValueError("no")

    one = ResultLeaf(0, "scalar", "float64")
    probe = Probe(Signature(()), ResultTuple((one, ResultTuple((one, one), type=Picky))), words(bits(1e300)))
    for _ in range(10):
        with pytest.raises(ValueError, match="no"):
            probe.f()


def test_object_results() -> None:
    value = {"a": 1}
    probe = Probe(signature_of([value]), ResultTuple((OBJECT, ResultLeaf(1, "object"))), words(id(value), id(value)))
    references = sys.getrefcount(value)
    got = probe.f(value)
    assert got[0] is value and got[1] is value
    assert sys.getrefcount(value) == references + 2
    del got
    for _ in range(CALLS):
        probe.f(value)
    assert sys.getrefcount(value) == references


def test_the_same_array() -> None:
    x = np.ones(3)
    probe = Probe(signature_of([x]), array_leaf(), words(id(x)))
    assert probe.f(x) is x
    references = sys.getrefcount(x)
    for _ in range(CALLS):
        probe.f(x)
    assert sys.getrefcount(x) == references


@pytest.mark.parametrize("writeable", [True, False])
def test_views_of_an_argument(writeable: bool) -> None:
    x = np.arange(12.0).reshape(3, 4)
    x.flags.writeable = writeable
    probe = Probe(signature_of([x]), array_leaf(), words(0, id(x), 0, address(x) + 88, 3, -32))
    references = sys.getrefcount(x), sys.getrefcount(x.dtype)
    view = probe.f(x)
    assert view.base is x.base  # NumPy collapses chains of views
    assert np.array_equal(view, x[::-1, 3])
    assert view.flags.writeable is writeable and view.flags.aligned and not view.flags.owndata
    assert view.strides == (-32,) and not view.flags.c_contiguous
    del view
    for _ in range(CALLS):
        probe.f(x)
    assert sys.getrefcount(x) == references[0]
    assert abs(sys.getrefcount(x.dtype) - references[1]) < 5


def test_a_view_keeps_its_base() -> None:
    x = np.arange(3.0)
    probe = Probe(signature_of([x]), array_leaf(rank=0), words(0, id(x), 0, address(x) + 8))
    view = probe.f(x)
    assert view.shape == () and view.base is x
    view[()] = 7.0
    assert x[1] == 7.0
    del x
    assert view == 7.0


def test_arrays_that_own_their_block() -> None:
    f = function_of(blocks_entry([48], [(0, 0, (2, 3), (24, 8))]), Signature(()), array_leaf(rank=2))
    got = f()
    assert np.array_equal(got, [[0, 1, 2], [3, 4, 5]])
    assert got.flags.owndata and got.flags.c_contiguous and got.flags.writeable and got.flags.aligned
    assert got.base is None and sys.getrefcount(got) == 2
    assert np._core.multiarray.get_handler_name(got) == "parakeet_py"
    got.resize((5, 5), refcheck=False)
    assert got[0, 1] == 1 and got.size == 25
    again = got + 1
    assert np._core.multiarray.get_handler_name(again) == "default_allocator"


@pytest.mark.parametrize(("dims", "strides", "size"), [((0,), (8,), 0), ((0, 3), (24, 8), 0), ((), (), 8)])
def test_empty_and_0d_results(dims: tuple[int, ...], strides: tuple[int, ...], size: int) -> None:
    f = function_of(blocks_entry([size], [(0, 0, dims, strides)]), Signature(()), array_leaf(rank=len(dims)))
    got = f()
    assert type(got) is np.ndarray and got.shape == dims and got.flags.owndata and got.flags.c_contiguous


def test_fortran_result() -> None:
    f = function_of(blocks_entry([48], [(0, 0, (2, 3), (8, 16))]), Signature(()), array_leaf(rank=2))
    got = f()
    assert got.flags.f_contiguous and not got.flags.c_contiguous and got.flags.owndata
    assert np.array_equal(got, np.arange(6.0).reshape(3, 2).T)


def test_part_of_a_block() -> None:
    f = function_of(blocks_entry([80], [(0, 72, (5,), (-16,))]), Signature(()), array_leaf())
    got = f()
    assert np.array_equal(got, [9, 7, 5, 3, 1])
    assert not got.flags.owndata and got.flags.writeable
    base = got.base
    assert base.dtype == np.uint8 and base.nbytes == 80 and base.flags.owndata
    del got
    assert sys.getrefcount(base) == 2


def test_shared_blocks() -> None:
    arrays = [(0, 8, (3,), (8,)), (1, 0, (4,), (8,)), (0, 0, (2,), (8,)), (1, 8, (3,), (8,)), (2, 0, (1,), (8,))]
    tree = ResultTuple(tuple(array_leaf(index) for index in range(5)))
    f = function_of(blocks_entry([80, 32, 8], arrays), Signature(()), tree)
    a, b, c, d, e = f()
    assert a.base is c.base and a.base.dtype == np.uint8 and a.base.nbytes == 80
    a[0] = 50.0
    assert c[1] == 50.0
    assert b.flags.owndata and d.base is b and np.array_equal(d, b[1:])
    assert e.flags.owndata
    del a, b
    assert np.array_equal(d, [1, 2, 3]) and np.array_equal(c, [0, 50])
    base = c.base
    del c
    assert sys.getrefcount(base) == 2


def test_the_same_leaf_twice_is_one_object() -> None:
    f = function_of(blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultTuple((array_leaf(), array_leaf())))
    a, b = f()
    assert a is b and a.flags.owndata
    assert sys.getrefcount(a) == 3


def test_lists_of_python_scalars() -> None:
    f = function_of(blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultListOf(array_leaf()))
    got = f()
    assert got == [0.0, 1.0, 2.0] and type(got[0]) is float and type(got) is list
    assert sys.getrefcount(got) == 2
    two = function_of(
        blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultTuple((ResultListOf(array_leaf()), array_leaf()))
    )
    listed, array = two()
    assert listed == list(array) and sys.getrefcount(array) == 2


def test_memory_of_results_comes_back() -> None:
    size = 1 << 20
    f = function_of(blocks_entry([size], [(0, 8, (5,), (8,))]), Signature(()), array_leaf())
    f()
    pooled = runtime().pooled_bytes()
    for _ in range(50):
        f()
    assert runtime().pooled_bytes() == pooled >= size


def test_temporaries_left_to_the_context_are_freed() -> None:
    size = 1 << 20
    f = function_of(blocks_entry([size, 24], [(1, 0, (3,), (8,))]), Signature(()), array_leaf())
    f()
    pooled = runtime().pooled_bytes()
    for _ in range(50):
        assert f()[1] == 1.0
    assert runtime().pooled_bytes() == pooled


def test_references_of_shared_objects_stay() -> None:
    f = function_of(
        blocks_entry([80], [(0, 0, (3,), (8,)), (0, 8, (3,), (8,))]),
        Signature(()),
        ResultTuple((array_leaf(0), array_leaf(1), ResultStatic(None))),
    )
    f()
    objects = (np.dtype("f8"), np.dtype("u1"), runtime().mem_handler, None)
    gc.collect()
    before = [sys.getrefcount(value) for value in objects]
    for _ in range(CALLS):
        f()
    after = [sys.getrefcount(value) for value in objects]
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True))


# ---- failures --------------------------------------------------------------------------------------------------------


def test_failures_raise() -> None:
    x = np.ones(3)
    probe = Probe(signature_of([x]), status=7)
    references = sys.getrefcount(x)
    for _ in range(1000):
        with pytest.raises(Failure) as caught:
            probe.f(x)
    assert caught.value.args == (7, 11, 0, 0, 0, 0, -16)
    caught = None  # type: ignore[assignment]
    assert sys.getrefcount(x) == references
    probe.status.value = 0
    assert probe.f(x) is None


def test_a_helper_that_does_not_raise() -> None:
    function = AcceleratedFunction(lambda: None)
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  store i64 1, ptr %c\n  ret i32 1\n}"
    handle = make_gate(
        entry,
        Signature(()),
        ResultStatic(None),
        None,
        raise_failure=lambda *words: None,
        following=function.__wrapped__,
    )
    install(function, [handle])
    with pytest.raises(SystemError):
        function()


def test_blocks_are_freed_when_a_call_fails() -> None:
    size = 1 << 20
    entry = blocks_entry([size], []).replace("  ret i32 0", "  store i64 3, ptr %ctx\n  ret i32 3")
    f = function_of(entry, Signature(()), ResultStatic(None))
    pooled = []
    for _ in range(20):
        with pytest.raises(Failure):
            f()
        pooled.append(runtime().pooled_bytes())
    assert pooled[0] == pooled[-1] >= size


def test_state_is_dropped_and_shown() -> None:
    state: Any = [1, 2]
    entry = """
@probe.state = external global i64
@probe.status = external global i64
define i32 @entry(ptr %ctx, ptr %args, ptr %results) {
  %n = load i64, ptr @probe.state
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @probe.state
  %p = getelementptr i8, ptr %ctx, i64 72
  store ptr @probe.state, ptr %p
  %s = load i64, ptr @probe.status
  store i64 %s, ptr %ctx
  %r = trunc i64 %s to i32
  ret i32 %r
}"""
    import ctypes

    status = ctypes.c_int64(0)
    names = {"probe.state": id(state), "probe.status": ctypes.addressof(status)}
    f = function_of(entry, Signature(()), ResultStatic(None), external=names)
    references = sys.getrefcount(state)
    for _ in range(100):
        f()
    status.value = 5
    with pytest.raises(Failure) as caught:
        f()
    assert caught.value.args == (5, 0, 0, 0, 0, 0, 0, state)
    del caught
    assert sys.getrefcount(state) == references


def test_the_context_at_the_start() -> None:
    state = object()
    probe = Probe(Signature(()), state=state)
    with options(threads=5):
        probe.f()
    raw = probe.context.raw
    assert struct.unpack_from("<Q", raw, 72)[0] == id(state)
    assert struct.unpack_from("<i", raw, 80)[0] == 5
    assert raw[:72] == bytes(72) and raw[84:] == bytes(44)
    references = sys.getrefcount(state)
    for _ in range(100):
        probe.f()
    assert sys.getrefcount(state) == references


# ---- references, GIL, threads, cache ---------------------------------------------------------------------------------


def test_no_references_leak() -> None:
    x, y = np.arange(4.0), np.arange(12.0).reshape(3, 4)[:, ::2]
    key: Any = (5, [2.5, x], "name")
    values: list[Any] = [x, y, key, key[1], 10**10, 2.5, None, np.float32(1), {}]
    probe = probe_of(x, y, key, 10**10, 2.5, None, np.float32(1), {})
    args = (x, y, key, 10**10, 2.5, None, np.float32(1), {})
    bad = (x, y, key, 10**10, 2.5, None, np.float32(1), [])
    assert probe.takes(*args)
    assert not probe.takes(*bad)
    probe.slow.calls.clear()
    before = [sys.getrefcount(value) for value in values]
    for _ in range(CALLS):
        probe.f(*args)
    for _ in range(100):
        probe.f(*bad)
    probe.slow.calls.clear()
    after = [sys.getrefcount(value) for value in values]
    assert all(abs(b - a) < 20 for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("options", [{"always_release": True}, {"release_elements": 3}, {}])
def test_the_gil_around_the_call(options: dict[str, Any]) -> None:
    entry = """
@asked = external global i64
declare i32 @PyGILState_Check()
define i32 @entry(ptr %ctx, ptr %args, ptr %results) {
  %held = call i32 @PyGILState_Check()
  %wide = zext i32 %held to i64
  store i64 %wide, ptr %results
  ret i32 0
}"""
    x = np.ones(4)
    f = function_of(entry, signature_of([x]), ResultLeaf(0, "scalar", "bool", True), external={"asked": 0}, **options)
    assert f(x) is (not options)
    assert f(x[:3]) is ("always_release" not in options)
    assert f(x[:0]) is ("always_release" not in options)


def test_many_threads_while_gates_change() -> None:
    x = np.ones(40_000)
    probes = [probe_of(1), probe_of(1.0), probe_of(x), probe_of("a")]
    function = AcceleratedFunction(lambda value: None, Slow())
    stop = threading.Event()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.is_set():
                for value in (1, 1.0, x, "a", None):
                    assert function(value) in (None, "slow")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    rng = np.random.default_rng(0)
    for _ in range(300):
        order = rng.permutation(len(probes))[: rng.integers(0, len(probes) + 1)]
        install(function, [probes[index].handle for index in order])
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_object_code_is_the_same_everywhere() -> None:
    from parakeet_py.llvm import engine

    x = np.ones(3)
    signature = signature_of([x, "mode"], [(("global", "np"), np)])
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  ret i32 0\n}\n"
    code = engine.compile_ir(entry + gate_ir(signature, ResultStatic("done"), "entry", "gate"))
    for _ in range(3):
        slow = Slow()
        function = AcceleratedFunction(reads_globals, slow)
        handle = load_gate(code, signature, ResultStatic("done"), reads_globals, raise_failure=fail, following=slow)
        install(function, [handle])
        assert function(x, "mode") == "done" and function(x, "other") == "slow"


def test_gates_die_with_their_function() -> None:
    import weakref

    probe = probe_of(1)
    dead = weakref.ref(probe.f), weakref.ref(probe.handle), weakref.ref(probe.handle.code)
    assert probe.f(1) is None
    del probe
    gc.collect()
    assert [reference() for reference in dead] == [None] * 3


def test_object_spec_of_a_hidden_list() -> None:
    signature = Signature((), (HiddenSpec(("global", "scale"), ObjectSpec(list)),))
    probe = Probe(signature, function=reads_globals)
    assert not probe.takes()


def test_a_helper_that_gives_the_exception() -> None:
    """It is raised as if by the call itself: no frame of the helper, the exception that is being handled as context."""
    function = AcceleratedFunction(lambda: None)
    entry = "define i32 @entry(ptr %c, ptr %a, ptr %r) {\n  store i64 1, ptr %c\n  ret i32 1\n}"
    given = KeyError("given")
    references = sys.getrefcount(given)
    handle = make_gate(
        entry,
        Signature(()),
        ResultStatic(None),
        None,
        raise_failure=lambda *words: given,
        following=function.__wrapped__,
    )
    install(function, [handle])
    try:
        raise ValueError("handled")
    except ValueError as handled:
        with pytest.raises(KeyError) as caught:
            function()
        assert caught.value is given and given.__context__ is handled
    assert [frame.name for frame in caught.traceback] == ["test_a_helper_that_gives_the_exception"]
    given.__traceback__ = None
    del caught
    assert sys.getrefcount(given) == references
