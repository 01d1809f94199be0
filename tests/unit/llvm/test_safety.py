"""Checked machine code finds what is wrong with memory and references, and names the operation and the line.

Compiled programs are right, so they are corrupted here on their way to machine code: the loops that are printed, or the
text of the gate. Each kind of fault is met once at least.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.errors import MemorySafetyError, ParakeetError
from parakeet_py.base.types import Array, Object
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import access_checks
from parakeet_py.llvm.entry.stub_results import ResultWriter
from parakeet_py.llvm.runtime.call_context import BLOCK_HEADER
from parakeet_py.llvm.safety import payloads
from parakeet_py.llvm.safety.faults import FAULTS
from parakeet_py.signature.results import ResultLeaf, ResultTuple
from parakeet_py.signature.specs import signature_of
from parakeet_py.typed_ir.ir import Reshape, Var
from tests.helpers.corrupted_code import (
    changed,
    corrupted,
    loads_at,
    next_to_arrays,
    refused,
    stores_at,
    twice_released,
)
from tests.helpers.entry_stub_programs import Probe
from tests.helpers.native_functions import POS, const, let


def doubled(x):
    y = x * 2
    return y


def of_two(x):
    x[1:, 1:] = 7.0


def with_temporary(x):
    y = np.sort(x)
    z = np.cumsum(y)
    return z[-1]


def picked(x, i):
    v = x[i]
    return v + 1


def product(a, b):
    return a @ b


# ---- accesses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [5, 8, -1, 2**40, -(2**40)])
def test_store_outside_of_a_new_array(index: int) -> None:
    with corrupted(stores_at(index)):
        text = refused(doubled, np.arange(5.0))
    assert FAULTS[10] in text
    assert "store into" in text
    assert "y = x * 2" in text


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64", "complex64", "complex128"])
def test_load_outside_of_an_argument(dtype: str) -> None:
    with corrupted(loads_at(7)):
        text = refused(picked, np.ones(7, dtype), 3)
    assert FAULTS[10] in text
    assert "load from" in text
    assert "v = x[i]" in text


def test_outside_of_a_view_of_a_larger_array() -> None:
    """The memory of an argument is what its elements span, not what it is a view of."""
    with corrupted(loads_at(3)):
        text = refused(picked, np.ones(20)[4:10:2], 1)
    assert FAULTS[10] in text


def test_backward_view() -> None:
    with corrupted(loads_at(-1)):
        assert FAULTS[10] in refused(picked, np.ones(20)[10:4:-1], 1)
    with corrupted(loads_at(5)), options(check=2):
        assert accelerate(picked)(np.arange(20.0)[10:4:-1], 1) == 6.0


def test_index_beyond_an_extent_inside_of_the_memory() -> None:
    with corrupted(stores_at(0, 4)):
        text = refused(of_two, np.zeros((3, 4)))
    assert FAULTS[11] in text
    assert "store into" in text


@pytest.mark.parametrize("threads", [1, 2])
def test_in_a_parallel_region(threads: int) -> None:
    with corrupted(stores_at(200_000)), options(threads=threads):
        assert FAULTS[10] in refused(doubled, np.zeros(200_000))


def test_in_a_procedure() -> None:
    def halves(x, low, high):
        if high - low < 2:
            return x[low]
        middle = (low + high) // 2
        return halves(x, low, middle) + halves(x, middle, high)

    def corrupt(function: ir.Function) -> ir.Function:
        bodies = [changed(one.body, loads_at(8)) for one in function.procedures]
        procedures = tuple(replace(one, body=body) for one, body in zip(function.procedures, bodies, strict=True))
        return replace(function, procedures=procedures)

    with corrupted(whole=corrupt):
        assert FAULTS[10] in refused(halves, np.zeros(8), 0, 8)


def test_arrays_of_libraries() -> None:
    """A matrix product gets a matrix that ends behind its memory."""

    def change(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if not isinstance(statement, ir.Matmul):
            return (statement,)
        longer = Var("longer", statement.left.type)
        assert isinstance(longer.type, Array)
        made = let(longer, Reshape(statement.left, (const(200), const(200))))
        return (made, replace(statement, left=longer))

    with corrupted(change):
        text = refused(product, np.ones((150, 200)), np.ones((200, 200)))
    assert FAULTS[10] in text
    assert "matrix product" in text
    assert "return a @ b" in text


# ---- blocks ----------------------------------------------------------------------------------------------------------


def test_use_after_free() -> None:
    with corrupted(next_to_arrays(lambda array: (ir.Release(array),))):
        text = refused(doubled, np.arange(5.0))
    assert FAULTS[6] in text
    assert "store into" in text


def test_block_released_twice() -> None:
    with corrupted(twice_released):
        text = refused(with_temporary, np.arange(50.0))
    assert FAULTS[6] in text
    assert "release" in text


def test_block_with_a_reference_too_many() -> None:
    with corrupted(next_to_arrays(lambda array: (ir.Retain(array),))):
        text = refused(doubled, np.arange(5.0))
    assert FAULTS[15] in text
    assert "y = x * 2" in text


@pytest.mark.parametrize(("value", "fault"), [(0.0, 6), (-1.0, 6), (1.0, 6), (5e-324, 15), (1.0 + 2**-52, 1)])
def test_block_with_a_count_that_makes_no_sense(value: float, fault: int) -> None:
    """A number of an array has got into the header: no reference, two, or as if Python had been lent the block."""
    with mock.patch.object(access_checks, "check_access"), corrupted(stores_at(-BLOCK_HEADER // 8)):
        assert FAULTS[fault] in refused(doubled, np.full(5, value))


@pytest.mark.parametrize(("index", "fault"), [(5, 5), (12, 5), (-9, 4), (-16, 4)])
def test_red_zones_of_a_result(index: int, fault: int) -> None:
    with mock.patch.object(access_checks, "check_access"), corrupted(stores_at(index)):
        assert FAULTS[fault] in refused(doubled, np.arange(5.0))


def test_red_zones_of_a_temporary() -> None:
    with mock.patch.object(access_checks, "check_access"), corrupted(stores_at(50)):
        assert FAULTS[5] in refused(with_temporary, np.arange(50.0))


def test_store_into_what_was_freed_is_found_later() -> None:
    def change(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if isinstance(statement, ir.Release) and isinstance(statement.array, Var):
            array = statement.array
            if isinstance(array.type, Array) and array.type.dtype == "float64" and array.type.rank == 1:
                return (statement, ir.Store(array, (const(0),), const(1.0, "float64"), POS))
        return (statement,)

    right = accelerate(with_temporary)
    with options(check=2):
        assert right(np.arange(50.0)) == 49 * 25
    with mock.patch.object(access_checks, "check_access"), corrupted(change):
        accelerate(with_temporary)(np.arange(50.0))
    with pytest.raises(MemorySafetyError, match=FAULTS[7]), options(check=2):
        for _ in range(2 * payloads.KEPT):
            right(np.arange(50.0))
    with options(check=2):
        assert right(np.arange(50.0)) == 49 * 25


def test_red_zones_on_the_stack() -> None:
    array = Var("array", Array("float64", 1))

    def own_array(function: ir.Function) -> ir.Function:
        made = let(array, ir.NewArray((const(3),), "stack"))
        pos = next(one.pos for one in ir.walk(function.body) if isinstance(one, ir.Store))
        stores = [ir.Store(array, (const(at),), const(1.0, "float64"), pos) for at in range(4)]
        return replace(function, body=ir.Block((made, *stores, *function.body.statements)))

    with corrupted(whole=own_array):
        assert FAULTS[10] in refused(doubled, np.arange(5.0))
    with mock.patch.object(access_checks, "check_access"), corrupted(whole=own_array):
        assert FAULTS[12] in refused(doubled, np.arange(5.0))


# ---- objects ---------------------------------------------------------------------------------------------------------


def test_null_is_boxed() -> None:
    def given(x, o):
        return x + 1, o

    def nothing(function: ir.Function) -> ir.Function:
        cell, none = ir.Cell("none", Object()), Var("none", Object())
        body = ir.Block((*function.body.statements, ir.Declare(cell), let(none, ir.Read(cell))))
        results = tuple(none if isinstance(one.type, Object) else one for one in function.results)
        return replace(function, body=body, results=results)

    with corrupted(whole=nothing):
        text = refused(given, 1.0, {"a": 1})
    assert FAULTS[1] in text
    assert "result" in text


def test_array_of_nothing_is_boxed() -> None:
    def nothing(function: ir.Function) -> ir.Function:
        (result,) = function.results
        cell, none = ir.Cell("none", result.type), Var("none", result.type)
        body = ir.Block((*function.body.statements, ir.Declare(cell), let(none, ir.Read(cell))))
        return replace(function, body=body, results=(none,))

    with corrupted(whole=nothing):
        text = refused(doubled, np.arange(5.0))
    assert FAULTS[16] in text or FAULTS[15] in text


class Pointers:
    """Addresses of what is no object."""

    def __init__(self) -> None:
        self.memory = np.zeros(64, np.int64)  # a count of 0
        self.typeless = np.zeros(64, np.int64)
        self.typeless[:2] = 1, 0
        self.untyped = np.zeros(64, np.int64)
        self.untyped[:2] = 1, id(self)  # a type that is none


POINTERS = Pointers()


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        (0, 1),
        (id(POINTERS) + 1, 2),
        (8, 3),
        (2**46, 3),
        (POINTERS.memory.ctypes.data, 8),
        (POINTERS.typeless.ctypes.data, 9),
        (POINTERS.untyped.ctypes.data, 9),
    ],
    ids=["null", "unaligned", "low", "unmapped", "count", "typeless", "untyped"],  # addresses differ from run to run
)
@pytest.mark.parametrize("several", [False, True])
def test_pointers_to_no_object(address: int, fault: int, several: bool) -> None:
    """A function written by hand gives an address in the place of an object."""
    leaf = ResultLeaf(0, "object")
    tree = ResultTuple((leaf, leaf), "tuple") if several else leaf
    probe = Probe(signature_of((1,)), tree, address.to_bytes(8, "little"), checked=True)
    with options(check=2), pytest.raises(MemorySafetyError, match=FAULTS[fault]):
        probe.f(1)


def test_pointer_to_an_object() -> None:
    thing = [1, 2]
    leaf = ResultLeaf(0, "object")
    probe = Probe(signature_of((1,)), ResultTuple((leaf, leaf), "tuple"), id(thing).to_bytes(8, "little"), checked=True)
    before = sys.getrefcount(thing)
    with options(check=2):
        assert probe.f(1) == (thing, thing)
    assert sys.getrefcount(thing) == before


@contextmanager
def gates_that_end_with(line: str) -> Iterator[None]:
    """Gates do something more before they return a value."""
    finish = ResultWriter.finish

    def corrupt(self: ResultWriter, value: str) -> None:
        if value != "null":
            self.put(line.replace("VALUE", value))
        finish(self, value)

    with mock.patch.object(ResultWriter, "finish", corrupt), options(check=2):
        yield


def shared(x):
    return (x, x + 1)


@pytest.mark.parametrize("function", [doubled, shared])
def test_reference_dropped_twice(function: Any) -> None:
    x = np.arange(5.0)
    with gates_that_end_with("call void @gate.Py_DecRef(ptr VALUE)"):
        assert FAULTS[13] in refused(function, x)


def test_borrowed_reference_dropped() -> None:
    """It is not dropped indeed: the object lives."""
    f = accelerate(shared)
    checked = f._dispatcher.counterpart()
    count = sys.getrefcount(checked)
    with gates_that_end_with("call void @gate.Py_DecRef(ptr %self)"):
        for _ in range(20):
            with pytest.raises(MemorySafetyError, match=FAULTS[13]):
                f(np.arange(5.0))
    gc.collect()
    assert sys.getrefcount(checked) == count


def test_reference_kept_by_nothing() -> None:
    with gates_that_end_with("call i1 @gate.reference(ptr VALUE)"):
        text = refused(shared, np.arange(5.0))
    assert FAULTS[14] in text
    assert "return (x, x + 1)" in text


def test_item_without_a_reference() -> None:
    def listed(self: ResultWriter, leaf: ResultLeaf) -> str:
        return self.field("%objects", 8 * leaf.index)

    with mock.patch.object(ResultWriter, "again", listed), options(check=2):
        assert FAULTS[13] in refused(shared, np.arange(5.0))


def test_telling_of_floating_point_flags_keeps_no_reference() -> None:
    def multiplied(x):
        return x * 0

    f = accelerate(multiplied)
    with options(check=2), warnings.catch_warnings(record=True) as caught:
        for _ in range(4):
            warnings.simplefilter("always")
            assert np.isnan(f(np.float64(np.inf)))
    assert [str(one.message) for one in caught] == ["invalid value encountered in scalar multiply"] * 4


# ---- the setting -----------------------------------------------------------------------------------------------------


def test_both_kinds_of_code_are_apart() -> None:
    """Calls run checked code where it is asked for, and only there."""
    f = accelerate(doubled)
    x = np.arange(5.0)
    with corrupted(stores_at(5)), pytest.raises(MemorySafetyError):
        f(x)
    for _ in range(2):
        with options(check=1):
            assert f(x).tolist() == doubled(x).tolist()
            assert len(f.specializations) == 1
            assert "volatile" not in f.llvm(x)
        with options(check=2), pytest.raises(MemorySafetyError):
            f(x)
    with options(check=2):
        assert "volatile" in f.llvm(x)
        assert len(f.specializations) == 1


def test_nothing_of_it_without_the_setting() -> None:
    """Code is the same whether the IRs are checked or not."""
    texts = []
    for level in (0, 1, False, True):
        with options(check=level):
            texts.append(accelerate(with_temporary).llvm(np.arange(5.0)))
    assert len(set(texts)) == 1
    assert not any(word in texts[0] for word in ("_fault", "gate.reference", "gate.begin", "volatile"))


def test_right_programs_keep_their_counts() -> None:
    """References are as before after calls that are checked."""
    f = accelerate(shared)
    x, before = np.arange(5.0), 0
    with options(check=2):
        f(x)
        before = sys.getrefcount(x), sys.getrefcount(np.dtype("float64")), sys.getrefcount(None)
        for _ in range(50):
            f(x)
        after = sys.getrefcount(x), sys.getrefcount(np.dtype("float64")), sys.getrefcount(None)
    assert after[:2] == before[:2]
    assert abs(after[2] - before[2]) < 50


def test_the_error_is_one_of_the_package() -> None:
    assert issubclass(MemorySafetyError, ParakeetError)
