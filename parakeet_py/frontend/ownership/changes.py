"""Changes of lists, dicts and sets: how they look in the untyped IR, and what each is called.

A change is an ordinary operation: a call of a bound method (`append`), of a function of the standard library that
changes its first argument (`heappush`), an assignment or deletion of an item, `+=`. `change_of` recognizes these forms;
whether the object is one that may become a value is another question (`objects`, `lifetimes`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend import ssa

METHODS = {
    **{"append": 1, "extend": 1, "insert": 2, "clear": 0, "reverse": 0, "sort": 0},  # of lists
    **{"popleft": 0, "appendleft": 1},  # of deques
    **{"add": 1, "discard": 1, "remove": 1, "setdefault": 2},  # of sets and dicts
}
"""The methods that change a list, dict or set, with the number of their arguments, beside `pop`."""
FUNCTIONS = {"heappush": 1, "heappop": 0, "heapify": 0, "insort": 1, "insort_left": 1, "insort_right": 1}
"""Functions of the standard library that change the list they are given first, with the number of further arguments."""
GIVING = ("pop", "popleft", "popright", "setdefault", "heappop")
"""Those of them that give an item."""
OF_LISTS = frozenset({"sort", "add", "discard", "setdefault", *FUNCTIONS})
"""What deques do not have."""


@record
class Change:
    """One change of `target`: its name as in `ssa.ChangeList`, and the operands of that."""

    name: str
    target: ssa.Var
    args: tuple[ssa.Operand, ...]
    keywords: tuple[tuple[str, ssa.Operand], ...] = ()

    @property
    def stored(self) -> ssa.Operand | None:
        """What becomes an item."""
        if self.name in ("append", "appendleft", "add", "insert", "set", "setdefault"):
            return self.args[-1]
        if self.name in ("heappush", "insort", "insort_left", "insort_right"):
            return self.args[1]
        return None

    @property
    def added(self) -> ssa.Operand | None:
        """That whose items become items."""
        return self.args[0] if self.name in ("extend", "iadd") else None


def change_of(let: ssa.Let, definitions: Mapping[ssa.Var, ssa.Let]) -> Change | None:
    """The change that a statement is, by its form."""
    match let.op:
        case ssa.SetItem(ssa.Var() as target, index, value):
            return Change("set", target, (index, value))
        case ssa.DeleteItem(ssa.Var() as target, index):
            return Change("delete", target, (index,))
        case ssa.Inplace("add", ssa.Var() as target, value):
            return Change("iadd", target, (value,))
        case ssa.Call(ssa.Var() as function, args, kwargs) if function in definitions:
            if any(isinstance(arg, ssa.Star) for arg in args):
                return None
            plain = tuple(arg for arg in args if not isinstance(arg, ssa.Star))
            return _called(function, definitions[function], plain, kwargs)
    return None


def _called(
    function: ssa.Var, made: ssa.Let, args: tuple[ssa.Operand, ...], kwargs: tuple[tuple[str | None, ssa.Operand], ...]
) -> Change | None:
    match made.op:
        case ssa.Attribute(ssa.Var() as target, "sort") if not args and kwargs:
            given = tuple((name, value) for name, value in kwargs if name in ("key", "reverse"))  # arrays have others
            return Change("sort", target, (), given) if len(given) == len(kwargs) else None
        case ssa.Attribute(ssa.Var() as target, method) if not kwargs:
            if METHODS.get(method) == len(args) or (method == "pop" and len(args) < 2):
                return Change(method, target, args)
    name = name_of(made)
    if name in FUNCTIONS and not kwargs and len(args) == 1 + FUNCTIONS[name] and isinstance(args[0], ssa.Var):
        return Change(name, args[0], (function, *args[1:]))
    return None


def name_of(let: ssa.Let | None) -> str:
    """The name under which a function has been found. It is a guess at what the function is, which specialization
    confirms when it knows the function."""
    match let.op if let is not None else None:
        case ssa.Global(name) | ssa.Free(name) | ssa.Attribute(_, name):
            return name
        case ssa.Import(module, name):
            return name or module
    return ""


def changed_by(node: ast.AST) -> str | None:
    """The name that stands for what a call in a syntax tree changes, by its form: `name.append(...)` and its kin, and
    those of its items."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr=method), args=args, keywords=keywords):
            sorts = method == "sort" and not args
            if sorts or (not keywords and (METHODS.get(method) == len(args) or (method == "pop" and len(args) < 2))):
                return _held(held)
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[held, *rest], keywords=[]):
            return _held(held) if FUNCTIONS.get(name) == len(rest) else None
    return None


def _held(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return name
    return None
