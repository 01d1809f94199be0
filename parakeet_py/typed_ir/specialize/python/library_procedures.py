"""Procedures of the library: long helpers that are specialized once for each kind of arguments, not at each call.

The table of a set takes forty statements to make, an operator on two sets a hundred. Helpers that are marked with
`@procedure` are not inlined: a call of one is an `ir.Call` of a function that knows of its arguments only what kinds
they are, so that all functions of the process share it, and other processes its machine code.

    s | t        entries_of_both_3f0c2a11(column, length, column, length) -> column

*What is marked.* A call takes some ten instructions for each array, and what is known of arguments where they are made
(extents, producers that would be fused) is not known in the procedure. So a helper is marked if it is long, and runs
much longer than that or seldom: it goes through all items, or makes memory. What costs a few instructions on its usual
path, such as finding a key, is inlined.

*Kinds of arguments* are coarse: the types of scalars, dtype, rank and layout of arrays; of integers also whether they
are known to be small or not negative, which decides checks. Known numbers stay known. A list or set is its length and
columns. What is of another kind, a call whose exceptions are caught, and one in an element function are inlined.

*For devices.* What is called where `on_device` holds is in no code of the CPU's. A helper that is marked with
`@device_procedure` is a function without a body there, and specialized when calls are first written out for a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from parakeet_py.base.errors import NoSourceError, UnsupportedError
from parakeet_py.base.exact_loops import exact
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.foreign_code import numpy_loops
from parakeet_py.base.types import Array, Scalar
from parakeet_py.library import registry
from parakeet_py.typed_ir import inlining, ir
from parakeet_py.typed_ir.specialize.containers import dynamic_lists
from parakeet_py.typed_ir.specialize.forms import form_of, parts_of, rebuild
from parakeet_py.typed_ir.specialize.paths import join
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    EitherT,
    Fixed,
    Structure,
    Template,
    arrays_in,
    mapped,
    types_of,
)
from parakeet_py.typed_ir.specialize.python.shared_state import Unfit
from parakeet_py.typed_ir.specialize.restarts import HandBack, NeedObservation, Restart
from parakeet_py.typed_ir.specialize.results import stored_params
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    Frame,
    MapV,
    ScalarV,
    Static,
    TupleV,
    Value,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_ENDS = (UnsupportedError, NoSourceError, HandBack, Unfit, NeedObservation, Restart)
"""Of a walk that does not succeed without its caller."""


@record(eq=False)
class _Made:
    """A procedure, and what its callers have to know: the template of its result and the numbers that stand in it for
    the memory of arguments, what is known of each integer that it gives, and those that it calls."""

    function: ir.Function
    result: Template
    places: tuple[int, ...]
    facts: tuple[tuple[bool, bool], ...]
    stores: tuple[int, ...]
    fresh: bool
    fails: bool
    has_loops: bool
    needs: tuple[ir.Function, ...]


_known: dict[object, _Made | None] = {}  # None: what has to be inlined
_names: dict[str, object] = {}


def called(s: Context, frame: Frame) -> Value | None:
    """The value of a call of a helper that is marked; None if it has to be inlined."""
    holder = s.procedures.active[-1] if s.procedures.active else None
    if s.guards or s.elements.in_body > (holder.in_body if holder is not None else 0):
        return None
    given = [frame.env[param.var] for param in frame.function.params]
    places = _Places()
    try:
        kinds = tuple([_kind(s, value, places) for value in given])
    except Unfit:
        return None
    owner = frame.namespace.owner
    key = (
        owner.__module__,
        owner.__qualname__,
        owner.__code__.co_firstlineno,
        kinds,
        numpy_loops.own_sorts.get(),
        exact.get(),
    )
    if key not in _known:
        try:
            stored = registry.stored_on_devices(owner)
            make = _make if stored is None else partial(_make_later, stored)
            _known[key] = make(s, frame, given, places, key)
        except _ENDS:
            _known[key] = None
    made = _known[key]
    return None if made is None else _call(s, made, given, places)


class _Places:
    """Numbers for the memory of arguments: one for all that may overlap."""

    def __init__(self) -> None:
        self.roots: list[frozenset[int]] = []

    def number(self, array: ArrayV) -> int:
        meeting = [number for number, roots in enumerate(self.roots) if roots & array.roots]
        if len(meeting) > 1:
            raise Unfit
        if not meeting:
            self.roots.append(array.roots)
            return len(self.roots) - 1
        self.roots[meeting[0]] |= array.roots
        return meeting[0]


# ---- kinds of arguments ----------------------------------------------------------------------------------------------


def _kind(s: Context, value: Value, places: _Places) -> object:
    """What a procedure knows of an argument."""
    match value:
        case ScalarV(ir.Const(number)):
            return "known", repr(number), value.dtype, value.python
        case ScalarV(operand):
            return value.dtype, value.python, *_facts(s, operand)
        case ArrayV():
            layout = value.type.layout
            return "array", value.dtype, value.rank, layout, value.readonly, value.order, places.number(value)
        case Static(None | bool() | int() | float() | str() | np.dtype() as known):
            return "static", type(known).__name__, str(known)
        case TupleV(items, kind, None):
            return kind, *[_kind(s, item, places) for item in items]
        case _ if (listed := dynamic_lists.in_columns(value)) is not None:
            item = form_of(value).item(value)
            return "list", _item_kind(item), *[_kind(s, column, places) for column in listed[1]]
        case MapV(entries, table, kind):
            return kind, _kind(s, entries, places), _kind(s, table, places)
        case CharV(code):
            return "char", _kind(s, code, places)
    raise Unfit


def _facts(s: Context, operand: ir.Operand) -> tuple[bool, bool]:
    """Is an integer known to be small, and to be not negative?"""
    b = s.builder
    if not isinstance(operand.type, Scalar) or operand.type.dtype != "int64":
        return False, False
    return b.is_small(operand), b.at_least_zero(b.form(operand))


def _item_kind(item: Template) -> object:
    """The kind of the items of a list."""
    match item:
        case None:
            return None
        case Scalar(dtype, python):
            return dtype, python
        case EitherT(kinds, rare):
            return "either", rare, *[(kind.dtype, kind.python) for kind in kinds]
        case Structure(TupleV(_, kind, None), parts):
            return kind, *map(_item_kind, parts)
        case Structure(CharV(), parts):
            return "char", *map(_item_kind, parts)
    raise Unfit


def _leaves(value: Value) -> Iterator[tuple[ir.Operand, ArrayV | None]]:
    """The operands of an argument that a call hands over, and the arrays among them."""
    match value:
        case ScalarV(ir.Var() as operand):
            yield operand, None
        case ArrayV(var):
            yield var, value
        case _ if (listed := dynamic_lists.in_columns(value)) is not None:
            length, columns = listed
            yield length.operand, None
            for column in columns:
                yield column.var, column
        case _:
            for part in parts_of(value):
                yield from _leaves(part)


def _inside(c: Context, s: Context, value: Value, places: _Places, roots: Sequence[int], params: list[ir.Var]) -> Value:
    """An argument as the procedure knows it."""
    match value:
        case ScalarV(ir.Var() as operand):
            return ScalarV(_number(c, operand.type, _facts(s, operand), params))
        case ArrayV(var):
            own = _param(c, var.type, params)
            extents = tuple(c.dim(own, axis) for axis in range(value.rank))
            memory = frozenset({roots[places.number(value)]})
            return ArrayV(own, extents, memory, value.readonly, (False,) * value.rank, value.order)
        case _ if (listed := dynamic_lists.in_columns(value)) is not None:
            length, columns = listed
            count = ScalarV(_number(c, length.type, (True, True), params))
            held = [_inside(c, s, column, places, roots, params) for column in columns]
            return rebuild(value, (count, *held))
    parts = tuple([_inside(c, s, part, places, roots, params) for part in parts_of(value)])
    return rebuild(value, parts) if parts else value


def _param(c: Context, kind: Any, params: list[ir.Var]) -> ir.Var:
    params.append(ir.Var("p", kind))
    c.builder.home[params[-1]] = c.builder.outermost
    return params[-1]


def _number(c: Context, kind: Any, facts: tuple[bool, bool], params: list[ir.Var]) -> ir.Var:
    made = _param(c, kind, params)
    _learn(c, made, facts)
    return made


def _learn(c: Context, number: ir.Operand, facts: tuple[bool, bool]) -> None:
    if isinstance(number, ir.Var):
        small, nonnegative = facts
        if small:
            c.builder.small.add(number)
        if nonnegative:
            c.builder.nonnegative.add(number)


# ---- bodies and calls ------------------------------------------------------------------------------------------------


def _make(s: Context, frame: Frame, given: Sequence[Value], places: _Places, key: object) -> _Made:
    """Specialize a procedure."""
    return _begun(s, frame, given, places).made(key)


class _Begun(NamedTuple):
    """A procedure that can be specialized: a state of its own, the numbers of its arguments' memory, parameters."""

    state: Context
    frame: Frame
    roots: list[int]
    params: list[ir.Var]

    def made(self, key: object) -> _Made:
        return _specialized(*self, key)


