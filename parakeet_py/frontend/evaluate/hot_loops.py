"""Loops that the evaluator has run many times, as Python code.

`evaluate` takes microseconds for what CPython does in tens of nanoseconds: too long for a loop of a million turns.
After some turns of a loop enough is known of its types; the rest of it is a function in Python, made of the same
operators, which does the same and informs the observer of calls only. Its lines are those of the user's source.

`code_of` gives None for loops with operators that are not written here: they stay in the evaluator.
"""

from __future__ import annotations

import ast
import builtins
import math
import types
import weakref
from collections.abc import Sequence
from typing import Any

from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.caught_steps import item_of
from parakeet_py.frontend.desugar.generators import yielded
from parakeet_py.frontend.evaluate.binding import unpacker
from parakeet_py.frontend.operators import INPLACE, formatted
from parakeet_py.frontend.ssa import Block, Const, Let, Operand, Pos, Star, Var

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "is": "is", "isnot": "is not", "in": "in",
    "notin": "not in",
}  # fmt: skip
_PREFIX = {"neg": "-", "pos": "+", "invert": "~", "not": "not "}
_PLAIN = (bool, int, str, types.NoneType)

# Functions that change nothing and call only methods of their arguments: nothing is asked before they are called.
QUIET = frozenset(
    id(function)
    for function in (
        *(getattr(builtins, name) for name in ("abs", "bool", "divmod", "float", "int", "len", "max", "min", "range")),
        *(function for name, function in vars(math).items() if type(function) is types.BuiltinFunctionType),
        item_of,
    )
)
codes: weakref.WeakSet[types.CodeType] = weakref.WeakSet()  # of functions made here, for tracebacks


class _Unknown(Exception):
    """An operator that is not written in Python."""


