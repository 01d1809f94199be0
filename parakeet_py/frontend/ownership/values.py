"""Changes of containers that have one owner become values: untyped SSA to untyped SSA.

    found = []                          found.1 = []
    for v in x:                         for v.2 in x: (found.3 = found.1)
        if v > 0:                           if v.2 > 0:
            found.append(v)                     found.4 = change append found.3, v.2
                                            (found.3 = found.4 or found.3)

Which these are, `lifetimes` has found; a changed variable gets the merges that it needs, as if it had been bound anew.
What shows it is made anew where it is used behind a change: an item that has been read, a closure that has captured it.
Changes in cells are written back. Nothing here depends on how a name is spelled: where a name stands for another
function than it seems, specialization refuses (`containers/list_changes.py`).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from parakeet_py.base import grammar
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.aliases import SPECIAL
from parakeet_py.frontend.ownership.changes import FUNCTIONS, GIVING, Change, change_of
from parakeet_py.frontend.ownership.objects import CONTENTS, Objects

if TYPE_CHECKING:
    from parakeet_py.frontend.ownership.lifetimes import Lifetimes, Place

_SECOND: Any = itemgetter(1)  # stands for itself among literals
_MAKERS = ssa.BuildList | ssa.BuildDict | ssa.BuildSet | ssa.Comprehension | ssa.Call | ssa.Binary | ssa.Subscript


def with_changes_as_values(function: ssa.Function) -> ssa.Function:
    """The same function, in which the containers of its own are values."""
    if not _may_have_some(function):
        return function
    objects = Objects(function)
    if not objects.changes and not objects.has_special:
        return function
    from parakeet_py.frontend.ownership import lifetimes  # most functions have no such containers

    return _Functions(objects, lifetimes.Lifetimes(objects)).rewritten(function)


def _may_have_some(function: ssa.Function) -> bool:
    definitions: dict[ssa.Var, ssa.Let] = {}
    makes = changes = False
    pending, seen = [function], {id(function)}
    for one in pending:
        for let in one.statements():
            for out in let.outs:
                definitions[out] = let
            if isinstance(let.op, ssa.MakeClosure) and id(let.op.function) not in seen:
                seen.add(id(let.op.function))
                pending.append(let.op.function)
            makes = makes or isinstance(let.op, _MAKERS)
            changes = changes or change_of(let, definitions) is not None or _is_special(let, definitions)
    return makes and changes


def _is_special(let: ssa.Let, definitions: dict[ssa.Var, ssa.Let]) -> bool:
    if not isinstance(let.op, ssa.Call) or not isinstance(let.op.function, ssa.Var):
        return False
    made = definitions.get(let.op.function)
    match made.op if made is not None else None:
        case ssa.Global(name) | ssa.Free(name) | ssa.Attribute(_, name):
            return name in SPECIAL
    return False


class _Functions:
    """Rewrites a function and those inside it, each once."""

    def __init__(self, objects: Objects, lifetimes: Lifetimes) -> None:
        self.objects = objects
        self.lifetimes = lifetimes
        self.places: dict[int, Place] = {}  # of the changes that become values
        for key, change in objects.changes.items():
            place = lifetimes.place_of(change.target)
            if place is not None and self.is_value(place.root) and self.is_value(change.target):
                self.places[key] = place
        self.has_cells = any("cell" in objects.of(var).kinds for var in list(objects.objects))
        self.made: dict[int, ssa.Function] = {}

    def is_value(self, var: ssa.Var) -> bool:
        objects = self.objects
        view = objects.views.get(var)
        if view is not None and view.kind == "cell":
            cell = objects.of(view.bases[0])
            if cell.shared or cell.unknown or cell.foreign or cell.kinds != {"cell"}:
                return False
        return objects.of(var).becomes_value()

    def rewritten(self, function: ssa.Function) -> ssa.Function:
        found = self.made.get(id(function))
        if found is None:
            found = self.made[id(function)] = function  # where it knows itself
            body = _Body(self, function).body()
            if body is not function.body:
                found = self.made[id(function)] = replace(function, body=body)
        return found


class _Scope:
    """What variables stand for at a place."""

    def __init__(
        self, versions: dict[ssa.Var, ssa.Operand], shown: dict[ssa.Var, tuple[object, ...]], time: int
    ) -> None:
        self.versions = versions
        self.shown = shown  # what views showed when they were made
        self.time = time  # when cells have last been changed
        self.out: list[ssa.Let] = []

    def inner(self) -> _Scope:
        return _Scope(dict(self.versions), dict(self.shown), self.time)


class _Body:
    """Rewrites the body of one function."""

    def __init__(self, functions: _Functions, function: ssa.Function) -> None:
        self.functions, self.function = functions, function
        self.objects, self.lifetimes = functions.objects, functions.lifetimes
        self.places = functions.places
        self.scope = _Scope({}, {}, 0)
        self.clock = itertools.count(1)
        self.uses: dict[ssa.Var, int] = {}
        self.dropped: set[int] = set()
        self.set_next: set[int] = set()  # what is read of a defaultdict to be set
        self.trying = 0
        self.changed_in: dict[int, list[ssa.Var]] = {}
        self.count_uses(function.body)

    def count_uses(self, block: ssa.Block) -> None:
        for let in block.statements:
            for one in ssa.operands_of(let.op):
                if isinstance(one, ssa.Var):
                    self.uses[one] = self.uses.get(one, 0) + 1
            for inner in ssa.blocks_of(let.op):
                self.count_uses(inner)
        for one in block.results:
            if isinstance(one, ssa.Var):
                self.uses[one] = self.uses.get(one, 0) + 1

    def body(self) -> ssa.Block:
        block = self.block(self.function.body, self.scope)
        same = len(block.statements) == len(self.function.body.statements) and all(
            one is other for one, other in zip(block.statements, self.function.body.statements, strict=True)
        )
        return self.function.body if same and block.results == self.function.body.results else block

    def block(self, block: ssa.Block, scope: _Scope, more: list[ssa.Var] | None = None) -> ssa.Block:
        """A block in a scope, with the values of more variables as further results."""
        before, self.scope = self.scope, scope
        self.plan(block)
        for let in block.statements:
            if id(let) not in self.dropped:
                self.statement(let)
        pos = block.statements[-1].pos if block.statements else ssa.Pos(0, 0, 0, 0)
        results = [self.operand(one, pos) for one in block.results]
        dead = bool(block.statements) and isinstance(block.statements[-1].op, ssa.Raise)
        results += [ssa.Const(ssa.UNBOUND) if dead else scope.versions.get(one, one) for one in more or ()]
        self.scope = before
        return ssa.Block(tuple(scope.out), tuple(results))

    # ---- operands ----------------------------------------------------------------------------------------------------

    def operand(self, operand: ssa.Operand, pos: ssa.Pos) -> ssa.Operand:
        """What an operand stands for here; a view of something that has changed since is made anew."""
        if not isinstance(operand, ssa.Var):
            return operand
        if operand in self.scope.shown:
            shows = self.shows(operand, pos)
            if self.scope.shown[operand] != shows:
                view, made = self.objects.views[operand], ssa.Var(operand.name)
                if view.kind == "item" and view.place is not None:
                    op: ssa.Op = ssa.Subscript(self.operand(view.bases[0], pos), self.operand(view.place, pos))
                else:
                    op = self.with_operands(self.objects.definitions[operand].op, pos)
                self.scope.out.append(ssa.Let((made,), op, pos))
                self.scope.versions[operand] = made
                self.scope.shown[operand] = shows
        return self.scope.versions.get(operand, operand)

    def shows(self, var: ssa.Var, pos: ssa.Pos) -> tuple[object, ...]:
        view = self.objects.views[var]
        if view.kind == "cell":
            return (self.operand(view.bases[0], pos), self.scope.time)
        return tuple(self.operand(base, pos) for base in view.bases)

    def is_renewed(self, var: ssa.Var) -> bool:
        """Is a view made anew when what it shows has changed?"""
        view = self.objects.views.get(var)
        if view is None:
            return False
        match view.kind:
            case "closure" | "tuple" | "method":
                return bool(view.bases)
            case "item":
                held = self.objects.of(var)
                return view.place is not None and held.changed and held.becomes_value()
            case "cell":
                return self.objects.of(var).changed and self.functions.is_value(var)
        return False

    def with_operands(self, op: ssa.Op, pos: ssa.Pos) -> ssa.Op:
        """An operation with the present values of its operands."""
        made = grammar.rebuild(op, lambda operand: self.operand(operand, pos))
        if isinstance(made, ssa.MakeClosure):
            function = self.functions.rewritten(made.function)
            if function is not made.function:
                return replace(made, function=function)
        return made

    def emit(self, op: ssa.Op, pos: ssa.Pos, name: str) -> ssa.Var:
        made = ssa.Var(name)
        self.scope.out.append(ssa.Let((made,), op, pos))
        return made

    # ---- statements --------------------------------------------------------------------------------------------------

    def statement(self, let: ssa.Let) -> None:
        op = let.op
        place = self.places.get(id(let))
        match op:
            case _ if place is not None:
                self.change(let, self.objects.changes[id(let)], place)
            case ssa.If():
                self.choice(let, op)
            case ssa.For() | ssa.While():
                self.loop(let, op)
            case ssa.Guarded():
                self.guarded(let, op)
            case ssa.Call() if self.is_made_here(let):
                self.make_special(let, op)
            case ssa.Subscript(ssa.Var() as held, index) if self.is_counter(held):
                held_now, key = self.operand(held, let.pos), self.operand(index, let.pos)
                get = self.emit(ssa.Attribute(held_now, "get"), let.pos, "get")
                self.scope.out.append(ssa.Let(let.outs, ssa.Call(get, (key, ssa.Const(0))), let.pos))
            case ssa.Call(ssa.Var() as function, args) if self.is_most_common(function):
                self.most_common(let, function, args)
            case _:
                made = self.with_operands(op, let.pos)
                self.scope.out.append(let if made is op else ssa.Let(let.outs, made, let.pos))
                if isinstance(op, ssa.Call) and self.functions.has_cells and self.lifetimes.cells_changed(op):
                    self.scope.time = next(self.clock)
                if isinstance(op, ssa.SetAttribute) and id(let) in self.objects.stored:
                    self.scope.time = next(self.clock)
        for out in let.outs:
            if self.is_renewed(out):
                self.scope.shown[out] = self.shows(out, let.pos)

    def roots_changed(self, block: ssa.Block) -> list[ssa.Var]:
        """The variables that a block changes, of those that are made outside of it."""
        found = self.changed_in.get(id(block))
        if found is None:
            names: dict[ssa.Var, None] = {}
            made: set[ssa.Var] = set()
            for let in block.statements:
                place = self.places.get(id(let))
                if place is not None and place.root not in self.objects.views:
                    names[place.root] = None
                for inner in ssa.blocks_of(let.op):
                    names.update(dict.fromkeys(self.roots_changed(inner)))
                made |= {*let.outs, *grammar.binders(let.op)}
            found = self.changed_in[id(block)] = [one for one in names if one not in made]
        return found

    def choice(self, let: ssa.Let, op: ssa.If) -> None:
        live = self.lifetimes.after[id(let)]
        changed = [*self.roots_changed(op.then), *self.roots_changed(op.orelse)]
        roots = [root for root in dict.fromkeys(changed) if root in live]
        condition = self.operand(op.condition, let.pos)
        scopes = self.scope.inner(), self.scope.inner()
        then, orelse = self.block(op.then, scopes[0], roots), self.block(op.orelse, scopes[1], roots)
        outs = [ssa.Var(root.name) for root in roots]
        self.scope.out.append(ssa.Let((*let.outs, *outs), ssa.If(condition, then, orelse), let.pos))
        self.scope.versions.update(zip(roots, outs, strict=True))
        if any(scope.time != self.scope.time for scope in scopes):
            self.scope.time = next(self.clock)

    def loop(self, let: ssa.Let, op: ssa.For | ssa.While) -> None:
        pos = let.pos
        changed = dict.fromkeys(root for block in ssa.blocks_of(op) for root in self.roots_changed(block))
        roots = [root for root in changed if root not in grammar.binders(let.op)]
        params = [ssa.Var(root.name) for root in roots]
        inits = tuple(self.operand(one, pos) for one in op.inits) + tuple(self.operand(one, pos) for one in roots)
        by_place = [one for one in self.places_in(op.body) if one.loop is let]
        iterable: ssa.Operand = ssa.Const(None)
        item = None
        if isinstance(op, ssa.For):
            iterable, item = self.operand(op.iterable, pos), op.item
            if by_place:
                iterable, item = self.places_of(let, by_place[0].root)
        if self.functions.has_cells:
            self.scope.time = next(self.clock)

        def inside() -> _Scope:
            scope = self.scope.inner()
            scope.versions.update(zip(roots, params, strict=True))
            return scope

        scope = inside()
        if by_place and item is not None:
            self.take_places(let, scope, item, by_place[0].root)
        all_params = (*op.params, *params)
        if isinstance(op, ssa.For):
            assert item is not None
            body = self.block(op.body, scope, roots)
            made: ssa.Op = replace(op, iterable=iterable, item=item, params=all_params, inits=inits, body=body)
        else:
            condition = self.block(op.condition, inside())
            body = self.block(op.body, scope, roots)
            made = replace(op, params=all_params, inits=inits, condition=condition, body=body)
        outs = [ssa.Var(root.name) for root in roots]
        self.scope.out.append(ssa.Let((*let.outs, *outs), made, pos))
        self.scope.versions.update(zip(roots, outs, strict=True))
        if self.functions.has_cells:
            self.scope.time = next(self.clock)

    def places_in(self, block: ssa.Block) -> list[Place]:
        found = []
        for let in block.statements:
            if id(let) in self.places:
                found.append(self.places[id(let)])
            for inner in ssa.blocks_of(let.op):
                found += self.places_in(inner)
        return found

    def places_of(self, let: ssa.Let, root: ssa.Var) -> tuple[ssa.Operand, ssa.Var]:
        """What to iterate for the places of a list's items."""
        pos = let.pos
        length = self.emit(ssa.Call(ssa.Const(len), (self.operand(root, pos),)), pos, "length")
        places = self.emit(ssa.Call(ssa.Const(range), (length,)), pos, "places")
        assert isinstance(let.op, ssa.For) and isinstance(let.op.iterable, ssa.Var)
        if let.op.iterable is root:
            return places, ssa.Var("place")
        made = self.objects.definitions[let.op.iterable].op
        assert isinstance(made, ssa.Call)
        return self.emit(ssa.Call(self.operand(made.function, pos), (places,)), pos, "places"), let.op.item

    def take_places(self, let: ssa.Let, scope: _Scope, item: ssa.Var, root: ssa.Var) -> None:
        """The items of a list that is iterated by place."""
        assert isinstance(let.op, ssa.For)
        place, row, pos = item, let.op.item, let.pos
        if let.op.iterable is not root:
            first = let.op.body.statements[0]
            assert isinstance(first.op, ssa.Unpack)
            self.dropped.add(id(first))
            place, row, pos = ssa.Var("place"), first.outs[1], first.pos
            scope.out.append(ssa.Let((first.outs[0], place), first.op, pos))
        self.objects.views[row] = replace(self.objects.views[row], bases=(root,), place=place)
        scope.shown[row] = ()  # it is read where it is used

    def guarded(self, let: ssa.Let, op: ssa.Guarded) -> None:
        live = self.lifetimes.after[id(let)]
        roots = [root for root in self.roots_changed(op.body) if root in live]
        classes = tuple(self.operand(one, let.pos) for one in op.classes)
        scope = self.scope.inner()
        self.trying += 1
        body = self.block(op.body, scope, roots)
        self.trying -= 1
        inside = [ssa.Var(root.name) for root in roots]
        self.scope.out.append(ssa.Let((*let.outs, *inside), replace(op, body=body, classes=classes), let.pos))
        if scope.time != self.scope.time:
            self.scope.time = next(self.clock)
        if roots:
            before = tuple(self.scope.versions.get(root, root) for root in roots)
            outs = [ssa.Var(root.name) for root in roots]
            chosen = ssa.If(let.outs[0], ssa.Block((), before), ssa.Block((), tuple(inside)))
            self.scope.out.append(ssa.Let(tuple(outs), chosen, let.pos))
            self.scope.versions.update(zip(roots, outs, strict=True))

    # ---- changes -----------------------------------------------------------------------------------------------------

    def plan(self, block: ssa.Block) -> None:
        """What a change does not need any more: the bound method, and the item if nothing comes in between."""
        where = {out: number for number, let in enumerate(block.statements) for out in let.outs}
        for number, let in enumerate(block.statements):
            place = self.places.get(id(let))
            if place is None:
                continue
            change = self.objects.changes[id(let)]
            if isinstance(let.op, ssa.Subscript):
                if not self.trying and self.is_set_next(let, let.op, block.statements[number + 1 :]):
                    self.set_next.add(id(let))
                continue
            if isinstance(let.op, ssa.Call) and change.name not in FUNCTIONS and isinstance(let.op.function, ssa.Var):
                method = let.op.function
                if self.uses.get(method) == 1 and method in where:
                    self.dropped.add(id(block.statements[where[method]]))
                    if not place.is_direct():
                        self.uses[change.target] -= 1
            if place.place is None or change.name == "iadd" or change.target not in where:
                continue
            read = block.statements[where[change.target]]
            if self.uses[change.target] == (1 if isinstance(let.op, ssa.SetItem) or change.name in FUNCTIONS else 0):
                between = block.statements[where[change.target] + 1 : number]
                simple = _QUIET if change.name in ("set", "delete") else _SIMPLE
                plain = isinstance(read.op, ssa.Subscript) and id(read) not in self.places
                if plain and all(isinstance(one.op, simple) for one in between):
                    self.dropped.add(id(read))

    def is_set_next(self, let: ssa.Let, op: ssa.Subscript, rest: tuple[ssa.Let, ...]) -> bool:
        """`held[key] += value`: nothing sees that the key is missing until it is there."""
        for later in rest:
            match later.op:
                case ssa.SetItem(held, index) if held is op.object:
                    return ssa.same(index, op.index)
            if op.object in self.objects.views and not isinstance(later.op, ssa.Inplace | ssa.Binary):
                return False  # of a cell, which may change
            if op.object in ssa.operands_of(later.op) or any(
                op.object in self.lifetimes.named(inner) for inner in ssa.blocks_of(later.op)
            ):
                return False
        return False

    def change(self, let: ssa.Let, change: Change, place: Place) -> None:
        pos, objects = let.pos, self.objects
        name = change.name
        if name == "set" and isinstance(let.op, ssa.SetItem) and self.is_written_back(change):
            return
        if isinstance(let.op, ssa.Subscript):
            self.read_with_default(let, let.op, change)
            return
        root = self.operand(place.root, pos)
        at = place.place
        if place.loop is not None:
            at = objects.views[change.target].place
        at = None if at is None else self.operand(at, pos)
        if name == "iadd" and at is not None:
            made = objects.definitions.get(change.args[0]) if isinstance(change.args[0], ssa.Var) else None
            if made is None or not isinstance(made.op, ssa.BuildList | ssa.Comprehension):
                self.scope.out.append(ssa.Let(let.outs, self.with_operands(let.op, pos), pos))
                return
            name = "extend"
            self.scope.versions[let.outs[0]] = ssa.Const(None)
        args = tuple(self.operand(arg, pos) for arg in change.args)
        if name == "pop" and "deque" in objects.of(change.target).kinds:
            name = "popright"
        if change.keywords:
            root, name, args, at = self.sorted_anew(change, root, at, pos)
        owner = place.root
        new = ssa.Var(owner.name)
        outs: tuple[ssa.Var, ...] = (new,)
        if name in GIVING:
            outs = (let.outs[0] if let.outs else ssa.Var("item"), new)
        elif let.outs and name != "iadd":
            self.scope.versions[let.outs[0]] = ssa.Const(None)
        elif let.outs:
            outs = (new,) = let.outs
        if name:
            self.scope.out.append(ssa.Let(outs, ssa.ChangeList(name, root, args, at), pos))
        else:
            new = root if isinstance(root, ssa.Var) else new
        self.bound(owner, new, pos)

    def bound(self, owner: ssa.Var, new: ssa.Operand, pos: ssa.Pos) -> None:
        """A variable, or the contents of a cell, is a new value."""
        self.scope.versions[owner] = new
        view = self.objects.views.get(owner)
        if view is not None:
            cell = self.operand(view.bases[0], pos)
            self.scope.out.append(ssa.Let((), ssa.SetAttribute(cell, CONTENTS, new), pos))
            self.scope.time = next(self.clock)
            self.scope.shown[owner] = self.shows(owner, pos)

    def sorted_anew(
        self, change: Change, root: ssa.Operand, at: ssa.Operand | None, pos: ssa.Pos
    ) -> tuple[ssa.Operand, str, tuple[ssa.Operand, ...], ssa.Operand | None]:
        """`sort` with a key is `sorted`."""
        held = root if at is None else self.emit(ssa.Subscript(root, at), pos, "item")
        keywords = tuple((name, self.operand(value, pos)) for name, value in change.keywords)
        made = self.emit(ssa.Call(ssa.Const(sorted), (held,), keywords), pos, change.target.name)
        return (made, "", (), None) if at is None else (root, "set", (at, made), None)

    def is_written_back(self, change: Change) -> bool:
        """`rows[i] += [...]`: the item is put where it has been."""
        value = change.args[-1]
        return (
            isinstance(value, ssa.Var)
            and self.scope.versions.get(value) == ssa.Const(None)
            and value in self.objects.views
        )

    # ---- deques, and dicts with defaults -----------------------------------------------------------------------------

    def is_made_here(self, let: ssa.Let) -> bool:
        made = self.objects.of(let.outs[0])
        return bool(made.kinds & SPECIAL) and let in made.makers and made.changed and made.becomes_value()

    def make_special(self, let: ssa.Let, op: ssa.Call) -> None:
        pos, kind = let.pos, next(iter(self.objects.of(let.outs[0]).kinds))
        function = self.operand(op.function, pos)
        args = tuple(self.operand(arg, pos) for arg in op.args if not isinstance(arg, ssa.Star))
        if kind == "defaultdict":
            held: ssa.Operand = self.emit(ssa.BuildDict(()), pos, let.outs[0].name)
            args = (function, *args, self.default(let, pos))
        else:
            held = args[0] if args else self.emit(ssa.BuildList(()), pos, "items")
            args = (function,)
        self.scope.out.append(ssa.Let(let.outs, ssa.ChangeList(kind, held, args), pos))

    def default(self, maker: ssa.Let, pos: ssa.Pos) -> ssa.Operand:
        value = self.objects.default_of(maker)
        return self.emit(ssa.BuildList(()), pos, "items") if value is list else ssa.Const(value)

    def is_counter(self, held: ssa.Var) -> bool:
        found = self.objects.of(held)
        return found.kinds == {"Counter"} and found.becomes_value()

    def read_with_default(self, let: ssa.Let, op: ssa.Subscript, change: Change) -> None:
        """`held[key]` of a defaultdict, which has the key from then on."""
        pos, held = let.pos, change.target
        (maker,) = self.objects.of(held).makers
        root, key = self.operand(held, pos), self.operand(op.index, pos)
        if id(let) in self.set_next and self.objects.default_of(maker) is not list:
            get = self.emit(ssa.Attribute(root, "get"), pos, "get")
            self.scope.out.append(ssa.Let(let.outs, ssa.Call(get, (key, self.default(maker, pos))), pos))
            return
        new = ssa.Var(held.name)
        made = ssa.ChangeList("setdefault", root, (key, self.default(maker, pos)))
        self.scope.out.append(ssa.Let((*let.outs, new), made, pos))
        self.bound(held, new, pos)

    def is_most_common(self, function: ssa.Var) -> bool:
        made = self.objects.definitions.get(function)
        match made.op if made is not None else None:
            case ssa.Attribute(ssa.Var() as held, "most_common"):
                return self.is_counter(held)
        return False

    def most_common(self, let: ssa.Let, function: ssa.Var, args: tuple[ssa.Item, ...]) -> None:
        """sorted(held.items(), key=itemgetter(1), reverse=True)[:n]"""
        pos = let.pos
        made = self.objects.definitions[function].op
        assert isinstance(made, ssa.Attribute)
        method = self.emit(ssa.Attribute(self.operand(made.object, pos), "items"), pos, "items")
        items = self.emit(ssa.Call(method, ()), pos, "items")
        keywords = (("key", ssa.Const(_SECOND)), ("reverse", ssa.Const(True)))
        if not args:
            self.scope.out.append(ssa.Let(let.outs, ssa.Call(ssa.Const(sorted), (items,), keywords), pos))
            return
        held = self.emit(ssa.Call(ssa.Const(sorted), (items,), keywords), pos, "items")
        few = args[0].operand if isinstance(args[0], ssa.Star) else args[0]
        part = self.emit(ssa.BuildSlice(ssa.Const(None), self.operand(few, pos), ssa.Const(None)), pos, "slice")
        self.scope.out.append(ssa.Let(let.outs, ssa.Subscript(held, part), pos))


_SIMPLE = (ssa.Attribute, ssa.Global, ssa.Free)
_QUIET = (*_SIMPLE, ssa.Binary, ssa.Unary, ssa.Subscript, ssa.Compare, ssa.BuildSlice, ssa.Inplace)
