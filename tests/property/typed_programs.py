"""Random programs of the typed IR for the tests of its passes, made the way the specializer makes them.

Every elementwise operation is its own `Map`, slices are `View`s, a store reads a right-hand side made before. Vectors
have extent n, n - 2 (the slices) or m, matrices n by m, with n >= 4 and m >= 2, so that every index is in range.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from parakeet_py.base.types import BOOL, FLOAT64, PYBOOL, PYINT, Array
from parakeet_py.typed_ir.ir import (
    Block,
    Compress,
    Const,
    For,
    Function,
    If,
    Operand,
    Reshape,
    Scan,
    Var,
    ViewAxis,
)
from parakeet_py.typed_ir.rewrite import substitute
from parakeet_py.typed_ir.writer import Writer, combiner, index_const

ZERO, ONE, TWO = index_const(0), index_const(1), index_const(2)
BINARY = ["add", "sub", "mul", "minimum", "maximum", "div"]
UNARY = ["neg", "abs", "sqrt", "floor"]


def real(value: float) -> Const:
    return Const(value, FLOAT64)


class Maker:
    """One random program; `random` decides everything."""

    def __init__(self, source: random.Random, steps: int) -> None:
        self.random = source
        self.writer = Writer()
        self.params = [Var(name, Array("float64", 1)) for name in ("x", "y", "z")]
        self.params += [Var(name, Array("float64", 2)) for name in ("A", "B")]
        self.params += [Var("k", PYINT), Var("s", FLOAT64)]
        x, _, z, A, B, _, s = self.params
        w = self.writer
        self.n, self.m = w.dim(x), w.dim(z)
        self.inner = w.prim("sub", self.n, index_const(2), type_=PYINT)
        # arrays by extents, and scalars, that are in scope
        self.arrays: dict[tuple[Operand, ...], list[Var]] = {
            (self.n,): [x, self.params[1]],
            (self.inner,): [],
            (self.m,): [z],
            (self.n, self.m): [A, B],
        }
        row = w.view(A, [ZERO, ZERO], [ViewAxis(0, ONE, ONE), ViewAxis(1, self.m, ONE)])
        element = w.view(x, [ONE], [ViewAxis(0, ONE, ONE)])
        self.arrays |= {(ONE, self.m): [row], (ONE,): [element]}
        self.scalars: list[Operand] = [s, real(2.0), real(-0.5)]
        self.writable = {*self.params[:5], row, element}
        self.indices: list[Operand] = [ZERO, ONE]
        self.integers: list[Operand] = [self.params[5], self.n, ONE, index_const(-1)]
        for _ in range(steps):
            self.step(2)

    def function(self) -> Function:
        arrays = [array for some in self.arrays.values() for array in some]
        results: list[Operand] = [*self.random.sample(arrays, min(3, len(arrays)))]
        results += [self.random.choice(self.scalars), self.integers[-1]]
        return Function("random", tuple(self.params), self.writer.block(*results))

    # ---- steps ----

    def step(self, depth: int) -> None:
        choices = [self.elementwise] * 5 + [self.slice] * 3 + [self.store] * 3 + [self.reduce] * 2
        choices += [self.scalar, self.fill, self.scan, self.compress, self.reshape, self.scalar_store]
        choices += [self.normalise] * 2 + [self.columns, self.through, self.rounds, self.rounds]
        choices += [self.integer] * 3 + [self.indexed] * 3 + [self.clamped] * 2
        if depth:
            choices += [lambda: self.loop(depth), lambda: self.branch(depth)] * 2
        self.random.choice(choices)()

    def shape(self) -> tuple[Operand, ...]:
        return self.random.choice([extents for extents, some in self.arrays.items() if some])

    def expression(self, w: Writer, leaves: Sequence[Operand]) -> Operand:
        value = self.random.choice(leaves)
        for _ in range(self.random.randint(0, 3)):
            if self.random.random() < 0.25:
                value = w.prim(self.random.choice(UNARY), value)
            elif self.random.random() < 0.15:
                other = self.random.choice(leaves)
                value = w.prim("select", w.prim("lt", value, other), other, value)
            else:
                value = w.prim(self.random.choice(BINARY), value, self.random.choice([*leaves, real(3.0)]))
        return value

    def leaf(self, w: Writer, extents: tuple[Operand, ...], point: Sequence[Operand]) -> Operand:
        kind = self.random.random()
        if kind < 0.15:
            return self.random.choice(self.scalars)
        if kind < 0.4 and extents == (self.n, self.m):
            axis = self.random.randint(0, 1)
            return w.load(self.random.choice(self.arrays[(extents[axis],)]), point[axis])
        return w.load(self.random.choice(self.arrays[extents]), *point)

    def body(self, extents: tuple[Operand, ...]) -> Any:
        def make(w: Writer, *point: Operand) -> Operand:
            return self.expression(w, [self.leaf(w, extents, point) for _ in range(self.random.randint(1, 3))])

        return make

    def elementwise(self) -> None:
        extents = self.shape()
        made = self.writer.map1(extents, self.body(extents))
        self.arrays[extents].append(made)
        self.writable.add(made)

    def fill(self) -> None:
        extents = self.shape()
        made = self.writer.map1(extents, lambda w, *point: real(0.0))
        self.arrays[extents].append(made)
        self.writable.add(made)

    def slice(self) -> None:
        if self.random.random() < 0.3:  # a row or a column
            base = self.random.choice(self.arrays[(self.n, self.m)])
            axis = self.random.randint(0, 1)
            extent = (self.n, self.m)[axis]
            starts: list[Operand] = [self.random.choice([ZERO, ONE]), self.random.choice([ZERO, ONE])]
            starts[axis] = ZERO
            view = self.writer.view(base, starts, [ViewAxis(axis, extent, ONE)])
            self.arrays[(extent,)].append(view)
        else:
            base = self.random.choice(self.arrays[(self.n,)])
            if self.random.random() < 0.2:  # backwards
                last = self.writer.prim("sub", self.n, ONE, type_=PYINT)
                view = self.writer.view(base, [last], [ViewAxis(0, self.n, index_const(-1))])
                self.arrays[(self.n,)].append(view)
            else:
                start = index_const(self.random.randint(0, 2))
                view = self.writer.view(base, [start], [ViewAxis(0, self.inner, ONE)])
                self.arrays[(self.inner,)].append(view)
        if base in self.writable:
            self.writable.add(view)

    def reshape(self) -> None:
        base = self.random.choice([var for var in self.arrays[(self.n,)] if "C" in repr(var.type)])
        made = self.writer.bind(Reshape(base, (self.n, ONE)), Array("float64", 2))
        back = self.writer.view(made, [ZERO, ZERO], [ViewAxis(0, self.n, ONE)])
        self.arrays[(self.n,)].append(back)
        if base in self.writable:
            self.writable.add(back)

    def target(self) -> tuple[tuple[Operand, ...], Var] | None:
        found = [(e, var) for e, some in self.arrays.items() for var in some if var in self.writable]
        return self.random.choice(found) if found else None

    def store(self) -> None:
        found = self.target()
        if found is None:
            return
        extents, target = found
        value = self.writer.map1(extents, self.body(extents))
        masked = self.random.random() < 0.2

        def write(w: Writer, *point: Operand) -> None:
            element = w.load(value, *point)
            if masked:
                inner = Writer()
                inner.store(target, point, element)
                w.let(If(w.prim("gt", element, real(0.0)), inner.block(), Block(())))
            else:
                w.store(target, point, element)

        self.writer.map(extents, write)

    def scalar_store(self) -> None:
        found = self.target()
        if found is not None:
            extents, target = found
            indices = self.indices if extents in ((self.n,), (self.inner,)) else [ZERO, ONE]
            where = [ZERO if extent == ONE else self.random.choice(indices) for extent in extents]
            self.writer.store(target, where, self.scalars[-1])

    def reduce(self) -> None:
        w = self.writer
        name = self.random.choice(["add", "maximum"])
        init = real(0.0 if name == "add" else float("-inf"))
        kind = self.random.randint(0, 3)
        if kind == 3:
            body = self.body((self.n,))
            made = w.reduce([ONE], [self.n, ONE], lambda v, i, k, j: body(v, k), name, [init])[0]
            self.arrays[(ONE,)].append(made)
            self.writable.add(made)
            return
        if kind == 0:
            extents = self.shape()
            self.scalars.append(w.reduce((), extents, self.body(extents), name, [init])[0])
            return
        whole = (self.n, self.m)
        kept, reduced = (self.n, self.m) if kind == 1 else (self.m, self.n)
        body = self.body(whole)
        flip = kind == 2
        made = w.reduce([kept], [reduced], lambda v, i, k: body(v, *((k, i) if flip else (i, k))), name, [init])[0]
        self.arrays[(kept,)].append(made)
        self.writable.add(made)

    def rounds(self) -> None:
        """for t in range(r): z = f(z, x[t], ...); counts[...] += z, over whole arrays."""
        w = self.writer
        found = [(e, var) for e, some in self.arrays.items() for var in some if repr(var.type).endswith("C]")]
        extents, start = self.random.choice(found)
        others = [var for var in self.arrays[extents] if var in self.writable]
        carried, index = Var("z", start.type), Var("t", PYINT)
        inner = Writer()
        scalar = inner.load(self.random.choice(self.arrays[(self.n,)]), index)
        aligned = self.random.random() < 0.8

        def value(v: Writer, *point: Operand) -> Operand:
            where = point if aligned or len(point) != 1 or extents == (ONE,) else (ZERO,)
            leaves = [v.load(carried, *where), scalar, self.leaf(v, extents, point)]
            return self.expression(v, leaves)

        made = inner.map1(extents, value)
        if others and self.random.random() < 0.6:
            target = self.random.choice(others)
            total = inner.map1(extents, lambda v, *point: v.prim("add", v.load(target, *point), v.load(made, *point)))
            inner.map(extents, lambda v, *point: v.store(target, point, v.load(total, *point)))
        stops: list[Operand] = [self.inner, ZERO, ONE]
        stop = self.random.choice(stops)
        out = Var("z", start.type)
        w.let(For(index, ZERO, stop, ONE, (carried,), (start,), inner.block(made)), out)
        self.arrays[extents].append(out)

    def through(self) -> None:
        """matrix[...] op= matrix[:, a] * matrix[b, :], also with a row or column of one element."""
        w = self.writer
        found = [var for var in self.arrays[(self.n, self.m)] if var in self.writable]
        if not found:
            return
        target, a, b = self.random.choice(found), self.random.choice([ZERO, ONE]), self.random.choice([ZERO, ONE])
        name = self.random.choice(BINARY)

        def value(v: Writer, i: Operand, j: Operand) -> Operand:
            across = v.prim("mul", v.load(target, i, a), v.load(target, b, j))
            return v.prim(name, v.load(target, i, j), across)

        made = w.map1((self.n, self.m), value)
        w.map((self.n, self.m), lambda v, i, j: v.store(target, [i, j], v.load(made, i, j)))

    def normalise(self) -> None:
        """A reduction whose result is part of the next ones, over the same array."""
        w = self.writer
        extents = self.shape()
        source = self.random.choice(self.arrays[extents])
        for _ in range(self.random.randint(1, 3)):
            name = self.random.choice(["add", "maximum"])
            start = real(0.0 if name == "add" else float("-inf"))
            base = source

            def body(v: Writer, *point: Operand, base: Var = base) -> Operand:
                return self.expression(v, [v.load(base, *point), self.scalars[-1]])

            if self.random.random() < 0.6:
                self.scalars.append(w.reduce((), extents, body, name, [start])[0])
            else:
                source = w.map1(extents, body)
                self.arrays[extents].append(source)
                self.writable.add(source)

    def columns(self) -> None:
        """Arrays filled column by column, as in `out[:, 0] = ...; out[:, 1] = ...`."""
        w = self.writer
        out = w.alloc("float64", self.n, TWO)
        for column in (ZERO, ONE):
            value = w.map1((self.n,), self.body((self.n,)))
            view = w.view(out, [ZERO, column], [ViewAxis(0, self.n, ONE)])
            w.map((self.n,), lambda v, i, view=view, value=value: v.store(view, [i], v.load(value, i)))
        self.arrays.setdefault((self.n, TWO), []).append(out)
        self.writable.add(out)

    def scan(self) -> None:
        extents = self.shape()
        inner = Writer()
        point = tuple(Var("i", PYINT) for _ in extents)
        result = self.body(extents)(inner, *point)
        axis = self.random.randrange(len(extents))
        op = Scan(extents, point, axis, inner.block(result), (real(0.0),), combiner("add", ["float64"]))
        self.arrays[extents].append(self.writer.bind(op, Array("float64", len(extents))))

    def compress(self) -> None:
        extents = (self.n,)
        inner = Writer()
        point = (Var("i", PYINT),)
        value = self.body(extents)(inner, *point)
        keep = inner.prim("gt", value, real(0.0))
        count, kept = Var("count", PYINT), Var("kept", Array("float64", 1))
        self.writer.let(Compress(extents, point, inner.block(keep, value)), count, kept)
        total = self.writer.reduce((), [count], lambda w, i: w.load(kept, i), "add", [real(0.0)])[0]
        self.scalars.append(total)

    def scalar(self) -> None:
        array = self.random.choice(self.arrays[(self.n,)])
        self.scalars.append(self.writer.load(array, self.random.choice(self.indices)))

    # ---- Python's integers and indices ----

    def integer(self) -> None:
        w = self.writer
        x, y = self.random.choice(self.integers), self.random.choice(self.integers)
        kind = self.random.choice(["add", "sub", "mul", "minimum", "maximum", "mod", "floordiv", "abs", "select"])
        if kind in ("add", "sub", "mul"):
            made = w.prim(f"{kind}_checked", x, y, type_=PYINT)
        elif kind in ("minimum", "maximum"):
            made = w.prim(kind, x, y, type_=PYINT)
        elif kind in ("mod", "floordiv"):
            made = w.prim(kind, x, index_const(self.random.randint(1, 4)), type_=PYINT)
        elif kind == "abs":
            made = w.prim("abs_checked", x, type_=PYINT)
        else:
            name = self.random.choice(["lt", "le", "eq", "ge"])
            z = self.random.choice(self.integers)
            made = w.prim("select", w.prim(name, x, y, type_=PYBOOL), z, x, type_=PYINT)
        self.integers.append(made)

    def python_index(self, extent: Operand) -> Operand:
        """An index as the specializer makes it: wrapped around if negative, then checked."""
        w = self.writer
        index = self.random.choice(self.integers[-4:])
        wrapped = w.prim("add", extent, index, type_=PYINT)
        index = w.prim("select", w.prim("lt", index, ZERO, type_=PYBOOL), wrapped, index, type_=PYINT)
        above, below = w.prim("ge", index, ZERO, type_=PYBOOL), w.prim("lt", index, extent, type_=PYBOOL)
        w.check(w.prim("and", above, below, type_=PYBOOL), "IndexError", "index {0} of {1}", index, extent)
        return index

    def indexed(self) -> None:
        array = self.random.choice(self.arrays[(self.n,)])
        index = self.python_index(self.n)
        if array in self.writable and self.random.random() < 0.5:
            self.writer.store(array, [index], self.random.choice(self.scalars))
        else:
            self.scalars.append(self.writer.load(array, index))

    def clamped(self) -> None:
        """target[a : n - b] op= source[c : n - d], with clamped slices and run-time broadcasting."""
        w = self.writer
        writable = [array for array in self.arrays[(self.n,)] if array in self.writable]
        views = []
        for base in (self.random.choice(writable), self.random.choice(self.arrays[(self.n,)])):
            first, last = self.random.randint(0, 2), self.random.randint(0, 4)
            extent = w.prim("sub", self.n, index_const(first + last), type_=PYINT)
            extent = w.prim("maximum", extent, ZERO, type_=PYINT)
            start = w.prim("minimum", self.n, index_const(first), type_=PYINT)
            views.append((w.view(base, [start], [ViewAxis(0, extent, ONE)]), extent))
        (target, extent), (source, other) = views
        one, two = w.prim("eq", extent, ONE), w.prim("eq", other, ONE)
        agree = w.prim("or", w.prim("eq", extent, other), w.prim("or", one, two))
        w.check(agree, "ValueError", "broadcast {0} {1}", extent, other)
        whole = w.prim("select", one, other, extent, type_=PYINT)

        def add(v: Writer, i: Operand) -> Operand:
            left = v.load(target, v.prim("select", one, ZERO, i, type_=PYINT))
            return v.prim("add", left, v.load(source, v.prim("select", two, ZERO, i, type_=PYINT)))

        value = w.map1((whole,), add)
        w.check(w.prim("eq", extent, whole), "ValueError", "store {0} {1}", whole, extent)
        w.map((extent,), lambda v, i: v.store(target, [i], v.load(value, i)))

    # ---- control ----

    def inside(self, depth: int, count: int) -> None:
        for _ in range(count):
            self.step(depth - 1)

    def scoped(self, write: Any) -> tuple[Block, Any]:
        """Run `write` with a new writer and forget what it brought into scope."""
        outer = self.writer, {e: list(some) for e, some in self.arrays.items()}, list(self.scalars), list(self.indices)
        writable, integers = set(self.writable), list(self.integers)
        self.writer = Writer()
        results = write()
        block = self.writer.block(*results)
        self.writer, self.arrays, self.scalars, self.indices = outer
        self.writable, self.integers = writable, integers
        return block, results

    def loop(self, depth: int) -> None:
        index = Var("t", PYINT)
        carried, counter = Var("c", FLOAT64), Var("count", PYINT)
        over_n = self.random.random() < 0.5

        def write() -> list[Operand]:
            self.scalars.append(carried)
            self.integers += [counter, index]
            if over_n:
                self.indices.append(index)
            self.inside(depth, self.random.randint(0, 3))
            for _ in range(self.random.randint(0, 2)):
                self.indexed()
            if over_n and self.random.random() < 0.7:
                a, b = (self.random.choice(self.arrays[(self.n,)]) for _ in range(2))
                target = self.random.choice([var for var in self.arrays[(self.n,)] if var in self.writable])
                w = self.writer
                w.store(target, [index], w.prim("add", w.load(a, index), w.load(b, index)))
            step = index_const(self.random.randint(-1, 2))
            following = self.writer.prim("add_checked", counter, step, type_=PYINT)
            if self.random.random() < 0.3:
                grow = self.writer.prim("gt", self.random.choice(self.scalars), real(0.0), type_=PYBOOL)
                following = self.writer.prim("select", grow, following, counter, type_=PYINT)
            return [self.writer.prim("add", self.random.choice(self.scalars), real(0.25)), following]

        body, _ = self.scoped(write)
        stop: Operand = self.inner if over_n else index_const(self.random.randint(0, 3))
        if not over_n and self.random.random() < 0.5:
            stop = self.writer.prim("minimum", self.random.choice(self.integers), index_const(5), type_=PYINT)
        if self.random.random() < 0.5:  # nothing carried: the loop may become parallel
            free = {carried: self.scalars[-1], counter: ZERO}
            body = substitute(Block(body.statements), free)
            self.writer.let(For(index, ZERO, stop, ONE, (), (), body))
            return
        outs = Var("c", FLOAT64), Var("count", PYINT)
        inits: tuple[Operand, ...] = self.scalars[-1], self.random.choice([ZERO, ONE])
        start, step = ZERO, ONE
        if not over_n and self.random.random() < 0.3:
            start, stop, step = index_const(2), index_const(-1), index_const(-1)
        elif not over_n and self.random.random() < 0.3:
            start, step = self.random.choice([ONE, index_const(-1)]), index_const(self.random.randint(1, 3))
        self.writer.let(For(index, start, stop, step, (carried, counter), inits, body), *outs)
        self.scalars.append(outs[0])
        self.integers.append(outs[1])

    def branch(self, depth: int) -> None:
        w = self.writer
        condition: Operand = w.prim("gt", self.random.choice(self.scalars), real(0.0), type_=BOOL)
        if self.random.random() < 0.3:
            x, y = self.random.choice(self.integers), self.random.choice(self.integers)
            condition = w.prim(self.random.choice(["lt", "eq", "ge"]), x, y, type_=PYBOOL)
        if self.random.random() < 0.2:
            condition = Const(self.random.random() < 0.5, PYBOOL)
        extents = self.shape()

        def write() -> list[Operand]:
            self.inside(depth, self.random.randint(0, 2))
            return [self.random.choice(self.scalars), self.random.choice(self.arrays[extents])]

        then, _ = self.scoped(write)
        orelse, _ = self.scoped(write)
        outs = Var("v", FLOAT64), Var("u", Array("float64", len(extents), "A"))
        self.writer.let(If(condition, then, orelse), *outs)
        self.scalars.append(outs[0])
        self.arrays[extents].append(outs[1])


def random_function(seed: int, steps: int = 8) -> Function:
    return Maker(random.Random(seed), steps).function()


def random_arguments(seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    n, m = int(generator.integers(4, 7)), int(generator.integers(2, 4))
    shapes = [(n,), (n,), (m,), (n, m), (n, m)]
    values = [generator.integers(-3, 4, shape) / 2 for shape in shapes]
    return [*values, int(generator.integers(-3, 5)), np.float64(generator.integers(-2, 3) / 2)]