class HotLoop:
    """A loop as a function: of the frame's helpers, its iterator, what it carries, and variables of the frame."""

    def __init__(self, op: ssa.For | ssa.While, let: Let, function: ssa.Function) -> None:
        writer = _Writer()
        state = [writer.bind(param) for param in op.params]
        body = writer.loop(op, let.pos, "items", state)
        results = ", ".join([*(["stopped"] if op.stoppable else []), *state])
        body += writer.statement(f"return ({results}{',' if results else ''})", let.pos)
        self.constants = tuple(writer.constants.values())
        self.outside = tuple(writer.outside)
        parameters = ["frame", "called", "quiet", "id", "items", *state, *writer.constants, *writer.outside.values()]
        definition = writer.statement(f"def loop({', '.join(parameters)}): pass", let.pos)[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.name = function.name if function.name.isidentifier() else "loop"
        definition.body = body
        made = compile(ast.Module([definition], []), function.filename, "exec")
        self.code = next(one for one in made.co_consts if isinstance(one, types.CodeType))
        codes.add(self.code)

    def run(self, frame: Any, items: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """The rest of the loop; gives its outs."""
        function = types.FunctionType(self.code, frame.python.__globals__)
        values = [frame.values.get(var) for var in self.outside]
        outs: tuple[Any, ...] = function(frame, frame.called, QUIET, id, items, *state, *self.constants, *values)
        return outs


def code_of(op: ssa.For | ssa.While, let: Let, function: ssa.Function) -> HotLoop | None:
    """A loop as Python code, if all of its operators can be written."""
    try:
        return HotLoop(op, let, function)
    except _Unknown:
        return None


class _Writer:
    """Writes statements; variables that nothing in the loop binds come from outside."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.outside: dict[Var, str] = {}
        self.constants: dict[str, Any] = {}

    def bind(self, var: Var) -> str:
        return self.names.setdefault(var, f"v{len(self.names)}")

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def read(self, operand: Operand) -> str:
        if isinstance(operand, Const):
            return f"({operand.value!r})" if type(operand.value) in _PLAIN else self.constant(operand.value)
        if operand not in self.names:
            self.outside[operand] = self.bind(operand)
        return self.names[operand]

    def items(self, items: Sequence[ssa.Item]) -> str:
        return "".join(
            f"*{self.read(one.operand)}, " if isinstance(one, Star) else f"{self.read(one)}, " for one in items
        )

    def statement(self, text: str, pos: Pos) -> list[ast.stmt]:
        """Statements, each at the place of the operator they are for."""
        made = ast.parse(text).body
        for node in (inner for one in made for inner in ast.walk(one) if hasattr(inner, "lineno")):
            node.lineno, node.col_offset = pos.line, pos.column  # type: ignore[attr-defined]
            node.end_lineno, node.end_col_offset = pos.end_line, pos.end_column  # type: ignore[attr-defined]
        return made

    def block(self, block: Block) -> list[ast.stmt]:
        return [made for let in block.statements for made in self.let(let)]

    def assigned(self, targets: Sequence[str], values: Sequence[str], pos: Pos) -> list[ast.stmt]:
        return self.statement(f"{', '.join(targets)} = {', '.join(values)}", pos) if targets else []

    def let(self, let: Let) -> list[ast.stmt]:
        read, pos = self.read, let.pos
        match let.op:
            case ssa.If(condition, then, orelse):
                made = self.statement(f"if {read(condition)}: pass\nelse: pass", pos)
                arms = [self.block(arm) for arm in (then, orelse)]
                results = [[read(result) for result in arm.results] for arm in (then, orelse)]
                outs = [self.bind(out) for out in let.outs]
                branch = made[0]
                assert isinstance(branch, ast.If)
                branch.body, branch.orelse = (
                    arm + self.assigned(outs, values, pos) or self.statement("pass", pos)
                    for arm, values in zip(arms, results, strict=True)
                )
                return made
            case ssa.For() | ssa.While() as op:
                start = f"iter({read(op.iterable)})" if isinstance(op, ssa.For) else "None"
                inits = [read(init) for init in op.inits]
                state = [self.bind(param) for param in op.params]
                items = self.bind(Var("items"))
                made = self.statement(f"{items} = {start}", pos) + self.assigned(state, inits, pos)
                made += self.loop(op, pos, items, state)
                outs = [self.bind(out) for out in let.outs]
                return made + self.assigned(outs, [*(["stopped"] if op.stoppable else []), *state], pos)
            case ssa.Guarded():
                return self.guarded(let, let.op)
            case ssa.Assert(condition, message):
                made = self.statement(f"if not {read(condition)}: pass", pos)
                test = made[0]
                assert isinstance(test, ast.If)
                before = [] if message is None else self.block(message)
                text = "" if message is None else ", ".join(map(read, message.results))
                test.body = before + self.statement(f"raise AssertionError({text})", pos)
                return made
            case ssa.Inplace(name, left, right) if name in INPLACE:
                out, given = self.bind(let.outs[0]), read(left)
                made = self.statement(f"{out} = {given}\n{out} {_INFIX[name]}= {read(right)}", pos)
                noted = f"frame.note_change({self.constant(let)})"
                kinds = self.constant((list, dict))
                return made + self.statement(f"if {out}.__class__ in {kinds} and {out} is {given}: {noted}", pos)
            case ssa.SetItem(value, index, new):
                return self.statement(f"{read(value)}[{read(index)}] = {read(new)}", pos)
            case ssa.DeleteItem(value, index):
                return self.statement(f"del {read(value)}[{read(index)}]", pos)
            case ssa.SetAttribute(value, name, new):
                return self.statement(f"setattr({read(value)}, {name!r}, {read(new)})", pos)
            case ssa.CheckBound(flag, name, free):
                error = self.constant(ssa.unbound_name)
                return self.statement(f"if not {read(flag)}: raise {error}({name!r}, {free})", pos)
            case ssa.Raise(exception, Var() | Const() as cause):
                return self.statement(f"raise {read(exception)} from {read(cause)}", pos)
            case ssa.Raise(exception):
                return self.statement(f"raise {read(exception)}", pos)
            case ssa.Unpack(value, before, star, after):
                text = f"{self.constant(unpacker(before, star, after))}({read(value)})"
                outs = [self.bind(out) for out in let.outs]
                return self.statement(f"{', '.join(outs)}, = {text}" if outs else text, pos)
            case ssa.ChangeList(change, held, args, at):
                given = f"[{', '.join(map(read, args))}]"
                if at is None:
                    text = f"frame.changed({change!r}, {read(held)}, {given})"
                else:
                    text = f"(*frame.changed({change!r}, {read(held)}[{read(at)}], {given})[:-1], {read(held)})"
                outs = [self.bind(out) for out in let.outs]
                return self.statement(f"{', '.join(outs)}, = {text}" if outs else text, pos)
        text = self.expression(let)
        return self.statement(f"{self.bind(let.outs[0])} = {text}" if let.outs else text, pos)

    def guarded(self, let: Let, op: ssa.Guarded) -> list[ast.stmt]:
        outs = [self.bind(out) for out in let.outs]
        made = self.statement("try: pass\nexcept BaseException as error: pass", let.pos)
        whole = made[0]
        assert isinstance(whole, ast.Try)
        body = self.block(op.body)
        results = ["0", *["None"] * op.keeps, *map(self.read, op.body.results)]
        whole.body = body + self.assigned(outs, results, let.pos) or self.statement("pass", let.pos)
        tests = [
            f"if isinstance(error, {self.read(one)}): {', '.join(outs)} = "
            + ", ".join([str(number), *["error"] * op.keeps, *["None"] * len(op.body.results)])
            for number, one in enumerate(op.classes, 1)
        ]
        whole.handlers[0].body = self.statement("\nel".join([*tests, "se: raise"]) if tests else "raise", let.pos)
        return made

    def expression(self, let: Let) -> str:
        read = self.read
        match let.op:
            case ssa.Binary(name, left, right) | ssa.Compare(name, left, right):
                return f"{read(left)} {_INFIX[name]} {read(right)}"
            case ssa.Unary(name, operand):
                return f"{_PREFIX[name]}{read(operand)}"
            case ssa.Subscript(value, index):
                return f"{read(value)}[{read(index)}]"
            case ssa.Attribute(value, name):
                return f"getattr({read(value)}, {name!r})"
            case ssa.Global(name):
                return f"frame.read_global({name!r})"
            case ssa.Free(name):
                return f"frame.read_cell({name!r})"
            case ssa.Call(Const(value)) if value is yielded:
                raise _Unknown
            case ssa.Call(function, items, kwargs) if all(key is not None for key, _ in kwargs) and not any(
                isinstance(one, Star) for one in items
            ):
                target, args = read(function), self.items(items)
                named = "".join(f"{key!r}: {read(operand)}, " for key, operand in kwargs)
                slow = f"called({self.constant(let)}, {target}, [{args}], {{{named}}})"
                return slow if named else f"{target}({args}) if id({target}) in quiet else {slow}"
            case ssa.BuildTuple(items):
                return f"({self.items(items)})"
            case ssa.BuildList(items):
                return f"[{self.items(items)}]"
            case ssa.BuildSet(items) if items:
                return f"{{{self.items(items)}}}"
            case ssa.BuildSlice(lower, upper, step):
                return f"slice({read(lower)}, {read(upper)}, {read(step)})"
            case ssa.BuildDict(pairs) if all(key is not None for key, _ in pairs):
                inside = (f"{read(key)}: {read(value)}" for key, value in pairs if key is not None)
                return f"{{{', '.join(inside)}}}"
            case ssa.BuildString(parts):
                made = self.constant(formatted)
                return (
                    f"''.join([{', '.join(f'{made}({read(part)}, {how!r}, {spec!r})' for part, how, spec in parts)}])"
                )
            case ssa.MakeClosure(function, captures, defaults):
                given = f"({self.items(captures)}), ({self.items(defaults)})"
                return f"frame.closure({self.constant(function)}, {given})"
            case ssa.Comprehension(_, iterable, element, condition):
                wanted = "None" if condition is None else read(condition)
                return f"frame.comprehension({self.constant(let)}, {read(iterable)}, {read(element)}, {wanted})"
        raise _Unknown

    def loop(self, op: ssa.For | ssa.While, pos: Pos, items: str, state: list[str]) -> list[ast.stmt]:
        """A loop whose iterator and state are there; whether it was stopped is in `stopped`."""
        before: list[ast.stmt] = []
        if isinstance(op, ssa.For):
            made = self.statement(f"for {self.bind(op.item)} in {items}: pass", pos)
        else:
            made = self.statement("while True: pass", pos)
            before = self.block(op.condition)
            before += self.statement(f"if not {self.read(op.condition.results[0])}: break", pos)
        body = before + self.block(op.body)
        results = [self.read(result) for result in op.body.results]
        flag = [self.bind(Var("stop"))] if op.stoppable else []
        body += self.assigned([*flag, *state], results, pos)
        if flag:
            body += self.statement(f"if {flag[0]}: break", pos)
        repeated = made[0]
        assert isinstance(repeated, ast.For | ast.While)
        repeated.body = body or self.statement("pass", pos)
        if not flag:
            return made
        return [*self.statement(f"{flag[0]} = False", pos), *made, *self.statement(f"stopped = {flag[0]}", pos)]
