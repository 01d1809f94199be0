"""Operators become the loops that were meant, and mean the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.types import FLOAT64, INT64, PYINT, Array, Scalar
from parakeet_py.imp import ir
from parakeet_py.imp.lower import column_reductions, compress, loops, reductions, scans, scatter
from parakeet_py.typed_ir.ir import Block, Compress, Const, Operand, Scan, Scatter, Var, ViewAxis
from parakeet_py.typed_ir.writer import Writer, combiner, index_const
from tests.helpers.imp_programs import agree, array, function, made, regions, scalar, statements

ZERO, ONE = index_const(0), index_const(1)
HALF, NOTHING = Const(0.5, FLOAT64), Const(0.0, FLOAT64)
rng = np.random.default_rng(0)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Blocks, tiles and leaves so small that a few elements make several."""
    for module, sizes in {
        reductions: {"LEAF": 4, "CHUNK": 8, "BLOCKS": 8, "SIEVE": 4, "SIEVE_BLOCK": 8, "LONG_RUN": 20},
        column_reductions: {"TILE": 4, "PIECES": 8, "BLOCK_ROWS": 3},
        scans: {"TILE": 4, "BLOCK": 4, "BLOCKS": 8},
        compress: {"BLOCK": 4, "BLOCKS": 8},
        loops: {"TILE": 4},
    }.items():
        for name, value in sizes.items():
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(loops.split_space, "__defaults__", (4,))
    yield


def _integers(*shape: int) -> Any:
    return rng.integers(-20, 21, shape) / 4


def test_identity_on_contiguous_arrays_is_one_flat_loop() -> None:
    def body(w: Writer, x: Var, y: Var) -> list[Operand]:
        n, m = w.dim(x), w.dim(x, 1)
        w.check(w.prim("eq", n, w.dim(y)), "ValueError", "rows {0}", n)
        w.check(w.prim("eq", m, w.dim(y, 1)), "ValueError", "columns {0}", m)
        return [w.map1((n, m), lambda v, i, j: v.prim("add", v.load(x, i, j), v.load(y, i, j)))]

    code = agree(function([array("x", 2), array("y", 2)], body), _integers(5, 7), _integers(5, 7))
    assert len(statements(code, ir.For)) == 1
    agree(function([array("x", 2), array("y", 2)], body), _integers(5, 7), _integers(4, 7))


def test_what_a_branch_checked_is_forgotten_after_it() -> None:
    def body(w: Writer, x: Var, y: Var, k: Var) -> list[Operand]:
        n, m, l = w.dim(x), w.dim(x, 1), w.dim(y, 1)  # noqa: E741
        inner = Writer()
        inner.check(inner.prim("eq", m, l), "ValueError", "no")
        from parakeet_py.typed_ir.ir import If

        w.let(If(w.prim("lt", k, ZERO), inner.block(), Block(())))
        smaller = w.prim("minimum", m, l)
        return [w.map1((n, smaller), lambda v, i, j: v.prim("add", v.load(x, i, j), v.load(y, i, j)))]

    code = function([array("x", 2), array("y", 2), scalar("k")], body)
    agree(code, _integers(3, 4), _integers(3, 6), 1)
    agree(code, _integers(3, 6), _integers(3, 4), 1)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(3, 10), (1, 17), (9, 1), (0, 4), (4, 0), (2, 3, 5), (2, 0, 3), (2, 2, 2, 3)])
def test_map_with_shifted_reads_splits_rows(shape: tuple[int, ...]) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        extents = [w.dim(x, axis) for axis in range(len(shape))]

        def point(v: Writer, *indices: Operand) -> Operand:
            last = v.prim("sub", v.prim("sub", extents[-1], ONE), indices[-1])
            return v.prim("mul", v.load(x, *indices[:-1], last), HALF)

        return [w.map1(extents, point)]

    agree(function([array("x", len(shape))], body), _integers(*shape))


def test_read_of_a_transposed_array_keeps_the_stored_axis_inside() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        n, m = w.dim(x), w.dim(x, 1)
        return [w.map1((m, n), lambda v, i, j: v.load(x, j, i))]

    code = agree(function([array("x", 2)], body), _integers(5, 3))
    (inner,) = [loop for loop in statements(code, ir.For) if loop.kind == "vector"]
    (store,) = statements(code, ir.Store)
    assert store.indices[-1] is inner.index


