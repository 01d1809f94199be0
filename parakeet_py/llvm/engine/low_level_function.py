"""One function of low-level Python, translated; `low_level_python` says what the language is."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from parakeet_py.llvm.engine.ssa_text import Block, SsaText, Value

TYPES = ("ptr", "i1", "i8", "i32", "i64", "double")
_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[int, int], int]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.FloorDiv: ("udiv", operator.floordiv),
    ast.Mod: ("urem", operator.mod),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
    ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("lshr", operator.rshift),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}
_ATOMIC = {
    "atomic_load": "load atomic {kind}, ptr {address} {order}, align {align}",
    "atomic_store": "store atomic {kind} {0}, ptr {address} {order}, align {align}",
    "atomic_add": "atomicrmw add ptr {address}, {kind} {0} {order}",
    "atomic_sub": "atomicrmw sub ptr {address}, {kind} {0} {order}",
    "atomic_or": "atomicrmw or ptr {address}, {kind} {0} {order}",
    "exchange": "atomicrmw xchg ptr {address}, {kind} {0} {order}",
    "compare_exchange": "cmpxchg ptr {address}, {kind} {0}, {kind} {1} {order} monotonic",
}


@dataclass(slots=True)
class Prototype:
    """How a function is called."""

    symbol: str
    result: str
    parameters: list[str]
    varargs: bool
    words: list[str]
    convention: str

    def head(self, names: Sequence[str] = ()) -> str:
        """The line of its declaration."""
        parts = [f"{kind} %{name}" for kind, name in zip(self.parameters, names, strict=False)] or self.parameters
        return f"{self.convention}{self.result} {self.symbol}({', '.join(parts + ['...'] * self.varargs)})"


def constant(node: ast.expr | ast.slice, constants: Mapping[str, int | str]) -> int | None:
    """The number that an expression of constants is."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(name):
            found = constants.get(name)
            return found if isinstance(found, int) else None
        case ast.UnaryOp(op=ast.USub() | ast.Not() as how):
            inner = constant(node.operand, constants)
            return inner if inner is None else not inner if isinstance(how, ast.Not) else -inner
        case ast.BinOp():
            left, right = constant(node.left, constants), constant(node.right, constants)
            return None if left is None or right is None else _ARITHMETIC[type(node.op)][1](left, right)
    return None


@dataclass(slots=True)
class Symbols:
    """What the functions of a module know of each other: functions and variables by name, and what is declared."""

    functions: dict[str, Prototype] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)


