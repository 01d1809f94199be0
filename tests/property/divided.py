"""Fission as a rewrite of programs: an operator becomes two parts and their join, in the typed IR itself.

The tests of fission apply it to every operator of a program, along any axis, at any place, and again to what comes
out, and let the interpreter say whether the meaning is the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from parakeet_py.base.types import PYINT, Array
from parakeet_py.hybrid.partition.division import Division
from parakeet_py.hybrid.partition.fission import divisions
from parakeet_py.typed_ir.ir import PARALLEL, Alloc, Dim, Function, Let, Operand, Reduce, Scan, Scatter, Var
from parakeet_py.typed_ir.rewrite import Rewriter, fresh_copy
from parakeet_py.typed_ir.writer import Writer, index_const

Choose = Callable[[Sequence[Division]], tuple[Division, int] | None]  # a way to cut and the place, or not to cut


class Divider(Rewriter):
    """Cuts the operators at the host level (those that the executor would cut) of a function."""

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self.choose = choose
        self.joins: list[str] = []
        self.inside = False

    def statement(self, let: Let) -> Sequence[Let] | None:
        inside, self.inside = self.inside, self.inside or isinstance(let.op, PARALLEL)
        changed = self.descend(let)
        self.inside = inside
        (now,) = (let,) if changed is None else changed
        found = () if inside else divisions(now)
        if not found:
            return changed
        chosen = self.choose(found)
        if chosen is None:
            return changed
        self.joins.append(chosen[0].join)
        return self.divided(now, *chosen)

    def divided(self, let: Let, division: Division, place: int) -> list[Let]:
        w = Writer(let.pos)
        where = division.extent
        extent: Operand = w.dim(where.array, where.axis) if isinstance(where, Dim) else where
        cut = w.prim("minimum", extent, index_const(place), type_=PYINT)
        ranges: list[tuple[Operand, Operand]] = [(index_const(0), cut), (cut, extent)]
        op = division.op
        whole: list[Var] = []
        if division.join in ("concatenate", "scan") and not isinstance(op, Scatter):
            arrays = [out for out in let.outs if isinstance(out.type, Array)]
            for out in arrays:
                made = Var(out.name, out.type)
                w.let(Alloc(op.extents), made)  # type: ignore[union-attr]
                self.replacement[out] = made
                whole.append(made)
        match division.join:
            case "concatenate":
                for lo, hi in ranges:
                    inlined(w, division.part, [lo, hi, *whole, *division.free])
            case "combine":
                assert isinstance(op, Reduce) and division.combine is not None
                parts = [inlined(w, division.part, [lo, hi, *division.free]) for lo, hi in ranges]
                self.replaced(let, inlined(w, division.combine, [*parts[0], *parts[1]]))
            case "scan":
                assert isinstance(op, Scan) and division.after is not None and division.combine is not None
                totals = [inlined(w, division.part, [lo, hi, *whole, *division.free]) for lo, hi in ranges]
                inlined(w, division.after, [*ranges[1], *totals[0], *whole, *division.free])
            case "compress":
                parts = [inlined(w, division.part, [lo, hi, *division.free]) for lo, hi in ranges]
                counts = [w.prim("add", parts[0][0], parts[1][0], type_=PYINT)]
                starts = [index_const(0), parts[0][0]]
                arrays = [w.alloc(out.type.dtype, counts[0]) for out in let.outs[1:] if isinstance(out.type, Array)]
                for (count, *sources), start in zip(parts, starts, strict=True):
                    copy_all(w, count, start, sources, arrays)
                self.replaced(let, [*counts, *arrays])
            case "histogram":
                assert isinstance(op, Scatter) and division.combine is not None
                for lo, hi in ranges:
                    (copy,) = inlined(w, division.part, [lo, hi, *division.free])
                    inlined(w, division.combine, [op.target, copy])
        return w.statements

    def replaced(self, let: Let, values: Sequence[Operand]) -> None:
        self.replacement.update(zip(let.outs, values, strict=True))


def copy_all(w: Writer, count: Operand, start: Operand, sources: Sequence[Operand], targets: Sequence[Var]) -> None:
    def copy(v: Writer, point: Operand) -> None:
        for source, target in zip(sources, targets, strict=True):
            assert isinstance(source, Var)
            v.store(target, [v.prim("add", point, start, type_=PYINT)], v.load(source, point))

    w.map([count], copy)


def inlined(w: Writer, function: Function, args: Sequence[Operand]) -> list[Operand]:
    """The results of a function, its body written out."""
    body = fresh_copy(function.body, dict(zip(function.params, args, strict=True)))
    w.statements += body.statements
    return list(body.results)


def divide(function: Function, choose: Choose) -> tuple[Function, list[str]]:
    """A function with operators cut, and the kinds of join that has taken."""
    divider = Divider(choose)
    return divider.function(function), divider.joins


def at_random(source: random.Random, most: int) -> Choose:
    """Cut two of three operators somewhere, along some axis."""

    def choose(found: Sequence[Division]) -> tuple[Division, int] | None:
        return None if source.random() < 0.34 else (source.choice(found), source.randint(0, most))

    return choose