def _begun(s: Context, frame: Frame, given: Sequence[Value], places: _Places) -> _Begun:
    own = Frame(frame.function, frame.namespace)
    c = s.apart(own)
    roots = [c.memory.new_root() for _ in places.roots]
    params: list[ir.Var] = []
    for param, value in zip(frame.function.params, given, strict=True):
        own.env[param.var] = _inside(c, s, value, places, roots, params)
    return _Begun(c, own, roots, params)


def _specialized(c: Context, frame: Frame, roots: Sequence[int], params: Sequence[ir.Var], key: object) -> _Made:
    value = c.settle([c.run(frame.function.body)[0]])[0]
    result = _result(value)
    if (
        c.facts.missing
        or c.python.sites
        or c.arguments.hidden
        or c.python.read_late
        or c.python.module_reads
        or c.procedures.all
    ):
        raise Unfit
    leaves = join.leaves_of(c, value, result)
    body = ir.Block((*c.builder.entry.statements, *c.builder.outermost.statements), tuple(leaves))
    name = _name(frame, key)
    disjoint = len(roots) == sum(isinstance(param.type, Array) for param in params)
    function = ir.Function(name, tuple(params), body, frame.function.filename, disjoint, inner=True, library=True)
    memory = [one.roots for one in arrays_in([result])]
    fresh = all(one.isdisjoint(roots) for one in memory) and len(frozenset().union(*memory)) == len(memory)
    return _Made(
        function,
        result,
        tuple(roots),
        tuple(_facts(c, leaf) for leaf in leaves),
        tuple(sorted(stored_params(function))),
        fresh,
        any(map(_may_fail, function.statements())),
        c.loops.has_loops,
        tuple(c.procedures.library.values()),
    )


