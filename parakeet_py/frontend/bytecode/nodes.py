"""What the bytecode frontend's parts hand each other: basic blocks, and the things on the value stack that are no
expressions of the language (an iterator, a function being made, the exit of a `with`)."""

from __future__ import annotations

import ast
from dataclasses import field
from types import CodeType

from parakeet_py.base.fast_dataclass import record


class Unknown(Exception):
    """An instruction or a shape that cannot be made syntax; `position` is where it stands."""

    def __init__(self, message: str, position: ast.AST | None = None) -> None:
        super().__init__(message)
        self.position = position


@record(frozen=False)
class Node:
    """A basic block: statements, then what decides where it goes. A `for` header has `iterable` and goes to its body
    and its exit; a branch has `test` and goes to where it is true and where it is not. A block that makes an iterator
    `begins` a loop: who goes there begins it anew, who goes to the header goes on with it."""

    offset: int
    statements: list[ast.stmt] = field(default_factory=list)
    successors: tuple[int, ...] = ()
    test: ast.expr | None = None
    iterable: ast.expr | None = None
    item: ast.Name | None = None
    begins: bool = False


class Null(ast.expr):
    """The empty slot beside a callable."""


class Iterating(ast.expr):
    """An iterator on the stack, of the expression `value`."""

    _fields = ("value",)
    value: ast.expr

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


class Kept(ast.expr):
    """What an inlined comprehension puts back afterwards: its variable's value from before."""


class Entered(ast.expr):
    """What `with` would bind a name to."""


class InPlace(ast.expr):
    """`left op= right` before it is stored where `left` came from."""

    left: ast.expr
    op: ast.operator
    right: ast.expr


class Imported(ast.expr):
    """A module being imported, or with `name` something of it."""

    module: str
    level: int
    listed: bool
    name: str | None


class Leaving(ast.expr):
    """The exit of a `with` statement."""


class Made(ast.expr):
    """A function made from `code`; `decorators` are to be called with it, the last one first."""

    code: CodeType
    body: list[ast.stmt]
    arguments: ast.arguments
    decorators: list[ast.expr]


class EnterWith(ast.stmt):
    """The beginning of a `with` statement, until `with_` statements are made of it."""

    _fields = ("value",)
    value: ast.expr

    def __init__(self, value: ast.expr) -> None:
        super().__init__()
        self.value = value


class ExitWith(ast.stmt):
    """The end of a `with` statement."""
