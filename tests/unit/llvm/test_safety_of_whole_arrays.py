"""Checked machine code looks at arrays as a whole, where they go to libraries, procedures, Python or the caller, and at
the objects that code holds which calls Python. Programs are corrupted on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.base.types import Array, Object
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import access_checks, arrays
from parakeet_py.llvm.safety.faults import FAULTS
from parakeet_py.typed_ir.ir import Operand, Reshape, Var, View, ViewAxis
from tests.helpers.corrupted_code import Change, corrupted, refused
from tests.helpers.native_functions import const

Statements = tuple[ir.Statement, ...]


def of_kind(kind: type, what: Callable[..., Statements]) -> Change:
    """Replace each statement, or what is bound, of a kind."""

    def change(statement: ir.Statement) -> Statements:
        if isinstance(statement, ir.Let) and isinstance(statement.rhs, kind):
            return (replace(statement, rhs=what(statement.rhs)),)  # type: ignore[arg-type]
        return what(statement) if isinstance(statement, kind) else (statement,)

    return change


def reshaped(array: Operand, pos: ir.Pos, *extents: int) -> tuple[Var, Statements]:
    """An array over the same memory, of other extents."""
    assert isinstance(array, Var)
    other = Var("other", array.type)
    return other, (ir.Let(other, Reshape(array, tuple(map(const, extents))), pos),)


def result(change: Callable[[Var, ir.Pos], tuple[Var, Statements]]) -> Callable[[ir.Function], ir.Function]:
    """Give another array in the place of the result."""

    def corrupt(function: ir.Function) -> ir.Function:
        (given,) = function.results
        assert isinstance(given, Var)
        pos = next(one.pos for one in ir.walk(function.body) if isinstance(one, ir.Store))
        other, made = change(given, pos)
        return replace(function, body=ir.Block((*function.body.statements, *made)), results=(other,))

    return corrupt


def doubled(x):
    return x * 2


def total(x):
    return np.sum(x)


def positive(x):
    return x[x > 0]


def ranks(x):
    return np.argsort(x, kind="stable")


def solved(a, b):
    return np.linalg.solve(a, b)


def product(a, b):
    return a @ b


def halves(x, low, high):
    if high - low < 2:
        return x[low]
    middle = (low + high) // 2
    return halves(x, low, middle) + halves(x, middle, high)


def partitioned(x):
    y = np.partition(x * x, 1)
    return y, y + 1


def searched(pattern, texts):
    compiled = re.compile(pattern)
    found = 0
    for text in texts:
        found += compiled.match(text) is not None
    return found, compiled


# ---- libraries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "count"), [(0, 10**6), (-8, 100), (4990, 11), (0, -1)])
def test_sum_of_more_than_there_is(start: int, count: int) -> None:
    def longer(op: ir.Pairwise) -> ir.Pairwise:
        return replace(op, start=(const(start),), count=const(count))

    with corrupted(of_kind(ir.Pairwise, longer)):
        text = refused(total, np.arange(5000.0))
    assert FAULTS[11] in text
    assert "sum of" in text


@pytest.mark.parametrize(
    "fields",
    [
        {"place": const(10**6), "end": const(2 * 10**6)},
        {"place": const(-1)},
        {"end": const(10**6)},
        {"count": const(10**6)},
        {"end": const(0)},
    ],
    ids=["place", "before", "end", "count", "full"],
)
def test_selection_beyond_its_arrays(fields: dict[str, Operand]) -> None:
    with corrupted(of_kind(ir.Pack, lambda op: replace(op, **fields))):
        text = refused(positive, np.arange(1.0, 500.0))
    assert FAULTS[11] in text
    assert "selection with" in text


@pytest.mark.parametrize("side", ["outs", "ins"])
@pytest.mark.parametrize(
    ("function", "args"),
    [(ranks, (np.arange(500.0),)), (solved, (np.eye(20), np.ones(20)))],
    ids=["ranks", "solved"],
)
def test_routine_whose_arrays_do_not_agree(function: Callable[..., object], args: Sequence[object], side: str) -> None:
    """Loops of NumPy's ask one array alone how long a line is."""

    def narrow(statement: ir.Routine) -> Statements:
        array, *others = getattr(statement, side)
        other, made = reshaped(array, statement.pos, *[1] * array.type.rank)
        return (*made, replace(statement, **{side: (other, *others)}))

    with corrupted(of_kind(ir.Routine, narrow)):
        assert FAULTS[11] in refused(function, *args)


