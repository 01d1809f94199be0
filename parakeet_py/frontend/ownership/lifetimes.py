"""Which containers have one owner at a time, so that changing one may be binding a variable anew.

A variable owns what it stands for until that becomes an item of something, or a merge or a loop makes it another
variable; it may not be used after that. A view may be used until what it shows changes: an iterator must have come to
its end, while an item that has been read, a closure, a bound method or a tuple is made anew where it is needed again.
So the owners of each object form one line, and all changes of it are seen by all that use it later. Objects for which
that does not hold are marked as shared: their changes stay what they are in Python.

A cell owns its contents for all functions that know the cell, and a call of one of these may change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from parakeet_py.base import grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.aliases import Object, View
from parakeet_py.frontend.ownership.changes import Change
from parakeet_py.frontend.ownership.objects import Objects

Live = frozenset[ssa.Var]


@record
class Place:
    """Where a change happens: in `root` itself, or in its item at `place`; or in the items of a list in turn, by the
    loop over it."""

    root: ssa.Var
    place: ssa.Operand | None = None
    loop: ssa.Let | None = None

    def is_direct(self) -> bool:
        return self.place is None and self.loop is None


class Lifetimes:
    """Looks at all functions; what it finds is in the objects, and which variables are used behind a statement."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.after: dict[int, Live] = {}
        self.loops: dict[ssa.Var, ssa.Let] = {}  # by their variables
        self._free: dict[int, Live] = {}
        self._named: dict[int, frozenset[ssa.Var]] = {}
        self._calls: dict[int, frozenset[Object]] = {}
        for function in objects.functions.values():
            for let in function.statements():
                if isinstance(let.op, ssa.For):
                    self.loops[let.op.item] = let
        self.changed: dict[int, frozenset[Object]] = {}  # by blocks
        self.elsewhere: frozenset[Object] = frozenset()  # what changes but by the statements behind a place
        all_of = list(objects.functions.values())
        by_function = [self.changed_by(function.body) for function in all_of]
        for number, function in enumerate(all_of):  # the first is run once, those inside it any number of times
            self.elsewhere = frozenset().union(*(by_function if number else by_function[1:]))
            self.block(function.body, frozenset(), frozenset(), ())
            kept = objects.elements.get(id(function))
            if kept is not None:
                self.owned_elsewhere(kept, frozenset(), frozenset())

    # ---- uses --------------------------------------------------------------------------------------------------------

    def tracked(self, operand: ssa.Operand) -> bool:
        return isinstance(operand, ssa.Var) and (operand in self.objects.views or bool(self.objects.of(operand).kinds))

    def uses(self, given: Iterable[ssa.Operand]) -> Live:
        found: set[ssa.Var] = set()
        for one in given:
            if isinstance(one, ssa.Var) and self.tracked(one):
                found.update(self.objects.origin(one))
        return frozenset(found)

    def free(self, block: ssa.Block) -> Live:
        """What a block uses of what is made outside of it."""
        found = self._free.get(id(block))
        if found is None:
            used, made = set(self.uses(block.results)), set[ssa.Var]()
            for let in block.statements:
                used |= self.uses(ssa.operands_of(let.op))
                for inner in ssa.blocks_of(let.op):
                    used |= self.free(inner)
                made |= {*let.outs, *grammar.binders(let.op)}
            found = self._free[id(block)] = frozenset(used - made)
        return found

    def named(self, block: ssa.Block) -> frozenset[ssa.Var]:
        """The variables that stand in a block."""
        found = self._named.get(id(block))
        if found is None:
            all_of = {one for one in block.results if isinstance(one, ssa.Var)}
            for let in block.statements:
                all_of |= {one for one in ssa.operands_of(let.op) if isinstance(one, ssa.Var)}
                for inner in ssa.blocks_of(let.op):
                    all_of |= self.named(inner)
            found = self._named[id(block)] = frozenset(all_of)
        return found

    def changed_by(self, block: ssa.Block) -> frozenset[Object]:
        """What the statements of a block change, with that of which it is an item."""
        found = self.changed.get(id(block))
        if found is None:
            all_of: set[Object] = set()
            for let in block.statements:
                all_of |= self.changed_in(let)
            found = self.changed[id(block)] = frozenset(all_of)
        return found

    def changed_in(self, let: ssa.Let) -> set[Object]:
        change = self.objects.changes.get(id(let))
        found = {self.objects.of(var) for var in self.objects.origin(change.target)} if change is not None else set()
        return found.union(*map(self.changed_by, ssa.blocks_of(let.op)))

    def block(self, block: ssa.Block, live: Live, later: frozenset[Object], iterating: tuple[ssa.Let, ...]) -> None:
        """`live`: what is used behind the block, `later`: what changes there."""
        live = live | self.uses(block.results)
        for let in reversed(block.statements):
            self.after[id(let)] = live
            self.statement(let, live, later, iterating)
            later |= self.changed_in(let)
            used = self.uses(ssa.operands_of(let.op))
            for inner in ssa.blocks_of(let.op):
                used |= self.free(inner)
            live = (live - {*let.outs}) | (used - {*grammar.binders(let.op)})

    def statement(self, let: ssa.Let, live: Live, later: frozenset[Object], iterating: tuple[ssa.Let, ...]) -> None:
        objects, op = self.objects, let.op
        for var in objects.stored.get(id(let), ()):
            twice = objects.stored[id(let)].count(var) > 1
            sink = let.outs[0] if len(let.outs) == 1 else None
            self.owned_elsewhere(var, live | {var} if twice else live, later, sink)
        for var in objects.spread.get(id(let), ()):
            if var in live or var in objects.views or objects.spread[id(let)].count(var) > 1:
                self.items_elsewhere(var, later)
        change = objects.changes.get(id(let))
        if change is not None:
            self.change(let, change, live, iterating)
        match op:
            case ssa.If(_, then, orelse):
                for block in (then, orelse):
                    self.merges(zip(let.outs, block.results, strict=True), live, later)
                    self.block(block, live, later, iterating)
            case ssa.For() | ssa.While():
                blocks = ssa.blocks_of(op)
                again = live.union(*map(self.free, blocks)) - {*op.params, *grammar.binders(let.op)}
                ahead = later.union(*map(self.changed_by, blocks))
                outs = let.outs[op.stoppable :]
                self.merges(zip(outs, op.inits, strict=True), again, ahead)
                self.merges(zip(outs, op.body.results[op.stoppable :], strict=True), again, ahead)
                inner = (*iterating, let) if isinstance(op, ssa.For) else iterating
                for block in blocks:
                    self.block(block, again, ahead, inner)
                if isinstance(op, ssa.While):
                    self.share_changes(op.condition)
            case ssa.Guarded(body, _, keeps):
                self.merges(zip(let.outs[1 + keeps :], body.results, strict=True), live, later)
                self.block(body, live, later, iterating)
                self.guarded(body)
            case ssa.Assert(_, ssa.Block() as message):
                self.block(message, live, later, iterating)
                self.share_changes(message)
            case ssa.Call():
                if cells := self.cells_changed(op):
                    self.cells_change(cells, live, iterating)
            case ssa.SetAttribute(ssa.Var() as cell) if id(let) in objects.stored:
                self.cells_change(frozenset({objects.of(cell)}), live, iterating)

    def merges(self, pairs: Iterable[tuple[ssa.Var, ssa.Operand]], live: Live, later: frozenset[Object]) -> None:
        """Variables become others."""
        seen: set[ssa.Var] = set()
        for out, given in pairs:
            if isinstance(given, ssa.Var) and out not in self.objects.results:
                self.owned_elsewhere(given, live | seen, later)
                seen.add(given)

    def owned_elsewhere(self, var: ssa.Var, live: Live, later: frozenset[Object], owner: ssa.Var | None = None) -> None:
        """A variable has another owner from now on. Nothing sees that if neither changes any more."""
        objects = self.objects
        if owner is not None and owner in objects.results:
            return
        if not self.tracked(var) or not (var in live or var in objects.views):
            return
        changing = later | self.elsewhere
        for one in objects.chain(var):
            inner: Object | None = objects.of(one)
            seen: set[Object] = set()
            while inner is not None and (inner := objects.find(inner)) not in seen:
                seen.add(inner)
                if inner in changing:
                    objects.share(var)
                    return
                inner = inner.inner

    def items_elsewhere(self, var: ssa.Var, later: frozenset[Object]) -> None:
        """The items of something have another owner from now on."""
        items = self.objects.items(self.objects.of(var))
        if items in later or items in self.elsewhere:
            self.objects.share_items(var)

    def share_changes(self, block: ssa.Block) -> None:
        """Nothing can be bound anew by the statements of a block."""
        for let in block.statements:
            change = self.objects.changes.get(id(let))
            if change is not None:
                self.objects.share(change.target)
            for inner in ssa.blocks_of(let.op):
                self.share_changes(inner)

    def guarded(self, body: ssa.Block) -> None:
        """What raises after a change would leave a list half changed: changes come last."""
        begun = False
        for let in body.statements:
            for inner in ssa.blocks_of(let.op):
                self.share_changes(inner)
            change = self.objects.changes.get(id(let))
            if begun and change is None and not _cannot_raise(let):
                self.share_changes(body)
                return
            begun = begun or change is not None

    # ---- changes -----------------------------------------------------------------------------------------------------

    def place_of(self, target: ssa.Var) -> Place | None:
        """Where a variable finds what it stands for; None if that cannot change there."""
        objects = self.objects
        view = objects.views.get(target)
        if view is None or view.kind == "cell":
            return Place(target)
        if view.kind != "item" or len(view.bases) != 1:
            return None
        (base,) = view.bases
        of_base = objects.views.get(base)
        if view.place is not None:
            return Place(base, view.place) if of_base is None or of_base.kind == "cell" else None
        return self.place_in_loop(target, base, of_base)

    def place_in_loop(self, target: ssa.Var, base: ssa.Var, of_base: View | None) -> Place | None:
        """`for row in rows`, `for i, row in enumerate(rows)`, if the loop does not look at the list otherwise."""
        objects = self.objects
        root, loop = base, self.loops.get(target)
        if loop is None:
            unpacked = objects.definitions.get(target)
            match unpacked.op if unpacked is not None else None:
                case ssa.Unpack(ssa.Var() as pair, 2, False) if unpacked is not None and unpacked.outs[1] is target:
                    loop = self.loops.get(pair)
                    made = objects.definitions.get(base)
                    if loop is None or of_base is None or made is None or not isinstance(made.op, ssa.Call):
                        return None
                    if objects.called(made.op) not in (("name", "enumerate"),) or len(made.op.args) != 1:
                        return None
                    first = loop.op.body.statements[0] if isinstance(loop.op, ssa.For) else None
                    (root,) = of_base.bases
                    if first is not unpacked or root not in objects.objects or made.op.args[0] is not root:
                        return None
                    of_base = None
        if loop is None or of_base is not None or root in objects.views or not isinstance(loop.op, ssa.For):
            return None
        if not objects.of(root).kinds <= {"list", "copy"} or root in self.named(loop.op.body):
            return None
        return Place(root, None, loop)

    def change(self, let: ssa.Let, change: Change, live: Live, iterating: tuple[ssa.Let, ...]) -> None:
        objects = self.objects
        place = self.place_of(change.target)
        if place is None:
            objects.share(change.target)
            return
        root = place.root
        seen_as = self.same_as(root)
        own: set[ssa.Operand] = {change.target, *let.outs}
        if place.loop is not None and isinstance(place.loop.op, ssa.For):
            own |= {place.loop.op.iterable, place.loop.op.item}
        for var in live:
            view = objects.views.get(var)
            if view is None or var in own or not any(map(seen_as, objects.origin(var))):
                continue
            if view.kind == "iterator":
                self.share_root(root, place)
            elif view.kind == "item":
                if not place.is_direct() and view.place is not None and any(map(seen_as, view.bases)):
                    continue  # it is read again
                objects.share_items(root)
            elif view.kind == "cell" and objects.of(view.bases[0]) in map(objects.find, objects.rebound):
                objects.share(root)
        for loop in iterating:
            if loop is place.loop:
                continue
            assert isinstance(loop.op, ssa.For)
            iterable = loop.op.iterable
            if any(map(seen_as, objects.origin(iterable))):
                if any(map(seen_as, objects.chain(iterable))):
                    self.share_root(root, place)
                else:
                    objects.share_items(root)

    def share_root(self, root: ssa.Var, place: Place) -> None:
        if place.is_direct():
            self.objects.share(root)
        else:
            self.objects.share_items(root)

    def same_as(self, root: ssa.Var) -> Callable[[ssa.Var], bool]:
        """Is a variable this one, or the contents of the same cell?"""
        objects = self.objects
        view = objects.views.get(root)
        if view is None:
            return lambda var: var is root
        cell = objects.of(view.bases[0])

        def same(var: ssa.Var) -> bool:
            other = objects.views.get(var)
            return other is not None and other.kind == "cell" and objects.of(other.bases[0]) is cell

        return same

    # ---- cells -------------------------------------------------------------------------------------------------------

    def cells_changed(self, op: ssa.Call) -> frozenset[Object]:
        """The cells whose contents a call may change, by running a function of the program's own."""
        objects = self.objects
        found: frozenset[Object] = frozenset()
        if not isinstance(op.function, ssa.Const) and objects.called(op)[0] == "unknown":
            found |= self.changed_by_closure(op.function)
        for var in {var for one in ssa.operands_of(op) for var in objects.chain(one)}:
            if var in objects.views and objects.views[var].kind == "closure":
                found |= self.changed_by_closure(var)
        return found

    def changed_by_closure(self, operand: ssa.Operand) -> frozenset[Object]:
        """The cells that a closure may change when it is called."""
        made = self.objects.definitions.get(operand) if isinstance(operand, ssa.Var) else None
        if made is not None and isinstance(made.op, ssa.MakeClosure):
            return self.changed_by_function(made.op.function)
        return frozenset().union(*map(self.changed_by_function, [*self.objects.functions.values()][1:]))

    def changed_by_function(self, function: ssa.Function) -> frozenset[Object]:
        objects = self.objects
        known = self._calls.get(id(function))
        if known is not None:
            return known
        self._calls[id(function)] = frozenset()
        found: frozenset[Object] = frozenset()
        for let in function.statements():
            match let.op:
                case ssa.SetAttribute(ssa.Var() as cell) if id(let) in objects.stored:
                    found |= {objects.of(cell)}
                case ssa.Call():
                    found |= self.cells_changed(let.op)
            change = objects.changes.get(id(let))
            place = self.place_of(change.target) if change is not None else None
            if place is not None and place.root in objects.views:
                found |= {objects.of(objects.views[place.root].bases[0])}
        self._calls[id(function)] = found
        return found

    def cells_change(self, cells: frozenset[Object], live: Live, iterating: tuple[ssa.Let, ...]) -> None:
        """The contents of cells may change, while these variables are to be used again."""
        objects = self.objects
        iterated = [let.op.iterable for let in iterating if isinstance(let.op, ssa.For)]
        rebound = {objects.find(one) for one in objects.rebound}
        for var in (*live, *(one for one in iterated if isinstance(one, ssa.Var))):
            view = objects.views.get(var)
            for one in objects.origin(var):
                of_one = objects.views.get(one)
                if of_one is None or of_one.kind != "cell" or objects.of(of_one.bases[0]) not in cells:
                    continue
                if var in iterated or (view is not None and view.kind == "iterator"):
                    objects.share(one)
                elif view is not None and view.kind == "item":
                    objects.share_items(one)
                elif objects.of(of_one.bases[0]) in rebound:
                    objects.share(one)


def _cannot_raise(let: ssa.Let) -> bool:
    match let.op:
        case (
            ssa.Inplace(_, _, ssa.Const())
            | ssa.Binary(_, _, ssa.Const())
            | ssa.Attribute(_, "cell_contents")
            | ssa.SetAttribute()
        ):
            return True
    return False


__all__ = ["Lifetimes", "Live", "Object", "Place"]
