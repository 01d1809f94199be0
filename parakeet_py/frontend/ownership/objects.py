"""Which containers the variables of a function may stand for: an alias analysis of untyped SSA, by unification.

Each variable has an `Object`: all the lists (or dicts, sets...) that it may be, as one. Variables that a gate or a loop
makes one have one object; what is stored in a container is unified with the `items` of its object. Functions inside
are part of the analysis: a captured variable has the object of what it captures. A cell is a container of one item.

A variable either *owns* what it stands for (what makes a list, and gates of such), or is a `View` of what others own:
an item that has been read, an iterator, a closure or bound method, a tuple. Who owns what when is the question of
`lifetimes`; here objects are found that can never be values, as something unknown may be one of them, or has it.

A callee that is not known keeps what it is given (`base/callee_effects.py`); methods of other objects and functions of
modules are left to specialization, which looks at the callee itself (`containers/owned_containers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from types import CellType
from typing import TypeAlias

from parakeet_py.base.callee_effects import MADE, MAKERS, named
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.ownership.changes import OF_LISTS, Change, change_of, name_of
from parakeet_py.frontend.ssa import (
    UNBOUND,
    Attribute,
    Binary,
    Block,
    BuildDict,
    BuildList,
    BuildSet,
    BuildSlice,
    BuildString,
    BuildTuple,
    Call,
    Compare,
    Comprehension,
    Const,
    For,
    Function,
    Guarded,
    If,
    Inplace,
    Item,
    Let,
    MakeClosure,
    Operand,
    Raise,
    SetAttribute,
    SetItem,
    Star,
    Subscript,
    Unpack,
    Var,
    While,
    blocks_of,
    operands_of,
    same,
)

CONTENTS = "cell_contents"
SPECIAL = frozenset({"deque", "Counter", "defaultdict"})
_COUNTING = named(items_only=True)
_KNOWN = named(keeps=False)
_LAZY = named(lazy=True)
_MADE = {name: MADE[name] for name in MAKERS & _KNOWN if MADE[name] not in ("frozenset", "tuple")}
_READING = frozenset({"index", "count", "copy", "get"})
_VIEWS = frozenset({"items", "keys", "values"})
_EMPTY_CELL = Call(Const(CellType), ())
_NUMBERS = {"int": 0, "float": 0.0, "bool": False, "complex": 0j}


@record(eq=False, frozen=False)
class Object:
    """What some variables may be. `kinds`: the containers among it; `foreign`: something else may be, too, `unknown`:
    which may be known elsewhere; `shared`: one of them may have another owner."""

    kinds: set[str] = field(default_factory=set)
    makers: list[Let] = field(default_factory=list)
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
    bases: tuple[Var, ...]
    place: Operand | None = None


Parts: TypeAlias = tuple["Object | None", ...]


class Objects:
    """The objects of a function and of those inside it."""

    def __init__(self, function: Function) -> None:
        self.objects: dict[Var, Object] = {}
        self.definitions: dict[Var, Let] = {}
        self.views: dict[Var, View] = {}
        self.parts: dict[Var, Parts] = {}  # of tuples that an iterator gives
        self.changes: dict[int, Change] = {}
        self.stored: dict[int, list[Var]] = {}  # what a statement makes an item of something, or a cell's contents
        self.spread: dict[int, list[Var]] = {}  # that of which it takes the items
        self.rebound: set[Object] = set()  # cells
        self.written: set[Object] = set()  # cells that were made empty
        self.has_special = False
        self.elements: dict[int, Var | None] = {}  # functions of comprehensions, and what they give to be kept
        self.functions: dict[int, Function] = {}
        self.doubtful: list[Var] = []  # what would be changed if it were a container
        self.results: set[Var] = set()  # what is used for nothing but to be returned
        self.of_comprehensions: set[Operand] = set()
        for one in functions_in(function):
            self.results |= _results(one)
            for let in one.statements():
                if isinstance(let.op, Comprehension):
                    self.of_comprehensions |= {let.op.element} | ({let.op.condition} if let.op.condition else set())
        self.function(function, None)
        if any(self.of(target).kinds for target in self.doubtful):  # now it is known what these are
            for held in [self.find(held) for held in self.objects.values()]:
                self.reset(held)
            self.clear()
            self.function(function, None)

    def clear(self) -> None:
        """What a walk over all functions finds."""
        for found in (self.views, self.parts, self.changes, self.stored, self.spread, self.elements, self.functions):
            found.clear()
        self.rebound.clear()
        self.written.clear()
        self.doubtful.clear()

    def reset(self, one: Object) -> None:
        """Keep of an object what it is, and what its items are."""
        held: Object | None = one
        seen: set[Object] = set()
        while held is not None and (held := self.find(held)) not in seen:
            seen.add(held)
            held.makers = []
            held.foreign = held.unknown = held.shared = held.changed = False
            held = held.inner

    # ---- objects -----------------------------------------------------------------------------------------------------

    def of(self, var: Var) -> Object:
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

    def gate(self, out: Var, operand: Operand) -> None:
        """A variable may be what an operand is."""
        if out in self.results:
            return
        if isinstance(operand, Var):
            self.unify(self.of(out), self.of(operand))
            if operand in self.parts:
                self.parts.setdefault(out, self.parts[operand])
        elif operand.value is not UNBOUND:
            self.of(out).foreign = True

    def make(self, let: Let, kind: str) -> Object:
        made = self.of(let.outs[0])
        made.kinds.add(kind)
        made.makers.append(let)
        return made

    def share(self, operand: Operand) -> None:
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

    def chain(self, operand: Operand) -> list[Var]:
        """A variable and all that it is a view of; an item does not show that of which it is one."""
        found: list[Var] = [operand] if isinstance(operand, Var) else []
        for var in found:
            view = self.views.get(var)
            if view is not None and view.kind not in ("item", "cell"):
                found += [base for base in view.bases if base not in found]
        return found

    def origin(self, operand: Operand) -> list[Var]:
        """The same with that of which it is an item."""
        found: list[Var] = [operand] if isinstance(operand, Var) else []
        for var in found:
            view = self.views.get(var)
            if view is not None:
                found += [base for base in view.bases if base not in found]
        return found

    def store(self, let: Let, one: Object, operand: Operand) -> None:
        """An operand becomes an item of something."""
        if not isinstance(operand, Var):
            return
        self.as_list(operand)
        given = self.of(operand)
        if given.foreign and not given.kinds:
            self.items(one).kinds.add("fresh")
        elif given.kinds or given.unknown or operand in self.views:
            self.unify(self.items(one), given)
            self.stored.setdefault(id(let), []).append(operand)

    def spread_over(self, let: Let, one: Object, operand: Operand) -> None:
        """The items of an operand become items of something."""
        if isinstance(operand, Var):
            for part in self.parts.get(operand, ()):
                if part is not None:
                    self.find(part).shared = True
            self.unify(self.items(one), self.element(operand))
            self.spread.setdefault(id(let), []).append(operand)

    def element(self, var: Var) -> Object:
        """What is found in something, or given by an iterator."""
        parts = self.parts.get(var)
        given = self.of(var)
        if parts is not None and "pairs" in given.kinds:
            return Object()  # tuples
        return self.items(given)

    # ---- functions ---------------------------------------------------------------------------------------------------

    def function(self, function: Function, item: tuple[Object, Parts | None, Var] | None) -> None:
        """`item`: what the one parameter of a comprehension's function is."""
        for param in function.params:
            if item is None:
                self.of(param.var).unknown = True
            else:
                self.unify(self.of(param.var), item[0])
                self.views[param.var] = View("item", (item[2],))
                if item[1] is not None:
                    self.parts[param.var] = item[1]
        if id(function) in self.functions:
            return
        self.functions[id(function)] = function
        self.block(function.body)
        if item is None and id(function) not in self.elements:
            for result in _returned(function, self.results):
                self.given_back(function, result)

    def given_back(self, function: Function, result: Operand) -> None:
        """What a function inside gives may not be what it has captured; what it is, its callers do not know."""
        if isinstance(result, Var):
            self.as_list(result)
            given = [self.of(var) for var in self.origin(result)]
            for capture in function.captures:
                held = self.of(capture)
                if "cell" in held.kinds:
                    held = self.items(held)
                if held in given:
                    self.share(result)
                elif self.items(held) in given:
                    self.items(held).shared = True

    def block(self, block: Block) -> None:
        for let in block.statements:
            for out in let.outs:
                self.definitions[out] = let
            self.statement(let)

    def statement(self, let: Let) -> None:
        op = let.op
        self.look_at_methods(let)
        match op:
            case If(_, then, orelse):
                self.block(then)
                self.block(orelse)
                for out, *results in zip(let.outs, then.results, orelse.results, strict=True):
                    for result in results:
                        self.gate(out, result)
            case For() | While():
                self.loop(let, op)
            case Guarded(body, _, keeps):
                self.block(body)
                for out, result in zip(let.outs[1 + keeps :], body.results, strict=True):
                    self.gate(out, result)
            case BuildList(items) | BuildSet(items):
                made = self.make(let, "list" if isinstance(op, BuildList) else "set")
                self.put(let, made, items)
            case BuildDict(pairs):
                made = self.make(let, "dict")
                for key, value in pairs:
                    if key is None:
                        made.foreign = True
                        self.share_items(value)
                    else:
                        self.store(let, made, value)
            case BuildTuple(items):
                for part in items:
                    if isinstance(part, Star):
                        self.share_items(part.operand)
                    else:
                        self.as_list(part)
                self.views[let.outs[0]] = View("tuple", tuple(part for part in items if isinstance(part, Var)))
            case Comprehension():
                self.comprehension(let, op)
            case MakeClosure(function, captures, defaults):
                for capture, operand in zip(function.captures, captures, strict=True):
                    self.gate(capture, operand)
                    self.views[capture] = View("capture", ())
                for default in defaults:
                    self.share(default)
                self.views[let.outs[0]] = View("closure", tuple(one for one in captures if isinstance(one, Var)))
                if let.outs[0] not in self.of_comprehensions:
                    self.function(function, None)
            case Binary(name, left, right):
                self.binary(let, name, left, right)
            case Subscript(Var() as held, index):
                self.subscript(let, held, index)
            case Attribute(Var() as held, name):
                if name == CONTENTS and "cell" in self.of(held).kinds:
                    self.views[let.outs[0]] = View("cell", (held,))
                    self.unify(self.of(let.outs[0]), self.items(self.of(held)))
                else:
                    self.views[let.outs[0]] = View("method", (held,))
                    self.of(let.outs[0]).unknown = True
            case SetAttribute(Var() as held, name, value):
                if name == CONTENTS and "cell" in self.of(held).kinds:
                    cell = self.of(held)
                    first = cell not in self.written and all(one.op == _EMPTY_CELL for one in cell.makers)
                    (self.written if first else self.rebound).add(cell)
                    self.gate_contents(let, held, value)
                else:
                    self.share(value)
            case Unpack(Var() as held, before, star, _):
                self.unpack(let, held, before, star)
            case Raise():
                for operand in operands_of(op):
                    self.share(operand)
            case _ if (change := change_of(let, self.definitions)) is not None and self.may_be_container(change):
                self.change(let, change)
            case Call():
                self.call(let, op)
            case SetItem(_, _, value):
                self.share(value)
            case Inplace(_, left, right):
                self.share(left)
                self.share_items(right)
                self.of(let.outs[0]).foreign = True
            case _:
                if isinstance(op, Compare):
                    self.as_list(op.left)
                    if op.op not in ("in", "notin"):
                        self.as_list(op.right)
                if isinstance(op, BuildString):
                    for part, _, _ in op.parts:
                        self.as_list(part)
                for inner in blocks_of(op):
                    self.block(inner)
                for out in let.outs:
                    self.of(out).unknown = True

    def gate_contents(self, let: Let, cell: Var, value: Operand) -> None:
        self.gate_object(self.items(self.of(cell)), value)
        if isinstance(value, Var):
            self.stored.setdefault(id(let), []).append(value)

    def gate_object(self, one: Object, operand: Operand) -> None:
        if isinstance(operand, Var):
            self.unify(one, self.of(operand))
        elif operand.value is not UNBOUND:
            self.find(one).foreign = True

    def share_items(self, operand: Operand) -> None:
        """The items of something may be found elsewhere, too."""
        if isinstance(operand, Var):
            self.items(self.of(operand)).shared = True

    def look_at_methods(self, let: Let) -> None:
        """A bound method that is not called at once has its object."""
        op = let.op
        for operand in operands_of(op):
            view = self.views.get(operand) if isinstance(operand, Var) else None
            if view is None or view.kind != "method":
                continue
            if isinstance(op, Call) and op.function is operand:
                continue
            made = self.definitions[operand].op  # type: ignore[index]
            reads = isinstance(made, Attribute) and made.name in _READING
            if not (reads and isinstance(op, Call) and self.called(op)[1] in _KNOWN | _LAZY):
                self.share(view.bases[0])

    def put(self, let: Let, made: Object, items: tuple[Item, ...]) -> None:
        for item in items:
            if isinstance(item, Star):
                self.spread_over(let, made, item.operand)
            else:
                self.store(let, made, item)

    def loop(self, let: Let, op: For | While) -> None:
        outs = let.outs[op.stoppable :]
        for param, init in zip(op.params, op.inits, strict=True):
            self.gate(param, init)
        if isinstance(op, For):
            if isinstance(op.iterable, Var):
                self.taken(op.item, op.iterable)
        else:
            self.block(op.condition)
        self.block(op.body)
        for param, out, result in zip(op.params, outs, op.body.results[op.stoppable :], strict=True):
            self.gate(param, result)
            self.gate(out, param)

    def taken(self, item: Var, iterable: Var) -> None:
        """The variable of a loop."""
        self.unify(self.of(item), self.element(iterable))
        self.views[item] = View("item", (iterable,))
        if iterable in self.parts:
            self.parts[item] = self.parts[iterable]

    def comprehension(self, let: Let, op: Comprehension) -> None:
        held = op.iterable
        out = let.outs[0]
        if op.kind in ("list", "set", "dict"):
            made = self.make(let, op.kind)
        else:
            made = self.of(out)
            made.kinds.add("iterator")
            self.views[out] = View("iterator", tuple(one for one in operands_of(op) if isinstance(one, Var)))
        item = (self.element(held), self.parts.get(held), held) if isinstance(held, Var) else None
        for given in (op.condition, op.element):
            if not isinstance(given, Var):
                continue
            closure = self.definitions[given].op
            assert isinstance(closure, MakeClosure)
            function = closure.function
            self.elements[id(function)] = None
            self.function(function, item)
            result = function.body.results[0]
            if given is op.element and isinstance(result, Var):
                kept = self.elements[id(function)] = self.kept(result, op)
                if op.flatten:
                    self.unify(self.items(made), self.items(self.of(result)))
                elif kept is not None:
                    self.unify(self.items(made), self.of(kept))

    def kept(self, result: Var, op: Comprehension) -> Var | None:
        """What of an element becomes an item."""
        if op.flatten:
            return None
        if op.kind == "dict":
            made = self.definitions[result].op if result in self.definitions else None
            value = made.items[-1] if isinstance(made, BuildTuple) else None
            return value if isinstance(value, Var) else None
        return result

    def binary(self, let: Let, name: str, left: Operand, right: Operand) -> None:
        sides = [one for one in (left, right) if isinstance(one, Var)]
        listed = [one for one in sides if self.of(one).kinds & {"list", "copy"} and not self.of(one).unknown]
        if name not in ("add", "mul") or not listed:
            self.of(let.outs[0]).foreign = True
            return
        made = self.make(let, "copy")
        for one in sides if name == "add" else listed:
            self.spread_over(let, made, one)
        if name == "mul":
            self.items(made).shared = True
        for one in sides:
            self.as_list(one)

    def as_list(self, operand: Operand) -> None:
        """It shows what kind of container something is."""
        if isinstance(operand, Var) and self.of(operand).kinds & SPECIAL:
            self.share(operand)

    def subscript(self, let: Let, held: Var, index: Operand) -> None:
        out = let.outs[0]
        if isinstance(index, Var) and index in self.definitions and isinstance(self.definitions[index].op, BuildSlice):
            self.as_list(held)
            self.spread_over(let, self.make(let, "copy"), held)
            return
        parts = self.parts.get(held)
        number = index.value if isinstance(index, Const) and isinstance(index.value, int) else None
        one_of_them = parts is not None and number is not None and -len(parts) <= number < len(parts)
        if one_of_them and parts is not None and number is not None and "pairs" not in self.of(held).kinds:
            self.part(out, held, parts[number])
            return
        self.unify(self.of(out), self.items(self.of(held)))
        self.views[out] = View("item", (held,), index)
        if "defaultdict" in self.of(held).kinds:
            self.changes[id(let)] = Change("setdefault", held, (index,))
            self.of(held).changed = True
            (maker,) = self.of(held).makers[:1]
            if self.default_of(maker) is list:
                self.items(self.of(held)).kinds.add("list")

    def part(self, out: Var, held: Var, one: Object | None) -> None:
        if one is None:
            self.of(out).foreign = True
        else:
            self.unify(self.of(out), one)
            self.views[out] = View("item", self.views[held].bases if held in self.views else (held,))

    def unpack(self, let: Let, held: Var, before: int, star: bool) -> None:
        parts = self.parts.get(held)
        for number, out in enumerate(let.outs):
            if star and number == before:
                made = self.of(out)
                made.kinds.add("list")
                made.makers.append(let)
                self.spread_over(let, made, held)
            elif parts is not None and "pairs" not in self.of(held).kinds and not star and number < len(parts):
                self.part(out, held, parts[number])
            else:
                self.unify(self.of(out), self.items(self.of(held)))
                self.views[out] = View("item", (held,))

    # ---- calls and changes -------------------------------------------------------------------------------------------

    def may_be_container(self, change: Change) -> bool:
        kinds = self.of(change.target).kinds
        if not kinds:
            self.doubtful.append(change.target)
        return bool(kinds - {"fresh"} if change.name == "iadd" else kinds)

    def change(self, let: Let, change: Change) -> None:
        held = self.of(change.target)
        held.changed = True
        self.changes[id(let)] = change
        if "deque" in held.kinds and (change.name in OF_LISTS or (change.name == "pop" and change.args)):
            held.shared = True
        if change.name == "delete" and "Counter" in held.kinds:
            held.shared = True  # which does not mind what it does not have
        if change.keywords and held.kinds & SPECIAL:
            held.shared = True
        if change.stored is not None and not self.is_own_item(change):
            self.as_list(change.stored)
            self.store(let, held, change.stored)
        if change.added is not None:
            self.as_list(change.added)
            self.spread_over(let, held, change.added)
        for out in let.outs:
            view = self.views.get(change.target)
            if change.name == "iadd" and view is not None and view.kind == "item":
                self.unify(self.of(out), held)
                self.views[out] = view
            elif change.name == "iadd":
                self.unify(self.of(out), held)
                self.stored.setdefault(id(let), []).append(change.target)
            elif change.name in ("pop", "popleft", "heappop"):
                self.unify(self.of(out), self.items(held))
            elif change.name == "setdefault":
                self.unify(self.of(out), self.items(held))
                self.views[out] = View("item", (change.target,), change.args[0])
            else:
                self.of(out).foreign = True

    def is_own_item(self, change: Change) -> bool:
        """`rows[i] += [...]`: what is put into a place has been there."""
        value = change.stored
        view = self.views.get(value) if isinstance(value, Var) else None
        if view is None or view.place is None or change.name != "set":
            return False
        return view.bases == (change.target,) and same(view.place, change.args[0])

    def called(self, op: Call) -> tuple[str, str]:
        """What is called, as far as that can be seen: a method or a function of a module, a name, a literal."""
        if isinstance(op.function, Const):
            return "literal", getattr(op.function.value, "__name__", "")
        made = self.definitions.get(op.function)
        name = name_of(made)
        if not name:
            return "unknown", ""
        return ("attribute" if made is not None and isinstance(made.op, Attribute) else "name"), name

    def call(self, let: Let, op: Call) -> None:
        how, name = self.called(op)
        given = [item.operand if isinstance(item, Star) else item for item in op.args]
        given += [operand for _, operand in op.kwargs]
        if how == "literal":
            self.literal_call(let, op, given)
        elif how == "attribute":
            self.attribute_call(let, op, name, given)
        elif how == "name" and name in _KNOWN | _LAZY:
            self.known_call(let, op, name, given)
        elif how == "name" and self.made_by_class(let, op, name, given):
            pass
        else:
            for operand in given:
                self.share(operand)
            self.of(let.outs[0]).unknown = True

    def literal_call(self, let: Let, op: Call, given: list[Operand]) -> None:
        assert isinstance(op.function, Const)
        out = let.outs[0]
        if op.function.value is CellType:
            made = self.make(let, "cell")
            if given:
                self.gate_object(self.items(made), given[0])
            if given and isinstance(given[0], Var):
                self.stored.setdefault(id(let), []).append(given[0])
        elif op.function.value is len or op.function.value is range:
            self.of(out).foreign = True
        else:
            self.view_of(out, given)
            for operand in given:
                self.as_list(operand)

    def view_of(self, out: Var, given: list[Operand]) -> None:
        made = self.of(out)
        made.kinds.add("iterator")
        self.views[out] = View("iterator", tuple(one for one in given if isinstance(one, Var)))
        for one in given:
            if isinstance(one, Var):
                self.unify(self.items(made), self.items(self.of(one)))

    def attribute_call(self, let: Let, op: Call, name: str, given: list[Operand]) -> None:
        """A method of a container, or of something else, or a function of a module."""
        made = self.definitions[op.function].op  # type: ignore[index]
        assert isinstance(made, Attribute)
        out, held = let.outs[0], made.object
        if isinstance(held, Var) and name == "copy" and not given and not op.kwargs and not self.of(held).kinds:
            self.spread_over(let, self.make(let, "copy"), held)
            return
        if not isinstance(held, Var) or not self.of(held).kinds:
            if self.made_by_class(let, op, name, given):
                return
            self.of(out).unknown = True
            for operand in given:
                self.as_list(operand)
            return
        of_held = self.of(held)
        if name in ("index", "count"):
            self.as_list(held)
            self.of(out).foreign = True
        elif name == "copy" and not given:
            self.as_list(held)
            self.spread_over(let, self.make(let, "copy"), held)
        elif name == "get":
            if of_held.kinds & {"deque"}:
                self.share(held)
            self.unify(self.of(out), self.items(of_held))
            self.views[out] = View("item", (held,))
            for operand in given[1:]:
                if isinstance(operand, Var):
                    self.unify(self.of(out), self.of(operand))
                    self.stored.setdefault(id(let), []).append(operand)
        elif name in _VIEWS and not given:
            made_view = self.of(out)
            made_view.kinds.add("iterator")
            self.views[out] = View("iterator", (held,))
            if name == "items":
                made_view.kinds.add("pairs")
                self.parts[out] = (None, self.items(of_held))
            elif name == "values":
                made_view.inner = self.items(of_held)
        elif name == "most_common" and "Counter" in of_held.kinds and len(given) < 2 and not op.kwargs:
            self.of(out).foreign = True
        else:
            self.share(held)
            self.of(out).unknown = True
        for operand in given:
            self.as_list(operand)

    def known_call(self, let: Let, op: Call, name: str, given: list[Operand]) -> None:
        out = let.outs[0]
        if name not in _COUNTING | _LAZY:
            for operand in given:
                self.as_list(operand)
        if name in _MADE:
            made = self.make(let, _MADE[name])
            for item in op.args[:1]:
                operand = item.operand if isinstance(item, Star) else item
                if name == "dict" and isinstance(operand, Var) and operand in self.parts:
                    self.share_items(operand)
                self.spread_over(let, made, operand)
            for _, operand in op.kwargs if name == "dict" else ():
                self.share(operand)
        elif name in ("min", "max") and len(given) == 1 and isinstance(given[0], Var):
            self.unify(self.of(out), self.element(given[0]))
            self.views[out] = View("item", (given[0],))
        elif name == "tuple":
            for operand in given:
                self.share_items(operand)
        elif name in _LAZY:
            self.lazy(let, name, given)
        else:
            self.of(out).foreign = True

    def lazy(self, let: Let, name: str, given: list[Operand]) -> None:
        out = let.outs[0]
        if name in ("enumerate", "zip"):
            of_items = [self.element(one) if isinstance(one, Var) else None for one in given]
            self.parts[out] = (None, *of_items[:1]) if name == "enumerate" else tuple(of_items)
            self.of(out).kinds |= {"iterator", "pairs"}
            self.views[out] = View("iterator", tuple(one for one in given if isinstance(one, Var)))
            return
        self.view_of(out, given)

    def made_by_class(self, let: Let, op: Call, name: str, given: list[Operand]) -> bool:
        """`deque(items)`, `Counter(items)`, `defaultdict(int)`"""
        if name not in SPECIAL or op.kwargs or len(given) > 1 or any(isinstance(arg, Star) for arg in op.args):
            return False
        if name == "defaultdict" and self.default_of(let) is None:
            return False
        made = self.make(let, name)
        self.has_special = True
        if name != "defaultdict":
            for operand in given:
                self.spread_over(let, made, operand)
        if name == "Counter":
            made.changed = True
        return True

    def default_of(self, let: Let) -> object:
        """The number that a defaultdict gives for what it does not have, or `list`; None if it is none of these."""
        args = let.op.args if isinstance(let.op, Call) else ()
        made = self.definitions.get(args[0]) if len(args) == 1 and isinstance(args[0], Var) else None
        if made is None:
            return None
        if isinstance(made.op, MakeClosure):
            function = made.op.function
            if function.params or function.body.statements or not isinstance(function.body.results[0], Const):
                return None
            value = function.body.results[0].value
            return value if type(value) in (bool, int, float, complex) else None
        name = name_of(made)
        return list if name == "list" else _NUMBERS.get(name)


