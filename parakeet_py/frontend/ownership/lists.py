"""Lists that belong to a function alone: changing one is binding its name anew.

    found = []                          found = []
    for v in x:                         for v in x:
        if v > 0:                           if v > 0:
            found.append(v)                     found = change append found, v

In SSA a list is a value like any other, as long as nothing else can see it change. That is so if every value its name
is bound to is made on the spot (a display, a comprehension, `list(...)`, `sorted(...)`, a product or sum of these) and
the name is only used in ways that do not give the list another name: items are read and written, it is iterated, passed
to functions of modules or to builtins, asked for its truth, changed by its methods, and returned. It may also be moved,
as by `previous = current`, if the old name is bound anew before it is used. Dicts and sets are values of the same kind.
`own_lists` finds these names; all other lists cannot be changed in an accelerated function. What calls do with a list
they are passed is not seen here: specialization looks at the callee.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeGuard

from parakeet_py.base.callee_effects import named
from parakeet_py.frontend.syntax_walk import walk

CHANGES = {
    **{"append": 1, "extend": 1, "insert": 2, "clear": 0, "reverse": 0, "sort": 0},  # of lists
    **{"popleft": 0, "appendleft": 1},  # of deques
    **{"add": 1, "discard": 1, "remove": 1, "setdefault": 2},  # of sets and dicts
}
"""The methods that change a list, dict or set, with the number of their arguments, beside `pop`."""
FUNCTIONS = {"heappush": 1, "heappop": 0, "heapify": 0, "insort": 1, "insort_left": 1, "insort_right": 1}
"""Functions of the standard library that change the list they are given first, with the number of further arguments."""
GIVING = ("pop", "popleft", "popright", "setdefault", "heappop")
"""Those of them that give an item."""

CONTENTS, OWN_LIST, OWN_QUEUE, OWN_ROWS = ".cell_contents", ".own_list", ".own_queue", ".own_rows"
"""What follows the name of a cell in that of its contents (see `cells`): anything; a list, a deque of their own; a list
whose items may be changed where they stand (see `own_rows`)."""

_READING_METHODS = frozenset({"index", "count", "copy", "get"})
_OF_LISTS = frozenset({"sort", "add", "discard", "setdefault", *FUNCTIONS})  # what deques do not have
_COUNTING = named(items_only=True)
_NUMBERS = {"int": 0, "float": 0.0, "bool": False, "complex": 0j}
_CALLING = frozenset({"sorted", "min", "max"})
_VIEWS = frozenset({"items", "keys", "values"})
_BUILTINS = _COUNTING | {"print"}
_APPLIED = frozenset({"map", "filter"})  # functions first
WALKED = named(lazy=True) - _APPLIED - {"iter"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_queues(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, own: frozenset[str]) -> frozenset[str]:
    """Those of a function's own lists that are deques: every value they are bound to is one."""
    if not own:
        return own
    made = (queue_of(part) for part in walk(node) if isinstance(part, ast.Assign))
    queues = {name for name in made if name is not None and not is_shared(name)}
    return frozenset(name for name in own if name in queues or name.endswith(OWN_QUEUE))


def queue_of(node: ast.Assign) -> str | None:
    """The name in `name = deque(...)`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=target)],
            value=ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name), args=args, keywords=[]),
        ) if name == "deque" and len(args) < 2 and not any(isinstance(arg, ast.Starred) for arg in args):
            return target
    return None


def own_counters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, own: frozenset[str]
) -> dict[str, tuple[str, object]]:
    """Those of a function's own dicts that are Counters, or defaultdicts, with their class and default."""
    found: dict[str, tuple[str, object]] = {}
    for part in walk(node) if own else ():
        made = counter_of(part)
        if made is not None and made[0] in own:
            found[made[0]] = made[1:]
    return found


def counter_of(node: ast.AST) -> tuple[str, str, object] | None:
    """The name, the class and the default in `name = Counter(items)`, `name = defaultdict(int)`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=target)],
            value=ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name), args=args, keywords=[]),
        ) if name in ("Counter", "defaultdict") and not any(isinstance(arg, ast.Starred) for arg in args):
            if name == "Counter":
                return (target, name, 0) if len(args) < 2 else None
            default = _default(args[0]) if len(args) == 1 else None
            return None if default is None else (target, name, default)
    return None


def _default(factory: ast.expr) -> object:
    """The number that a defaultdict gives for what it does not have, or `list`; None if it is none of these."""
    match factory:
        case ast.Name(id="list"):
            return list
        case ast.Name(id=name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.Lambda(
            args=ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[]), body=ast.Constant(value)
        ):
            return value if type(value) in (bool, int, float, complex) else None
    return None


def own_lists(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The names of a function that stand for lists which its statements change without other references."""
    parts = walk(node)
    shared = frozenset(inner.id for inner in parts if isinstance(inner, ast.Name) and is_shared(inner.id))
    if isinstance(node, ast.Lambda) or not any(map(_may_change, parts)):
        return shared
    return shared | _own(node)