@pytest.mark.parametrize(("field", "extents"), [("out", (10, 10)), ("right", (150, 200)), ("left", (150, 100))])
def test_matrix_product_whose_arrays_do_not_agree(field: str, extents: tuple[int, int]) -> None:
    def narrow(statement: ir.Matmul) -> Statements:
        other, made = reshaped(getattr(statement, field), statement.pos, *extents)
        return (*made, replace(statement, **{field: other}))

    with corrupted(of_kind(ir.Matmul, narrow)):
        text = refused(product, np.ones((150, 200)), np.ones((200, 200)))
    assert FAULTS[11] in text
    assert "matrix product" in text


# ---- procedures and results ------------------------------------------------------------------------------------------


def test_argument_of_a_procedure_longer_than_its_memory() -> None:
    def longer(statement: ir.Call) -> Statements:
        array, *others = statement.args
        other, made = reshaped(array, statement.pos, 10**6)
        return (*made, replace(statement, args=(other, *others)))

    with corrupted(of_kind(ir.Call, longer)):
        text = refused(halves, np.zeros(8), 0, 600)
    assert FAULTS[10] in text
    assert "argument" in text


def test_result_longer_than_its_memory() -> None:
    with corrupted(whole=result(lambda array, pos: reshaped(array, pos, 10**6))):
        text = refused(doubled, np.arange(5.0))
    assert FAULTS[10] in text
    assert "result" in text


def test_result_that_lies_elsewhere() -> None:
    def behind(array: Var, pos: ir.Pos) -> tuple[Var, Statements]:
        other = Var("other", array.type)
        axes = (ViewAxis(0, const(5), const(1)),)
        return other, (ir.Let(other, View(array, (const(1000),), axes), pos),)

    with corrupted(whole=result(behind)):
        assert FAULTS[10] in refused(doubled, np.arange(5.0))


def test_result_of_a_negative_extent() -> None:
    with corrupted(whole=result(lambda array, pos: reshaped(array, pos, -3))):
        assert FAULTS[11] in refused(doubled, np.arange(5.0))


def test_result_that_has_been_freed() -> None:
    with corrupted(whole=result(lambda array, pos: (array, (ir.Release(array),)))):
        assert FAULTS[6] in refused(doubled, np.arange(5.0))


@pytest.mark.parametrize(("offset", "fault"), [(8, 2), (1 << 46, 3)])
def test_pointer_to_no_block(offset: int, fault: int) -> None:
    make = arrays.heap_array

    def elsewhere(f, *args):
        made = make(f, *args)
        made.fields["block"] = f.value(f"getelementptr i8, ptr {made['block']}, i64 {offset}")
        return made

    def temporary(x):
        y = np.sort(x)
        z = np.cumsum(y)
        return z[-1]

    with (
        mock.patch.object(arrays, "heap_array", elsewhere),
        mock.patch.object(access_checks, "_is_dead", lambda *_: "false"),
        corrupted(),
    ):
        assert FAULTS[fault] in refused(temporary, np.arange(50.0))


def test_red_zones_on_the_stack_of_a_region_and_of_a_procedure() -> None:
    array = Var("array", Array("float64", 1))

    def with_array(block: ir.Block, pos: ir.Pos) -> ir.Block:
        made = ir.Let(array, ir.NewArray((const(3),), "stack"), pos)
        return ir.Block((made, ir.Store(array, (const(3),), const(1.0, "float64"), pos), *block.statements))

    def in_region(region: ir.Parallel) -> Statements:
        pos = next(one.pos for one in ir.walk(region.body) if isinstance(one, ir.Store))
        return (replace(region, body=with_array(region.body, pos)),)

    def in_procedure(function: ir.Function) -> ir.Function:
        pos = next(one.pos for one in ir.walk(function.body) if isinstance(one, ir.Call))
        procedures = tuple(replace(one, body=with_array(one.body, pos)) for one in function.procedures)
        return replace(function, procedures=procedures)

    with mock.patch.object(access_checks, "check_access"), corrupted(of_kind(ir.Parallel, in_region)):
        assert FAULTS[12] in refused(doubled, np.arange(5.0))
    with mock.patch.object(access_checks, "check_access"), corrupted(whole=in_procedure):
        assert FAULTS[12] in refused(halves, np.zeros(8), 0, 8)


