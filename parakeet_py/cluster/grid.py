"""Where the index space of a region is cut, from the chunks of what it reads and writes.

Most indices are linear forms of one index variable: `s * i + c`, with one `s` and values of `c` in a short interval.
A chunk of the array that begins at b is then a boundary of the index space where `s * i + c` gets to b. What is read
takes its boundaries from the largest array; others' windows are put together from several chunks where they do not fit.
What is written has to fit, as every chunk is made by one task: such a root takes the grid of the index space.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from parakeet_py.cluster.arrays import LazyArray, Root
from parakeet_py.hybrid.partition.access import Access, Part, Touched
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Var, blocks_of
from parakeet_py.typed_ir.passes.analysis.linear import Linear

NEAR = 8  # boundaries that are nearer than this part of a chunk are one


class Shaped:
    """An array for interval arithmetic: its extents."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


class Form(NamedTuple):
    """An index into an axis of a root: factor * index variable `axis` + something in [low, high]; without an axis, what
    is in [low, high]; None for both: anything."""

    axis: int
    factor: int
    low: int
    high: int

    def cut_at(self, bound: int) -> int:
        """The first index whose elements are on the other side of a boundary between chunks."""
        middle = (self.low + self.high) // 2
        if self.factor > 0:
            return -((middle - bound) // self.factor)
        return (middle - bound) // -self.factor + 1


class Space:
    """The index space of an operator in one call.

    Attributes
    ----------
    indices, extents : its index variables and their extents
    values : what the operator takes from outside, as interval arithmetic takes it
    """

    def __init__(
        self, touched: Touched, indices: Sequence[Var], extents: Sequence[int], values: Mapping[Var, Any]
    ) -> None:
        self.touched, self.indices, self.extents, self.values = touched, tuple(indices), tuple(extents), values
        self._everywhere = {index: (0, max(extent, 1)) for index, extent in zip(indices, extents, strict=True)}
        self._depends: dict[Var, frozenset[int]] = {}
        self._forms: dict[int, tuple[Linear, Form | None]] = {}  # of indices, by their ids

    def part(self, bounds: Mapping[int, tuple[int, int]]) -> Part:
        """Interval arithmetic where some axes have these ranges, and the others all of theirs."""
        known = dict(self._everywhere)
        for axis, (lo, hi) in bounds.items():
            known[self.indices[axis]] = lo, hi
        return Part(self.touched, self.values, known)

    def axes_of(self, form: Linear | None) -> frozenset[int]:
        """The axes of the index space that an index depends on."""
        if form is None:
            return frozenset()
        return frozenset().union(*(self._axes(var) for var in form.variables()))

    def _axes(self, var: Var) -> frozenset[int]:
        if var in self._depends:
            return self._depends[var]
        self._depends[var] = frozenset()
        for axis, index in enumerate(self.indices):
            if var is index:
                self._depends[var] = frozenset((axis,))
                return self._depends[var]
        found: set[int] = set()
        if var in self.touched.spans:
            start, stop, _ = self.touched.spans[var]
            for bound in (start, stop):
                if isinstance(bound, Var):
                    found |= self._axes(bound)
        op = self.touched.definitions.get(var)
        if isinstance(op, ir.Prim) and not blocks_of(op):
            for arg in op.args:
                if isinstance(arg, Var):
                    found |= self._axes(arg)
        self._depends[var] = frozenset(found)
        return self._depends[var]

    def form(self, index: Linear | None) -> Form | None:
        """An index as a form of one index variable; None if it is no such form."""
        if index is None:
            return None
        if id(index) not in self._forms:
            self._forms[id(index)] = index, self._form(index)
        return self._forms[id(index)][1]

    def _form(self, index: Linear) -> Form | None:
        axes = [axis for axis, var in enumerate(self.indices) if index.coefficient(var)]
        if len(axes) > 1:
            return None
        rest = index
        for axis in axes:
            rest = rest.substitute(self.indices[axis], Linear(0))
        if self.axes_of(rest):
            return None
        try:
            found = self.part({}).interval(rest)
        except Exception:  # a loop around it has no turns
            found = None
        if found is None:
            return None
        if not axes:
            return Form(-1, 0, *found)
        return Form(axes[0], index.coefficient(self.indices[axes[0]]), *found)

    def forms(self, access: Access, array: LazyArray) -> list[Form | None]:
        """The forms of an access along each axis of the root."""
        found: list[Form | None] = [Form(-1, 0, start, start) for start in array.starts]
        for index, (axis, step) in zip(access.indices, array.axes, strict=True):
            if axis < 0:
                continue
            form, start = self.form(index), array.starts[axis]
            if form is None:
                found[axis] = None
            else:
                ends = start + step * form.low, start + step * form.high
                found[axis] = Form(form.axis, step * form.factor, min(ends), max(ends))
        return found


class Target(NamedTuple):
    """How an operator stores into a root: along each axis of it the form, or None if all of the box is one task's."""

    root: Root
    forms: tuple[Form | None, ...]
    full: bool  # every element of a task's box is stored to


def targets_of(space: Space, writes: Iterable[tuple[Access, LazyArray]], forbidden: set[int]) -> list[Target]:
    """How an operator stores, by roots; axes along which it must not be cut are added to `forbidden`."""
    by_root: dict[int, tuple[Root, list[list[Form | None]]]] = {}
    for access, array in writes:
        by_root.setdefault(id(array.root), (array.root, []))[1].append(space.forms(access, array))
        for index in access.indices:
            axes = space.axes_of(index)
            if index is not None and axes and space.form(index) is None:
                forbidden |= axes
            elif index is None:
                forbidden |= set(range(len(space.extents)))
    found = []
    for root, all_forms in by_root.values():
        forms: list[Form | None] = []
        for along in zip(*all_forms, strict=True):
            forms.append(_common(along, forbidden))
        followed = [form.axis for form in forms if form is not None and form.axis >= 0]
        for axis in range(len(space.extents)):
            if followed.count(axis) != 1 and space.extents[axis] > 1:
                forbidden.add(axis)
        found.append((root, forms, len(all_forms) == 1 and len({*followed}) == len(followed)))  # not of a diagonal
    return [
        Target(
            root,
            tuple(None if form is None or form.axis in forbidden else form for form in forms),
            single and all(form is not None and form.low == form.high and abs(form.factor) == 1 for form in forms),
        )
        for root, forms, single in found
    ]


def _common(forms: Sequence[Form | None], forbidden: set[int]) -> Form | None:
    """One form for all accesses along an axis."""
    known = [form for form in forms if form is not None]
    kinds = {(form.axis, form.factor) for form in known}
    if len(known) == len(forms) and len(kinds) == 1:
        low, high = min(form.low for form in known), max(form.high for form in known)
        (axis, factor) = next(iter(kinds))
        if axis < 0 or high - low < abs(factor):
            return Form(axis, factor, low, high)
    forbidden.update(form.axis for form in known if form.axis >= 0)
    return None


def boundaries(
    space: Space,
    reads: Iterable[tuple[Access, LazyArray]],
    targets: Sequence[Target],
    allowed: Sequence[int],
    hints: Mapping[int, Sequence[int]],
) -> list[list[int]]:
    """Where each axis is cut: [0, ..., extent]."""
    candidates: dict[int, list[tuple[int, list[int]]]] = {axis: [] for axis in allowed}

    def offer(root: Root, forms: Sequence[Form | None], weight: int) -> None:
        for bounds, form in zip(root.bounds, forms, strict=False):
            if form is None or form.axis not in candidates or len(bounds) <= 2:
                continue
            extent = space.extents[form.axis]
            inner = sorted({at for bound in bounds[1:-1] if 0 < (at := form.cut_at(bound)) < extent})
            if inner:
                candidates[form.axis].append((weight, inner))

    for target in targets:
        offer(target.root, target.forms, 2 * target.root.nbytes + 1)
    for root, forms in _by_root(space, reads):
        offer(root, forms, root.nbytes)
    found = []
    hinted = any(candidates.values())  # what reads chunks needs no hint; else one axis gets one
    for axis, extent in enumerate(space.extents):
        offers = [inner for _, inner in sorted(candidates.get(axis, ()), key=lambda one: -one[0])]
        if axis in candidates and not hinted and extent in hints:
            inner = sorted({at for at in hints[extent] if 0 < at < extent})
            offers, hinted = [inner] if inner else [], True
        chosen: list[int] = []
        for inner in offers:
            chosen = _merged(chosen, inner, extent)
        found.append([0, *chosen, extent])
    return found


def _by_root(space: Space, reads: Iterable[tuple[Access, LazyArray]]) -> Iterable[tuple[Root, tuple[Form | None, ...]]]:
    """What is read of each root: forms that differ in what they add are one, as of the neighbours of a stencil."""
    found: dict[Any, tuple[Root, list[tuple[Form | None, ...]]]] = {}
    for access, array in reads:
        forms = tuple(space.forms(access, array))
        kind = tuple(None if form is None else (form.axis, form.factor) for form in forms)
        found.setdefault((id(array.root), kind), (array.root, []))[1].append(forms)
    for root, several in found.values():
        yield root, tuple(_hull(along) for along in zip(*several, strict=True))


def _hull(forms: Sequence[Form | None]) -> Form | None:
    known = [form for form in forms if form is not None]
    if not known:
        return None
    low, high = min(form.low for form in known), max(form.high for form in known)
    return Form(known[0].axis, known[0].factor, low, high)


def _merged(chosen: list[int], more: list[int], extent: int) -> list[int]:
    """Boundaries with others taken in that are not near one of them."""
    if not chosen or chosen == more:
        return more
    least = min(b - a for a, b in zip([0, *chosen], [*chosen, extent], strict=True))
    near = max(least // NEAR, 1)
    found = [*chosen]
    for one in more:
        at = bisect_left(chosen, one)
        if all(abs(one - other) > near for other in chosen[max(at - 1, 0) : at + 1]):  # the nearest ones
            found.append(one)
    return sorted(found)
