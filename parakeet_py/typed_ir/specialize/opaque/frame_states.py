"""What Python needs in order to do the rest of a call that compiled code cannot go on with.

An operation that is handed back gives something of another type than it gave before, or replaces a global that has been
read; a number leaves 64 bits. From there on the generated Python form of the function goes on
(`frontend/evaluate/resumed_code.py`): on-stack replacement. It needs to know where each of the functions that have been
inlined stands, and what their live variables hold. That is the state of a frame (`sites.FrameState`).

What has to be put together for it is put together on a path of its own, which is taken once at most:

    exit, y = opaque 0(x)
    if exit == EXIT:
        leave by opaque 1(...)    # the leaves of all live variables

So the hot path has a comparison more, and keeps alive what is read later anyway. On the other one memory that compiled
code has made is given to NumPy, as for any operand of an operation; arguments are the caller's objects, containers are
built, and attributes that have been assigned are set first.

A state cannot be described where a comprehension or a generator is half done, where the library's own functions have
called the user's, or where a variable holds what Python cannot be given (`Incomplete`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import BOOL, PYBOOL, PYINT
from parakeet_py.frontend import ssa, to_ssa_cached
from parakeet_py.frontend.desugar import signals
from parakeet_py.frontend.desugar.caught_names import is_caught_error
from parakeet_py.signature.object_assembly import ContainerT, LeafT, Recipe, StaticT
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.specialize.forms import is_list, parts_of, roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.instances.assigned_attributes import Cell
from parakeet_py.typed_ir.specialize.opaque import watched_lists
from parakeet_py.typed_ir.specialize.opaque.operands import recipe_of
from parakeet_py.typed_ir.specialize.opaque.sites import CONTINUE, EXIT, FrameState, OpaqueSite
from parakeet_py.typed_ir.specialize.restarts import HandBack
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    ErrorV,
    Frame,
    GeneratorV,
    InstanceV,
    ItemV,
    IteratorV,
    MapV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RefV,
    ScalarV,
    Static,
    TextV,
    TupleV,
    Turn,
    UnboundV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


class Incomplete(Exception):
    """The state at this place cannot be described."""


def exit_block(s: Context, operation: Sequence[Value] | None, interrupted: bool = False) -> ir.Block | None:
    """The path on which Python takes the call over behind the present statement, an operation of these operands, or
    before it (None), or by raising what a handler of a signal has raised; None if the state cannot be described."""
    start = s.checkpoint()
    try:
        with s.builder.block() as statements:
            site, leaves = _site(s, operation, interrupted)
            s.builder.emit(ir.Opaque(s.add_site(site), leaves, True))
        return ir.Block(tuple(statements), ())
    except (Incomplete, HandBack, UnsupportedError):
        s.rollback(start)
        return None


def leave_if_interrupted(s: Context) -> None:
    """Let Python raise what a handler of a signal has raised, unless the handlers around do not catch such things."""
    if not s.python.polls or not s.loops.looping or s.elements.in_body:
        return
    if s.guards and not any(signals.may_come(kind) for kinds in s.guards[-1].classes for kind in kinds):
        return
    exit = exit_block(s, (), interrupted=True)
    if exit is None:
        return
    (interrupted,) = s.builder.emit(ir.Interrupted(), BOOL, name="interrupted")
    s.builder.emit(ir.If(interrupted, exit, ir.Block((), ())))


def leave_by(s: Context, flag: ir.Operand, exit: ir.Block) -> None:
    """Take this path if an operation has said so by its first result."""
    left = s.builder.prim("eq", flag, ir.Const(EXIT, PYINT), type=PYBOOL)
    s.builder.emit(ir.If(left, exit, ir.Block((), ())))


def continue_unless(s: Context, condition: ir.Operand) -> bool:
    """Let Python go on before the present statement unless a condition holds; False if the state is not known."""
    exit = exit_block(s, None) if isinstance(condition, ir.Var) else None
    if exit is None:
        return False
    s.builder.emit(ir.If(condition, ir.Block((), ()), exit))
    return True


def _site(
    s: Context, operation: Sequence[Value] | None, interrupted: bool
) -> tuple[OpaqueSite, tuple[ir.Operand, ...]]:
    if s.elements.in_body:
        raise Incomplete("an element function")
    operands = _Operands(s, interrupted)
    frames = []
    running = s.frames
    if operation is None:  # what the library does, Python does anew
        running = [s.frames[0], *itertools.takewhile(lambda frame: not frame.namespace.trusted, s.frames[1:])]
        if running[-1].began.get(id(running[-1].way[-1])) != s.python.effects:
            raise Incomplete("the statement has done something")
    for depth, frame in enumerate(running):
        if depth and frame.namespace.trusted:  # the first may be what calls an object in its place
            raise Incomplete("a function of the library's is running")
        if depth:
            _must_be_called(running[depth - 1], frame)
        frames.append(_state(s, frame, depth, operation is None and depth == len(running) - 1, operands))
    fields = [(source, operands.add(s.builder.fields[source])) for source in assigned_attributes.changed(s)]
    frames = [operands.placed_in(one) for one in frames]
    assigned = tuple((source, operands.number(one)) for source, one in fields)
    line, trace = s.frame.pos.line, entries(s.builder.pos)
    site = OpaqueSite(
        CONTINUE, tuple(operands.recipes), (), None, "the rest of the call", "", line, (), trace,
        frames=tuple(frames), again=operation is None, given=operands.given(operation or ()), assigned=assigned,
        interrupted=interrupted,
    )  # fmt: skip
    return site, tuple(operands.leaves)


def _must_be_called(caller: Frame, frame: Frame) -> None:
    """Make sure that what a function returns is what the statement gives that has called it."""
    op = caller.way[-1].op
    match caller.env.get(op.function) if isinstance(op, ssa.Call) and isinstance(op.function, ssa.Var) else None:
        case Static(target) if target is frame.namespace.owner:
            return
        case ClosureV(function=function) if function is frame.function:
            return
        case MethodV(_, name) if name == frame.function.name:
            return
    raise Incomplete(f"{type(op).__name__} has called a function")


def _state(s: Context, frame: Frame, depth: int, again: bool, operands: _Operands) -> FrameState:
    from parakeet_py.frontend.evaluate.resumed_code import live_at, nested_functions

    function, way = frame.function, tuple(frame.way)
    if function.generator:
        raise Incomplete("a generator is running")
    if frame.free or not way:
        raise Incomplete("a function that is an argument is running")
    live = live_at(function, way, again)
    if any(param.kind == "varkw" and param.var in live for param in function.params) and not depth:
        raise Incomplete("keyword arguments of any name")
    owner: int | None = None
    whole = s.frames[0].function
    if depth:
        python = frame.namespace.owner
        if python is not s.frames[0].namespace.owner:
            owner, whole = operands.add(Static(python)), to_ssa_cached(python)
    nested = next((number for number, one in enumerate(nested_functions(whole)) if one is function), None)
    if nested is None:
        raise Incomplete("the place of a function is not known")
    items = []
    for let in way[:-1] if again or not isinstance(way[-1].op, ssa.For) else way:
        if isinstance(let.op, ssa.For):
            items.append(operands.iterator(frame.turns.get(id(let.op))))
    values = tuple(operands.add(operands.held(frame, var)) for var in live)
    return FrameState(owner, nested, _places(function, way), values, tuple(items))


class _Operands:
    """What is handed over: each object once."""

    def __init__(self, s: Context, interrupted: bool) -> None:
        self.s, self.interrupted = s, interrupted
        outer = s.frames[0]
        self.arguments = [outer.env[param.var] for param in outer.function.params]
        self.recipes: list[Recipe] = []
        self.leaves: list[ir.Operand] = []
        self.known: list[tuple[Value, int]] = []
        self.shared: list[Value] = []  # what can be changed, inside other things

    def held(self, frame: Frame, var: ssa.Var) -> Value | None:
        """What a variable holds; nothing asks for an exception that a `try` has caught before, where one is raised."""
        value = frame.env.get(var)
        if self.interrupted and isinstance(value, ErrorV) and is_caught_error(var.name):
            code = getattr(frame.namespace.owner, "__code__", None)
            if code is not None and var.name not in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
                return NONE
        return value

    def add(self, value: Value | None) -> int:
        """The number of an operand, or ~n for an argument of the call."""
        if value is None:
            raise Incomplete("a variable that is not known")
        if isinstance(value, UnboundV):
            return self.put(value, StaticT(None))
        for number, one in enumerate(self.arguments):
            if value is one or (isinstance(value, ArrayV | ObjectV) and value == one):
                return ~number
        for one, number in self.known:
            if value is one or (_is_one_object(value) and value == one):
                return number
        return self.put(value, self.recipe(value))

    def recipe(self, value: Value) -> Recipe:
        """The recipe of a value, which holds nothing that changes and that others hold, too."""
        for part in _parts(value):
            if isinstance(part, _NOT_GIVEN):
                raise Incomplete(f"a {type(part).__name__} is live")
            if isinstance(part, Static) and isinstance(part.object, Cell):
                raise Incomplete("a name that functions inside bind")  # its cell is none of Python's
            if watched_lists.is_part_of_argument(self.s, part):
                raise Incomplete("a list that an argument or a variable holds")  # a copy would be another one
            if _can_change(part):
                if any(part == one for one in self.shared):
                    raise Incomplete("a container that another one holds, too")
                self.shared.append(part)
        self.s.deferred_views.shown(roots_of(value))
        return recipe_of(self.s, value, self.leaves)

    def put(self, value: Value, recipe: Recipe) -> int:
        self.recipes.append(recipe)
        self.known.append((value, len(self.recipes) - 1))
        return len(self.recipes) - 1

    def iterator(self, turn: Turn | None) -> Recipe:
        """An iterator over the items that are left of a loop, of operands and arguments of the call."""
        if turn is None:
            raise Incomplete("what a loop goes through cannot be given")
        if turn.left is not None:
            return ContainerT("items_after", (self.leaf(turn.left()), self.leaf(ScalarV(ir.ZERO))))
        iterable, index = turn.iterable, turn.index
        if isinstance(iterable, RangeV):
            bounds = (iterable.start, iterable.stop, iterable.step, ScalarV(index))
            return ContainerT("range_after", tuple(map(self.leaf, bounds)))
        taken = self.leaf(ScalarV(self.s.builder.index_add(index, ir.ONE)))
        return ContainerT("items_after", (self.items(iterable), taken))

    def items(self, iterable: Value) -> Recipe:
        """What a loop goes through."""
        match iterable:
            case IteratorV("zip", parts):
                return ContainerT("named", tuple(map(self.items, parts)), (zip,))
            case IteratorV("enumerate", (first, inner)):
                return ContainerT("named", (self.items(inner), self.leaf(first)), (enumerate,))
            case IteratorV("reversed", (inner,)):
                return ContainerT("named", (self.items(inner),), (reversed,))
            case IteratorV() | ComprehensionV() | GeneratorV() | MethodV():
                raise Incomplete("what a loop goes through cannot be given")
        return self.leaf(iterable)

    def leaf(self, value: Value) -> LeafT:
        return LeafT(self.add(value))

    def given(self, operation: Sequence[Value]) -> tuple[tuple[int, int], ...]:
        """The operands that are operands of the operation, too, of those that it may change, be it an array's shape."""
        found: list[tuple[int, int]] = []
        for place, value in enumerate(operation):
            for one, number in self.known:
                if (_can_change(value) or isinstance(value, ArrayV)) and (
                    value is one or (_is_one_object(value) and value == one)
                ):
                    found.append((number, place))
                    break
            else:
                if any(part == one for part in _parts(value) if _can_change(part) for one in self.shared):
                    raise Incomplete("a container that an operation is given and another one holds")
        return tuple(found)

    def number(self, number: int) -> int:
        """The number of an operand, or of an argument behind them all."""
        return number if number >= 0 else len(self.recipes) + ~number

    def placed_in(self, frame: FrameState) -> FrameState:
        """The same with the arguments of the call behind all operands."""
        return replace(frame, values=tuple(map(self.number, frame.values)), items=tuple(map(self.placed, frame.items)))

    def placed(self, recipe: Recipe) -> Recipe:
        match recipe:
            case LeafT(number):
                return LeafT(self.number(number))
            case ContainerT(kind, items, keys):
                return ContainerT(kind, tuple(map(self.placed, items)), keys)
        return recipe


_NOT_GIVEN = (NeverV, IteratorV, ComprehensionV, GeneratorV, RefV, ItemV)


def _parts(value: Value) -> Iterator[Value]:
    """A value, and all that it consists of."""
    yield value
    for part in parts_of(value):
        yield from _parts(part)


def _can_change(value: Value) -> bool:
    match value:
        case MapV() | DictV() | InstanceV():
            return True
        case TupleV(items, kind):
            return kind == "list" and bool(items)
    return is_list(value)


def _is_one_object(value: Value) -> bool:
    """Are equal values of this kind the same object?"""
    return isinstance(value, ArrayV | ObjectV | TextV) or (_can_change(value) and not isinstance(value, TupleV | DictV))


def _places(function: ssa.Function, way: tuple[ssa.Let, ...]) -> tuple[tuple[int, int], ...]:
    """The way as numbers: of the block in the statement before, and of the statement in the block."""
    found: list[tuple[int, int]] = []
    blocks: tuple[ssa.Block, ...] = (function.body,)
    for let in way:
        found.append(
            next(
                (number, place)
                for number, block in enumerate(blocks)
                for place, one in enumerate(block.statements)
                if one is let
            )
        )
        blocks = ssa.blocks_of(let.op)
    return tuple(found)
