"""What an instruction does to the value stack, when what is on it is syntax not yet evaluated.

An expression on the stack is evaluated (assigned to a temporary) before anything that could change its value or the
order of effects: before a name is bound, before the stack is permuted, and at the end of a block (`bytecode_blocks`).
"""

from __future__ import annotations

import ast
import dis
import re
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from parakeet_py.frontend.bytecode.nodes import (
    Entered,
    ExitWith,
    Imported,
    InPlace,
    Iterating,
    Kept,
    Leaving,
    Made,
    Node,
    Null,
    Unknown,
)
from parakeet_py.frontend.bytecode.tidy import as_expression, comprehension
from parakeet_py.frontend.desugar.nodes import ANNOTATED

Entries = dict[int, tuple[ast.expr, ...]]  # what is on the stack where a block begins
_T = TypeVar("_T", bound=ast.AST)
MakeBody = Callable[[CodeType], tuple[list[ast.stmt], ast.arguments]]

SETTLED = Null | Iterating | Kept | Entered | Leaving | Made | Imported


class Stack:
    """The value stack while a block runs."""

    def __init__(self, code: CodeType, node: Node, body_of: MakeBody, entries: Entries) -> None:
        self.code, self.node, self.body_of, self.entries = code, node, body_of, entries
        self.stack: list[ast.expr] = list(entries[node.offset])
        self.temporaries = 0
        self.keywords: tuple[str, ...] = ()
        self.place: ast.AST = ast.Pass()
        self.skip = 0

    def made(self, node: _T) -> _T:
        return ast.copy_location(node, self.place)

    def push(self, node: ast.expr) -> None:
        self.stack.append(self.made(node))

    def pop(self) -> ast.expr:
        return self.plain(self.stack.pop())

    def plain(self, item: ast.expr) -> ast.expr:
        """A value; functions get their syntax."""
        if isinstance(item, Made):
            made = self.undecorated(item)
            for decorator in reversed(item.decorators):
                made = ast.copy_location(ast.Call(decorator, [made], []), item)
            return made
        if isinstance(item, InPlace):
            name = self.made(ast.Name(self.fresh(), ast.Store()))
            self.emit(ast.Assign([name], item.left))
            self.emit(ast.AugAssign(name, item.op, item.right))
            return ast.copy_location(load(name), item)
        if isinstance(item, SETTLED):
            raise Unknown(f"{type(item).__name__.lower()} used as a value", self.place)
        return item

    def undecorated(self, item: Made) -> ast.expr:
        value = as_expression(item.body)
        if value is not None:
            return ast.copy_location(ast.Lambda(item.arguments, value), item)
        name = self.made(ast.Name(self.fresh(), ast.Store()))
        self.emit(definition(name.id, item, []))
        return ast.copy_location(load(name), item)

    def pops(self, count: int) -> list[ast.expr]:
        if not count:
            return []
        popped = self.stack[-count:]
        del self.stack[-count:]
        return [self.plain(each) for each in popped]

    def emit(self, statement: ast.stmt) -> None:
        self.node.statements.append(self.made(statement))

    def fresh(self) -> str:
        self.temporaries += 1
        return f"$t{self.node.offset}.{self.temporaries}"

    def simple(self, item: ast.expr) -> bool:
        """Whether nothing happens when it is evaluated, and nothing changes it but binding a name."""
        if isinstance(item, ast.Slice):
            return all(part is None or self.simple(part) for part in (item.lower, item.upper, item.step))
        if isinstance(item, ast.Tuple):
            return all(self.simple(each) for each in item.elts)
        return isinstance(item, ast.Constant | ast.Name | SETTLED)

    def flush(self, names: bool = False) -> None:
        """Evaluate what is on the stack, with `names` also what binding a name may change."""
        if not names and all(map(self.simple, self.stack)):
            return
        names = names or any(isinstance(part, ast.Call) for item in self.stack for part in ast.walk(item))
        for slot, item in enumerate(self.stack):
            if isinstance(item, ast.Constant | SETTLED) or (isinstance(item, ast.Name) and item.id[0] == "$"):
                continue
            if isinstance(item, ast.Name) and not names:
                continue
            name = ast.copy_location(ast.Name(self.fresh(), ast.Store()), item)
            self.emit(ast.Assign([name], self.plain(item)))
            self.stack[slot] = ast.copy_location(load(name), item)

    def constant(self, value: Any) -> ast.expr:
        if isinstance(value, tuple):
            return self.made(ast.Tuple([self.constant(each) for each in value], ast.Load()))
        if isinstance(value, frozenset):
            return self.made(ast.Set([self.constant(each) for each in value]))
        if isinstance(value, slice):
            return self.slice([self.constant(part) for part in (value.start, value.stop, value.step)])
        return self.made(ast.Constant(value))

    def slice(self, bounds: list[ast.expr]) -> ast.Slice:
        parts = [None if isinstance(each, ast.Constant) and each.value is None else each for each in bounds]
        return self.made(ast.Slice(*parts))

    def store(self, target: ast.expr) -> None:
        raw = self.stack.pop()
        if isinstance(raw, Kept):
            return
        if isinstance(raw, InPlace):
            if without_context(raw.left) == without_context(target):
                assert isinstance(target, ast.Name | ast.Attribute | ast.Subscript)
                self.flush(names=True)
                self.emit(ast.AugAssign(target, raw.op, raw.right))
                return
            raw = self.plain(raw)
        self.flush(names=True)
        if isinstance(raw, Imported) and isinstance(target, ast.Name):
            asname = None if target.id == (raw.name or raw.module) else target.id
            alias = self.made(ast.alias(raw.name or raw.module, asname))
            if raw.name:
                self.emit(ast.ImportFrom(raw.module, [alias], raw.level))
            else:
                self.emit(ast.Import([alias]))
        elif isinstance(raw, Made) and isinstance(target, ast.Name) and raw.code.co_name == target.id:
            self.emit(definition(target.id, raw, raw.decorators))
        else:
            self.emit(ast.Assign([target], self.plain(raw)))

    def discard(self, item: ast.expr) -> None:
        if isinstance(item, ast.Constant | SETTLED):
            return
        if isinstance(item, ast.Name) and item.id[0] == "$":
            return
        self.flush()
        self.emit(ast.Expr(self.plain(item)))

    def in_place(self, left: ast.expr, operator: ast.operator, right: ast.expr, ahead: list[dis.Instruction]) -> None:
        node = self.made(InPlace())
        node.left, node.op, node.right = left, operator, right
        names = [each.opname for each in ahead]
        if isinstance(left, ast.Name) and names[:1] and ahead[0].argval == left.id and names[0].startswith("STORE_"):
            self.stack.append(node)
            return
        below = {
            ("SWAP", "SWAP", "STORE_SUBSCR"): 2,
            ("SWAP", "STORE_ATTR"): 1,
            ("SWAP", "SWAP", "SWAP"): 3,  # STORE_SLICE
        }
        for pattern, count in below.items():
            if tuple(names[: len(pattern)]) == pattern and len(self.stack) >= count:
                place = self.stack[-count:]
                if [ast.dump(each) for each in place] == [ast.dump(each) for each in _place_of(left)]:
                    self.stack[-count:] = [node, *place]
                    self.skip = len([each for each in pattern if each == "SWAP"])
                    return
        self.stack.append(self.plain(node))

    def copy(self, count: int) -> None:
        if not self.simple(self.stack[-count]):
            self.flush()
        self.stack.append(self.stack[-count])

    def swap(self, count: int, ahead: list[dis.Instruction]) -> None:
        self.flush()
        self.stack[-1], self.stack[-count] = self.stack[-count], self.stack[-1]

    def unpack(self, length: int | None, count: int) -> None:
        value = self.pop()
        self.flush()
        names: list[ast.expr] = []
        before, after = (length or 0, 0) if length is not None else (count & 255, count >> 8)
        for index in range(before + after + (length is None)):
            name: ast.expr = self.made(ast.Name(self.fresh(), ast.Store()))
            names.append(self.made(ast.Starred(name, ast.Store())) if length is None and index == before else name)
        self.emit(ast.Assign([self.made(ast.Tuple(names, ast.Store()))], value))
        for target in reversed(names):
            self.push(load(target.value if isinstance(target, ast.Starred) else target))

    def added(self, count: int, element: ast.expr, method: str) -> None:
        holder = self.stack[-count]
        if isinstance(holder, ast.List | ast.Set):
            holder.elts.append(element)
            return
        call = ast.Call(self.made(ast.Attribute(holder, method, ast.Load())), [element], [])
        self.emit(ast.Expr(self.made(call)))

    def as_tuple(self) -> None:
        held = self.pop()
        if isinstance(held, ast.List):
            self.push(ast.Tuple(held.elts, ast.Load()))
        else:
            name = self.made(ast.Name("tuple", ast.Load()))
            self.push(ast.Call(name, [held], []))

    def format(self, conversion: int, spec: ast.expr | None) -> None:
        value = self.pop()
        parts = None if spec is None else self.made(ast.JoinedStr(parts_of(spec)))
        if isinstance(value, ast.FormattedValue):  # converted by an instruction of its own
            value.format_spec = parts
            part = value
        else:
            part = self.made(ast.FormattedValue(value, conversion, parts))
        self.push(ast.JoinedStr([part]))

    # ---- calls and functions ----------------------------------------------------------------------------------------

    def call(self, count: int) -> None:
        keywords, self.keywords = self.keywords, ()
        arguments = self.pops(count)
        second, first = self.stack.pop(), self.stack.pop()
        if isinstance(first, Leaving):
            self.flush()
            self.emit(ExitWith())
            self.push(ast.Constant(None))
            return
        if isinstance(first, Made) and not isinstance(second, Null) and not count:
            self.stack.append(comprehension(first, second.value if isinstance(second, Iterating) else second))
            return
        if isinstance(second, Made) and not isinstance(first, Null) and not count:
            second.decorators = [self.plain(first), *second.decorators]
            self.stack.append(second)
            return
        if isinstance(first, Null):
            function = self.plain(second)
        else:
            function = self.plain(first)
            if not isinstance(second, Null):
                arguments.insert(0, self.plain(second))
        split = len(arguments) - len(keywords)
        named = [self.made(ast.keyword(name, value)) for name, value in zip(keywords, arguments[split:], strict=True)]
        self.push(ast.Call(function, arguments[:split], named))

    def has_keywords(self) -> bool:
        """Does a call that unpacks its arguments have keywords? Else something empty stands for them."""
        found = not isinstance(self.stack[-1], Null)
        if not found:
            self.stack.pop()
        return found

    def call_starred(self, has_keywords: bool) -> None:
        named: list[ast.keyword] = []
        if has_keywords:
            mapping = self.pop()
            if isinstance(mapping, ast.Dict):
                for key, value in zip(mapping.keys, mapping.values, strict=True):
                    name = str(key.value) if isinstance(key, ast.Constant) else None
                    named.append(self.made(ast.keyword(name, value)))
            else:
                named.append(self.made(ast.keyword(None, mapping)))
        held = self.pop()
        if isinstance(held, ast.Tuple | ast.List):
            arguments = held.elts
        else:
            arguments = [self.made(ast.Starred(held, ast.Load()))]
        second, first = self.stack.pop(), self.stack.pop()
        self.push(ast.Call(self.plain(first if isinstance(second, Null) else second), arguments, named))

    def function(self, flags: int) -> None:
        held = self.stack.pop()
        if not isinstance(held, ast.Constant) or not isinstance(held.value, CodeType):
            raise Unknown("a function made of something else than its code", self.place)
        made = self.made(Made())
        made.decorators = []
        made.code = held.value
        made.body, made.arguments = self.body_of(held.value)
        for flag in (8, 4, 2, 1):
            if flags & flag:
                self.attach(made, self.pop(), flag)
        self.stack.append(made)

    def attach(self, made: ast.expr, value: ast.expr, flag: int) -> None:
        if not isinstance(made, Made):
            raise Unknown("an attribute of something else than a function", self.place)
        if flag == 1:
            made.arguments.defaults = list(items_of(value))
        elif flag == 2 and isinstance(value, ast.Dict):
            given = {k.value: v for k, v in zip(value.keys, value.values, strict=True) if isinstance(k, ast.Constant)}
            made.arguments.kw_defaults = [given.get(each.arg) for each in made.arguments.kwonlyargs]
        elif flag in (4, 16):
            setattr(made, ANNOTATED, True)


