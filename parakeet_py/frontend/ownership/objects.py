"""Which containers the variables of a function may stand for: an alias analysis of untyped SSA, by unification.

Each variable has an `Object`: all the lists (or dicts, sets...) that it may be, as one. Variables that a merge or a
loop makes one have one object; what is stored in a container is unified with the `items` of its object. Functions
inside are part of the analysis: a captured variable has the object of what it captures. A cell is a container of one
item.

A variable either *owns* what it stands for (what makes a list, and merges of such), or is a `View` of what others own:
an item that has been read, an iterator, a closure or bound method, a tuple. Who owns what when is the question of
`lifetimes`; here objects are found that can never be values, as something unknown may be one of them, or has it.

This module walks functions and knows the statements; `aliases` has the objects, `calls` what callees do with them.
"""

from __future__ import annotations

from types import CellType

from parakeet_py.frontend import ssa
from parakeet_py.frontend.ownership.aliases import SPECIAL, Object, Parts, View
from parakeet_py.frontend.ownership.calls import GOES_THROUGH, Calls
from parakeet_py.frontend.ownership.changes import OF_LISTS, Change, change_of
from parakeet_py.frontend.ownership.results import functions_in, results_only, returned

CONTENTS = "cell_contents"
_READING = frozenset({"index", "count", "copy", "get"})
_EMPTY_CELL = ssa.Call(ssa.Const(CellType), ())


