"""Lists in a list (or dict) of the function's own that change: `graph[u].append(v)`, `rows[-1][k] = x`.

    graph = [[] for _ in range(n)]      graph = [[] for _ in range(n)]
    for u, v in edges:                  for u, v in edges:
        graph[u].append(v)                  graph = change append graph[u], v

A list that holds lists is a value, too, as long as nothing else can see one of these change: every list that is put in
has been made on the spot or is moved there, and what is taken out (`graph[u]`, the target of a loop over `graph`) is
only read where it stands, or while nothing changes. So each place where the name stands is looked at with what is
around it; what is not known to be harmless makes it a list whose items cannot be changed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from parakeet_py.base.callee_effects import named
from parakeet_py.frontend.ownership.lists import (
    CHANGES,
    FUNCTIONS,
    OWN_ROWS,
    WALKED,
    changed_by_call,
    changed_item,
    counter_of,
    is_shared,
    moves,
)
from parakeet_py.frontend.syntax_walk import children, walk

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOKING = named(keeps_items=False) | {"sum"}  # at a list of lists
_COPYING = named(items_only=True) | {"deque", "Counter"}  # a row
_MAKING = frozenset({"list", "sorted", "set", "dict", "deque", "int", "float", "len", "sum", "abs", "min", "max"})
_ARRAYS = frozenset({"np", "numpy"})


def own_rows(node: Function, own: frozenset[str]) -> frozenset[str]:
    """Those of a function's own lists and dicts whose items may be changed where they stand."""
    if not own:
        return own
    shared = frozenset(name for name in own if name.endswith(OWN_ROWS))
    if isinstance(node, ast.Lambda):
        return shared
    wanted = {name for part in walk(node) for name in _items_changed(part)}
    names = {name for name in wanted & own if not is_shared(name)}
    if not names:
        return shared
    return shared | _harmless(node, names, own)


def rows_of_own(function: ast.FunctionDef, name: str) -> bool | None:
    """The same for a name that functions inside share: may its items be changed? None if nothing changes them."""
    if not any(name in _items_changed(part) for part in walk(function)):
        return None
    return bool(_harmless(function, {name}, frozenset()))


def _harmless(node: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str], own: frozenset[str]) -> frozenset[str]:
    looks = {name: Rows(node, name, own) for name in names}
    linked = {name: look.linked for name, look in looks.items()}
    good = {name for name, look in looks.items() if look.harmless()}
    for name in list(good):  # what is moved from and to it
        more = set(linked[name])
        seen = {name}
        while more and name in good:
            other = more.pop()
            if other in seen:
                continue
            seen.add(other)
            look = looks.get(other) or Rows(node, other, own)
            if not look.harmless():
                good.discard(name)
            more |= look.linked
    return frozenset(good)


def _items_changed(node: ast.AST) -> Iterator[str]:
    """The names of lists whose items a node changes."""
    match node:
        case ast.Call() if (changed := changed_item(node)) is not None:
            yield changed[0]
        case ast.Subscript(value=ast.Subscript(value=ast.Name(id=name)), ctx=ast.Store() | ast.Del()):
            yield name


