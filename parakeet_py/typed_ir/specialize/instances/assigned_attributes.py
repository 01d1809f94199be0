"""Attributes that a function assigns: what they hold as the walk goes on, and how the objects get them in the end.

`self.t += dt` reads a hidden argument (`fields`) and gives the attribute a new value, which is kept here for reads to
come. Compiled code never looks at the object: what assigned attributes hold in the end are further results, and a
`SetAttributes` puts them into the objects when these are boxed. So an attribute is a name like any other to branches
and loops, which carry all that the function assigns (`carried`). These have to know beforehand which ones that are: the
walk starts again when it meets a new one inside (`AssignedAttribute`).

An exception must find the objects as Python would have left them. Where a check may fail after an assignment, Python
runs the call again from the beginning, with what was stored into arrays undone (`compile`). Where an operation that is
handed back may raise, Python goes on from there, once the objects have got what has been assigned
(`opaque.frame_states`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from parakeet_py.signature.attribute_sources import has_finalizer, holds_plainly, is_item, key_of, stores_plainly
from parakeet_py.signature.specs import ObjectSpec, Source, Spec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.restarts import AssignedAttribute, Sequential
from parakeet_py.typed_ir.specialize.values import NeverV, ObjectV, Static, UnboundV, Value, known

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def begin(s: Context) -> None:
    """What assigned attributes hold when the function is entered."""
    for one in s.facts.known.of(AssignedAttribute) if s.facts.known.fields else ():
        s.builder.fields[one.source] = s.assigned.before[one.source] = s.taken(one.source)


def assign(s: Context, cls: type, source: Source, new: Value) -> None:
    """object.name = new, where `source` is that attribute."""
    name, text = str(source[-1]), f"assignment to {described(source)}"
    if not (holds_plainly(cls, name) and stores_plainly(cls)):
        raise s.unsupported(f"{text}, which {cls.__name__} does in its own way")
    only_outside(s, text)
    if s.procedures.active:
        raise s.unsupported(f"{text} in a recursion")
    if not _stands_alone(s, cls, source):
        raise s.unsupported(f"{text} of one of several objects that may be the same")
    before = s.taken(source)
    dropped = known_object(s, before) if isinstance(before, ObjectV) else None
    if dropped is not None and has_finalizer(dropped[0]):
        raise s.unsupported(f"{text}, which may drop an object whose __del__ runs then")
    if source not in s.builder.fields:
        if _is_as_before(s, source):
            s.facts.learned.append(AssignedAttribute(source))
            s.assigned.before[source] = before
        else:
            s.facts.note(AssignedAttribute(source))
    (settled,) = s.settle([new])
    if s.assigned.first is None:
        s.assigned.first = len(s.builder.outermost.statements)
    s.builder.fields[source] = settled


def _is_as_before(s: Context, source: Source) -> bool:
    """Would all be as it is if it had been known before that this attribute is assigned here?"""
    listed = any(source[: len(one)] == one for one in s.assigned.listed)
    return len(s.builder.scopes) == 1 and not s.procedures.all and not listed


def only_outside(s: Context, text: str) -> None:
    """Refuse an assignment where branches and loops do not carry what it gives."""
    if s.guards:
        raise s.unsupported(f"{text} inside `try`")
    if _in_element(s):
        raise Sequential.at(s.frame.function, s.builder.pos, f"{text} in an element function")


def _in_element(s: Context) -> bool:
    """Is an element function being specialized? In those nothing is assigned."""
    return s.elements.in_body > (s.procedures.active[-1].in_body if s.procedures.active else 0)


def described(source: Source) -> str:
    name = str(source[-1])
    return f"the item {key_of(name)!r}" if is_item(name) else f"the attribute .{name}"


def _stands_alone(s: Context, cls: type, source: Source) -> bool:
    """Is the object that `source` is a field of none of the others that the function has, whose fields it might read?

    Of arguments, and what these hold, the signature can say so.
    """
    owner = source[1:-1]
    others: list[Source] = [
        ("field", place) for place, spec in enumerate(s.arguments.signature.params) if _is_one(spec, cls)
    ]
    others += [hidden.source for hidden in s.arguments.signature.hidden if _is_one(hidden.spec, cls)]
    for other in others:
        if other[1:] == owner:
            continue
        if other[0] != "field" or not known(s.hidden_value(("apart", *owner, *other[1:]))):
            return False
    return True


def _is_one(spec: Spec, cls: type) -> bool:
    return isinstance(spec, ObjectSpec) and spec.type is cls


def now(s: Context, source: Source, value: Value) -> Value:
    """What an attribute holds here, which held `value` before the call."""
    if s.procedures.active and source in s.assigned.before:
        raise s.unsupported(f"{described(source)}, which is assigned, in a recursion")
    return s.builder.fields.get(source, value)


# ---- names that functions share --------------------------------------------------------------------------------------


class Cell:
    """A cell that a function makes for a name which functions in it bind: a field of nothing."""

    def __init__(self, source: Source) -> None:
        self.source = source


def new_cell(s: Context, value: Value) -> Value:
    """A cell that holds a value."""
    cell = Cell(("local", s.memory.new_root()))
    set_contents(s, cell, value)
    return Static(cell)


def contents(s: Context, cell: Cell) -> Value:
    if cell.source not in s.builder.fields:
        raise s.unsupported("a name that functions share, after the function that made it")
    return s.builder.fields[cell.source]


def set_contents(s: Context, cell: Cell, value: Value) -> None:
    only_outside(s, "assignment to a name of an enclosing function")
    (s.builder.fields[cell.source],) = s.settle([value])


# ---- branches and loops ----------------------------------------------------------------------------------------------


def carried(s: Context) -> list[Value]:
    """What all assigned attributes hold, for a branch or loop to carry; in an element function, those it has made."""
    fields = s.builder.fields
    if _in_element(s):
        return [value for source, value in fields.items() if source not in s.elements.outer_fields]
    return list(fields.values())


def carried_sources(s: Context) -> list[Source]:
    """Which ones these are."""
    return [source for source in s.builder.fields if not _in_element(s) or source not in s.elements.outer_fields]


def must_be_bound(s: Context, sources: Sequence[Source], one: Sequence[Value], other: Sequence[Value]) -> None:
    """Refuse attributes of instances that are there on one path only."""
    for source, left, right in zip(sources, one, other, strict=False):
        unbound = [isinstance(side, UnboundV) for side in (left, right)]
        never = any(isinstance(side, NeverV) for side in (left, right))
        of_instance = source[0] == "local" and len(source) == 3  # see `instances`
        if of_instance and unbound[0] != unbound[1] and not never:
            raise s.unsupported(f"the attribute .{source[-1]}, which an object has on one path only")


def with_results(s: Context, results: list[Value], count: int) -> list[Value]:
    """The results of a block, and what the first `count` attributes hold at its end: nothing if it is not reached."""
    ended = s.dead or (bool(results) and all(isinstance(result, NeverV) for result in results))
    return [*results, *(NeverV() if ended else value for value in carried(s)[:count])]


def take(s: Context, values: Sequence[Value]) -> None:
    """Let attributes hold values, in the order of `carried`; cells made since then are gone."""
    fields = s.builder.fields
    kept = (
        {source: value for source, value in fields.items() if source in s.elements.outer_fields}
        if _in_element(s)
        else {}
    )
    s.builder.fields = kept | dict(zip(carried_sources(s), values, strict=False))


def taken(s: Context, values: list[Value], count: int) -> list[Value]:
    """The values of a branch or loop without those of `count` attributes, which are taken."""
    take(s, values[len(values) - count :])
    return values[: len(values) - count]


# ---- the end ---------------------------------------------------------------------------------------------------------


def changed(s: Context) -> list[Source]:
    """The attributes of arguments that hold here what the function has assigned."""
    fields = s.builder.fields
    return [source for source, before in s.assigned.before.items() if fields.get(source, before) is not before]


def may_have_assigned(s: Context) -> bool:
    """May an attribute of an argument have been assigned before this place, in an iteration before it perhaps?"""
    return s.assigned.first is not None or bool(s.assigned.before)


def may_fail_after(s: Context) -> bool:
    """May an exception come after the first assignment?"""
    if s.assigned.first is None:
        return False
    rest = ir.Block(tuple(s.builder.outermost.statements[s.assigned.first :]))
    return any(isinstance(let.op, ir.Check | ir.Call | ir.Opaque) for let in ir.walk(rest))