def is_shared(name: str) -> bool:
    """Is this what a cell holds, and a list of the functions that know the cell?"""
    return name.endswith((OWN_LIST, OWN_QUEUE, OWN_ROWS))


def cell_of(name: str) -> str:
    """The name of the cell whose contents a name stands for; any other name as it is."""
    for kind in (CONTENTS, OWN_LIST, OWN_QUEUE, OWN_ROWS):
        if name.endswith(kind):
            return name.removesuffix(kind)
    return name


def _own(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    uses = Uses()
    defaults = {(made[0], *made[1:]) for part in walk(node) if (made := counter_of(part)) is not None}
    uses.counters = frozenset(name for name, *_ in defaults)
    uses.readable = frozenset(name for name, kind, _ in defaults if kind == "Counter")
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {arg.arg for arg in parameters if arg is not None}
    uses.escaped |= names - replaced_first(node.body, names)
    uses.moves = moves(node.body)
    uses.all(node.body)
    own = uses.made - uses.escaped - (uses.queues & uses.as_list)
    own -= {name for name in uses.counters if sum(name == other for other, *_ in defaults) > 1}
    while True:  # a list that is moved belongs to the function if it did before
        lost = {target for target, source in uses.moved if target in own and source not in own}
        if not lost:
            return frozenset(own & uses.changed)
        own -= lost


def replaced_first(body: list[ast.stmt], names: set[str]) -> frozenset[str]:
    """The parameters that a function binds to a new list before anything else is done with them: `a = list(a)`."""
    found: set[str] = set()
    used: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names - used and _is_copy(value):
                found.add(name)
        used.update(inner.id for inner in walk(statement) if isinstance(inner, ast.Name))
    return frozenset(found)


def _is_copy(value: ast.expr) -> bool:
    """Does an expression make a list of another one?"""
    match value:
        case ast.Call(func=ast.Name(id="list" | "sorted"), args=[_], keywords=[]) | ast.ListComp():
            return True
        case ast.Subscript(slice=ast.Slice()) | ast.Call(func=ast.Attribute(attr="copy"), args=[], keywords=[]):
            return True
    return False


def moves(body: list[ast.stmt]) -> frozenset[ast.stmt]:
    """The statements `name = other` and `name.append(other)` after which `other` is not used until it is bound anew."""
    found: set[ast.stmt] = set()

    def look(block: list[ast.stmt], after: list[list[ast.stmt]]) -> None:
        """`after`: what may be run behind the block, part by part: the first that binds a name ends the search."""
        for place, statement in enumerate(block):
            rest = [block[place + 1 :], *after]
            match statement:
                case ast.Assign(targets=[ast.Name()], value=ast.Name(id=name)) if not is_shared(name):
                    if _is_dead(name, rest):
                        found.add(statement)
                case ast.Expr(value=ast.Call() as call) if (put := _put(call)) is not None and not is_shared(put):
                    if _is_dead(put, rest):
                        found.add(statement)
                case ast.For(body=inner, orelse=orelse):
                    look(inner, [[statement], *rest])
                    look(orelse, rest)
                case ast.While(body=inner, orelse=orelse):
                    look(inner, [[statement], *rest])
                    look(orelse, rest)
                case ast.If(body=inner, orelse=orelse):
                    look(inner, rest)
                    look(orelse, rest)

    look(body, [])
    return frozenset(found)


def _put(call: ast.Call) -> str | None:
    """The other name in `name.append(other)`."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[ast.Name(id=other)], keywords=[]
        ):
            return other if other != name else None
    return None


def _is_dead(name: str, parts: list[list[ast.stmt]]) -> bool:
    """Is a name bound anew before it is used, in these blocks one after the other? In a loop, that is to be so in its
    body and, as the loop may end, behind it."""
    for place, part in enumerate(parts):
        for number, statement in enumerate(part):
            match statement:
                case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                    return not mentions(value, name)
                case ast.For(target=target, iter=iterable, body=body, orelse=orelse) if not (
                    mentions(target, name) or mentions(iterable, name)
                ):
                    rest = [part[number + 1 :], *parts[place + 1 :]]
                    return _is_dead(name, [body]) and _is_dead(name, [orelse, *rest])
                case ast.While(test=test, body=body, orelse=orelse) if not mentions(test, name):
                    rest = [part[number + 1 :], *parts[place + 1 :]]
                    return _is_dead(name, [body]) and _is_dead(name, [orelse, *rest])
                case _ if mentions(statement, name) or _jumps(statement):
                    return False
    return True


def _jumps(node: ast.stmt) -> bool:
    return any(isinstance(inner, ast.Break | ast.Continue) for inner in walk(node))


def mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(node))


def changed_by_call(node: ast.Call) -> tuple[str, str] | None:
    """The name and the method of `name.append(...)` and its kin."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=args, keywords=[]):
            if any(isinstance(arg, ast.Starred) for arg in args):
                return None
            if CHANGES.get(method) == len(args) or (method == "pop" and len(args) < 2):
                return name, method
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sort"), args=[], keywords=options):
            if all(option.arg in ("key", "reverse") for option in options):  # arrays have others
                return name, "sort"
    return changed_by_function(node)


def changed_by_function(node: ast.Call) -> tuple[str, str] | None:
    """The list and the function of `heapq.heappush(name, ...)` and its kin."""
    match node:
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(value=ast.Name(), attr=function),
            args=[ast.Name(id=name), *rest],
            keywords=[],
        ) if FUNCTIONS.get(function) == len(rest) and not any(isinstance(arg, ast.Starred) for arg in rest):
            return name, function
    return None


