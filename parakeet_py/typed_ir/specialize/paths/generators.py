"""Generators: a loop over one is the generator, with what the loop does at its yields.

A call of a generator function is a `GeneratorV`, which has done nothing yet. Going through it (`turns`) walks its body,
and each yield of the body runs what the consumer does with an item. What the consumer carries from item to item is kept
as what assigned attributes hold (`field_state`), so that the generator's branches and loops carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.caught_steps import item_of, steps
from parakeet_py.frontend.desugar.generators import yielded
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import is_list
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.paths import iterator_consumption
from parakeet_py.typed_ir.specialize.paths.iterator_consumption import is_lazy
from parakeet_py.typed_ir.specialize.python.table import builtin
from parakeet_py.typed_ir.specialize.restarts import Sequential
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ClosureV,
    ComprehensionV,
    DictV,
    Frame,
    GeneratorV,
    IteratorV,
    MapV,
    TupleV,
    Value,
    lift,
    py,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parakeet_py.typed_ir.specialize.context import Context

MAX_NESTED = 4  # generators of one kind that go through each other, as generator expressions with several loops do
Turn = Callable[[Value], Value]
"""What a consumer does with an item; gives whether it wants no more."""


def _is_plain(frame: Frame) -> bool:
    """Is this one of the library's generators, which go through what they are given only?"""
    return str(frame.namespace.owner.__module__).startswith("parakeet_py.library.")


def begun(s: Context, frame: Frame) -> GeneratorV:
    """A call of a generator function."""
    names = [param.var for param in frame.function.params] if _is_plain(frame) else frame.env
    sees_lists = any(_may_change(s, value) for value in (*(frame.env[name] for name in names), *frame.free.values()))
    return GeneratorV(frame, s.instances.list_changes if sees_lists else -1)


def _may_change(s: Context, value: Value) -> bool:
    """Does a value hold lists or dicts of the function's own, of which a change would be a new value?"""
    match value:
        case TupleV(items, kind):
            own = kind == "list" and id(value) not in s.arguments.lists
            return own or any(_may_change(s, item) for item in items)
        case ClosureV():
            return any(_may_change(s, held) for held in (*value.captures, *value.defaults))
    return is_list(value) or isinstance(value, DictV | MapV)


def of_expression(s: Context, value: ComprehensionV) -> Value:
    """A generator expression with conditions or several loops, as a call of a generator function."""
    return s.call_plain("lazy_items", [value.iterable, value.element, value.condition or NONE, lift(value.flatten)])


def turns(s: Context, value: Value, turn: Turn) -> None:
    """Go through what gives items of a generator."""
    match value:
        case GeneratorV(frame, changes):
            _walk(s, frame, turn)
            if changes not in (-1, s.instances.list_changes):
                raise s.unsupported("a generator over lists, one of which is changed before its end")
        case ComprehensionV(_, iterable, element, condition, False):

            def chosen(item: Value) -> Value:
                if condition is None:
                    return turn(s.call(element, [item], {}))
                wanted = s.truth(s.call(condition, [item], {}))
                if isinstance(wanted, ir.Const):
                    return turn(s.call(element, [item], {})) if wanted.value else py(False)
                (stop,) = s.branch(wanted, lambda: [turn(s.call(element, [item], {}))], lambda: [py(False)])
                return stop

            turns(s, iterable, chosen)
        case IteratorV("enumerate", (start, inner)):
            with cells(s, [start]) as (count,):

                def numbered(item: Value) -> Value:
                    number = assigned_attributes.contents(s, count)
                    assigned_attributes.set_contents(s, count, s.binary("add", number, py(1)))
                    return turn(TupleV((number, item)))

                turns(s, inner, numbered)
        case _:
            raise s.unsupported("an iterator over a generator", "go through the generator in a loop")