def _make_later(
    stored: Sequence[str], s: Context, frame: Frame, given: Sequence[Value], places: _Places, key: object
) -> _Made:
    """A procedure that only devices run: its body is made when the first one is to."""
    stores: list[int] = []
    operands: list[ir.Operand] = []
    for param, value in zip(frame.function.params, given, strict=True):
        for operand, array in _leaves(value):
            if array is not None and param.name in stored:
                stores.append(len(operands))
            operands.append(operand)
    name, params = _name(frame, key), tuple([ir.Var("p", operand.type) for operand in operands])
    nothing = ir.Function(name, params, ir.Block((), ()), frame.function.filename, inner=True, library=True)
    begun = _begun(s, frame, given, places)

    @cache
    def made() -> Sequence[ir.Function]:
        found = begun.made(key)
        assert set(found.stores) <= set(stores) and not found.function.body.results
        return *found.needs, found.function

    inlining.for_devices[name] = made
    return _Made(
        nothing, Fixed(Static(None)), tuple(range(len(places.roots))), (), tuple(stores), True, False, False, ()
    )


def _name(frame: Frame, key: object) -> str:
    """The name of a procedure, which no other has."""
    name = f"{frame.function.name}_{crc32(repr(key).encode()):08x}"
    while _names.setdefault(name, key) != key:
        name += "_"
    return name


def _may_fail(let: ir.Let) -> bool:
    match let.op:
        case ir.Check():
            return True
        case ir.Prim(name):
            return name in ir.CHECKED
        case ir.Call(fails=fails):
            return fails
    return False


def _result(value: Value) -> Template:
    """The template of what a body gives."""
    match value:
        case ScalarV(ir.Const()) | Static(None | bool() | int() | float() | str()):
            return Fixed(value)
        case ScalarV():
            return value.type
        case ArrayV():
            extents = tuple(extent if isinstance(extent, ir.Const) else None for extent in value.extents)
            return ArrayT(value.type, extents, value.roots, value.readonly, (False,) * value.rank, value.order)
        case TupleV(named=None) | MapV() | CharV():
            return Structure(value, tuple(map(_result, parts_of(value))))
        case _ if (listed := dynamic_lists.in_columns(value)) is not None:
            length, columns = listed
            return Structure(value, (length.type, *map(_result, columns)))
    raise Unfit


def _call(s: Context, made: _Made, given: Sequence[Value], places: _Places) -> Value:
    """Emit a call."""
    for one in (*made.needs, made.function):
        s.procedures.library[one.name] = one
    s.loops.has_loops |= made.has_loops
    leaves = [leaf for value in given for leaf in _leaves(value)]
    for position in made.stores:
        array = leaves[position][1]
        assert array is not None
        s.will_store(array)
    args = tuple([operand for operand, _ in leaves])
    op = ir.Call(made.function.name, args, made.stores, 0, made.fresh, made.fails)
    outs = list(s.builder.emit(op, *types_of(made.result), name="r"))
    for out, facts in zip(outs, made.facts, strict=True):
        _learn(s, out, facts)
    moved = dict(zip(made.places, places.roots, strict=True))
    return join.value_of(s, _placed(s, made.result, moved), outs)


def _placed(s: Context, template: Template, moved: dict[int, frozenset[int]]) -> Template:
    """The template with the memory that it has at the place of a call."""

    def placed(one: Template) -> Template:
        if not isinstance(one, ArrayT):
            return one
        for root in one.roots - moved.keys():
            moved[root] = frozenset({s.memory.new_root()})
        return replace(one, roots=frozenset().union(*(moved[root] for root in one.roots)))

    return mapped(template, placed)


__all__ = ["called"]
