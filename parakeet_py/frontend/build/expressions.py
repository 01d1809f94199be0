"""Expressions to SSA: every operator gets a name, in Python's order of evaluation.

`and`, `or`, conditional expressions and comparison chains become `If`s with the value semantics of Python. Where only
the truth of an expression matters (`truth`), the branches of these `If`s are made real bools, so that they agree in
type whatever the operands are.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from parakeet_py.base.callee_effects import MAKERS, STORING_METHODS, named
from parakeet_py.frontend.build.bindings import CARRIED, FALSE, NONE, NOTHING, TRUE, Definition, pos_of
from parakeet_py.frontend.build.builder import Builder
from parakeet_py.frontend.desugar.nodes import Caught, cell_of
from parakeet_py.frontend.desugar.percent_format import as_f_string
from parakeet_py.frontend.source.scopes import Comprehension as Comprehensions
from parakeet_py.frontend.ssa import (
    Attribute,
    Binary,
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
    Item,
    Operand,
    SetAttribute,
    Star,
    Subscript,
    Unary,
    Var,
)
from parakeet_py.frontend.syntax_walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is",
    ast.IsNot: "isnot",
    ast.In: "in",
    ast.NotIn: "notin",
}
UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.Not: "not"}
CONVERSIONS = {-1: "", 115: "s", 114: "r", 97: "a"}

FRAME_BUILTINS = named(frame=True)
# Callables that give an iterator which calls, or iterates over, what it was passed only later.
LAZY = named(None, lazy=True) - {"count", "repeat"}  # which are methods of lists and arrays, too
# Callables whose result contains or calls what they were passed; an iterator they were passed they have used up.
KEEPING = MAKERS | named(None, makes="function")
_KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.DictComp: "dict", ast.GeneratorExp: "generator"}


_LEAVE_ALONE = frozenset(dir(np.ndarray)) | frozenset(dir(str)) | frozenset(dir(builtins))
_LEAVE_ALONE -= STORING_METHODS | (named(stores=True) - named(keeps=False)) | named(lazy=True, calls=True)


def _may_change(node: ast.Call) -> bool:
    """May a call change what a string shows, by the name of what is called?"""
    match node.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name not in _LEAVE_ALONE
    return True


class Expressions(Builder, ABC):
    """The part of the builder that converts expressions."""

    # What the other parts provide (statements.py, ast_to_ssa.py).

    @abstractmethod
    def check_writable(self, name: str, node: ast.AST) -> None: ...

    @abstractmethod
    def nested_function(
        self, node: ast.FunctionDef | ast.Lambda, name: str, defaults: tuple[Operand, ...], decorated: bool = False
    ) -> Definition: ...

    @abstractmethod
    def element_function(self, node: Comprehensions, level: int, part: str) -> Definition: ...

    # ---- values -----------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, hint: str = "t") -> Operand:
        match node:
            case ast.Name(id=name):
                return self.read(name, node)
            case ast.Constant(value=value):
                return Const(value)
            case Caught(name=ast.Name(id=name)):
                return self.env[name].operand if name in self.env else Const(None)  # no statement raises: never reached
            case ast.BinOp() if (formatted := as_f_string(node)) is not None:
                return self.format_string(formatted, hint)
            case ast.BinOp(left, kind, right):
                a, b = self.expression(left), self.expression(right)
                out = self.emit(Binary(BINARY[type(kind)], a, b), node, hint)
                self.hold(out, a, b)
                return out
            case ast.UnaryOp(op=operator, operand=operand):
                return self.unary(node, operator, operand, hint)
            case ast.Subscript(value=value, slice=index):
                a, b = self.expression(value), self.expression(index)
                out = self.emit(Subscript(a, b), node, hint)
                self.hold(out, a)
                return out
            case ast.Call():
                return self.call(node, hint)
            case ast.Attribute(value=value, attr=name):
                a = self.expression(value)
                out = self.emit(Attribute(a, name), node, hint if hint != "t" else name)
                self.hold(out, a)
                return out
            case ast.Compare():
                return self.comparison(node, hint)
            case ast.BoolOp():
                return self.short_circuit(node, hint)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                return self.conditional(
                    condition,
                    lambda: self.expression(body, hint),
                    lambda: self.expression(orelse, hint),
                    pos_of(node),
                    hint,
                )
            case ast.Slice(lower=lower, upper=upper, step=step):
                parts = [NONE if part is None else self.expression(part) for part in (lower, upper, step)]
                return self.emit(BuildSlice(*parts), node, "slice")
            case ast.Tuple(elts=elts):
                items = self.items(elts)
                return self.holding(self.emit(BuildTuple(items), node, hint), items)
            case ast.List(elts=elts):
                items = self.items(elts)
                return self.holding(self.emit(BuildList(items), node, hint), items)
            case ast.Set(elts=elts):
                items = self.items(elts)
                return self.holding(self.emit(BuildSet(items), node, hint), items)
            case ast.Dict():
                return self.dictionary(node, hint)
            case ast.NamedExpr(target=target, value=value):
                bound = self.expression(value, target.id)
                self.check_writable(target.id, target)
                self.bind(target.id, bound)
                return bound
            case ast.Lambda():
                definition = self.nested_function(node, "<lambda>", self.defaults(node.args))
                return self.make_closure(definition, node)
            case ast.JoinedStr():
                return self.format_string(node, hint)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self.comprehension(node, hint)
            case _:
                return self.refuse_expression(node)

    def refuse_expression(self, node: ast.expr) -> NoReturn:
        match node:
            case ast.Yield() | ast.YieldFrom():
                self.refuse(node, "a `yield` cannot be accelerated here", "write it as a statement of a function")
            case ast.Await():
                self.refuse(node, "`await` cannot be accelerated", "await outside and pass the result in")
            case ast.Starred():
                self.refuse(node, "`*` cannot be used here")
            case _:
                self.refuse(node, f"{type(node).__name__} cannot be accelerated")

    def unary(self, node: ast.expr, operator: ast.unaryop, operand: ast.expr, hint: str) -> Operand:
        if isinstance(operator, ast.Not):
            return self.emit(Unary("not", self.truth(operand)), node, hint)
        value = self.expression(operand)
        if isinstance(operator, ast.USub) and isinstance(operand, ast.Constant) and isinstance(value, Const):
            number = value.value
            if type(number) in (int, float, complex):
                return Const(-number)  # as Python's compiler does
        return self.emit(Unary(UNARY[type(operator)], value), node, hint)

    def holding(self, out: Var, items: Sequence[Item]) -> Var:
        self.hold(out, *(item.operand if isinstance(item, Star) else item for item in items))
        return out

    def items(self, nodes: Sequence[ast.expr]) -> tuple[Item, ...]:
        """Elements of a display, or positional arguments."""
        return tuple(
            Star(self.expression(node.value)) if isinstance(node, ast.Starred) else self.expression(node)
            for node in nodes
        )

    def dictionary(self, node: ast.Dict, hint: str) -> Operand:
        pairs = [
            (None if key is None else self.expression(key), self.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        out = self.emit(BuildDict(tuple(pairs)), node, hint)
        self.hold(out, *(operand for pair in pairs for operand in pair if operand is not None))
        return out

    def format_string(self, node: ast.JoinedStr, hint: str) -> Operand:
        parts: list[tuple[Operand, str, str]] = []
        for value in node.values:
            if parts and any(isinstance(inner, ast.Call) and _may_change(inner) for inner in walk(value)):
                parts = [(self.emit(BuildString(tuple(parts)), node, hint), "", "")]  # what it shows may change now
            if isinstance(value, ast.Constant):
                parts.append((Const(value.value), "", ""))
            elif isinstance(value, ast.FormattedValue):
                spec = ""
                if isinstance(value.format_spec, ast.JoinedStr):
                    for piece in value.format_spec.values:
                        if not isinstance(piece, ast.Constant):
                            self.refuse(
                                node, "a format that is itself computed cannot be accelerated", "write the format out"
                            )
                        spec += str(piece.value)
                parts.append((self.expression(value.value), CONVERSIONS[value.conversion], spec))
        return self.emit(BuildString(tuple(parts)), node, hint)

    # ---- truth and choice -------------------------------------------------------------------------------------------

    def truth(self, node: ast.expr, real: bool = False) -> Operand:
        """An operand that is true exactly if the expression is; a real bool if `real`."""
        pos = pos_of(node)
        match node:
            case ast.BoolOp(op=operator, values=[first, *others]):
                rest = others[0] if len(others) == 1 else ast.copy_location(ast.BoolOp(operator, others), others[0])
                left = self.truth(first)
                if isinstance(operator, ast.And):
                    return self.conditional(left, lambda: self.truth(rest, True), lambda: FALSE, pos, "both")
                return self.conditional(left, lambda: TRUE, lambda: self.truth(rest, True), pos, "either")
            case ast.Compare(ops=[_, _, *_]):
                return self.comparison(node, "t", as_truth=True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.truth(test)
                return self.conditional(
                    condition, lambda: self.truth(body, True), lambda: self.truth(orelse, True), pos
                )
            case _:
                return self.as_bool(self.expression(node), node) if real else self.expression(node)

    def as_bool(self, operand: Operand, node: ast.expr) -> Operand:
        """`bool(operand)`, whatever the name `bool` means here."""
        match node:
            case ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                return operand
        if isinstance(operand, Const):
            return Const(bool(operand.value)) if operand is not NOTHING else operand
        return self.emit(Unary("not", self.emit(Unary("not", operand), node)), node)

    def short_circuit(self, node: ast.BoolOp, hint: str) -> Operand:
        def from_(index: int) -> Operand:
            left = self.expression(node.values[index], hint)
            if index == len(node.values) - 1:
                return left
            if isinstance(node.op, ast.And):
                return self.conditional(left, lambda: from_(index + 1), lambda: left, pos_of(node), hint)
            return self.conditional(left, lambda: left, lambda: from_(index + 1), pos_of(node), hint)

        return from_(0)

    def comparison(self, node: ast.Compare, hint: str, as_truth: bool = False) -> Operand:
        last = len(node.ops) - 1

        def from_(index: int, left: Operand) -> Operand:
            match node.ops[index], node.comparators[index]:
                case ast.In() | ast.NotIn(), ast.Set(elts=elts) as container:
                    right: Operand = self.emit(BuildTuple(self.items(elts), hashed=True), container)
                case _, container:
                    right = self.expression(container)
            out = self.emit(Compare(COMPARE[type(node.ops[index])], left, right), node, hint)
            if index == last:
                return self.as_bool(out, node) if as_truth else out
            otherwise: Operand = FALSE if as_truth else out
            return self.conditional(out, lambda: from_(index + 1, right), lambda: otherwise, pos_of(node), hint)

        return from_(0, self.expression(node.left))

    # ---- calls ------------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call, hint: str) -> Operand:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name in FRAME_BUILTINS and name not in self.env and name not in self.source.free_names:
            of_method = "__class__" in self.source.free_names and not node.args and not node.keywords
            if not (name == "super" and of_method):
                self.refuse(node, f"`{name}` cannot be accelerated: it looks at the frame of its caller")
        # The closure of a nested function is made last, as an argument may bind what it captures (`f(x := 1)`).
        late = name is not None and name in self.env and self.env[name].definition is not None
        if late:
            assert name is not None
            self.check_bound(name, node.func)
            function: Operand = NONE
        else:
            function = self.expression(node.func)
            self.check_called(function, node)
        args = self.items(node.args)
        kwargs = tuple((keyword.arg, self.expression(keyword.value)) for keyword in node.keywords)
        if late:
            assert name is not None
            function = self.read(name, node.func)
        elif self.scopes.binds_inside_expressions:
            self.check_called(function, node)
        out = self.emit(Call(function, args, kwargs), node, hint)
        given = [arg.operand if isinstance(arg, Star) else arg for arg in args] + [value for _, value in kwargs]
        self.hold_call(node, function, out, given)
        return out

    def store(self, name: str, operand: Operand, node: ast.AST) -> None:
        """Bind a name, or what a cell holds."""
        if cell_of(name) == name:
            self.bind(name, operand)
            return
        cell = self.read(cell_of(name), node)
        self.effect(SetAttribute(cell, "cell_contents", operand), node)
        if isinstance(operand, Var) and operand in self.held:
            self.keep(cell, self.held[operand], node)

    def check_called(self, function: Operand, node: ast.Call) -> None:
        if isinstance(function, Var):
            for captured, then in (*self.held.get(function, ()), *self.held_by_call.get(function, ())):
                if captured == CARRIED:
                    for loop in self.loops:
                        loop.called.add(then)
                elif not self.still(captured, then):
                    self.refuse(
                        node,
                        f"this may call a function that uses `{captured}`, which has been bound again since",
                        f"pass `{captured}` to the function as an argument, or give the new value another name",
                    )

    def hold_call(self, node: ast.Call, function: Operand, out: Var, given: list[Operand]) -> None:
        """Note which closures the result of a call, or the object whose method it is, may keep."""
        if isinstance(function, Var):
            if any(nested.function.generator for nested in self.converted.get(function, ())):
                self.held[out] = self.held.get(out, frozenset()) | self.held.get(function, frozenset())
                self.lazy.add(out)
            for nested in self.converted.get(function, ()):
                kept = frozenset(entry for entry in self.held.get(function, ()) if entry[0] in nested.returned)
                self.held[out] = self.held.get(out, frozenset()) | kept
                self.hold(out, *(self.env[name].operand for name in nested.passed_on))
        held = frozenset(entry for part in given if isinstance(part, Var) for entry in self.held.get(part, ()))
        if not held:
            return
        callee = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if callee in LAZY:
            self.hold(out, *given)
            self.lazy.add(out)
        elif callee in KEEPING:
            self.hold(out, *(part for part in given if part not in self.lazy))
        else:
            self.held_by_call[out] = held
        match node.func:
            case ast.Attribute(value=ast.Name(id=name)) if cell_of(name) in self.env:
                self.keep(self.read(cell_of(name), node), held, node)

    def keep(self, container: Operand, held: frozenset[tuple[str, object]], node: ast.AST) -> None:
        """Note that a value with closures is put into an object that lives on."""
        for name, _ in held:
            if any(name in loop.names for loop in self.loops):
                self.refuse(
                    node,
                    f"a function that uses `{name}` is kept while `{name}` changes from iteration to iteration",
                    f"pass `{name}` to the function as an argument",
                )
        if isinstance(container, Var) and held:
            self.held[container] = self.held.get(container, frozenset()) | held

    def defaults(self, arguments: ast.arguments) -> tuple[Operand, ...]:
        nodes = [*arguments.defaults, *(node for node in arguments.kw_defaults if node is not None)]
        return tuple(self.expression(node) for node in nodes)

    # ---- comprehensions ---------------------------------------------------------------------------------------------

    def comprehension(self, node: Comprehensions, hint: str, level: int = 0) -> Operand:
        """The comprehension of the `level`-th `for` on; outer levels call this from inside their element function."""
        generator = node.generators[level]
        if generator.is_async:
            self.refuse(node, "an asynchronous comprehension cannot be accelerated")
        for inner in walk(node):
            if isinstance(inner, ast.NamedExpr):
                self.refuse(
                    inner, "`:=` inside a comprehension cannot be accelerated", "write the comprehension as a loop"
                )
        kind = _KINDS[type(node)]
        if level and kind != "generator":
            kind = "inner"
        iterable = self.expression(generator.iter)
        element = self.make_closure(self.element_function(node, level, "element"), node)
        condition = None
        if generator.ifs:
            condition = self.make_closure(self.element_function(node, level, "condition"), node)
        flatten = level + 1 < len(node.generators)
        out = self.emit(Comprehension(kind, iterable, element, condition, flatten), node, hint)
        if kind == "generator":
            self.hold(out, iterable, element, *([condition] if condition else []))
            self.converted.pop(out, None)
            self.lazy.add(out)
        else:
            (converted,) = self.converted[element]
            self.held[out] = frozenset(entry for entry in self.held[element] if entry[0] in converted.returned)
            self.hold(out, *(self.env[name].operand for name in converted.passed_on))
        return out
