"""Which elements an operator touches when it computes a part of its index space.

Every `Load` and `Store` in an operator's blocks has an index for each axis of its array, and most indices are linear
forms of index variables: `i`, `i + 1`, `2 * i + j`. `touched` collects them once, as `Access`es of the arrays that the
operator takes from outside (views made inside are traced to what they are views of). When a part is about to run, the
values of all that does not vary are known, and `Box`es follow by interval arithmetic: of each axis the first and the
last index that the part can touch. An index that depends on data may be any.

Boxes are never too small. They may be too large, where an access is conditional or has a stride; what moves data
has to bring the rest of a box that is written as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Op, Operand, Var
from parakeet_py.typed_ir.passes.analysis.linear import Forms, Linear

Index = Linear | None  # None: it may be any
Box = tuple[tuple[int, int], ...]  # for each axis [start, stop)


@record
class Access:
    """One place in the program that reads or writes elements of an array: the index along each of its axes."""

    array: Var
    indices: tuple[Index, ...]


class Touched:
    """What an operator touches.

    Attributes
    ----------
    reads, writes : accesses of arrays that exist outside
    shapes : arrays of which only extents may be needed
    traced : False if some access could not be traced to its array; then nothing is known
    """

    def __init__(self, op: Op | None) -> None:
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.shapes: set[Var] = set()
        self.traced = True
        self.definitions: dict[Var, Op] = {}
        self.spans: dict[Var, tuple[Operand, Operand, int]] = {}  # index variables: start, stop, step
        self._forms = Forms(self.definitions)
        self._local: set[Var] = set()
        self._views: dict[Var, tuple[Var, tuple[_Axis, ...]]] = {}
        if op is not None:
            self._op(op, ())

    @staticmethod
    def of(reads: Sequence[Access], writes: Sequence[Access]) -> Touched:
        """What these accesses touch."""
        touched = Touched(None)
        touched.reads, touched.writes = list(reads), list(writes)
        return touched

    # ---- collecting --------------------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for let in block.statements:
            self._statement(let)

    def _statement(self, let: Let) -> None:
        for out in let.outs:
            self.definitions[out] = let.op
        self._op(let.op, let.outs)

    def _op(self, op: Op, outs: tuple[Var, ...]) -> None:
        match op:
            case ir.Load(array, indices):
                self._access(self.reads, array, self._all(indices))
            case ir.Store(array, indices):
                self._access(self.writes, array, self._all(indices))
            case ir.Dim(array) | ir.Stride(array):
                self.shapes.add(array)
            case ir.View(base, starts, axes):
                steps = {axis.source: (number, axis.step) for number, axis in enumerate(axes)}
                self._views[outs[0]] = (
                    base,
                    tuple(_Axis(self._form(s), *steps.get(d, (None, None))) for d, s in enumerate(starts)),
                )
            case ir.AnyView(base):
                self._views[outs[0]] = base, tuple(_Axis(None, None, None) for _ in range(_rank(base)))
            case ir.If() | ir.For() | ir.While():
                if any(isinstance(var.type, Array) for var in (*outs, *getattr(op, "params", ()))):
                    self.traced = False  # which array it is depends on the way taken
                if isinstance(op, ir.For) and isinstance(op.step, Const):
                    self.spans[op.index] = op.start, op.stop, int(op.step.value.real)
            case ir.Opaque():
                self.traced = False
            case _ if isinstance(op, ir.PARALLEL):
                self._space(op)
                self._local.update(out for out in outs if isinstance(out.type, Array))
            case _:
                for array in ir.arrays_read(op):
                    self._access(self.reads, array, (None,) * _rank(array))
                for array in ir.arrays_written(op):
                    self._access(self.writes, array, (None,) * _rank(array))
                self._local.update(out for out in outs if isinstance(out.type, Array))
        for block in ir.blocks_of(op):
            self._block(block)
        if isinstance(op, ir.Scatter):
            where = self._all(op.body.results[1:-1])
            self._access(self.writes, op.target, where)
            self._access(self.reads, op.target, where)

    def _space(self, op: Any) -> None:
        spaces = [(op.indices, op.extents)]
        if isinstance(op, ir.Reduce):
            spaces.append((op.reduced_indices, op.reduced_extents))
        for indices, extents in spaces:
            for index, extent in zip(indices, extents, strict=True):
                self.spans[index] = ir.ZERO, extent, 1

    def _form(self, operand: Operand) -> Linear:
        return self._forms.of(operand)

    def _all(self, operands: Sequence[Operand]) -> tuple[Index, ...]:
        return tuple(self._form(operand) for operand in operands)

    def _access(self, kind: list[Access], array: Var, indices: tuple[Index, ...]) -> None:
        while array in self._views:
            array, axes = self._views[array]
            indices = tuple(axis.through(indices, self._form) for axis in axes)
        if array not in self._local:
            kind.append(Access(array, indices))


class _Axis:
    """An axis of a view's base: `start`, and the view's axis along which it grows by `step`."""

    def __init__(self, start: Index, source: int | None, step: Operand | None) -> None:
        self.start, self.source, self.step = start, source, step

    def through(self, indices: tuple[Index, ...], form: Any) -> Index:
        """The index into the base for an index into the view."""
        if self.source is None or self.start is None:
            return self.start
        index, step = indices[self.source], form(self.step)
        if index is None or step.terms:
            return None
        return self.start.combine(index, step.constant)


def _rank(array: Var) -> int:
    assert isinstance(array.type, Array)
    return array.type.rank


# ---- boxes -----------------------------------------------------------------------------------------------------------


class _Never(Exception):
    """An access that does not happen: a loop around it has no iterations."""


class Part:
    """A part of an operator's index space, the ranges [lo, hi) of some of its index variables, in a call where `values`
    are what the operator takes from outside (arrays need a `shape`)."""

    def __init__(
        self,
        touched: Touched,
        values: Mapping[Var, Any],
        cut: Mapping[Var, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self.touched = touched
        self.values = values
        self.known: dict[Var, tuple[int, int] | None] = {var: (lo, hi - 1) for var, (lo, hi) in cut.items()}

    def box(self, access: Access) -> Box | None:
        """The box of an access; None if it does not happen."""
        shape = self.values[access.array].shape
        box: list[tuple[int, int]] = []
        for index, extent in zip(access.indices, shape, strict=True):
            found = self.along(index, extent)
            if found is None:
                return None
            box.append(found)
        return tuple(box)

    def along(self, index: Index, extent: int) -> tuple[int, int] | None:
        """The range [start, stop) of an index into an axis of some extent; None if there is no access."""
        try:
            found = None if index is None else self.interval(index)
        except _Never:
            return None
        low, high = (0, extent - 1) if found is None else found
        low, high = max(low, 0), min(high, extent - 1)
        return None if low > high else (low, high + 1)

    def interval(self, form: Linear) -> tuple[int, int] | None:
        """The least and the greatest value of a form; None if they are not known."""
        low = high = form.constant
        for var, k in form.terms:
            found = self.variable(var)
            if found is None:
                return None
            ends = k * found[0], k * found[1]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def variable(self, var: Var) -> tuple[int, int] | None:
        if var not in self.known:
            self.known[var] = None  # should it depend on itself
            self.known[var] = self._variable(var)
        found = self.known[var]
        if found is not None and found[0] > found[1]:
            raise _Never
        return found

    def _variable(self, var: Var) -> tuple[int, int] | None:
        if var in self.values:
            value = int(self.values[var])
            return value, value
        if var in self.touched.spans:
            first, stop, step = self.touched.spans[var]
            starts, stops = self._operand(first), self._operand(stop)
            if starts is None or stops is None:
                return None
            return (starts[0], stops[1] - 1) if step > 0 else (stops[0] + 1, starts[1])
        match self.touched.definitions.get(var):
            case ir.Dim(array, axis) if array in self.values:
                extent = self.values[array].shape[axis]
                return extent, extent
            case ir.Prim(name, args) as op:
                return self._prim(name, op, args)
        return None

    def _operand(self, operand: Operand) -> tuple[int, int] | None:
        if isinstance(operand, Const):
            value = int(operand.value.real)
            return value, value
        return self.interval(self.touched._form(operand))

    def _prim(self, name: str, op: ir.Prim, args: tuple[Operand, ...]) -> tuple[int, int] | None:
        if name == "select":
            if (
                isinstance(args[0], Var) and args[0] in self.values
            ):  # as in what may be broadcast, which only the call knows
                return self._operand(args[1] if self.values[args[0]] else args[2])
            then, orelse = self._operand(args[1]), self._operand(args[2])
            if then is None or orelse is None:
                return None
            return min(then[0], orelse[0]), max(then[1], orelse[1])
        if name not in ("minimum", "maximum", "floordiv", "mod"):
            return None
        left, right = (self._operand(arg) for arg in args)
        if name in ("minimum", "maximum"):
            if left is None or right is None:
                return None
            pick = min if name == "minimum" else max
            return pick(left[0], right[0]), pick(left[1], right[1])
        if right is None or right[0] != right[1] or right[0] <= 0:
            return None
        if name == "mod":
            inside = left is not None and left[0] >= 0 and left[1] < right[0]
            return left if inside else (0, right[0] - 1)
        return None if left is None else (left[0] // right[0], left[1] // right[0])


# ---- the contract of an input ----------------------------------------------------------------------------------------


@record
class Sliced:
    """A part needs a slice along `axis`: for iteration i the elements step*i + low ... step*i + high; with bounds that
    only a call knows, `halo` is None."""

    axis: int
    step: int
    halo: tuple[int, int] | None


@record
class Whole:
    """A part needs elements anywhere."""


@record
class Unused:
    """A part needs no element."""


Input = Sliced | Whole | Unused


def contract(touched: Touched, array: Var, split: Var) -> Input:
    """How parts of an index space along `split` need an array."""
    accesses = [access for access in (*touched.reads, *touched.writes) if access.array is array]
    if not accesses:
        return Unused() if touched.traced else Whole()
    for axis in range(_rank(array)):
        forms = [access.indices[axis] for access in accesses]
        steps = {0 if form is None else form.coefficient(split) for form in forms}
        if len(steps) != 1 or steps == {0}:
            continue
        (step,) = steps
        rest = [form.substitute(split, Linear(0)) for form in forms if form is not None]
        if any(var in touched.spans or var in touched.definitions for form in rest for var in form.variables()):
            return Sliced(axis, step, None)
        offsets = [form - rest[0] for form in rest]
        if rest[0].terms or any(form.terms for form in offsets):
            return Sliced(axis, step, None)
        constants = [form.constant for form in rest]
        return Sliced(axis, step, (min(constants), max(constants)))
    return Whole()