def test_stores_only_along_the_first_axis_bring_it_inside() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        n, m = w.dim(x), w.dim(x, 1)
        w.map((n, m), lambda v, i, j: v.store(x, (i, j), v.prim("neg", v.load(x, i, j))))
        return []

    code = agree(function([array("x", 2, layout="F")], body), np.asfortranarray(_integers(4, 3)))
    (inner,) = [loop for loop in statements(code, ir.For) if loop.kind == "vector"]
    (store,) = statements(code, ir.Store)
    assert store.indices[0] is inner.index


def _gather(w: Writer, x: Var, places: Var) -> None:
    """x[places] = places, in parallel, each place checked."""
    n = w.dim(x)

    def point(v: Writer, i: Operand) -> None:
        place = v.load(places, i)
        v.check(v.prim("lt", place, n), "IndexError", "index {0} of {1}", place, n)
        v.store(x, (place,), v.cast(place, "float64"))

    w.map((w.dim(places),), point)


def test_checks_come_before_stores_that_others_see() -> None:
    code = function([array("x", 1), array("p", 1, "int64")], lambda w, x, p: _gather(w, x, p) or [])
    lowered = agree(code, np.zeros(9), np.array([4, 0, 8]))
    assert regions(lowered) == ["map", "map"]
    agree(code, np.zeros(9), np.array([4, 0, 11, 8, 10]), untouched=True)


def test_the_first_failure_in_the_order_of_iterations_is_raised() -> None:
    def body(w: Writer, p: Var) -> list[Operand]:
        def point(v: Writer, i: Operand, j: Operand) -> Operand:
            value = v.load(p, i, j)
            v.check(v.prim("ge", value, ZERO), "ValueError", "negative {0} at {1}, {2}", value, i, j)
            return value

        return [w.map1((w.dim(p), w.dim(p, 1)), point)]

    code = function([array("p", 2, "int64")], body)
    values = np.ones((6, 5), np.int64)
    values[4, 0] = values[1, 3] = values[1, 4] = values[5, 2] = -7
    agree(code, values)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["add", "maximum", "mul"])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 8, 9, 30, 100])
def test_reduce_to_a_scalar(name: str, size: int) -> None:
    init = {"add": 0.0, "maximum": float("-inf"), "mul": 1.0}[name]

    def body(w: Writer, x: Var) -> list[Operand]:
        return list(w.reduce((), [w.dim(x)], lambda v, i: v.load(x, i), name, [Const(init, FLOAT64)]))

    agree(function([array("x", 1)], body), _integers(size), rtol=1e-12)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(3, 7), (20, 2), (1, 40), (0, 3), (3, 0), (2, 3, 4)])
def test_reduce_a_shifted_space_to_a_scalar(shape: tuple[int, ...]) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        extents = [w.dim(x, axis) for axis in range(len(shape))]

        def point(v: Writer, *indices: Operand) -> Operand:
            last = v.prim("sub", v.prim("sub", extents[-1], ONE), indices[-1])
            return v.prim("mul", v.load(x, *indices), v.load(x, *indices[:-1], last))

        return list(w.reduce((), extents, point, "add", [NOTHING]))

    agree(function([array("x", len(shape))], body), _integers(*shape))


def _argmin(w: Writer, value: Var, index: Var, new: Var, where: Var) -> list[Operand]:
    less = w.prim("lt", new, value)
    return [w.prim("select", less, new, value), w.prim("select", less, where, index)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [1, 4, 5, 9, 50])
def test_argmin_takes_the_first(size: int) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        def point(v: Writer, i: Operand) -> list[Operand]:
            return [v.load(x, i), v.cast(i, "int64")]

        inits = [Const(float("inf"), FLOAT64), Const(-1, INT64)]
        return list(w.reduce((), [w.dim(x)], point, _argmin, inits))

    code = agree(function([array("x", 1)], body), np.floor(_integers(size)))
    assert "vector" in [loop.kind for loop in statements(code, ir.For)]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(3, 5), (7, 2), (40, 9), (2, 30), (0, 3), (3, 0)])