def _results(function: Function) -> set[Var]:
    """The gates of a function whose values are used for nothing but to be its result, on whatever way."""
    feeds: dict[Var, set[Var]] = {}  # what a gate gives its value to
    used: set[Var] = set()
    gates: set[Var] = set()

    def gate(out: Var, *sources: Operand) -> None:
        gates.add(out)
        for source in sources:
            if isinstance(source, Var):
                feeds.setdefault(source, set()).add(out)

    for let in function.statements():
        op = let.op
        match op:
            case If(condition, then, orelse):
                used |= {condition} if isinstance(condition, Var) else set()
                for out, *results in zip(let.outs, then.results, orelse.results, strict=True):
                    gate(out, *results)
            case For() | While():
                skip = int(op.stoppable)
                if isinstance(op, For) and isinstance(op.iterable, Var):
                    used.add(op.iterable)
                if isinstance(op, While):
                    used |= {one for one in op.condition.results if isinstance(one, Var)}
                used |= {one for one in op.body.results[:skip] if isinstance(one, Var)}
                rows = zip(op.params, op.inits, op.body.results[skip:], let.outs[skip:], strict=True)
                for param, init, following, out in rows:
                    gate(param, init, following)
                    gate(out, param)
            case _:
                used |= {one for one in operands_of(op) if isinstance(one, Var)}
                used |= {one for block in blocks_of(op) for one in block.results if isinstance(one, Var)}
    found = gates - used
    while True:
        lost = {one for one in found if not feeds.get(one, set()) <= found}
        if not lost:
            return found
        found -= lost


def _returned(function: Function, results: set[Var]) -> list[Operand]:
    """What a function may return, behind the gates that only carry its result."""
    sources: dict[Var, list[Operand]] = {}
    for let in function.statements():
        match let.op:
            case If(_, then, orelse):
                for out, *given in zip(let.outs, then.results, orelse.results, strict=True):
                    sources[out] = given
            case (For() | While()) as op:
                skip = int(op.stoppable)
                rows = zip(op.params, op.inits, op.body.results[skip:], let.outs[skip:], strict=True)
                for param, init, following, out in rows:
                    sources[param], sources[out] = [init, following], [param]
    found: list[Operand] = []
    pending, seen = list(function.body.results), set[Operand]()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in results and isinstance(one, Var) and one in sources:
            pending += sources[one]
        else:
            found.append(one)
    return found


def functions_in(function: Function) -> Iterator[Function]:
    """A function and those inside it, each once."""
    seen: set[int] = set()
    pending = [function]
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            pending += [let.op.function for let in one.statements() if isinstance(let.op, MakeClosure)]
