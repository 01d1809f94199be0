"""Simplification of arrays: extents, views, and axes of one element.

The extent of what an operator made is the operand it was made with. A view of a view is one view. Loads and stores
through a view address its base, so that reads of one array through different slices become comparable (`a[1:-1][i]` is
`a[i + 1]`), and views that only named slices disappear. Index variables that can only be 0 are 0, and an operator
left without an index space is its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parakeet_py.base.grammar import rebuild
from parakeet_py.base.types import PYINT, Array, Scalar
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Function, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.facts import Facts
from parakeet_py.typed_ir.passes.analysis.linear import Forms
from parakeet_py.typed_ir.passes.scalar.algebra import is_value
from parakeet_py.typed_ir.rewrite import Rewriter

_LAYOUT_STRENGTH = {"C": 2, "F": 2, "S": 1, "A": 0}


class ArraySimplifier(Rewriter):
    """What `simplify` knows of the program so far, and its rules for arrays."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.definitions: dict[Var, Op] = {}
        self.facts = Facts(self.definitions)
        self.original = _original_forms(function)
        self.params = set() if function.inner else set(function.params)
        self.settled = {(param, axis) for param, axis, _ in function.static_extents}
        self.makers: dict[Var, Let] = {}  # arrays made by operators with several outs
        self.values: dict[Any, Var] = {}  # scalars computed in scope
        self.dims: dict[tuple[Var, int], Operand] = {}  # extents in scope
        self.kept: set[Var] = set()  # replaced, but still defined for those to whom the exact type matters
        self.extra: list[Let] = []

    def scalar(self, let: Let) -> Sequence[Let] | None:
        """Simplify a scalar statement."""
        raise NotImplementedError

    def emit(self, op: Op, name: str, type_: Scalar, like: Let) -> Operand:
        """An extra scalar statement before the current one, simplified."""
        out = Var(name, type_)
        let = Let((out,), op, like.pos)
        new = self.scalar(let)
        if new is None:
            self.extra.append(let)
        else:
            self.extra += new
        return self.operand(out)

    def index(self, name: str, left: Operand, right: Operand, like: Let) -> Operand:
        """Index arithmetic that cannot overflow, because the result is an index in range."""
        return self.emit(ir.Prim(name, (left, right)), "i", PYINT, like)

    def replace(self, let: Let, value: Operand) -> Sequence[Let]:
        """`value` stands for the out of `let` from here on."""
        (out,) = let.outs
        self.replacement[out] = value
        form = self.facts.form_of.get(out)
        if form is not None and self.facts.found.get(form) is out:
            self.facts.set(self.facts.found, form, value)
        if value.type == out.type and isinstance(out.type, Scalar):
            return ()
        self.kept.add(out)
        if isinstance(out.type, Scalar):
            return (Let(let.outs, ir.Cast(value), let.pos),)
        return (let,)

    # ---- extents ----

    def extent(self, array: Var, axis: int) -> Operand | None:
        """The operand an array's extent was made with."""
        view = self.definitions.get(array)
        if isinstance(view, ir.View):
            return view.axes[axis].extent
        let = self.makers.get(array)
        if let is None:
            return None
        match let.op:
            case ir.Alloc() | ir.Map() | ir.Reduce() | ir.Scan() | ir.AnyView():
                return let.op.extents[axis]
            case ir.Compress():
                return let.outs[0]
            case _:
                return None

    def dim(self, let: Let, op: ir.Dim) -> Sequence[Let] | None:
        array = self.operand(op.array)
        assert isinstance(array, Var)
        extent = self.extent(array, op.axis)
        if extent is not None:
            return self.replace(let, extent)
        known = self.dims.get((array, op.axis))
        if known is not None:
            return self.replace(let, known)
        self.facts.set(self.dims, (array, op.axis), self.operand(let.outs[0]))
        if array in self.params and (array, op.axis) not in self.settled:
            self.facts.not_one.add(let.outs[0])
        self.facts.define_extent(let.outs[0])
        return None if array is op.array else (Let(let.outs, ir.Dim(array, op.axis), let.pos),)

    # ---- views ----

    def access(self, let: Let, op: ir.Load | ir.Store) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, ir.Load | ir.Store)
        while True:
            view = self.definitions.get(new.array)
            if isinstance(view, ir.View):
                array, indices = view.base, self.through(view, new.indices, let)
            elif isinstance(maker := self.makers.get(new.array), Let) and isinstance(maker.op, ir.Reshape):
                flat = self.flattened(maker.op, new.indices, let)
                if flat is None:
                    break
                array, indices = maker.op.base, flat
            else:
                break
            new = ir.Load(array, indices) if isinstance(new, ir.Load) else ir.Store(array, indices, new.value)
        return None if new is op else (Let(let.outs, new, let.pos),)

    def through(self, view: ir.View, indices: tuple[Operand, ...], like: Let) -> tuple[Operand, ...]:
        """The indices into the base of an element of a view."""
        position = list(view.starts)
        for index, axis in zip(indices, view.axes, strict=True):
            if axis.source is not None:
                offset = self.index("mul", index, axis.step, like)
                position[axis.source] = self.index("add", offset, position[axis.source], like)
        return tuple(position)

    def flattened(self, op: ir.Reshape, indices: tuple[Operand, ...], like: Let) -> tuple[Operand, ...] | None:
        """The index into a one-dimensional base of an element of a reshaped array."""
        assert isinstance(op.base.type, Array)
        if op.base.type.rank != 1 or not indices:
            return None
        position = indices[0]
        for index, extent in zip(indices[1:], op.extents[1:], strict=True):
            position = self.index("add", self.index("mul", position, extent, like), index, like)
        return (position,)

    def view(self, let: Let, op: ir.View) -> Sequence[Let] | None:
        new = rebuild(op, self.operand)
        assert isinstance(new, ir.View)
        (out,) = let.outs
        below = self.definitions.get(new.base)
        if isinstance(below, ir.View):
            starts = self.through(below, new.starts, let)
            axes = []
            for axis in new.axes:
                source, step = None, axis.step
                if axis.source is not None:
                    inner = below.axes[axis.source]
                    source = inner.source
                    if source is not None:
                        step = self.index("mul", axis.step, inner.step, let)
                axes.append(ir.ViewAxis(source, axis.extent, step if source is not None else ir.ZERO))
            new = ir.View(below.base, starts, tuple(axes))
        self.definitions[out] = new
        if self.is_whole(new, out):
            self.replacement[out] = new.base
            self.kept.add(out)
        return None if new is op else (Let(let.outs, new, let.pos),)

    def is_whole(self, view: ir.View, out: Var) -> bool:
        """Does the view show all of its base, axis by axis?"""
        base, kind = view.base.type, out.type
        assert isinstance(base, Array) and isinstance(kind, Array)
        if base.rank != kind.rank or _LAYOUT_STRENGTH[base.layout] < _LAYOUT_STRENGTH[kind.layout]:
            return False
        if base.layout != kind.layout and _LAYOUT_STRENGTH[kind.layout] == 2:
            return False
        for position, axis in enumerate(view.axes):
            if axis.source != position or not is_value(axis.step, 1) or not is_value(view.starts[position], 0):
                return False
            if axis.extent != self.extent(view.base, position):
                return False
        return True

    # ---- axes of one element ----

    def without_unit_axes(self, let: Let) -> list[Let] | None:
        """The operator without axes of extent 1, whose indices are 0 already; None if there is nothing to drop."""
        op = let.op
        if isinstance(op, ir.Map):
            kept = [axis for axis, extent in enumerate(op.extents) if extent != ir.ONE]
            if len(kept) == len(op.extents):
                return None
            if not kept:
                return [*op.body.statements, *self.filled(let, op.extents, op.body.results)]
            if not let.outs:
                extents, indices = [op.extents[axis] for axis in kept], [op.indices[axis] for axis in kept]
                return [Let((), ir.Map(tuple(extents), tuple(indices), op.body), let.pos)]
            return None
        assert isinstance(op, ir.Reduce)
        kept = [axis for axis, extent in enumerate(op.reduced_extents) if extent != ir.ONE] or [0]
        scalar = bool(op.extents) and all(extent == ir.ONE for extent in op.extents)
        if len(kept) == len(op.reduced_extents) and not scalar:
            return None
        reduced = tuple([op.reduced_extents[axis] for axis in kept])
        reduced_indices = tuple([op.reduced_indices[axis] for axis in kept])
        rest = (reduced, reduced_indices, op.body, op.inits, op.combine, op.runs)
        if not scalar:
            return [Let(let.outs, ir.Reduce(op.extents, op.indices, *rest), let.pos)]
        results = tuple([Var(out.name, Scalar(dtype_of(out))) for out in let.outs])
        return [Let(results, ir.Reduce((), (), *rest), let.pos), *self.filled(let, op.extents, results)]

    def filled(self, let: Let, extents: tuple[Operand, ...], values: tuple[Operand, ...]) -> list[Let]:
        """Arrays of one element each."""
        statements: list[Let] = []
        for out, value in zip(let.outs, values, strict=True):
            self.makers[out] = Let((out,), ir.Alloc(extents), let.pos)
            statements += [self.makers[out], Let((), ir.Store(out, (ir.ZERO,) * len(extents), value), let.pos)]
        return statements


def _original_forms(function: Function) -> Forms:
    """Linear forms of the program as it is before the walk, which looks ahead into loop bodies."""
    definitions: dict[Var, Op] = {}
    positions: dict[Var, int] = {}
    for let in ir.walk(function.body):
        if isinstance(let.op, ir.Prim | ir.If):
            for position, out in enumerate(let.outs):
                definitions[out] = let.op
                positions[out] = position
    return Forms(definitions, positions)
