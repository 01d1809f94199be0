"""Whether a function is well-formed untyped IR.

Every variable is bound once, and used only after its binding in the same or an inner block; branches of an `If` have
as many results as the `If` has outs; a loop's inits, parameters, outs and body results agree; operators have the
number of outs they give and known names; closures get what their functions capture. `problems` collects all findings
with their places; `check_function` raises them together.
"""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_py.base.errors import CodegenError, underlined
from parakeet_py.base.fast_dataclass import record
from parakeet_py.frontend.ownership.changes import FUNCTIONS, GIVING, METHODS
from parakeet_py.frontend.ssa import (
    Assert,
    Binary,
    Block,
    BuildDict,
    ChangeList,
    CheckBound,
    Compare,
    Comprehension,
    DeleteItem,
    For,
    Function,
    Guarded,
    If,
    Inplace,
    Let,
    MakeClosure,
    Operand,
    Pos,
    Raise,
    SetAttribute,
    SetItem,
    Unary,
    Unpack,
    Var,
    While,
    operands_of,
)

_BINARY = frozenset(
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
)
_COMPARE = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "is", "isnot", "in", "notin"])
_UNARY = frozenset(["neg", "pos", "invert", "not"])
_CHANGES = {
    **{name: (count,) for name, count in METHODS.items()},
    **{name: (1 + count,) for name, count in FUNCTIONS.items()},
    "iadd": (1,),
    "deque": (1,),
    "Counter": (1,),
    "defaultdict": (3,),
    "popright": (0,),
    "pop": (0, 1),
    "setdefault": (2,),
    "set": (2,),
    "delete": (1,),
}
_KINDS = frozenset({"list", "generator", "set", "tuple", "dict", "inner"})


@record
class Problem:
    """One thing that is wrong, and where."""

    pos: Pos
    message: str


def check_function(function: Function) -> Function:
    """The function itself, if it is well-formed.

    Raises
    ------
    CodegenError
        It is not; the text lists all problems with their source lines.
    """
    found = problems(function)
    if found:
        texts = [
            f"{function.filename}:{problem.pos.line}: {problem.message}"
            + underlined(function.lines, function.first_line, problem.pos)
            for problem in found
        ]
        raise CodegenError(f"malformed untyped IR of {function.name}\n" + "\n".join(texts))
    return function


def problems(function: Function) -> list[Problem]:
    """Everything that is wrong with a function and the functions inside it."""
    checker = _Checker()
    checker.function(function, Pos(function.first_line, 0, function.first_line, 0))
    return checker.found


class _Checker:
    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.bound: set[Var] = set()
        self.functions: set[int] = set()  # one function may be in several closures

    def expect(self, holds: bool, pos: Pos, message: str) -> None:
        if not holds:
            self.found.append(Problem(pos, message))

    def bind(self, variables: Iterable[Var], scope: set[Var], pos: Pos) -> None:
        for var in variables:
            self.expect(var not in self.bound, pos, f"{var!r} is bound twice")
            self.bound.add(var)
            scope.add(var)

    def use(self, used: Iterable[Operand], scope: set[Var], pos: Pos) -> None:
        for operand in used:
            if isinstance(operand, Var):
                self.expect(operand in scope, pos, f"{operand!r} is used outside its scope")

    def function(self, function: Function, pos: Pos) -> None:
        if id(function) in self.functions:
            return
        self.functions.add(id(function))
        scope: set[Var] = set()
        self.bind((param.var for param in function.params), scope, pos)
        self.bind(function.captures, scope, pos)
        self.block(function.body, scope, pos, 1, "a function")

    def block(self, block: Block, scope: set[Var], pos: Pos, results: int, what: str) -> None:
        scope = set(scope)
        for let in block.statements:
            self.let(let, scope)
        self.use(block.results, scope, pos)
        count = len(block.results)
        self.expect(count == results, pos, f"{what} has {count} results, not {results}")

    def let(self, let: Let, scope: set[Var]) -> None:
        op, pos = let.op, let.pos
        self.use(operands_of(op), scope, pos)
        outs = len(let.outs)
        match op:
            case If(_, then, orelse):
                self.block(then, scope, pos, outs, "the first branch of an if")
                self.block(orelse, scope, pos, outs, "the second branch of an if")
            case For(_, item, params, inits, body, stoppable):
                self.loop(let, params, inits, stoppable)
                inner = set(scope)
                self.bind((item, *params), inner, pos)
                self.block(body, inner, pos, len(params) + stoppable, "the body of a for")
            case While(params, inits, condition, body, stoppable):
                self.loop(let, params, inits, stoppable)
                inner = set(scope)
                self.bind(params, inner, pos)
                self.block(condition, inner, pos, 1, "the condition of a while")
                self.block(body, inner, pos, len(params) + stoppable, "the body of a while")
            case Guarded(body, _, keeps):
                self.block(body, scope, pos, outs - 1 - keeps, "a guarded statement")
            case MakeClosure(function, captures, defaults):
                self.outs(let, 1)
                wanted = sum(param.has_default for param in function.params)
                self.expect(len(captures) == len(function.captures), pos, f"{function.name} gets the wrong captures")
                self.expect(len(defaults) == wanted, pos, f"{function.name} gets the wrong number of defaults")
                self.function(function, pos)
            case Assert(_, message):
                self.outs(let, 0)
                if message is not None:
                    self.block(message, scope, pos, 1, "the message of an assert")
            case Unpack(_, before, star, after):
                self.outs(let, before + star + after)
                self.expect(star or not after, pos, "unpack has targets after a star that is not there")
            case ChangeList(change, _, args, _):
                self.outs(let, 2 if change in GIVING else 1)
                self.expect(
                    len(args) in _CHANGES.get(change, ()), pos, f"{change} of a list with {len(args)} arguments"
                )
            case SetItem() | SetAttribute() | DeleteItem() | Raise() | CheckBound():
                self.outs(let, 0)
            case Unary(name, _):
                self.outs(let, 1)
                self.expect(name in _UNARY, pos, f"unknown unary operator {name}")
            case Binary(name, _, _) | Inplace(name, _, _):
                self.outs(let, 1)
                self.expect(name in _BINARY, pos, f"unknown binary operator {name}")
            case Compare(name, _, _):
                self.outs(let, 1)
                self.expect(name in _COMPARE, pos, f"unknown comparison {name}")
            case Comprehension(kind=kind):
                self.outs(let, 1)
                self.expect(kind in _KINDS, pos, f"unknown kind of comprehension {kind}")
            case BuildDict(pairs):
                self.outs(let, 1)
                self.expect(all(len(pair) == 2 for pair in pairs), pos, "a dict item is not a pair")
            case _:
                self.outs(let, 1)
        self.bind(let.outs, scope, pos)

    def outs(self, let: Let, count: int) -> None:
        name = type(let.op).__name__
        self.expect(len(let.outs) == count, let.pos, f"{name} has {len(let.outs)} outs, not {count}")

    def loop(self, let: Let, params: tuple[Var, ...], inits: tuple[Operand, ...], stoppable: bool) -> None:
        self.expect(len(params) == len(inits), let.pos, f"a loop has {len(params)} params, {len(inits)} inits")
        self.outs(let, len(params) + stoppable)
