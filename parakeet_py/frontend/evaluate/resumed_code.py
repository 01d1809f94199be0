"""Python code for the rest of a function: what is left to do after one of its operations, given all live values.

A place in a function is the way to it: the statements around the operation, outermost first, and its own. `live_at`
gives the variables that the rest reads. `resume` runs the rest; it is given

    values      of these variables, by variable
    pending     called where the operation stood; gives its result, or raises what the operation would
    items       for each `for` loop on the way, outermost first, an iterator over the items that are left

Nothing that has been done is done again. Of an `if` on the way only the branch taken is there; a loop on the way begins
in the middle of an iteration:

    resumed = True
    for next in chain((None,), items):
        if resumed:
            resumed = False
            <rest of the body>
        else:
            item = next
            <body>
        <what the loop carries>

If the last statement of the way is itself a loop, the code calls `pending` before its next iteration, and `values` has
what the loop carries. With `again`, the code begins with the last statement instead.
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from parakeet_py.base.frames.hidden_frames import hidden
from parakeet_py.base.grammar import free_variables
from parakeet_py.frontend import ssa
from parakeet_py.frontend.evaluate.evaluator import Evaluation, Hooks
from parakeet_py.frontend.evaluate.nodes import parameters, where_of
from parakeet_py.frontend.evaluate.python_code import Code, Writer
from parakeet_py.frontend.ssa import Block, Function, Let, Var

Way = tuple[Let, ...]
_LOOPS = (ssa.For, ssa.While)


def way_to(function: Function, let: Let) -> Way:
    """The way to a statement of a function."""

    def search(block: Block) -> Way:
        for one in block.statements:
            if one is let:
                return (one,)
            for inner in ssa.blocks_of(one.op):
                if found := search(inner):
                    return (one, *found)
        return ()

    return search(function.body)


def nested_functions(function: Function) -> Iterator[Function]:
    """A function, and those that are made in it, in a fixed order."""
    yield function
    for let in function.statements():
        if isinstance(let.op, ssa.MakeClosure):
            yield from nested_functions(let.op.function)


def live_at(function: Function, way: Way, again: bool = False) -> tuple[Var, ...]:
    """The variables that have a value at a place and are read after it, or (`again`) by the last statement, too."""
    known = {param.var for param in function.params} | set(function.captures)
    read: set[Var] = set()
    block = function.body
    for place, let in enumerate(way):
        at = next(number for number, one in enumerate(block.statements) if one is let)
        known.update(out for one in block.statements[:at] for out in one.outs)
        read.update(free_variables(Block(block.statements[at + 1 :], block.results)))
        op, last = let.op, place == len(way) - 1
        if again and last:
            read.update(free_variables(Block((let,), ())))
            break
        inside = None if last else next(one for one in ssa.blocks_of(op) if _is_in(one, way[place + 1]))
        if isinstance(op, _LOOPS):
            known.update(op.params)
            read.update(var for inner in ssa.blocks_of(op) for var in free_variables(inner))
            if isinstance(op, ssa.For) and not last:
                known.add(op.item)
            if inside is not op.body:  # the loop may end with these
                read.update(op.params)
            elif isinstance(op, ssa.While):
                known.update(out for one in op.condition.statements for out in one.outs)
        if isinstance(op, ssa.Guarded):
            read.update(one for one in op.classes if isinstance(one, Var))
        if inside is not None:
            block = inside
    return tuple(sorted(read & known, key=lambda var: var.uid))


class ResumedWriter(Writer):
    """Makes the code of the rest of a function. Its parameters are `.pending`, the iterators, and the live values."""

    def __init__(self, function: Function, way: Way, again: bool = False) -> None:
        super().__init__(function)
        self.way = way
        self.again = again
        self.free.clear()
        self.captures, self.nested = (), Writer
        for let in function.statements():  # what loops end with has one name, whichever of their copies gives it
            if isinstance(let.op, _LOOPS):
                ends = let.outs[int(let.op.stoppable) :]
                self.names.update(zip(ends, map(self.name, let.op.params), strict=True))
        self.live = [self.name(var) for var in live_at(function, way, again)]
        self.parameters = set(self.live)
        self.iterators: list[str] = []

    def arguments(self) -> ast.arguments:
        return parameters([self.arg(name) for name in (".pending", *self.iterators, *self.live)])

    def block(self, block: Block) -> list[ast.stmt]:
        at = next((number for number, one in enumerate(block.statements) if self.way and one is self.way[0]), None)
        if at is None:
            return super().block(block)
        before, let = self.where, block.statements[at]
        self.where, self.way = where_of(let.pos), self.way[1:]
        made = self.rest_of(let)
        self.where = before
        return made + super().block(Block(block.statements[at + 1 :]))

    def rest_of(self, let: Let) -> list[ast.stmt]:
        """What is left to do of a statement on the way."""
        if self.again and not self.way:
            return self.under(self.error_states(let), self.let(let))
        match let.op:
            case ssa.If(_, then, orelse):
                arm = then if _is_in(then, self.way[0]) else orelse
                return [*self.block(arm), *self.moved([self.name(out) for out in let.outs], arm.results)]
            case ssa.For() | ssa.While() as op:
                return self.rest_of_loop(op, let.outs)
        if self.way:
            return self.let(let)
        pending = self.set(self.name(let.outs[0]) if let.outs else None, self.call(self.load(".pending")))
        return self.under(self.error_states(let), [pending])

    def rest_of_loop(self, op: ssa.For | ssa.While, outs: Sequence[Var]) -> list[ast.stmt]:
        item: str | None = None
        if isinstance(op, ssa.For):
            item = self.name(op.item)
            self.iterators.append(self.new("items"))
        items: ast.expr | None = None if item is None else self.load(self.iterators[-1])
        self.loops += 1
        if not self.way:
            body = self.turn(op)
            begin = [self.set(None, self.call(self.load(".pending")))]
        else:
            resumed = self.new("resumed")
            begin = [self.set(resumed, self.literal(True))]
            rest = self.rest_of_turn(op)
            body = self.turn(op)
            if item is not None and items is not None:
                following = self.new("next")
                body.insert(0, self.set(item, self.load(following)))
                nothing = self.tuple_of([self.literal(None)])
                item, items = following, self.call(self.constant(itertools.chain), nothing, items)
            body = [self.when(self.load(resumed), [self.set(resumed, self.literal(False)), *rest], body)]
        body += self.carried(op, outs)
        self.loops -= 1
        return begin + self.repeated(op, outs, body, None if item is None else self.store(item), items)

    def rest_of_turn(self, op: ssa.For | ssa.While) -> list[ast.stmt]:
        if isinstance(op, ssa.While) and _is_in(op.condition, self.way[0]):
            return [*self.block(op.condition), self.unless_done(op), *self.block(op.body)]
        return self.block(op.body)


def _is_in(block: Block, let: Let) -> bool:
    return any(one is let for one in block.statements)


_MAX_CODES = 256
_codes: dict[tuple[int, tuple[int, ...], bool], tuple[Function, Code]] = {}


def _code_at(function: Function, way: Way, again: bool) -> Code:
    """The code of the rest of a function, made once."""
    key = (id(function), tuple(map(id, way)), again)
    found = _codes.get(key)
    if found is None or found[0] is not function:
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        found = _codes[key] = function, ResumedWriter(function, way, again).finish()
    return found[1]


@hidden
def resume(
    function: Function,
    python: types.FunctionType,
    way: Way,
    values: Sequence[Any],
    pending: Callable[[], Any] | None = None,
    items: Sequence[Iterator[Any]] = (),
) -> Any:
    """The result of the rest of a function; see above. `values` are in the order of `live_at`; without `pending`, the
    last statement of the way is done again."""
    code = _code_at(function, way, pending is None)
    run = Hooks(Evaluation(None, None, [], tuple), code, python, (), (function,)).made(None, None)
    return run(pending, *items, *values)