@pytest.mark.parametrize("name", ["add", "maximum", "argmin"])
def test_reduce_one_axis(axis: int, shape: tuple[int, int], name: str) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        kept, reduced = w.dim(x, 1 - axis), w.dim(x, axis)

        def point(v: Writer, i: Operand, k: Operand) -> Any:
            element = v.load(x, *((k, i) if axis == 0 else (i, k)))
            return [element, v.cast(k, "int64")] if name == "argmin" else element

        if name == "argmin":
            inits = [Const(float("inf"), FLOAT64), Const(-1, INT64)]
            return [w.reduce([kept], [reduced], point, _argmin, inits)[1]]
        init = NOTHING if name == "add" else Const(float("-inf"), FLOAT64)
        return list(w.reduce([kept], [reduced], point, name, [init]))

    code = agree(function([array("x", 2)], body), _integers(*shape))
    assert ("reduce columns" in regions(code)) == (axis == 0)


def test_outs_nobody_reads_need_no_memory() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        def point(v: Writer, i: Operand, k: Operand) -> list[Operand]:
            return [v.load(x, i, k), v.cast(k, "int64")]

        inits = [Const(float("inf"), FLOAT64), Const(-1, INT64)]
        return [w.reduce([w.dim(x)], [w.dim(x, 1)], point, _argmin, inits)[1]]

    assert made(agree(function([array("x", 2)], body), _integers(3, 4))) == 1


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("order", ["kept first", "kept last"])
def test_reduce_two_of_three_axes(order: str) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        n, m, l = (w.dim(x, axis) for axis in range(3))  # noqa: E741
        if order == "kept first":
            return list(w.reduce([n], [m, l], lambda v, i, j, k: v.load(x, i, j, k), "add", [NOTHING]))
        return list(w.reduce([m, l], [n], lambda v, j, k, i: v.load(x, i, j, k), "add", [NOTHING]))

    agree(function([array("x", 3)], body), _integers(4, 3, 6))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((30,), 0), ((4, 9), 0), ((4, 9), 1), ((2, 3, 5), 1)])
def test_scan(shape: tuple[int, ...], axis: int, dtype: str, inclusive: bool) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        extents = tuple(w.dim(x, number) for number in range(len(shape)))
        indices = tuple(Var("i", PYINT) for _ in shape)
        inner = Writer()
        element = inner.load(x, *indices)
        init = Const(0 if dtype == "int64" else 0.0, Scalar(dtype))
        op = Scan(extents, indices, axis, inner.block(element), (init,), combiner("add", [dtype]), inclusive)
        return [w.bind(op, Array(dtype, len(shape)))]

    agree(function([array("x", len(shape), dtype)], body), (_integers(*shape) * 4).astype(dtype))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("computed", [True, False])
@pytest.mark.parametrize("shape", [(0,), (3,), (40,), (700,), (3, 7), (9, 70), (2, 3, 4)])
def test_compress(shape: tuple[int, ...], computed: bool) -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        extents = tuple(w.dim(x, number) for number in range(len(shape)))
        indices = tuple(Var("i", PYINT) for _ in shape)
        inner = Writer()
        element = inner.load(x, *indices)
        keep = inner.prim("gt", element, NOTHING)
        outs: tuple[Var, ...] = Var("count", PYINT), Var("kept", Array("float64", 1)), Var("where", Array("int64", 1))
        where = (inner.cast(indices[-1], "int64"),) if computed else ()
        outs = outs[: 2 + len(where)]
        w.let(Compress(extents, indices, inner.block(keep, element, *where)), *outs)
        return list(outs)

    agree(function([array("x", len(shape))], body), _integers(*shape))


def test_scatter_in_order_and_all_or_nothing() -> None:
    def body(w: Writer, x: Var, p: Var) -> list[Operand]:
        index = Var("i", PYINT)
        inner = Writer()
        place = inner.load(p, index)
        inner.check(inner.prim("lt", place, inner.dim(x)), "IndexError", "index {0}", place)
        keep = inner.prim("ge", place, ZERO)
        block = inner.block(keep, place, inner.cast(index, "float64"))
        w.let(Scatter(x, (w.dim(p),), (index,), block, combiner("add", ["float64"])))
        return []

    code = function([array("x", 1), array("p", 1, "int64")], body)
    agree(code, np.zeros(4), np.array([0, 3, 3, -1, 0, 2]))
    agree(code, np.zeros(4), np.array([0, 3, 3, -1, 9, 2]), untouched=True)


