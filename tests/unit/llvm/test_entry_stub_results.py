"""Native gates: what they give back."""

from __future__ import annotations

import gc
import struct
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.signature.results import ResultLeaf, ResultListOf, ResultStatic, ResultTuple
from parakeet_py.signature.specs import ScalarSpec, Signature, signature_of, spec_of
from tests.helpers.entry_stub_programs import (
    Probe,
    address,
    bits,
    blocks_entry,
    function_of,
)
from tests.helpers.entry_stub_values import CALLS, OBJECT, SCALARS, Point, array_leaf, words

COUNTED = 2 if sys.version_info < (3, 14) else 1  # references to what a local variable holds, when it is counted


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
    assert counts == (COUNTED, 2, 2)
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
    assert got.base is None and sys.getrefcount(got) == COUNTED
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
    assert sys.getrefcount(base) == COUNTED


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
    assert sys.getrefcount(base) == COUNTED


def test_the_same_leaf_twice_is_one_object() -> None:
    f = function_of(blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultTuple((array_leaf(), array_leaf())))
    a, b = f()
    assert a is b and a.flags.owndata
    assert sys.getrefcount(a) == COUNTED + 1


def test_lists_of_python_scalars() -> None:
    f = function_of(blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultListOf(array_leaf()))
    got = f()
    assert got == [0.0, 1.0, 2.0] and type(got[0]) is float and type(got) is list
    assert sys.getrefcount(got) == COUNTED
    two = function_of(
        blocks_entry([24], [(0, 0, (3,), (8,))]), Signature(()), ResultTuple((ResultListOf(array_leaf()), array_leaf()))
    )
    listed, array = two()
    assert listed == list(array) and sys.getrefcount(array) == COUNTED


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