class Rows:
    """What a function does with a list of its own that holds lists."""

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, own: frozenset[str]) -> None:
        self.function = node
        self.name = name
        self.own = own
        self.parents = {inner: outer for outer in walk(node) for inner in children(outer)}
        self.moves = moves(node.body)
        self.linked: set[str] = set()  # names that it is moved to or from
        self.aliases: set[str] = set()  # names of rows
        self.changers = self._changers()

    # ---- what changes it ---------------------------------------------------------------------------------------------

    def _changers(self) -> frozenset[str]:
        """The functions inside that may change it."""
        inside = [part for part in walk(self.function) if isinstance(part, _FUNCTIONS) and part is not self.function]
        if any(self._changes(inner) for part in inside if isinstance(part, ast.Lambda) for inner in walk(part)):
            return frozenset({"*"})
        functions = [part for part in inside if isinstance(part, ast.FunctionDef)]
        found = {part.name for part in functions if any(map(self._changes, walk(part)))}
        while True:
            more = {
                part.name
                for part in functions
                if any(isinstance(inner, ast.Name) and inner.id in found for inner in walk(part))
            }
            if more <= found:
                return frozenset(found)
            found |= more

    def _changes(self, node: ast.AST) -> bool:
        """Is this a change of it, or of one of its items?"""
        match node:
            case ast.Call():
                changed = changed_by_call(node) or changed_item(node)
                return changed is not None and changed[0] == self.name
            case ast.Subscript(value=ast.Name(id=name)) if not isinstance(node.ctx, ast.Load):
                return name == self.name
            case ast.Subscript(value=ast.Subscript(value=ast.Name(id=name))) if not isinstance(node.ctx, ast.Load):
                return name == self.name
            case ast.AugAssign(target=ast.Name(id=name)):
                return name == self.name
        return False

    def _may_change(self, node: ast.AST) -> bool:
        """The same, or is a function named that may?"""
        if isinstance(node, ast.Name) and node.id in self.changers:
            return True
        return self._changes(node) or (isinstance(node, ast.Call) and "*" in self.changers)

    def _inside(self, node: ast.AST) -> list[ast.AST]:
        return [part for part in walk(node) if self._may_change(part)]

    # ---- places ------------------------------------------------------------------------------------------------------

    def harmless(self) -> bool:
        names = [part for part in walk(self.function) if isinstance(part, ast.Name)]
        if not all(self._place(part) for part in names if part.id == self.name):
            return False
        looked: set[str] = set()
        while looked != self.aliases:  # rows get further names
            looked = set(self.aliases)
            if not all(self._alias(part) for part in names if part.id in looked):
                return False
        return True

    def _place(self, node: ast.Name) -> bool:
        """Is the name harmless where it stands here?"""
        parent = self.parents[node]
        if not isinstance(node.ctx, ast.Load):
            return self._bound(node, parent)
        match parent:
            case ast.Subscript(value=value, slice=index, ctx=context) if value is node:
                if isinstance(index, ast.Slice):
                    return False
                if isinstance(context, ast.Load):
                    return self._row(parent, self.parents[parent], named=False)
                return isinstance(context, ast.Del) or self._item_set(parent, self.parents[parent])
            case ast.Attribute(attr=method):
                call = self.parents[parent]
                return isinstance(call, ast.Call) and call.func is parent and self._method(call, method)
            case ast.Call(func=function, args=args):
                return node in args and self._given(node, parent, function)
            case ast.Assign(targets=[ast.Name(id=other)]) if parent in self.moves:
                self.linked.add(other)
                return True
            case ast.Return():
                return self._is_outer(parent)
            case ast.Tuple():
                above = self.parents[parent]
                return isinstance(above, ast.Return) and self._is_outer(above)
            case ast.comprehension() | ast.For():
                return self._walked(node, parent)
            case ast.Compare():
                return True
        return self._is_test(node, parent)

    def _bound(self, node: ast.Name, parent: ast.AST) -> bool:
        match parent:
            case ast.Assign(targets=[target], value=ast.Name(id=other)) if target is node and parent in self.moves:
                self.linked.add(other)
                return other in self.own
            case ast.Assign(targets=[target], value=value) if target is node:
                return self._is_new(value) or counter_of(parent) is not None
            case ast.AnnAssign(target=target, value=ast.expr() as value) if target is node:
                return self._is_new(value)
            case ast.Tuple(elts=elts):
                match self.parents[parent]:
                    case ast.Assign(targets=[target], value=ast.Tuple(elts=values)) if target is parent:
                        return len(elts) == len(values) and self._is_new(values[elts.index(node)])
            case ast.AugAssign(target=target, op=ast.Add(), value=value) if target is node:
                return self._is_new(value)
        return False

    def _is_new(self, value: ast.expr) -> bool:
        """Does an expression make a list of lists without other references?"""
        match value:
            case ast.List(elts=elts):
                return all(map(self._is_item, elts))
            case ast.ListComp(elt=elt):
                return self._is_item(elt)
            case ast.DictComp(value=item):
                return self._is_item(item)
            case ast.Dict(keys=keys, values=values):
                return None not in keys and all(map(self._is_item, values))
            case ast.Call(func=ast.Name(id="list" | "dict" | "deque"), args=[], keywords=[]):
                return True
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._is_new(left) and self._is_new(right)
            case ast.BinOp(left=ast.List(elts=elts), op=ast.Mult()):
                return all(isinstance(part, ast.Constant) for part in elts)
        return False

    def _is_item(self, value: ast.expr) -> bool:
        """Is what an expression gives no list that has another name?"""
        match value:
            case ast.Constant() | ast.List() | ast.ListComp() | ast.Set() | ast.SetComp() | ast.Dict() | ast.DictComp():
                return True
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.JoinedStr() | ast.Tuple():
                return True
            case ast.Subscript(slice=ast.Slice()):
                return True
            case ast.Call(func=ast.Name(id=name)):
                return name in _MAKING and name not in ("min", "max", "sum", "abs")
            case ast.Call(func=ast.Attribute(attr="copy"), args=[], keywords=[]):
                return True
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_item(body) and self._is_item(orelse)
        return False

    def _is_put(self, value: ast.expr, call: ast.AST) -> bool:
        """The same for an argument, which may also be moved."""
        statement = self.parents.get(call)
        if isinstance(value, ast.Name) and statement in self.moves:
            return value.id in self.own or value.id in self._made()
        return self._is_item(value)

    def _made(self) -> frozenset[str]:
        """The names of lists that are the function's own, though it does not change them."""
        from parakeet_py.frontend.ownership.lists import Uses

        if isinstance(self.function, ast.Lambda):
            return frozenset()
        uses = Uses()
        uses.moves = self.moves
        arguments = self.function.args
        uses.escaped |= {arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        uses.all(self.function.body)
        return frozenset(uses.made - uses.escaped)

    def _item_set(self, node: ast.Subscript, parent: ast.AST) -> bool:
        match parent:
            case ast.Assign(targets=[target], value=value) if target is node:
                return self._is_item(value)
            case ast.AugAssign(target=target):
                return target is node
        return False

    def _method(self, call: ast.Call, method: str) -> bool:
        """A method of the list itself."""
        if changed_by_call(call) is not None:
            if method in ("extend",):
                return self._is_new(call.args[0])
            return not call.args or method in ("pop", "discard", "remove") or self._is_put(call.args[-1], call)
        if method == "get" and call.args:
            return all(map(self._is_item, call.args[1:])) and self._row(call, self.parents[call], named=False)
        if method in ("items", "values"):
            return self._walked(call, self.parents[call])
        return method in ("keys", "count", "index")

    def _given(self, node: ast.expr, call: ast.Call, function: ast.expr) -> bool:
        """The list itself as an argument."""
        match function:
            case ast.Name(id=name) if name in _LOOKING and len(call.args) == 1:
                return True
            case ast.Constant():  # `len` itself (see `row_names`)
                return True
            case ast.Name(id="list" | "tuple" | "dict" | "sorted"):
                return self._is_last(call)
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in FUNCTIONS and call.args[0] is node:
                return all(map(self._is_item, call.args[1:]))
            case ast.Name(id=name) if name in WALKED:
                return self._walked(call, self.parents[call])
            case ast.Attribute(value=ast.Name(id=module)):
                return module in _ARRAYS
        return False

    def _walked(self, node: ast.expr, parent: ast.AST) -> bool:
        """It is iterated: the targets are rows of it."""
        match parent:
            case ast.Call(func=ast.Name(id=name)) if name in WALKED:
                return self._walked(parent, self.parents[parent])
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.For(iter=iterable, target=target, body=body) if iterable is node:
                self.aliases |= {part.id for part in walk(target) if isinstance(part, ast.Name)}
                return not any(self._inside(statement) for statement in body)
            case ast.comprehension(iter=iterable, target=target) if iterable is node:
                self.aliases |= {part.id for part in walk(target) if isinstance(part, ast.Name)}
                return True
        return False

    def _is_last(self, node: ast.expr) -> bool:
        """Is this what the function returns?"""
        parent = self.parents[node]
        return isinstance(parent, ast.Return) and self._is_outer(parent)

    def _is_outer(self, node: ast.AST) -> bool:
        """Does a statement stand in the function itself?"""
        while node is not self.function:
            node = self.parents[node]
            if isinstance(node, _FUNCTIONS) and node is not self.function:
                return False
        return True

    def _is_test(self, node: ast.AST, parent: ast.AST) -> bool:
        match parent:
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
                return test is node
            case ast.BoolOp():
                return self._is_test(parent, self.parents[parent])
            case ast.comprehension(ifs=tests):
                return node in tests
        return False

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _alias(self, node: ast.Name) -> bool:
        """Is the name of a row harmless where it stands?"""
        if not isinstance(node.ctx, ast.Load):
            return True
        above: ast.AST = node
        while above is not self.function:
            before, above = above, self.parents[above]
            match above:
                case ast.For(target=target, body=body) if before in body and _names(target, node.id):
                    return self._row(node, self.parents[node], named=True)
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    if any(_names(part.target, node.id) for part in above.generators):
                        return self._row(node, self.parents[node], named=True)
                case _ if isinstance(above, _FUNCTIONS) and above is not self.function:
                    return False
        if self._is_taken(node.id):
            return self._row(node, self.parents[node], named=True)
        return False

    def _is_taken(self, name: str) -> bool:
        """Is a name bound by assignments of rows alone?"""
        stores = [
            part
            for part in walk(self.function)
            if isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load)
        ]
        arguments = {part.arg for part in walk(self.function) if isinstance(part, ast.arg)}
        return name not in arguments and all(isinstance(self.parents[part], ast.Assign) for part in stores)

    def _row(self, node: ast.expr, parent: ast.AST, named: bool) -> bool:
        """Is a row only read where it stands, or changed there? `named`: it stands there by its name."""
        if not self._alone(node, parent):
            return False
        match parent:
            case ast.Subscript(value=value, ctx=context) if value is node:
                return not named or isinstance(context, ast.Load)
            case ast.Attribute(attr=method):
                call = self.parents[parent]
                if not (isinstance(call, ast.Call) and call.func is parent):
                    return False
                if method in CHANGES or method == "pop":
                    return not named and changed_item(call) is not None
                return method in ("index", "count", "copy")
            case ast.Call(func=function, args=args):
                return node in args and self._row_given(node, parent, function, named)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                if is_shared(name) or not self._is_outer(parent) or not self._stays(parent):
                    return False
                self.aliases.add(name)
                return True
            case ast.Return():
                return self._is_outer(parent)
            case ast.Tuple():
                above = self.parents[parent]
                return isinstance(above, ast.Return) and self._is_outer(above)
            case ast.comprehension(iter=iterable) if iterable is node:
                return True
            case ast.For(iter=iterable, body=body) if iterable is node:
                return not any(self._inside(statement) for statement in body)
            case ast.Compare() | ast.BinOp() | ast.FormattedValue() | ast.Expr():
                return True
            case ast.AugAssign(target=ast.Name(), value=value):
                return value is node
            case ast.Starred():
                return isinstance(self.parents[parent], ast.List | ast.Tuple | ast.Set)
            case ast.ListComp(elt=part) | ast.DictComp(value=part):
                return part is node and self._is_last(parent)
        return self._is_test(node, parent)

    def _row_given(self, node: ast.expr, call: ast.Call, function: ast.expr, named: bool) -> bool:
        match function:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in FUNCTIONS and call.args[0] is node:
                return not named
            case ast.Name(id="min" | "max"):
                return len(call.args) == 1
            case ast.Name(id=name) if name in _LOOKING | _COPYING:
                return True
            case ast.Name(id=name) if name in WALKED:
                above = self.parents[call]
                while isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in WALKED:
                    above = self.parents[above]
                if isinstance(above, ast.For):
                    return not any(self._inside(statement) for statement in above.body)
                return isinstance(above, ast.comprehension)
            case ast.Attribute(value=ast.Name(id=held), attr="extend"):
                return held != self.name
            case ast.Attribute(value=ast.Name(id=module)):
                return module in _ARRAYS
        return False

    def _alone(self, node: ast.expr, parent: ast.AST) -> bool:
        """Does nothing change the list while a statement looks at a row, but for what is given the row, or is the
        change of that row?"""
        above: ast.AST = node
        outer: set[ast.AST] = {node}
        while not isinstance(above, ast.stmt):
            above = self.parents[above]
            outer.add(above)
        match above:
            case ast.For(iter=part) | ast.While(test=part) | ast.If(test=part):
                statement: ast.AST = part if part in outer else above
            case _:
                statement = above
        if statement is above and isinstance(
            above, ast.For | ast.While | ast.If | ast.With | ast.Try | ast.FunctionDef
        ):
            return False
        after: set[ast.AST] = set()  # what is stored when the row has been looked at
        if isinstance(above, ast.Assign) and above.value in outer and not isinstance(above.value, ast.Tuple):
            after = {part for target in above.targets for part in (target, *children(target))}
        if isinstance(above, ast.AugAssign) and above.value in outer:
            after = {above.target}
        return all(change in outer or change in after for change in self._inside(statement))

    def _stays(self, statement: ast.stmt) -> bool:
        """Does nothing change the list from this statement on, as long as the function may come by again?"""
        node: ast.AST = statement
        while node is not self.function:
            above = self.parents[node]
            if isinstance(above, ast.For | ast.While) and self._inside(above):
                return False
            for block in (getattr(above, field, None) for field in ("body", "orelse", "finalbody")):
                if isinstance(block, list) and node in block:
                    after = block[block.index(node) + 1 :]
                    if any(self._inside(later) for later in after):
                        return False
            if isinstance(above, ast.Try | ast.TryStar | ast.match_case):
                return False
            node = above
        return True


def _names(target: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walk(target))