# ---- calls of Python -------------------------------------------------------------------------------------------------

OPERANDS = np.arange(9.0)
TEXTS = ("a+", ["aa", "b"])


def test_programs_are_right_without_corruption() -> None:
    for function, args in ((partitioned, (OPERANDS,)), (searched, TEXTS)):
        checked = accelerate(function)
        for _ in range(4):
            with options(check=2):
                found = checked(*args)
            assert str(found) == str(function(*args))
        assert checked.opaque_calls


def other_operands(make: Callable[[Var, ir.Pos], tuple[Var, Statements]]) -> Change:
    """Calls of Python get other arrays or objects."""

    def change(statement: ir.Opaque) -> Statements:
        made: list[ir.Statement] = []
        args: list[Operand] = []
        for argument in statement.args:
            if isinstance(argument, Var) and isinstance(argument.type, Array | Object):
                argument, statements = make(argument, statement.pos)
                made += statements
            args.append(argument)
        return (*made, replace(statement, args=tuple(args)))

    return of_kind(ir.Opaque, change)


def nothing(like: Var, pos: ir.Pos) -> tuple[Var, Statements]:
    cell, none = ir.Cell("none", like.type), Var("none", like.type)
    return none, (ir.Declare(cell), ir.Let(none, ir.Read(cell), pos))


def on_the_stack(like: Var, pos: ir.Pos) -> tuple[Var, Statements]:
    array = Var("array", like.type)
    return array, (ir.Let(array, ir.NewArray((const(3),), "stack"), pos),)


def test_operands_of_python_that_are_none() -> None:
    with corrupted(other_operands(lambda array, pos: reshaped(array, pos, 10**6))):
        assert FAULTS[10] in refused(partitioned, OPERANDS, calls=2)
    for make in (nothing, on_the_stack):
        with corrupted(other_operands(make)):
            assert FAULTS[16] in refused(partitioned, OPERANDS, calls=2)
    with corrupted(other_operands(nothing)):
        assert FAULTS[1] in refused(searched, *TEXTS, calls=3)


def counts_of_results(count: type) -> Change:
    """Count objects that Python has given once more."""

    def change(statement: ir.Opaque) -> Statements:
        return (statement, *(count(out) for out in statement.outs if isinstance(out.type, Array | Object)))

    return of_kind(ir.Opaque, change)


@pytest.mark.parametrize(("function", "args"), [(partitioned, (OPERANDS,)), (searched, TEXTS)], ids=["array", "object"])
def test_objects_counted_wrongly(function: Callable[..., object], args: Sequence[object]) -> None:
    with corrupted(counts_of_results(ir.Retain)):
        assert FAULTS[14] in refused(function, *args, calls=3)
    with corrupted(counts_of_results(ir.Release)):
        text = refused(function, *args, calls=3)
    assert FAULTS[13] in text or FAULTS[17] in text


def test_block_of_python_released_twice() -> None:
    """Python owns it from the call on; compiled code has one reference."""
    with corrupted(of_kind(ir.Release, lambda statement: (statement, statement))):
        assert FAULTS[6] in refused(partitioned, OPERANDS, calls=3)
    with corrupted(of_kind(ir.Release, lambda statement: ())):
        assert FAULTS[14] in refused(partitioned, OPERANDS, calls=3)


def test_block_released_before_python_gets_it() -> None:
    def before(statement: ir.Opaque) -> Statements:
        return (*(ir.Release(one) for one in statement.args if isinstance(one, Var)), statement)

    with corrupted(of_kind(ir.Opaque, before)):
        assert FAULTS[6] in refused(partitioned, OPERANDS, calls=3)
