"""Readable text for the untyped IR.

One line per statement, `outs = operator operands`, blocks indented. A branch ends in `give results`, a loop body in
`next results`, the condition of a `while` in `test result`, a function in `return result`. Loop parameters stand
behind `with` as `param = init`. Variables are `name.uid`; `names="short"` numbers them from 1 in order of appearance,
so that the text of a function does not depend on what was converted before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from parakeet_py.base import grammar
from parakeet_py.base.positions import Line
from parakeet_py.frontend import ssa
from parakeet_py.frontend.ssa import Block, Const, Function, Let, Op, Operand, Var

_PREFIX = {"vararg": "*", "varkw": "**"}


def format_function(function: Function, *, positions: bool = False, names: Literal["uid", "short"] = "uid") -> str:
    """The text of a function.

    Parameters
    ----------
    positions : bool
        Whether each statement ends in `# line:column` of the user's source.
    names : {"uid", "short"}
        Whether variables have their own numbers or are numbered from 1.
    """
    printer = _Printer(positions, names == "short")
    printer.function(function, 0)
    return "\n".join([line.text for line in printer.lines])


def lines_of(function: Function) -> list[Line]:
    """The text of a function, line by line."""
    printer = _Printer(False, False)
    printer.function(function, 0)
    return printer.lines


class _Printer:
    def __init__(self, positions: bool, short: bool) -> None:
        self.positions, self.short = positions, short
        self.lines: list[Line] = []
        self.numbers: dict[Var, int] = {}

    def line(self, depth: int, text: str, let: Let | None = None) -> None:
        if self.positions and let is not None:
            text = f"{text}  # {let.pos.line}:{let.pos.column}"
        self.lines.append(Line("    " * depth + text, None if let is None else let.pos))

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Const):
            return repr(operand.value)
        if self.short:
            return f"{operand.name}.{self.numbers.setdefault(operand, len(self.numbers) + 1)}"
        return repr(operand)

    def listed(self, items: Iterable[ssa.Item]) -> str:
        return ", ".join(
            "*" + self.operand(item.operand) if isinstance(item, ssa.Star) else self.operand(item) for item in items
        )

    def function(self, function: Function, depth: int) -> None:
        params = ", ".join(self.param(param) for param in function.params)
        captures = f" captures ({self.listed(function.captures)})" if function.captures else ""
        self.line(depth, f"function {function.name}({params}){captures}:")
        self.block(function.body, depth + 1, "return")

    def param(self, param: ssa.Param) -> str:
        text = _PREFIX.get(param.kind, "") + self.operand(param.var)
        if param.kind == "keyword":
            text = "keyword " + text
        if param.positional_only:
            text = "positional " + text
        return text + " = ..." if param.has_default else text

    def block(self, block: Block, depth: int, ending: str) -> None:
        for let in block.statements:
            self.let(let, depth)
        if block.results:
            self.line(depth, f"{ending} {self.listed(block.results)}")
        elif not block.statements:
            self.line(depth, "pass")

    def let(self, let: Let, depth: int) -> None:
        outs = self.listed(let.outs) + " = " if let.outs else ""
        match let.op:
            case ssa.If(condition, then, orelse):
                self.line(depth, f"{outs}if {self.operand(condition)}:", let)
                self.block(then, depth + 1, "give")
                if orelse.statements or orelse.results:
                    self.line(depth, "else:")
                    self.block(orelse, depth + 1, "give")
            case ssa.For(iterable, item, params, inits, body, stoppable):
                head = f"for {self.operand(item)} in {self.operand(iterable)}"
                self.line(depth, f"{outs}{head}{self.carried(params, inits)}{' stoppable' * stoppable}:", let)
                self.block(body, depth + 1, "next")
            case ssa.While(params, inits, condition_block, body, stoppable):
                self.line(depth, f"{outs}while{self.carried(params, inits)}{' stoppable' * stoppable}:", let)
                self.block(condition_block, depth + 1, "test")
                self.line(depth, "do:")
                self.block(body, depth + 1, "next")
            case ssa.Guarded(body, classes, keeps):
                kept = ", which are kept" * keeps
                self.line(depth, f"{outs}guarded against {self.listed(classes)}{kept}:", let)
                self.block(body, depth + 1, "give")
            case ssa.Assert(condition, message):
                self.line(depth, f"assert {self.operand(condition)}{', message:' * (message is not None)}", let)
                if message is not None:
                    self.block(message, depth + 1, "give")
            case ssa.MakeClosure(function, captures, defaults):
                given = f"closure of {function.name}"
                if captures:
                    given += f" over ({self.listed(captures)})"
                if defaults:
                    given += f" defaults ({self.listed(defaults)})"
                self.line(depth, f"{outs}{given}:", let)
                self.function(function, depth + 1)
            case op:
                self.line(depth, outs + self.simple(op), let)

    def carried(self, params: tuple[Var, ...], inits: tuple[Operand, ...]) -> str:
        pairs = zip(params, inits, strict=True)
        text = ", ".join(f"{self.operand(param)} = {self.operand(init)}" for param, init in pairs)
        return f" with {text}" if text else ""

    def simple(self, op: Op) -> str:
        """An operator without blocks."""
        show, listed = self.operand, self.listed
        match op:
            case ssa.Call(function, args, kwargs):
                named = [show(value) if key is None else f"{key}={show(value)}" for key, value in kwargs]
                named = ["**" + text if key is None else text for (key, _), text in zip(kwargs, named, strict=True)]
                return f"call {show(function)}({', '.join(filter(None, [listed(args), *named]))})"
            case ssa.ChangeList(change, value, args, None):
                return f"change {change} {listed((value, *args))}"
            case ssa.ChangeList(change, value, args, at) if at is not None:
                return f"change {change} {show(value)}[{show(at)}]{''.join(f', {show(arg)}' for arg in args)}"
            case ssa.BuildDict(pairs):
                shown = (f"**{show(value)}" if key is None else f"{show(key)}: {show(value)}" for key, value in pairs)
                return "dict {" + ", ".join(shown) + "}"
            case ssa.BuildString(parts):
                return f"string {', '.join(self.part(*part) for part in parts)}"
            case ssa.Unpack(value, before, star, after):
                return f"unpack {show(value)} into {before}" + (f", *, {after}" if star else "")
            case ssa.Comprehension(kind, iterable, element, condition, flatten):
                text = f"comprehension {kind} {show(element)} over {show(iterable)}"
                text += "" if condition is None else f" where {show(condition)}"
                return text + " flatten" * flatten
            case ssa.Import(module, name, level):
                dotted = "." * level + module
                return f"import {dotted}" if name is None else f"import {name} from {dotted}"
        return grammar.text(op, show)

    def part(self, operand: Operand, conversion: str, spec: str) -> str:
        return self.operand(operand) + ("!" + conversion if conversion else "") + (":" + spec if spec else "")
