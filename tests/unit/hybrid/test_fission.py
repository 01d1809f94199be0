"""Every rule of fission, along every axis, at every place, nested and with empty parts; and the contracts of inputs."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from parakeet_py.base.types import BOOL, PYINT, Array, Scalar
from parakeet_py.hybrid.partition.access import Part, Sliced, Unused, Whole
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.fission import divisions
from parakeet_py.typed_ir.check import check_function
from parakeet_py.typed_ir.interpret import run_function
from parakeet_py.typed_ir.ir import PARALLEL, Compress, Const, Function, Matmul, Operand, Scan, Scatter, Var
from parakeet_py.typed_ir.print import format_function
from parakeet_py.typed_ir.writer import Writer, combiner, index_const
from tests.helpers.imp_programs import array, function
from tests.property.divided import divide

INT = Scalar("int64")
data = np.arange(60, dtype=np.int64).reshape(3, 4, 5) * 7 % 23 - 11


def integer(value: int) -> Const:
    return Const(value, INT)


def shape(w: Writer, a: Var) -> list[Operand]:
    assert isinstance(a.type, Array)
    return [w.dim(a, axis) for axis in range(a.type.rank)]


def affine(w: Writer, a: Operand, b: Operand, c: Operand, d: Operand) -> list[Operand]:
    """x -> b + a*x, then x -> d + c*x: associative, not commutative."""
    return [w.prim("mul", a, c), w.prim("add", d, w.prim("mul", c, b))]


def zip_with(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    def body(v: Writer, i: Operand, j: Operand, k: Operand) -> Sequence[Operand]:
        x = v.prim("add", v.load(a, i, j, k), v.load(b, j, k))
        return x, v.prim("mul", x, i)

    return w.map(shape(w, a), body)


def generate(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    return w.map(shape(w, a), lambda v, i, j, k: v.prim("add", v.prim("mul", i, index_const(10)), v.prim("sub", j, k)))


def backpermute(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    return w.map(shape(w, a)[::-1], lambda v, i, j, k: v.load(a, k, j, i))


def replicate(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    return w.map([*shape(w, b), *shape(w, a)[:1]], lambda v, i, j, k: v.load(b, i, j))


def in_place(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    def body(v: Writer, i: Operand, j: Operand) -> Operand:
        old = v.load(b, i, j)
        v.store(b, (i, j), v.prim("mul", old, old))
        return old

    return w.map(shape(w, b), body)


def fold(kept: int, combine: Any = "add", inits: int = 1) -> Callable[..., Sequence[Operand]]:
    def write(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
        def body(v: Writer, *point: Operand) -> Sequence[Operand]:
            x = v.load(a, *point)
            return (x,) if inits == 1 else (x, v.prim("add", x, point[-1]))

        extents = shape(w, a)
        start = [integer(0)] if inits == 1 else [integer(1), integer(0)]
        return w.reduce(extents[:kept], extents[kept:], body, combine, start)

    return write


def scan(axis: int, inclusive: bool, inits: int = 1) -> Callable[..., Sequence[Operand]]:
    def write(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
        indices, v = tuple(Var("i", PYINT) for _ in range(3)), Writer()
        x = v.load(a, *indices)
        values = (x,) if inits == 1 else (x, v.prim("add", x, integer(1)))
        combine = combiner("add" if inits == 1 else affine, ["int64"] * inits)
        start = (integer(0),) if inits == 1 else (integer(1), integer(0))
        outs = tuple(Var("s", Array("int64", 3)) for _ in values)
        w.let(Scan(tuple(shape(w, a)), indices, axis, v.block(*values), start, combine, inclusive), *outs)
        return outs

    return write


def scan_vector(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    (row,) = w.map(shape(w, b)[:1], lambda v, i: v.load(b, i, index_const(1)))
    i, v = Var("i", PYINT), Writer()
    out = Var("s", Array("int64", 1))
    body = v.block(v.load(row, i))
    w.let(Scan((w.dim(row),), (i,), 0, body, (integer(0),), combiner("add", ["int64"]), False), out)
    return (out,)


def compress(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    i, j, v = Var("i", PYINT), Var("j", PYINT), Writer()
    x = v.load(b, i, j)
    outs = Var("n", PYINT), Var("c", Array("int64", 1)), Var("c", Array("int64", 1))
    w.let(Compress(tuple(shape(w, b)), (i, j), v.block(v.prim("gt", x, integer(0)), x, j)), *outs)
    return outs


def histogram(name: str) -> Callable[..., Sequence[Operand]]:
    def write(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
        i, j, v = Var("i", PYINT), Var("j", PYINT), Writer()
        x = v.load(b, i, j)
        bucket = v.prim("mod", x, integer(3))
        keep = v.prim("ne", bucket, integer(1))
        (target,) = w.map([index_const(3)], lambda u, k: u.prim("mul", k, index_const(5)))
        w.let(Scatter(target, tuple(shape(w, b)), (i, j), v.block(keep, bucket, x), combiner(name, ["int64"])))
        return (target,)

    return write


def permute(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
    """A scatter that writes every element once, backwards."""
    i, j, v = Var("i", PYINT), Var("j", PYINT), Writer()
    target = w.alloc("int64", *shape(w, b))
    extent = w.dim(b)
    back = v.prim("sub", v.prim("sub", extent, i), index_const(1))
    last = combiner(lambda u, old, new: new, ["int64"])
    body = v.block(Const(True, BOOL), back, j, v.load(b, i, j))
    w.let(Scatter(target, tuple(shape(w, b)), (i, j), body, last))
    return (target,)


def product(ranks: str) -> Callable[..., Sequence[Operand]]:
    def write(w: Writer, a: Var, b: Var) -> Sequence[Operand]:
        rows, columns = shape(w, b)
        extents = [rows, columns] if ranks[0] == "2" else [columns]
        left = w.map1(extents, lambda v, *p: v.cast(v.load(b, *p) if len(p) > 1 else p[0], "float64"))
        right = w.map1([columns, rows] if ranks[1] == "2" else [columns], lambda v, *p: v.cast(p[0], "float64"))
        out = w.alloc("float64", *[rows] * (int(ranks[0]) + int(ranks[1]) - 2))
        w.let(Matmul(out, left, right))
        return (out,)

    return write


OPERATORS: dict[str, Callable[..., Sequence[Operand]]] = {
    "zip_with": zip_with,
    "generate": generate,
    "backpermute": backpermute,
    "replicate": replicate,
    "in_place": in_place,
    **{f"fold_{kept}": fold(kept) for kept in range(4)},
    **{f"fold_two_{kept}": fold(kept, affine, 2) for kept in range(4)},
    **{f"scan_{axis}_{how}": scan(axis, how) for axis in range(3) for how in (True, False)},
    **{f"scan_two_{axis}_{how}": scan(axis, how, 2) for axis in range(3) for how in (True, False)},
    "scan_vector": scan_vector,
    "compress": compress,
    **{f"histogram_{name}": histogram(name) for name in ("add", "mul", "maximum", "minimum", "or", "xor", "and")},
    "permute": permute,
    **{f"product_{ranks}": product(ranks) for ranks in ("22", "21", "12")},
}
JOINS = {"concatenate", "combine", "scan", "compress", "histogram"}
seen: set[str] = set()


def program(name: str) -> Function:
    return function([array("a", 3, "int64"), array("b", 2, "int64")], OPERATORS[name])


def ways(code: Function) -> tuple[Division, ...]:
    """How the last operator of a program can be cut."""
    return divisions([let for let in code.body.statements if isinstance(let.op, (*PARALLEL, Matmul))][-1])


def run(code: Function) -> list[Any]:
    args = copy.deepcopy([data, data[1]])
    return [*run_function(code, args), *args]


def cut(code: Function, number: int, places: Sequence[int]) -> Function:
    """The last operator cut in its way `number` at the first place, what that leaves of it at the next..."""
    skip = len([let for let in code.body.statements if isinstance(let.op, (*PARALLEL, Matmul))]) - 1
    for place in places:
        count = itertools.count()

        def choose(found: Sequence[Division], place: int = place, count: Any = count, skip: int = skip) -> Any:
            return (found[number % len(found)], place) if next(count) >= skip else None

        skip = 0
        code, joins = divide(code, choose)
        seen.update(joins)
    check_function(code)
    return code


@pytest.mark.parametrize("name", OPERATORS)
def test_every_axis_at_every_place(name: str) -> None:
    code = program(name)
    want = run(code)
    for number in range(len(ways(code))):
        for place in (0, 1, 2, 5, 9):
            after = cut(code, number, [place])
            for expected, got in zip(want, run(after), strict=True):
                assert np.array_equal(expected, got), f"{name} {number} at {place}\n{format_function(after)}"


@pytest.mark.parametrize("name", OPERATORS)
def test_parts_of_parts(name: str) -> None:
    code = program(name)
    want = run(code)
    for number in range(len(ways(code))):
        for places in ((1, 1), (2, 0), (0, 3)):
            after = cut(code, number, places)
            for expected, got in zip(want, run(after), strict=True):
                assert np.array_equal(expected, got), f"{name} {number} at {places}\n{format_function(after)}"


def test_all_joins_were_met() -> None:
    for name in ("zip_with", "fold_0", "scan_1_True", "compress", "histogram_add"):
        for number in range(len(ways(program(name)))):
            cut(program(name), number, [1])
    assert seen == JOINS


def test_which_ways_there_are() -> None:
    def joins(name: str) -> list[tuple[str, int]]:
        return [(one.join, one.axis) for one in ways(program(name))]

    assert joins("zip_with") == [("concatenate", axis) for axis in range(3)]
    assert joins("fold_1") == [("concatenate", 0), ("combine", 1), ("combine", 2)]
    assert joins("scan_1_True") == [("concatenate", 0), ("concatenate", 2), ("scan", 1)]
    assert joins("compress") == [("compress", 0)]
    assert joins("histogram_add") == [("concatenate", 0), ("concatenate", 1), ("histogram", 0), ("histogram", 1)]
    assert joins("product_22") == [("concatenate", 0), ("concatenate", 1)]


# ---- what is not cut, and where --------------------------------------------------------------------------------------


def checked(w: Writer, a: Var, b: Var, stores: bool, combine: Any = "add", kept: int = 1) -> Sequence[Operand]:
    def body(v: Writer, i: Operand, j: Operand) -> Operand:
        x = v.load(b, i, j)
        v.check(v.prim("ge", x, integer(-5)), "ValueError", "{0}", x)
        if stores:
            v.store(b, (i, j), x)
        return x

    if stores:
        return w.map(shape(w, b), body)
    return w.reduce(shape(w, b)[:kept], shape(w, b)[kept:], body, combine, [integer(0)])


def test_what_may_fail_is_cut_on_the_outside_only() -> None:
    def of(**how: Any) -> list[tuple[str, int]]:
        made = function([array("a", 3, "int64"), array("b", 2, "int64")], lambda w, a, b: checked(w, a, b, **how))
        return [(one.join, one.axis) for one in ways(made)]

    assert of(stores=False) == [("concatenate", 0)]
    assert of(stores=False, kept=0) == [("combine", 0)]
    assert of(stores=True) == []
    assert of(stores=False, combine=lambda w, acc, new: w.prim("add_checked", acc, new)) == []


# ---- contracts -------------------------------------------------------------------------------------------------------


def inputs(write: Callable[..., Sequence[Operand]], axis: int) -> dict[str, Any]:
    code = function([array("a", 2), array("b", 1), array("c", 1, "int64")], write)
    found = next(one for one in ways(code) if one.axis == axis)
    return {var.name: how for var, how in found.inputs().items()}


def test_contracts_of_inputs() -> None:
    def stencil(w: Writer, a: Var, b: Var, c: Var) -> Sequence[Operand]:
        rows, columns = shape(w, a)
        inner = [w.prim("sub", extent, index_const(2), type_=PYINT) for extent in (rows, columns)]

        def body(v: Writer, i: Operand, j: Operand) -> Operand:
            down, right = (v.prim("add", index, index_const(2)) for index in (i, j))
            twice = v.prim("mul", i, index_const(2))
            x = v.prim("add", v.load(a, i, j), v.load(a, down, right))
            return v.prim("add", v.prim("mul", x, v.load(b, twice)), v.cast(v.dim(c), "float64"))

        return w.map(inner, body)

    assert inputs(stencil, 0) == {"a": Sliced(0, 1, (0, 2)), "b": Sliced(0, 2, (0, 0)), "c": Unused()}
    assert inputs(stencil, 1) == {"a": Sliced(1, 1, (0, 2)), "b": Whole(), "c": Unused()}

    def gather(w: Writer, a: Var, b: Var, c: Var) -> Sequence[Operand]:
        return w.map([w.dim(c)], lambda v, i: v.load(b, v.load(c, i)))

    assert inputs(gather, 0) == {"b": Whole(), "c": Sliced(0, 1, (0, 0))}

    def window(w: Writer, a: Var, b: Var, c: Var) -> Sequence[Operand]:
        def body(v: Writer, i: Operand) -> Operand:
            return v.reduce(
                [], [v.dim(c)], lambda u, k: u.load(b, u.prim("add", i, k)), "add", [Const(0.0, Scalar("float64"))]
            )[0]

        return w.map([w.dim(a)], body)

    assert inputs(window, 0)["b"] == Sliced(0, 1, None)


class Shaped:
    def __init__(self, *shape: int) -> None:
        self.shape = shape


def test_boxes_of_a_part() -> None:
    def body(v: Writer, i: Operand, b: Var, c: Var) -> Operand:
        back = v.prim("maximum", v.prim("sub", i, index_const(1)), index_const(0))
        return v.prim("add", v.load(b, back), v.load(b, v.prim("mod", v.load(c, i), integer(4))))

    code = function(
        [array("b", 1), array("c", 1, "int64")], lambda w, b, c: w.map([w.dim(c)], lambda v, i: body(v, i, b, c))
    )
    (way,) = ways(code)
    b, c = code.params
    values = {b: Shaped(100), c: Shaped(50)} | {var: 50 for var in way.free if isinstance(var.type, Scalar)}
    part = Part(way.touched, values, way.bounds(10, 20))
    boxes = [(access.array, part.box(access)) for access in way.touched.reads]
    assert boxes == [(b, ((9, 19),)), (c, ((10, 20),)), (b, ((0, 4),))]
    assert Part(way.touched, values, way.bounds(0, 1)).box(way.touched.reads[0]) == ((0, 1),)
