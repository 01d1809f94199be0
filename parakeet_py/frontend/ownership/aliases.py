"""Objects that variables may stand for, and what makes two of them one: unification.

Each variable has an `Object`: all the containers that it may be, as one. What is stored in a container is unified with
the `items` of its object. A variable either owns what it stands for or is a `View` of what others own.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.changes import Change

SPECIAL = frozenset({"deque", "Counter", "defaultdict"})


@record(eq=False, frozen=False)
class Object:
    """What some variables may be. `kinds`: the containers among it; `foreign`: something else may be, too, `unknown`:
    which may be known elsewhere; `shared`: one of them may have another owner."""

    kinds: set[str] = field(default_factory=set)
    makers: list[ssa.Let] = field(default_factory=list)
    foreign: bool = False
    unknown: bool = False
    shared: bool = False
    changed: bool = False
    inner: Object | None = None  # what its items are
    same: Object | None = None  # what it has been unified with

    def becomes_value(self) -> bool:
        """Is a change of it a new value of the variable?"""
        special = self.kinds & SPECIAL
        return (
            bool(self.kinds)
            and "cell" not in self.kinds
            and "iterator" not in self.kinds
            and not (self.foreign or self.unknown or self.shared)
            and not (special and (len(self.kinds) > 1 or (len(self.makers) > 1 and "deque" not in special)))
        )


@record
class View:
    """A variable that shows what others own. `place`: under which index or key of the base it is found."""

    kind: str  # item, iterator, closure, method, tuple, capture, cell
    bases: tuple[ssa.Var, ...]
    place: ssa.Operand | None = None


Parts: TypeAlias = tuple["Object | None", ...]


class Aliases:
    """The objects of variables, and what has been seen of them."""

    def __init__(self) -> None:
        self.objects: dict[ssa.Var, Object] = {}
        self.definitions: dict[ssa.Var, ssa.Let] = {}
        self.views: dict[ssa.Var, View] = {}
        self.parts: dict[ssa.Var, Parts] = {}  # of tuples that an iterator gives
        self.changes: dict[int, Change] = {}
        self.stored: dict[int, list[ssa.Var]] = {}  # what a statement makes an item of something, or a cell's contents
        self.spread: dict[int, list[ssa.Var]] = {}  # that of which it takes the items
        self.results: set[ssa.Var] = set()  # what is used for nothing but to be returned
        self.has_special = False

    def of(self, var: ssa.Var) -> Object:
        found = self.objects.get(var)
        if found is None:
            found = self.objects[var] = Object()
        return self.find(found)

    def find(self, one: Object) -> Object:
        while one.same is not None:
            if one.same.same is not None:
                one.same = one.same.same
            one = one.same
        return one

    def items(self, one: Object) -> Object:
        one = self.find(one)
        if one.inner is None:
            one.inner = Object(unknown=one.unknown)
        return self.find(one.inner)

    def unify(self, one: Object, other: Object) -> None:
        pending = [(one, other)]
        while pending:
            one, other = map(self.find, pending.pop())
            if one is other:
                continue
            unknown = one.unknown or other.unknown
            one.kinds |= other.kinds
            one.makers += other.makers
            one.foreign |= other.foreign
            one.unknown |= other.unknown
            one.shared |= other.shared
            one.changed |= other.changed
            other.same = one
            if other.inner is not None:
                if one.inner is None:
                    one.inner = other.inner
                else:
                    pending.append((one.inner, other.inner))
            if unknown and one.inner is not None:
                self.know_nothing(one.inner)

    def know_nothing(self, one: Object) -> None:
        inner: Object | None = one
        while inner is not None and not self.find(inner).unknown:
            inner = self.find(inner)
            inner.unknown = True
            inner = inner.inner

    def merge(self, out: ssa.Var, operand: ssa.Operand) -> None:
        """A variable may be what an operand is."""
        if out in self.results:
            return
        if isinstance(operand, ssa.Var):
            self.unify(self.of(out), self.of(operand))
            if operand in self.parts:
                self.parts.setdefault(out, self.parts[operand])
        elif operand.value is not ssa.UNBOUND:
            self.of(out).foreign = True

    def merge_object(self, one: Object, operand: ssa.Operand) -> None:
        if isinstance(operand, ssa.Var):
            self.unify(one, self.of(operand))
        elif operand.value is not ssa.UNBOUND:
            self.find(one).foreign = True

    def merge_contents(self, let: ssa.Let, cell: ssa.Var, value: ssa.Operand) -> None:
        self.merge_object(self.items(self.of(cell)), value)
        if isinstance(value, ssa.Var):
            self.stored.setdefault(id(let), []).append(value)

    def make(self, let: ssa.Let, kind: str) -> Object:
        made = self.of(let.outs[0])
        made.kinds.add(kind)
        made.makers.append(let)
        return made

    def share(self, operand: ssa.Operand) -> None:
        """Something may have another owner from now on: all that can be reached from it."""
        pending: list[Object] = []
        for var in self.chain(operand):
            pending.append(self.of(var))
        while pending:
            one = self.find(pending.pop())
            if not one.shared:
                one.shared = True
                if one.inner is not None:
                    pending.append(one.inner)

    def share_items(self, operand: ssa.Operand) -> None:
        """The items of something may be found elsewhere, too."""
        if isinstance(operand, ssa.Var):
            self.items(self.of(operand)).shared = True

    def as_list(self, operand: ssa.Operand) -> None:
        """It shows what kind of container something is."""
        if isinstance(operand, ssa.Var) and self.of(operand).kinds & SPECIAL:
            self.share(operand)

    def chain(self, operand: ssa.Operand) -> list[ssa.Var]:
        """A variable and all that it is a view of; an item does not show that of which it is one."""
        found: list[ssa.Var] = [operand] if isinstance(operand, ssa.Var) else []
        for var in found:
            view = self.views.get(var)
            if view is not None and view.kind not in ("item", "cell"):
                found += [base for base in view.bases if base not in found]
        return found

    def origin(self, operand: ssa.Operand) -> list[ssa.Var]:
        """The same with that of which it is an item."""
        found: list[ssa.Var] = [operand] if isinstance(operand, ssa.Var) else []
        for var in found:
            view = self.views.get(var)
            if view is not None:
                found += [base for base in view.bases if base not in found]
        return found

    def store(self, let: ssa.Let, one: Object, operand: ssa.Operand) -> None:
        """An operand becomes an item of something."""
        if not isinstance(operand, ssa.Var):
            return
        self.as_list(operand)
        given = self.of(operand)
        if given.foreign and not given.kinds:
            self.items(one).kinds.add("fresh")
        elif given.kinds or given.unknown or operand in self.views:
            self.unify(self.items(one), given)
            self.stored.setdefault(id(let), []).append(operand)

    def spread_over(self, let: ssa.Let, one: Object, operand: ssa.Operand) -> None:
        """The items of an operand become items of something."""
        if isinstance(operand, ssa.Var):
            for part in self.parts.get(operand, ()):
                if part is not None:
                    self.find(part).shared = True
            self.unify(self.items(one), self.element(operand))
            self.spread.setdefault(id(let), []).append(operand)

    def put(self, let: ssa.Let, made: Object, items: tuple[ssa.Item, ...]) -> None:
        for item in items:
            if isinstance(item, ssa.Star):
                self.spread_over(let, made, item.operand)
            else:
                self.store(let, made, item)

    def element(self, var: ssa.Var) -> Object:
        """What is found in something, or given by an iterator."""
        parts = self.parts.get(var)
        given = self.of(var)
        if parts is not None and "pairs" in given.kinds:
            return Object()  # tuples
        return self.items(given)

    def part(self, out: ssa.Var, held: ssa.Var, one: Object | None) -> None:
        if one is None:
            self.of(out).foreign = True
        else:
            self.unify(self.of(out), one)
            self.views[out] = View("item", self.views[held].bases if held in self.views else (held,))

    def taken(self, item: ssa.Var, iterable: ssa.Var) -> None:
        """The variable of a loop."""
        self.unify(self.of(item), self.element(iterable))
        self.views[item] = View("item", (iterable,))
        if iterable in self.parts:
            self.parts[item] = self.parts[iterable]

    def view_of(self, out: ssa.Var, given: list[ssa.Operand]) -> None:
        made = self.of(out)
        made.kinds.add("iterator")
        self.views[out] = View("iterator", tuple(one for one in given if isinstance(one, ssa.Var)))
        for one in given:
            if isinstance(one, ssa.Var):
                self.unify(self.items(made), self.items(self.of(one)))

    def reset(self, one: Object) -> None:
        """Keep of an object what it is, and what its items are."""
        held: Object | None = one
        seen: set[Object] = set()
        while held is not None and (held := self.find(held)) not in seen:
            seen.add(held)
            held.makers = []
            held.foreign = held.unknown = held.shared = held.changed = False
            held = held.inner
