"""Nodes of Python's syntax tree, each at the place in the user's file that is being written for.

`Nodes.at` places a node; `block` of what is derived from it moves `where` along. Names of variables are not the user's
identifiers: no source can say them, but a tree can.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from parakeet_py.frontend.ssa import Pos

Node = TypeVar("Node", bound=ast.AST)

BINARY: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "floordiv": ast.FloorDiv, "mod": ast.Mod,
    "pow": ast.Pow, "matmul": ast.MatMult, "and": ast.BitAnd, "or": ast.BitOr, "xor": ast.BitXor,
    "lshift": ast.LShift, "rshift": ast.RShift,
}  # fmt: skip
COMPARE: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "is": ast.Is,
    "isnot": ast.IsNot, "in": ast.In, "notin": ast.NotIn,
}  # fmt: skip
UNARY: dict[str, type[ast.unaryop]] = {"neg": ast.USub, "pos": ast.UAdd, "invert": ast.Invert, "not": ast.Not}
PREDEFINED = {"type": type, "id": id, "iter": iter, "slice": slice}  # whatever the user calls so
LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
Where = dict[str, int]


def where_of(pos: Pos) -> Where:
    """The attributes of a node that is there."""
    end_line, end_column = max((pos.end_line, pos.end_column), (pos.line, pos.column))
    return {"lineno": pos.line, "col_offset": pos.column, "end_lineno": end_line, "end_col_offset": end_column}


class Nodes:
    """Makes nodes; remembers which names come from outside, and the constants among them."""

    def __init__(self, first_line: int) -> None:
        self.where: Where = where_of(Pos(first_line, 0, first_line, 0))
        self.nowhere = self.where  # of nodes that raise nothing
        self.loads: dict[str, ast.Name] = {}
        self.free: set[str] = set()
        self.constants: dict[str, Any] = {}
        self.count = 0

    def at(self, node: Node) -> Node:
        """A node, placed."""
        node.__dict__.update(self.where)
        return node

    def anywhere(self, node: Node) -> Node:
        """A node, placed where it does not matter."""
        node.__dict__.update(self.nowhere)
        return node

    def new(self, what: str) -> str:
        """The name of a variable."""
        self.count += 1
        return f".{what}{self.count}"

    # ---- expressions -------------------------------------------------------------------------------------------------

    def load(self, name: str) -> ast.Name:
        found = self.loads.get(name)
        if found is None:
            found = self.loads[name] = self.anywhere(ast.Name(name, LOAD))
        return found

    def outside(self, name: str) -> ast.Name:
        """What comes from outside under this name."""
        self.free.add(name)
        return self.load(name)

    def constant(self, value: Any) -> ast.Name:
        name = f".k{len(self.constants)}"
        self.constants[name] = value
        return self.outside(name)

    def predefined(self, name: str) -> ast.Name:
        """A function of Python's, whatever the user calls so."""
        self.constants["." + name] = PREDEFINED[name]
        return self.outside("." + name)

    def literal(self, value: Any) -> ast.expr:
        return self.anywhere(ast.Constant(value))

    def tuple_of(self, items: list[ast.expr]) -> ast.expr:
        return self.at(ast.Tuple(items, LOAD))

    def starred(self, items: ast.expr) -> ast.expr:
        return self.at(ast.Starred(items, LOAD))

    def call(self, function: ast.expr, *args: ast.expr) -> ast.expr:
        return self.at(ast.Call(function, [*args], []))

    def attribute(self, held: ast.expr, name: str) -> ast.expr:
        return self.at(ast.Attribute(held, name, LOAD))

    def type_of(self, value: ast.expr) -> ast.expr:
        return self.call(self.predefined("type"), value)

    def test(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
        return self.at(ast.Compare(left, [operator], [right]))

    def without(self, test: ast.expr) -> ast.expr:
        return self.at(ast.UnaryOp(ast.Not(), test))

    # ---- targets and statements --------------------------------------------------------------------------------------

    def arg(self, name: str) -> ast.arg:
        return self.anywhere(ast.arg(name))

    def store(self, name: str) -> ast.Name:
        return self.anywhere(ast.Name(name, STORE))

    def place(self, held: ast.expr, index: ast.expr, context: ast.expr_context = STORE) -> ast.expr:
        """An item that is stored or deleted."""
        return self.at(ast.Subscript(held, index, context))

    def pair(self, first: str, second: str) -> ast.expr:
        return self.at(ast.Tuple([self.store(first), self.store(second)], STORE))

    def assign(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        return self.at(ast.Assign([target], value))

    def set(self, name: str | None, value: ast.expr) -> ast.stmt:
        """A variable bound to a value; without a name, the value is computed only."""
        return self.at(ast.Expr(value)) if name is None else self.assign(self.store(name), value)

    def when(self, test: ast.expr, body: list[ast.stmt], orelse: Sequence[ast.stmt] = ()) -> ast.stmt:
        return self.at(ast.If(test, body or [self.at(ast.Pass())], list(orelse)))

    def throw(self, error: ast.expr, cause: ast.expr | None = None) -> ast.stmt:
        return self.at(ast.Raise(error, cause))

    def throw_again(self, error: ast.expr) -> list[ast.stmt]:
        """Raise an exception without an entry of this frame in its traceback."""
        handled, before = self.new("handled"), self.new("traceback")
        restore = self.assign(self.at(ast.Attribute(self.load(handled), "__traceback__", STORE)), self.load(before))
        again = self.at(ast.ExceptHandler(self.constant(BaseException), handled, [restore, self.at(ast.Raise())]))
        return [
            self.set(before, self.attribute(error, "__traceback__")),
            self.at(ast.Try([self.throw(error)], [again], [], [])),
        ]

    def for_each(self, item: ast.expr, items: ast.expr, body: list[ast.stmt]) -> ast.stmt:
        if isinstance(items, ast.Name):
            items = self.at(ast.Name(items.id, LOAD))  # where it is said that this is no iterable
        return self.at(ast.For(item, items, body or [self.at(ast.Pass())], []))


def parameters(names: Sequence[ast.arg] = ()) -> ast.arguments:
    return ast.arguments([], list(names), None, [], [], None, [])