class Function:
    """Translates one function."""

    def __init__(self, node: ast.FunctionDef, constants: Mapping[str, int | str], symbols: Symbols) -> None:
        self.node = node
        self.constants = constants
        self.symbols = symbols
        self.prototype = symbols.functions[node.name]
        self.ssa = SsaText(node.name)
        self.loops: list[tuple[Block, Block]] = []

    def text(self) -> str:
        """The definition."""
        names = [one.arg for one in self.node.args.args]
        for name, kind in zip(names, self.prototype.parameters, strict=True):
            self.ssa.assign(name, Value(kind, f"%{name}"))
        self._statements(self.node.body)
        if self.ssa.present is not None:
            self.ssa.end("ret void")
        linkage = "internal " if "internal" in self.prototype.words else ""
        words = " ".join(word for word in self.prototype.words if word != "internal")
        head = f"define {linkage}{self.prototype.head(names)} {words} {{"
        return f"{head}\n{self.ssa.text()}\n}}"

    def _error(self, node: ast.AST, text: str) -> NoReturn:
        raise SyntaxError(f"{self.node.name}, line {getattr(node, 'lineno', 0)}: {text}: {ast.unparse(node)}")

    # ---- statements --------------------------------------------------------------------------------------------------

    def _statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(ast.Call() as call):
                self._call(call)
            case ast.Expr(ast.Constant()) | ast.Pass():
                pass
            case ast.Assign(targets=[ast.Name(name)], value=value):
                self.ssa.assign(name, self._value(value, self.ssa.types.get(name)))
            case ast.AnnAssign(target=ast.Name(name), annotation=annotation, value=ast.expr() as value):
                self.ssa.assign(name, self._value(value, ast.unparse(annotation)))
            case ast.Assign(targets=[target], value=value):
                kind, address = self._place(target)
                self.ssa.put(f"store {kind} {self._value(value, kind).text}, ptr {address}")
            case ast.AugAssign(target=ast.Name(name) as target, value=value):
                self.ssa.assign(name, self._arithmetic(node, *self._pair(target, value)))
            case ast.AugAssign():
                kind, address = self._place(node.target)
                before = self.ssa.let(kind, f"load {kind}, ptr {address}")
                after = self._arithmetic(node, before, self._value(node.value, kind))
                self.ssa.put(f"store {kind} {after.text}, ptr {address}")
            case ast.If():
                self._if(node)
            case ast.While():
                self._while(node)
            case ast.Break():
                self.ssa.jump(self.loops[-1][1])
            case ast.Continue():
                self.ssa.jump(self.loops[-1][0])
            case ast.Return(value=None):
                self.ssa.end("ret void")
            case ast.Return(value=ast.expr() as value):
                result = self._value(value, self.prototype.result, tail="" if self.ssa.rooms else "tail ")
                if result.type != self.prototype.result:
                    self._error(node, f"{result.type} is no {self.prototype.result}")
                self.ssa.end(f"ret {result.type} {result.text}")
            case _:
                self._error(node, "no statement of low-level Python")

    def _if(self, node: ast.If) -> None:
        known = constant(node.test, self.constants)
        if known is not None:
            self._statements(node.body if known else node.orelse)
            return
        then, other, after = self.ssa.block(), self.ssa.block(), self.ssa.block()
        self._condition(node.test, then, other)
        for block, body in ((then, node.body), (other, node.orelse)):
            self.ssa.start_sealed(block)
            self._statements(body)
            if self.ssa.present is not None:
                self.ssa.jump(after)
        self.ssa.start_sealed(after)

    def _while(self, node: ast.While) -> None:
        head, body, after = self.ssa.block(), self.ssa.block(), self.ssa.block()
        self.ssa.jump(head)
        self.ssa.start(head)
        self._condition(node.test, body, after)
        self.ssa.start_sealed(body)
        self.loops.append((head, after))
        self._statements(node.body)
        self.loops.pop()
        if self.ssa.present is not None:
            self.ssa.jump(head)
        self.ssa.start_sealed(head)
        self.ssa.start_sealed(after)

    def _condition(self, node: ast.expr, yes: Block, no: Block) -> None:
        """Go to one block or the other."""
        known = constant(node, self.constants)
        match node:
            case _ if known is not None:
                self.ssa.jump(yes if known else no)
            case ast.BoolOp(op=op, values=[*first, last]):
                for one in first:
                    following = self.ssa.block()
                    self._condition(one, *((following, no) if isinstance(op, ast.And) else (yes, following)))
                    self.ssa.start_sealed(following)
                self._condition(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._condition(operand, no, yes)
            case _:
                value = self._value(node, "i1")
                if value.type != "i1":
                    self._error(node, "no condition")
                self.ssa.end(f"br i1 {value.text}, label %{yes.label}, label %{no.label}", yes, no)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def _value(self, node: ast.expr, wanted: str | None = None, tail: str = "") -> Value:
        known = constant(node, self.constants)
        if known is not None:
            kind = "i1" if isinstance(known, bool) else wanted or "i64"
            return Value(kind, str(bool(known)).lower() if kind == "i1" else str(int(known)))
        match node:
            case ast.Name("null"):
                return Value("ptr", "null")
            case ast.Name(name) if name in self.ssa.types:
                return self.ssa.read(name, self.ssa.here())
            case ast.Name(name) if name in self.symbols.variables:
                return Value("ptr", self.symbols.variables[name])
            case ast.Name(name) if name in self.symbols.functions:
                return Value("ptr", self.symbols.functions[name].symbol)
            case ast.Attribute(attr=attr) if attr not in TYPES:
                return self._offset(self._value(node.value), str(self.constants[attr]))
            case ast.Attribute() | ast.Subscript():
                kind, address = self._place(node)
                return self.ssa.let(kind, f"load {kind}, ptr {address}")
            case ast.Call():
                return self._call(node, wanted, tail)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                inner = self._value(operand, wanted)
                return self.ssa.let(inner.type, f"xor {inner.type} {inner.text}, -1")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._value(operand, wanted)
                return self.ssa.let(inner.type, f"sub {inner.type} 0, {inner.text}")
            case ast.BinOp(left=left, right=right):
                return self._arithmetic(node, *self._pair(left, right, wanted))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(_COMPARISONS[type(op)], left, right)
            case ast.IfExp():
                return self._select(node, wanted)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self._truth(node)
            case _:
                self._error(node, "no expression of low-level Python")

    def _offset(self, base: Value, count: str) -> Value:
        return base if count == "0" else self.ssa.let("ptr", f"getelementptr i8, ptr {base.text}, i64 {count}")

    def _pair(self, left: ast.expr, right: ast.expr, wanted: str | None = None) -> tuple[Value, Value]:
        """Both operands; a number takes the type of the other."""
        if constant(left, self.constants) is not None:
            second = self._value(right, wanted)
            return self._value(left, second.type), second
        first = self._value(left, wanted)
        return first, self._value(right, "i64" if first.type == "ptr" else first.type)

    def _arithmetic(self, node: ast.BinOp | ast.AugAssign, left: Value, right: Value) -> Value:
        if left.type == "ptr":
            negative = isinstance(node.op, ast.Sub)
            assert right.type == "i64" and (not negative or right.text.isdigit()), ast.unparse(node)
            return self._offset(left, f"-{right.text}" if negative else right.text)
        if left.type != right.type:
            self._error(node, f"{left.type} and {right.type}")
        return self.ssa.let(left.type, f"{_ARITHMETIC[type(node.op)][0]} {left.type} {left.text}, {right.text}")

    def _comparison(self, how: str, left: ast.expr, right: ast.expr) -> Value:
        first, second = self._pair(left, right)
        if first.type != second.type:
            self._error(left, f"{first.type} is compared with {second.type}")
        return self.ssa.let("i1", f"icmp {how} {first.type} {first.text}, {second.text}")

    def _select(self, node: ast.IfExp, wanted: str | None) -> Value:
        known = constant(node.test, self.constants)
        if known is not None:
            return self._value(node.body if known else node.orelse, wanted)
        if any(isinstance(inner, ast.Call) for arm in (node.body, node.orelse) for inner in ast.walk(arm)):
            self._error(node, "both sides are computed")
        condition = self._value(node.test, "i1")
        then, other = self._pair(node.body, node.orelse, wanted)
        kind = then.type
        if condition.type != "i1" or kind != other.type:
            self._error(node, f"{condition.type} chooses from {kind} and {other.type}")
        return self.ssa.let(kind, f"select i1 {condition.text}, {kind} {then.text}, {kind} {other.text}")

    def _truth(self, node: ast.expr) -> Value:
        """A condition as a value."""
        yes, no, after = self.ssa.block(), self.ssa.block(), self.ssa.block()
        self._condition(node, yes, no)
        for block in (yes, no):
            self.ssa.start_sealed(block)
            self.ssa.jump(after)
        self.ssa.start_sealed(after)
        phi = self.ssa.phi("i1", after)
        phi.operands.extend((("true", yes.label), ("false", no.label)))
        return phi.value

    def _place(self, node: ast.expr) -> tuple[str, str]:
        """The type and the address of a word in memory."""
        match node:
            case ast.Subscript(value=ast.Attribute(value=base, attr=kind), slice=index) if kind in TYPES:
                start, count = self._value(base), self._value(index)
                line = f"getelementptr {kind}, ptr {start.text}, {count.type} {count.text}"
                return kind, start.text if count.text == "0" else self.ssa.let("ptr", line).text
            case ast.Attribute(value=base, attr=kind) if kind in TYPES:
                start = self._value(base)
                if start.type != "ptr":
                    self._error(node, f"{start.type} is no address")
                return kind, start.text
        self._error(node, "no word in memory")

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call, wanted: str | None = None, tail: str = "") -> Value:
        match node.func, node.args:
            case ast.Attribute(value=target, attr=kind), arguments:
                return self._invoke(kind, "", self._value(target).text, [self._value(one) for one in arguments])
            case ast.Name(name), arguments if name in self.symbols.functions:
                made = self.symbols.functions[name]
                kinds = made.parameters + ["i64"] * (len(arguments) - len(made.parameters) if made.varargs else 0)
                values = [self._value(one, kind) for one, kind in zip(arguments, kinds, strict=True)]
                if [one.type for one in values][: len(made.parameters)] != made.parameters:
                    self._error(node, f"arguments are {made.parameters}")
                shape = f" ({', '.join([*made.parameters, '...'])})" if made.varargs else ""
                return self._invoke(made.result, f"{tail}call {made.convention}", made.symbol, values, shape)
            case ast.Name(name), arguments:
                return self._builtin(node, name, arguments, wanted)
        self._error(node, "no call of low-level Python")

    def _invoke(self, kind: str, how: str, target: str, arguments: list[Value], shape: str = "") -> Value:
        given = ", ".join(f"{one.type} {one.text}" for one in arguments)
        line = f"{how or 'call '}{kind}{shape} {target}({given})"
        if kind == "void":
            self.ssa.put(line)
            return Value("void", "")
        return self.ssa.let(kind, line)

    def _builtin(self, node: ast.Call, name: str, arguments: list[ast.expr], wanted: str | None) -> Value:
        match name, arguments:
            case _, [argument] if name in TYPES:
                return self._convert(self._value(argument), name, "zext")
            case "sext", [argument]:
                return self._convert(self._value(argument), "i64", "sext")
            case (("ult" | "ule" | "ugt" | "uge"), [left, right]):
                return self._comparison(name, left, right)
            case (("smin" | "smax" | "umin"), [left, right]):
                first = self._value(left, wanted)
                kind = first.type
                return self._intrinsic(f"{name}.{kind}", kind, [first, self._value(right, kind)])
            case (("memset" | "memcpy" | "memmove"), [target, source, size]):
                values = [
                    self._value(target),
                    self._value(source, "i8"),
                    self._value(size, "i64"),
                    Value("i1", "false"),
                ]
                return self._intrinsic(f"{name}.p0.{'p0.' * (name != 'memset')}i64", "void", values)
            case "alloca", [ast.Name(kind), *rest]:
                count, align = [constant(one, self.constants) for one in rest] + [1, 8][len(rest) :]
                return self.ssa.room(f"[{count} x {kind}]", f"{align}")
            case "asm", [ast.Name(instruction)]:
                if self.constants[instruction]:
                    self.ssa.put(f'call void asm sideeffect "{self.constants[instruction]}", "~{{memory}}"()')
                return Value("void", "")
            case _, [place, *operands, ast.Constant(value=order)] if name in _ATOMIC:
                kind, address = self._place(place)
                align = 8 if kind == "ptr" else int(kind[1:]) // 8
                texts = [self._value(one, kind).text for one in operands]
                line = _ATOMIC[name].format(*texts, kind=kind, address=address, order=order, align=align)
                if name == "atomic_store":
                    self.ssa.put(line)
                    return Value("void", "")
                made = self.ssa.let(kind, line)
                if name != "compare_exchange":
                    return made
                return self.ssa.let("i1", f"extractvalue {{{kind}, i1}} {made.text}, 1")
        self._error(node, "no function of low-level Python")

    def _intrinsic(self, name: str, kind: str, values: list[Value]) -> Value:
        symbol = f"@llvm.{name}"
        self.symbols.declarations[symbol] = f"declare {kind} {symbol}({', '.join(one.type for one in values)})"
        return self._invoke(kind, "", symbol, values)

    def _convert(self, value: Value, kind: str, widen: str) -> Value:
        if value.type == kind:
            return value
        if value.type == "ptr":
            how = "ptrtoint"
        elif kind == "ptr":
            how = "inttoptr"
        else:
            how = widen if int(value.type[1:]) < int(kind[1:]) else "trunc"
        return self.ssa.let(kind, f"{how} {value.type} {value.text} to {kind}")