_HAS_DOC = 0x4000000 if sys.version_info >= (3, 13) else 0  # before, the first constant is nothing else


def definition(name: str, made: Made, decorators: list[ast.expr]) -> ast.FunctionDef:
    body, code = made.body, made.code
    first = code.co_consts[0] if code.co_consts and code.co_flags & _HAS_DOC == _HAS_DOC else None
    if isinstance(first, str):
        body = [ast.Expr(ast.Constant(first)), *body]
    found = ast.FunctionDef(name, made.arguments, body, decorators)
    setattr(found, ANNOTATED, getattr(made, ANNOTATED, False))
    if sys.version_info >= (3, 12):
        found.type_params = []
    return found


def without_context(node: ast.expr) -> str:
    """What a node says, whether it is loaded or stored to."""
    return re.sub(r"(, )?ctx=\w+\(\)", "", ast.dump(node))


def load(target: ast.expr) -> ast.Name:
    assert isinstance(target, ast.Name)
    return ast.copy_location(ast.Name(target.id, ast.Load()), target)


def items_of(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List | ast.Set) else []


def parts_of(node: ast.expr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.JoinedStr) else [node]


def _place_of(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=None)) if sys.version_info >= (
            3,
            12,
        ):
            return [value, lower or ast.Constant(None), upper or ast.Constant(None)]
        case ast.Subscript(value=value, slice=index):
            return [value, index]
        case ast.Attribute(value=value):
            return [value]
    return []