def _walk(s: Context, frame: Frame, turn: Turn) -> None:
    depth = sum(frame.function is active.function for active in s.frames)
    if depth > (MAX_NESTED if _is_plain(frame) else 0):
        raise s.unsupported("a generator that goes through itself")
    if s.guards or s.procedures.active:
        raise s.unsupported(f"a loop over a generator {'inside `try`' if s.guards else 'in a recursion'}")
    if s.elements.in_body:
        raise Sequential.at(s.frame.function, s.builder.pos, "a loop over a generator in an element function")
    depth, looping, place = len(s.frames), s.loops.looping, s.builder.pos

    def here(item: Value) -> Value:
        """The consumer's turn: where it stands."""
        own, own_place = s.frames[depth:], s.builder.pos
        del s.frames[depth:]
        s.builder.pos = place
        s.loops.unrolling += 1
        try:
            return turn(item)
        finally:
            s.loops.unrolling -= 1
            s.frames += own
            s.builder.pos = own_place

    frame.consumer = here
    try:
        s.inlined(frame)
    finally:
        s.loops.looping = looping


def _consumers(s: Context) -> list[Turn]:
    """Of the generators that are gone through at this place, the innermost last."""
    return [frame.consumer for frame in s.frames if frame.consumer is not None]


@builtin(yielded)
def _yielded(s: Context, item: Value) -> Value:
    return _consumers(s)[-1](item)


@builtin(steps)
def _steps(s: Context, items: Value) -> Value:
    if iterator_consumption.is_computed(items):
        raise s.unsupported("a loop inside `try` over an iterator whose steps may raise", "go through a list of them")
    return items


@builtin(item_of)
def _item_of(s: Context, item: Value) -> Value:
    return item


@builtin(next)
def _next(s: Context, items: Value, default: Value | None = None) -> Value:
    if not (is_lazy(items) or isinstance(items, ComprehensionV)):
        raise s.hand_back("next of an iterator")
    if default is None and _consumers(s):
        raise s.unsupported("next() in a generator, where StopIteration is an error")
    return s.call_plain("lazy_next", [items]) if default is None else s.call_plain("lazy_next_or", [items, default])


@contextmanager
def cells(s: Context, values: list[Value]) -> Iterator[list[assigned_attributes.Cell]]:
    """Cells for what a consumer carries; they are gone at the end."""
    made = [assigned_attributes.Cell(("local", s.memory.new_root())) for _ in values]
    for cell, value in zip(made, values, strict=True):
        assigned_attributes.set_contents(s, cell, value)
    yield made
    for cell in made:
        s.builder.fields.pop(cell.source, None)


def for_each(s: Context, op: ssa.For, iterable: Value, inits: list[Value]) -> list[Value]:
    """A loop over items of a generator."""
    if id(op) in s.loops.unroll:
        raise s.unsupported("a loop over a generator whose body needs an index by value")
    with cells(s, [py(False), *inits]) as (stopped, *held):

        def turn(item: Value) -> Value:
            s.bind(op.item, item)
            for var, cell in zip(op.params, held, strict=True):
                s.bind(var, assigned_attributes.contents(s, cell))
            results = s.run(op.body)
            if op.stoppable:
                assigned_attributes.set_contents(s, stopped, results[0])
                results = results[1:]
            for cell, result in zip(held, results, strict=True):
                assigned_attributes.set_contents(s, cell, result)
            return assigned_attributes.contents(s, stopped) if op.stoppable else py(False)

        turns(s, iterable, turn)
        values = [assigned_attributes.contents(s, cell) for cell in (stopped, *held)]
    return values if op.stoppable else values[1:]


def as_list(s: Context, value: Value) -> Value:
    """All items of a generator."""
    with cells(s, [TupleV((), "list")]) as (held,):

        def turn(item: Value) -> Value:
            (longer,) = s.changed("append", assigned_attributes.contents(s, held), s.settle([item]))
            assigned_attributes.set_contents(s, held, longer)
            return py(False)

        turns(s, value, turn)
        return assigned_attributes.contents(s, held)