@pytest.mark.parametrize("count", [0, 1, 4, 5, 150])
def test_scatter_of_chunks_adds_their_sums(count: int) -> None:
    """Numbers of which each is lost beside the sum of those before, if it is added alone."""

    def body(w: Writer, x: Var, p: Var) -> list[Operand]:
        index = Var("i", PYINT)
        inner = Writer()
        value = inner.load(p, index)
        block = inner.block(inner.prim("gt", value, NOTHING), inner.prim("and", index, ONE), value)
        w.let(Scatter(x, (w.dim(p),), (index,), block, combiner("add", ["float64"]), 4))
        return []

    code = function([array("x", 1), array("p", 1)], body)
    agree(code, np.array([1e16, -0.0]), rng.random(count))


@pytest.mark.parametrize("shape", [(60,), (7, 9), (0,), (5,)])
def test_integer_scatter_in_blocks(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scatter, "POINTS", 10)

    def body(w: Writer, x: Var, p: Var) -> list[Operand]:
        extents = tuple(w.dim(p, axis) for axis in range(len(shape)))
        indices = tuple(Var("i", PYINT) for _ in shape)
        inner = Writer()
        place = inner.load(p, *indices)
        inner.check(inner.prim("lt", place, inner.dim(x)), "IndexError", "index {0}", place)
        block = inner.block(inner.prim("ge", place, ONE), place, inner.cast(indices[-1], "int64"))
        w.let(Scatter(x, extents, indices, block, combiner("add", ["int64"])))
        return []

    code = function([array("x", 1, "int64"), array("p", len(shape), "int64")], body)
    lowered = agree(code, np.arange(4), rng.integers(0, 4, shape))
    assert regions(lowered) == ["map", "scatter"]
    places = rng.integers(0, 4, shape)
    places[(slice(-1, None),) * places.ndim] = 4  # the last point fails
    agree(code, np.arange(4), places, untouched=True)


# ---- operators inside of others --------------------------------------------------------------------------------------


def _row_sums(w: Writer, x: Var, temporary: Any) -> Var:
    """For each row: the sum of an array made from it."""
    n = w.dim(x)

    def point(v: Writer, i: Operand) -> Operand:
        extent = temporary(v, i)
        row = v.map1((extent,), lambda u, j: u.prim("mul", u.load(x, i, j), HALF))
        return v.reduce((), [extent], lambda u, j: u.load(row, j), "add", [NOTHING])[0]

    return w.map1((n,), point)


def test_a_small_constant_array_inside_a_region_is_on_the_stack() -> None:
    code = function([array("x", 2)], lambda w, x: [_row_sums(w, x, lambda v, i: index_const(3))])
    lowered = agree(code, _integers(5, 3))
    assert made(lowered, "stack") == 1 and made(lowered) == 1


def test_an_array_of_known_size_inside_a_region_is_a_slice_of_scratch() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        m = w.dim(x, 1)
        return [_row_sums(w, x, lambda v, i: m)]

    for rows in (0, 1, 5, 40):
        lowered = agree(function([array("x", 2)], body), _integers(rows, 4))
    assert regions(lowered) == ["map"] and made(lowered) == 2


def test_an_array_of_unknown_size_inside_makes_the_operator_serial() -> None:
    code = function([array("x", 2)], lambda w, x: [_row_sums(w, x, lambda v, i: v.prim("add", i, ONE))])
    lowered = agree(code, _integers(5, 6))
    assert regions(lowered) == ["map", "reduce"] and made(lowered) == 2


def test_a_view_inside_a_region() -> None:
    def body(w: Writer, x: Var) -> list[Operand]:
        m = w.dim(x, 1)

        def point(v: Writer, i: Operand) -> Operand:
            row = v.view(x, (i, ZERO), [ViewAxis(1, m, ONE)], "C")
            return v.reduce((), [m], lambda u, j: u.load(row, j), "maximum", [Const(float("-inf"), FLOAT64)])[0]

        return [w.map1((w.dim(x),), point)]

    agree(function([array("x", 2)], body), _integers(4, 5))