class Objects(Calls):
    """The objects of a function and of those inside it."""

    def __init__(self, function: ssa.Function) -> None:
        super().__init__()
        self.rebound: set[Object] = set()  # cells
        self.written: set[Object] = set()  # cells that were made empty
        self.elements: dict[int, ssa.Var | None] = {}  # functions of comprehensions, and what they give to be kept
        self.functions: dict[int, ssa.Function] = {}
        self.doubtful: list[ssa.Var] = []  # what would be changed if it were a container
        self.of_comprehensions: set[ssa.Operand] = set()
        for one in functions_in(function):
            self.results |= results_only(one)
            for let in one.statements():
                if isinstance(let.op, ssa.Comprehension):
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

    def function(self, function: ssa.Function, item: tuple[Object, Parts | None, ssa.Var] | None) -> None:
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
            for result in returned(function, self.results):
                self.given_back(function, result)

    def given_back(self, function: ssa.Function, result: ssa.Operand) -> None:
        """What a function inside gives may not be what it has captured; what it is, its callers do not know."""
        if isinstance(result, ssa.Var):
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

    def block(self, block: ssa.Block) -> None:
        for let in block.statements:
            for out in let.outs:
                self.definitions[out] = let
            self.statement(let)

    def statement(self, let: ssa.Let) -> None:
        op = let.op
        self.look_at_methods(let)
        match op:
            case ssa.If(_, then, orelse):
                self.block(then)
                self.block(orelse)
                for out, *results in zip(let.outs, then.results, orelse.results, strict=True):
                    for result in results:
                        self.merge(out, result)
            case ssa.For() | ssa.While():
                self.loop(let, op)
            case ssa.Guarded(body, _, keeps):
                self.block(body)
                for out, result in zip(let.outs[1 + keeps :], body.results, strict=True):
                    self.merge(out, result)
            case ssa.BuildList(items) | ssa.BuildSet(items):
                made = self.make(let, "list" if isinstance(op, ssa.BuildList) else "set")
                self.put(let, made, items)
            case ssa.BuildDict(pairs):
                made = self.make(let, "dict")
                for key, value in pairs:
                    if key is None:
                        made.foreign = True
                        self.share_items(value)
                    else:
                        self.store(let, made, value)
            case ssa.BuildTuple(items):
                for part in items:
                    if isinstance(part, ssa.Star):
                        self.share_items(part.operand)
                    else:
                        self.as_list(part)
                self.views[let.outs[0]] = View("tuple", tuple(part for part in items if isinstance(part, ssa.Var)))
            case ssa.Comprehension():
                self.comprehension(let, op)
            case ssa.MakeClosure(function, captures, defaults):
                for capture, operand in zip(function.captures, captures, strict=True):
                    self.merge(capture, operand)
                    self.views[capture] = View("capture", ())
                for default in defaults:
                    self.share(default)
                self.views[let.outs[0]] = View("closure", tuple(one for one in captures if isinstance(one, ssa.Var)))
                if let.outs[0] not in self.of_comprehensions:
                    self.function(function, None)
            case ssa.Binary(name, left, right):
                self.binary(let, name, left, right)
            case ssa.Subscript(ssa.Var() as held, index):
                self.subscript(let, held, index)
            case ssa.Attribute(ssa.Var() as held, name):
                if name == CONTENTS and "cell" in self.of(held).kinds:
                    self.views[let.outs[0]] = View("cell", (held,))
                    self.unify(self.of(let.outs[0]), self.items(self.of(held)))
                else:
                    self.views[let.outs[0]] = View("method", (held,))
                    self.of(let.outs[0]).unknown = True
            case ssa.SetAttribute(ssa.Var() as held, name, value):
                if name == CONTENTS and "cell" in self.of(held).kinds:
                    cell = self.of(held)
                    first = cell not in self.written and all(one.op == _EMPTY_CELL for one in cell.makers)
                    (self.written if first else self.rebound).add(cell)
                    self.merge_contents(let, held, value)
                else:
                    self.share(value)
            case ssa.Unpack(ssa.Var() as held, before, star, _):
                self.unpack(let, held, before, star)
            case ssa.Raise():
                for operand in ssa.operands_of(op):
                    self.share(operand)
            case _ if (change := change_of(let, self.definitions)) is not None and self.may_be_container(change):
                self.change(let, change)
            case ssa.Call():
                self.call(let, op)
            case ssa.SetItem(_, _, value):
                self.share(value)
            case ssa.Inplace(_, left, right):
                self.share(left)
                self.share_items(right)
                self.of(let.outs[0]).foreign = True
            case _:
                if isinstance(op, ssa.Compare):
                    self.as_list(op.left)
                    if op.op not in ("in", "notin"):
                        self.as_list(op.right)
                if isinstance(op, ssa.BuildString):
                    for part, _, _ in op.parts:
                        self.as_list(part)
                for inner in ssa.blocks_of(op):
                    self.block(inner)
                for out in let.outs:
                    self.of(out).unknown = True

    def look_at_methods(self, let: ssa.Let) -> None:
        """A bound method that is not called at once has its object."""
        op = let.op
        for operand in ssa.operands_of(op):
            view = self.views.get(operand) if isinstance(operand, ssa.Var) else None
            if view is None or view.kind != "method":
                continue
            if isinstance(op, ssa.Call) and op.function is operand:
                continue
            assert isinstance(operand, ssa.Var)
            made = self.definitions[operand].op
            reads = isinstance(made, ssa.Attribute) and made.name in _READING
            if not (reads and isinstance(op, ssa.Call) and self.called(op)[1] in GOES_THROUGH):
                self.share(view.bases[0])

    def loop(self, let: ssa.Let, op: ssa.For | ssa.While) -> None:
        outs = let.outs[op.stoppable :]
        for param, init in zip(op.params, op.inits, strict=True):
            self.merge(param, init)
        if isinstance(op, ssa.For):
            if isinstance(op.iterable, ssa.Var):
                self.taken(op.item, op.iterable)
        else:
            self.block(op.condition)
        self.block(op.body)
        for param, out, result in zip(op.params, outs, op.body.results[op.stoppable :], strict=True):
            self.merge(param, result)
            self.merge(out, param)

    def comprehension(self, let: ssa.Let, op: ssa.Comprehension) -> None:
        held = op.iterable
        out = let.outs[0]
        if op.kind in ("list", "set", "dict"):
            made = self.make(let, op.kind)
        else:
            made = self.of(out)
            made.kinds.add("iterator")
            self.views[out] = View("iterator", tuple(one for one in ssa.operands_of(op) if isinstance(one, ssa.Var)))
        item = (self.element(held), self.parts.get(held), held) if isinstance(held, ssa.Var) else None
        for given in (op.condition, op.element):
            if not isinstance(given, ssa.Var):
                continue
            closure = self.definitions[given].op
            assert isinstance(closure, ssa.MakeClosure)
            function = closure.function
            self.elements[id(function)] = None
            self.function(function, item)
            result = function.body.results[0]
            if given is op.element and isinstance(result, ssa.Var):
                kept = self.elements[id(function)] = self.kept(result, op)
                if op.flatten:
                    self.unify(self.items(made), self.items(self.of(result)))
                elif kept is not None:
                    self.unify(self.items(made), self.of(kept))

    def kept(self, result: ssa.Var, op: ssa.Comprehension) -> ssa.Var | None:
        """What of an element becomes an item."""
        if op.flatten:
            return None
        if op.kind == "dict":
            made = self.definitions[result].op if result in self.definitions else None
            value = made.items[-1] if isinstance(made, ssa.BuildTuple) else None
            return value if isinstance(value, ssa.Var) else None
        return result

    def binary(self, let: ssa.Let, name: str, left: ssa.Operand, right: ssa.Operand) -> None:
        sides = [one for one in (left, right) if isinstance(one, ssa.Var)]
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

    def subscript(self, let: ssa.Let, held: ssa.Var, index: ssa.Operand) -> None:
        out = let.outs[0]
        if (
            isinstance(index, ssa.Var)
            and index in self.definitions
            and isinstance(self.definitions[index].op, ssa.BuildSlice)
        ):
            self.as_list(held)
            self.spread_over(let, self.make(let, "copy"), held)
            return
        parts = self.parts.get(held)
        number = index.value if isinstance(index, ssa.Const) and isinstance(index.value, int) else None
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

    def unpack(self, let: ssa.Let, held: ssa.Var, before: int, star: bool) -> None:
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

    def may_be_container(self, change: Change) -> bool:
        kinds = self.of(change.target).kinds
        if not kinds:
            self.doubtful.append(change.target)
        return bool(kinds - {"fresh"} if change.name == "iadd" else kinds)

    def change(self, let: ssa.Let, change: Change) -> None:
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
        view = self.views.get(value) if isinstance(value, ssa.Var) else None
        if view is None or view.place is None or change.name != "set":
            return False
        return view.bases == (change.target,) and ssa.same(view.place, change.args[0])