def changed_item(node: ast.Call) -> tuple[str, str, ast.expr] | None:
    """The name, the method and the index of `name[index].append(...)` and its kin."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Subscript(value=ast.Name(id=name), slice=index), attr=method),
            args=args,
            keywords=[],
        ) if not isinstance(index, ast.Slice) and not any(isinstance(arg, ast.Starred) for arg in args):
            if CHANGES.get(method) == len(args) or (method == "pop" and len(args) < 2):
                return name, method, index
        case ast.Call(
            func=ast.Name(id=function) | ast.Attribute(value=ast.Name(), attr=function),
            args=[ast.Subscript(value=ast.Name(id=name), slice=index), *rest],
            keywords=[],
        ) if FUNCTIONS.get(function) == len(rest) and not isinstance(index, ast.Slice):
            if not any(isinstance(arg, ast.Starred) for arg in rest):
                return name, function, index
    return None


def _may_change(node: ast.AST) -> bool:
    match node:
        case ast.Call():
            return changed_by_call(node) is not None or changed_item(node) is not None
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.AugAssign(target=ast.Name(), op=ast.Add()):
            return True
        case ast.Assign():
            return counter_of(node) is not None
    return False


def _is_view(node: ast.expr) -> TypeGuard[ast.Call]:
    """`name.values()` and the like"""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(), attr=view), args=[], keywords=[]):
            return view in _VIEWS
    return False


class Uses:
    """What a function's own code does with its names; one name may be `shared` with others, of which those that are
    `known` may change it (None: any)."""

    def __init__(self, shared: str = "", known: frozenset[str] | None = None) -> None:
        self.shared = shared
        self.known = known
        self.made: set[str] = set()
        self.changed: set[str] = set()
        self.escaped: set[str] = set()
        self.moves: frozenset[ast.stmt] = frozenset()
        self.moved: set[tuple[str, str]] = set()  # names and what has been moved to them
        self.queues: set[str] = set()  # names of deques, and of dicts with defaults
        self.counters: frozenset[str] = frozenset()  # names of dicts with defaults,
        self.readable: frozenset[str] = frozenset()  # and those of them that reading does not change
        self.as_list: set[str] = set()  # names of what has to be a list, or whose type shows
        self.waiting: frozenset[str] = frozenset()  # for a call, an operator or a tuple: must not change before that

    def inner(self) -> Uses:
        """Of the parts of something."""
        made = Uses(self.shared, self.known)
        made.counters, made.readable = self.counters, self.readable
        return made

    def change(self, name: str) -> None:
        self.changed.add(name)
        if name in self.waiting:
            self.escaped.add(name)

    def all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit(self, node: ast.AST) -> None:
        waiting = self.waiting
        self.look_at(node)
        self.waiting = waiting

    def look_at(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name):
                self.escaped.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=source)) if node in self.moves:
                self.made.add(name)
                self.moved.add((name, source))
                self.as_list |= {name, source}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function, args=args)) if queue_of(node):
                self.made.add(name)
                self.queues.add(name)
                self.visit(function)
                for arg in args:
                    self.counted(arg)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function, args=args)) if counter_of(node):
                self.made.add(name)
                self.queues.add(name)
                self.changed.add(name)
                self.visit(function)
                for arg in args:
                    self.counted(arg)
                if name == self.shared:
                    self.escaped.add(name)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[ast.Name(id=source)])) if (
                node in self.moves
            ):
                self.change(name)
                self.as_list.add(source)
            case ast.Assign(targets=[target], value=value):
                self.bound(target, value)
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                if value is not None:
                    self.bound(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                self.change(name)
                self.operand(value)
            case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name)) as target, value=value):
                self.visit(target)
                self.visit(value)
                if name == self.shared and self.may_change_shared(value):
                    self.escaped.add(name)
            case ast.AugAssign(target=ast.Subscript() as target, value=value):
                self.visit(target)
                self.visit(value)
            case ast.Call():
                self.call(node)
            case ast.Subscript(value=ast.Name(id=name), slice=index, ctx=context):
                if isinstance(index, ast.Slice):
                    self.as_list.add(name)
                if not isinstance(context, ast.Load) or name in self.counters - self.readable:
                    self.change(name)
                if isinstance(context, ast.Del) and name in self.counters:
                    self.escaped.add(name)  # a Counter does not mind what it does not have
                self.visit(index)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                waiting = self.waiting
                self.walked(iterable, body)
                self.all([target, *body])
                self.waiting = waiting  # nothing is iterated any more
                self.all(orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                self.test(test)
                self.all([*body, *orelse])
            case ast.If(test=test, body=body, orelse=orelse):
                self.test(test)
                self.all([*body, *orelse])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.test(test)
                self.all([body, orelse])
            case ast.UnaryOp(op=ast.Not()):
                self.test(node)
            case ast.BinOp(left=left, right=right):
                self.operand(left)
                self.operand(right)
            case ast.Compare(left=left, ops=operators, comparators=comparators):
                self.operand(left)
                for operator, part in zip(operators, comparators, strict=True):
                    if isinstance(operator, ast.In | ast.NotIn):
                        self.counted(part)
                    else:
                        self.operand(part)
            case ast.Return(value=value):
                for part in value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []:
                    self.operand(part)
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                self.comprehension(node)
            case ast.Lambda() | ast.FunctionDef() if self.shared:
                self.all([*node.args.defaults, *node.args.kw_defaults])
                self.escaped.update(
                    part.id for part in walk(node) if isinstance(part, ast.Name) and part.id != self.shared
                )
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.GeneratorExp():
                self.escaped.update(part.id for part in walk(node) if isinstance(part, ast.Name))
            case ast.Nonlocal(names=names) if self.shared:
                self.escaped.update(name for name in names if name != self.shared)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.escaped.update(names)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                self.escaped.update(alias.asname or alias.name for alias in aliases)
            case _:
                self.all(ast.iter_child_nodes(node))

    def operand(self, node: ast.AST) -> None:
        """A place where a list may stand without getting another name."""
        if isinstance(node, ast.Name):
            self.as_list.add(node.id)
        self.counted(node)

    def counted(self, node: ast.AST) -> None:
        """A place where only the items of a list count, in which a deque is as good."""
        if isinstance(node, ast.Name):
            self.waiting |= {node.id}
        else:
            self.visit(node)

    def test(self, node: ast.AST) -> None:
        """An expression of which only the truth is asked for."""
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    self.test(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.test(operand)
            case ast.Name():
                pass
            case _:
                self.visit(node)

    def bound(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                self.bound(one, part)
        elif isinstance(target, ast.Name) and self.is_new(value):
            self.made.add(target.id)
            self.as_list.add(target.id)
            self.parts(value)
        else:
            self.all([target, value])

    def is_new(self, value: ast.expr) -> bool:
        """Does an expression make a list that has no other name?"""
        match value:
            case ast.List() | ast.ListComp() | ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="list" | "sorted" | "dict" | "set")):
                return True
            case ast.Dict(keys=keys):
                return None not in keys
            case ast.Subscript(value=ast.Name(), slice=ast.Slice()):  # of an array, a view: changed as what it is
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(), attr="copy"), args=[], keywords=[]):
                return True
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return self.is_new(left) or self.is_new(right)
        return False

    def parts(self, value: ast.expr) -> None:
        """What is used by an expression that makes a list."""
        if isinstance(value, ast.BinOp):
            for part in (value.left, value.right):
                if self.is_new(part):
                    self.parts(part)
                else:
                    self.operand(part)
        else:
            self.visit(value)

    def may_change_shared(self, node: ast.AST) -> bool:
        """May a call in this change the list that is shared?"""
        calls = [inner for inner in walk(node) if isinstance(inner, ast.Call)]
        if self.known is None:
            return any(not (isinstance(call.func, ast.Name) and call.func.id in _BUILTINS) for call in calls)
        return any(isinstance(inner, ast.Name) and inner.id in self.known for inner in walk(node))

    def call(self, node: ast.Call) -> None:
        if self.shared in self.waiting and self.may_change_shared(node):
            self.escaped.add(self.shared)
        changed = changed_by_call(node)
        if changed is not None:
            self.change(changed[0])
            if changed[1] in _OF_LISTS or (changed[1] == "pop" and node.args):
                self.as_list.add(changed[0])
            if changed[1] in FUNCTIONS:
                self.all([node.func, *node.args[1:]])
            elif changed[1] == "extend":
                self.operand(node.args[0])
            elif node.keywords:
                self.all([keyword.value for keyword in node.keywords if not self.key(keyword.value)])
            else:
                self.all(node.args)
            return
        item = changed_item(node)
        if item is not None:  # of a row, which is part of the list (see `own_rows`)
            self.change(item[0])
            self.visit(item[2])
            self.all([node.func, *node.args[1:]] if item[1] in FUNCTIONS else node.args)
            return
        match node.func:
            case ast.Name(id=name) if name in _BUILTINS:
                pass
            case ast.Constant():  # `len` itself (see `row_names`)
                pass
            case ast.Attribute(value=ast.Name(id=name), attr="get" | "most_common") if name in self.counters:
                pass
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _READING_METHODS:
                self.as_list.add(name)
            case ast.Attribute(value=ast.Name() | ast.Attribute()) as function:
                self.visit(function)
            case _:
                self.all([node.func, *node.args, *(keyword.value for keyword in node.keywords)])
                return
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(part, ast.GeneratorExp):
                self.comprehension(part)  # iterated before the call ends
            elif isinstance(node.func, ast.Name) and node.func.id in _CALLING and self.key(part):
                pass  # likewise
            elif _is_view(part) and isinstance(node.func, ast.Name):
                self.counted(part.func.value)  # type: ignore[attr-defined]  # likewise
            elif isinstance(node.func, ast.Name) and node.func.id in _COUNTING:
                self.gone_through(part.value if isinstance(part, ast.Starred) else part)
            else:
                self.operand(part.value if isinstance(part, ast.Starred) else part)

    def gone_through(self, node: ast.expr) -> None:
        """What a call takes the items of before it ends."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in WALKED:
                for part in (*args, *(keyword.value for keyword in keywords)):
                    self.gone_through(part)
            case ast.Call(func=ast.Name(id=name), args=[function, *args], keywords=[]) if name in _APPLIED:
                if not self.key(function):
                    self.visit(function)
                for part in args:
                    self.gone_through(part)
            case _:
                self.counted(node)

    def key(self, node: ast.expr) -> bool:
        """Is this a function that only reads lists?"""
        match node:
            case ast.Lambda(args=arguments, body=body):
                inside = self.inner()
                inside.readable = frozenset()
                inside.all([*arguments.defaults, *arguments.kw_defaults, body])
                self.escaped |= inside.escaped | inside.changed | inside.made
                self.as_list |= inside.as_list
                return True
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in _READING_METHODS:
                if name not in self.counters:
                    self.as_list.add(name)
                return True
        return False

    def walked(self, iterable: ast.expr, body: list[ast.stmt]) -> None:
        """The iterable of a loop, which the body must not change."""
        parts = [iterable]
        match iterable:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in WALKED:
                parts = [*args, *(keyword.value for keyword in keywords)]
            case ast.Call(func=ast.Attribute(value=ast.Name() as name, attr=view), args=[]) if view in _VIEWS:
                parts = [name]
        inside = self.inner()
        inside.all(body)
        called = bool(self.shared) and any(map(self.may_change_shared, body))
        for part in parts:
            if isinstance(part, ast.Name) and part.id in inside.changed | inside.made | inside.escaped:
                self.escaped.add(part.id)
            if isinstance(part, ast.Name) and part.id == self.shared and called:
                self.escaped.add(part.id)
            self.counted(part)

    def comprehension(self, node: ast.expr) -> None:
        """A comprehension, computed where it stands; it may read lists, and change none."""
        assert isinstance(node, _COMPREHENSIONS)
        inside = self.inner()
        for generator in node.generators:
            inside.walked(generator.iter, [])
            inside.visit(generator.target)
            for test in generator.ifs:
                inside.test(test)
        inside.all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])
        self.escaped |= inside.escaped | inside.changed | inside.made
        self.as_list |= inside.as_list
