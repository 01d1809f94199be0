"""Scalars whose type depends on the path: `x = 1 if c else 2.5`, or a sum that is the int 0 when the loop is empty.

Such a scalar is a `ScalarV` with an `Either`: its possible types, the widest last; a tag, the index of the type it has;
and its value. The operand of the `ScalarV` is the value as the widest type. Types that this represents exactly need
nothing else; for the others (an int64 in a float64) the value is carried as it is, too, as a *payload*.

`resolve` decides what an operation on one does. The operation is tried out on each type. If the results have one type,
and it makes no difference whether the operand or the operation is converted, it is done once, on the widest type:
nearly always so in loops. Otherwise there are two ways: code for each type, chosen by the tag; or, where only a loop
that does not run at all gives another type (`rare`), a check that it did run, after which Python takes over.

Inside the library's own functions types just widen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.errors import UnsupportedError
from parakeet_py.frontend import ssa
from parakeet_py.frontend.operands import operands
from parakeet_py.typed_ir import gates, ir
from parakeet_py.typed_ir.observed import looked_into
from parakeet_py.typed_ir.opaque import opaque_operation
from parakeet_py.typed_ir.requests import NeedObservation
from parakeet_py.typed_ir.types import PYBOOL, PYINT, Scalar
from parakeet_py.typed_ir.values import NONE, ArrayV, ClosureV, Either, NeverV, ScalarV, Static, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer

MAX_KINDS = 4
SEEN = object()
# What a scalar is put into or compared by without regard to its type.
_INDIFFERENT = (
    ssa.BuildTuple,
    ssa.BuildList,
    ssa.BuildDict,
    ssa.BuildSlice,
    ssa.MakeClosure,
    ssa.Comprehension,
    ssa.CheckBound,
    ssa.Assert,
    ssa.Raise,
    ssa.BuildString,
)


def kinds_of(template: gates.Template) -> tuple[Scalar, ...]:
    """The types of a scalar's template; none for others."""
    match template:
        case Scalar():
            return (template,)
        case gates.EitherT(kinds):
            return kinds
    return ()


def union(left: tuple[Scalar, ...], right: tuple[Scalar, ...]) -> tuple[Scalar, ...] | None:
    """The types of either, the widest last; None if they are too many."""
    kinds = tuple(sorted({*left, *right}, key=_width))
    return kinds if len(kinds) <= MAX_KINDS else None


def _width(kind: Scalar) -> tuple[int, bool, int, str]:
    """NumPy's types are wider than Python's, which give way to them in all operations."""
    dtype = np.dtype(kind.dtype)
    return {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[dtype.kind], not kind.python, dtype.itemsize, kind.dtype


def is_exact(kind: Scalar, main: Scalar) -> bool:
    """Does `main` represent all values of `kind`?"""
    own, wide = np.dtype(kind.dtype), np.dtype(main.dtype)
    if own.kind in "iu" and own.itemsize == 8 and wide.kind in "fc":
        return False
    return np.can_cast(own, wide, "safe")


def payload_kinds(kinds: Sequence[Scalar]) -> list[Scalar]:
    """The types whose values are carried as they are."""
    return [kind for kind in kinds[:-1] if not is_exact(kind, kinds[-1])]


def alternative(s: Specializer, value: ScalarV, index: int) -> ScalarV:
    """The value as it is when the tag is `index`."""
    assert value.either is not None
    kind = value.either.kinds[index]
    payload = value.either.payloads[index]
    if payload is not None:
        return ScalarV(payload)
    return ScalarV(s.builder.cast(value.operand, kind))


def as_common(s: Specializer, value: ScalarV, dtype: str) -> ScalarV:
    """The value, whatever type it has, as an element of an array."""
    b, target = s.builder, Scalar(dtype)
    assert value.either is not None
    *others, made = [b.cast(alternative(s, value, number).operand, target) for number in range(len(value.either.kinds))]
    for number, one in enumerate(others):
        made = b.select(b.prim("eq", value.either.tag, ir.Const(number, PYINT), type=PYBOOL), one, made)
    return ScalarV(made)


def as_parts(s: Specializer, items: Sequence[Value], dtype: str | None) -> Sequence[Value]:
    """The items of an array to be, each of one type. Without a `dtype` it is their common type, here taken to be the
    widest that it may be."""
    mixed = [item for item in items if isinstance(item, ScalarV) and item.either is not None]
    if not mixed or not all(isinstance(item, ScalarV) for item in items):
        return items
    b, choices = s.builder, [kinds_of(gates.template_of(item, varying=True)) for item in items]
    made = dtype or np.result_type(*(np.dtype(kind.dtype) for kinds in choices for kind in kinds)).name
    sure = [np.dtype(kinds[0].dtype) for kinds in choices if len(kinds) == 1]
    if dtype is None and not (sure and np.result_type(*sure).name == made):
        some: ir.Operand = ir.Const(False, PYBOOL)
        every: ir.Operand = ir.Const(True, PYBOOL)
        for value in mixed:
            assert value.either is not None
            for number, kind in enumerate(value.either.kinds):
                here = b.prim("eq", value.either.tag, ir.Const(number, PYINT), type=PYBOOL)
                if kind.dtype == made:
                    some = b.logical_or(some, here)
            every = b.logical_and(every, here)
        wide = any(kind.dtype == made for kinds in choices for kind in kinds)
        s.check(some if wide else every, "Deoptimize", "an array that might have a wider type than it does")
    return [as_common(s, item, made) if item in mixed and isinstance(item, ScalarV) else item for item in items]


# ---- through gates ---------------------------------------------------------------------------------------------------


def leaves(s: Specializer, value: Value, kinds: tuple[Scalar, ...], like: Value | None = None) -> list[ir.Operand]:
    """The operands of a value for a gate of these types: the widest, the tag, payloads.

    Payloads that do not matter are those of `like`, the value of the other path, if it has them: they do not change
    from path to path then.
    """
    b = s.builder
    main = kinds[-1]
    carried = payload_kinds(kinds)
    if not isinstance(value, ScalarV):
        return [_zero(main), ir.Const(0, PYINT), *map(_zero, carried)]
    fillers: dict[Scalar, ir.Operand] = {kind: _zero(kind) for kind in carried}
    if isinstance(like, ScalarV) and like.either is not None:
        for kind, payload in zip(like.either.kinds, like.either.payloads, strict=True):
            if kind in fillers and payload is not None and s.in_scope(payload):
                fillers[kind] = payload
    wide = b.cast(value.operand, main)
    if value.either is None:
        own = value.type
        payloads = [value.operand if kind == own else fillers[kind] for kind in carried]
        return [wide, ir.Const(kinds.index(own), PYINT), *payloads]
    either = value.either
    payloads = []
    for kind in carried:
        payload = either.payloads[either.kinds.index(kind)] if kind in either.kinds else fillers[kind]
        if payload is None:  # the widest of its own types
            payload = value.operand
        payloads.append(payload)
    if either.kinds == kinds:
        return [wide, either.tag, *payloads]
    tag: ir.Operand = ir.Const(kinds.index(either.kinds[-1]), PYINT)
    for index, kind in enumerate(either.kinds[:-1]):
        here = b.prim("eq", either.tag, ir.Const(index, PYINT), type=PYBOOL)
        tag = b.select(here, ir.Const(kinds.index(kind), PYINT), tag)
    return [wide, tag, *payloads]


def _zero(kind: Scalar) -> ir.Const:
    return ir.Const(np.dtype(kind.dtype).type(0).item(), kind)


def value_of(kinds: tuple[Scalar, ...], variables: list[Any], rare: bool) -> ScalarV:
    """The value that a gate gives; consumes its variables."""
    operand, tag = variables.pop(0), variables.pop(0)
    carried = payload_kinds(kinds)
    payloads = tuple(variables.pop(0) if kind in carried else None for kind in kinds)
    return ScalarV(operand, Either(kinds, tag, payloads, rare))


def settled(
    s: Specializer,
    templates: Sequence[gates.Template],
    params: Sequence[ir.Var],
    starts: Sequence[ir.Operand],
    block: ir.Block,
    ran: Callable[[], ir.Operand],
) -> tuple[list[int], set[int], Callable[[list[ir.Var]], list[Any]]]:
    """Tags and payloads that a counted loop need not carry, since every iteration gives the widest type.

    Gives the positions of the gate variables to keep, the templates that have the widest type whenever the loop runs,
    and a function from the loop's outs to all gate values after it.
    """
    used = _used(block)
    rare: set[int] = set()
    extras: list[range] = []  # the places of tags, and of the payloads behind them, that may be left out
    position = 0
    for number, template in enumerate(templates):
        count = len(gates.types_of(template))
        if isinstance(template, gates.EitherT):
            extra = range(position + 1, position + count)
            if block.results[position + 1] == ir.Const(len(template.kinds) - 1, PYINT):
                rare.add(number)
                if not any(params[place] in used for place in extra):
                    extras.append(extra)
        position += count
    # What one variable is in this iteration another may be in the next.
    while True:
        left = {place for extra in extras for place in extra}
        passed_on = {block.results[place] for place in range(position) if place not in left}
        still = [extra for extra in extras if not any(params[place] in passed_on for place in extra)]
        if len(still) == len(extras):
            break
        extras = still
    dropped: dict[int, ir.Operand] = {}
    for extra in extras:
        dropped[extra[0]] = block.results[extra[0]]
        dropped |= {place: starts[place] for place in extra[1:]}
    kept = [place for place in range(position) if place not in dropped]

    def restore(outs: list[ir.Var]) -> list[Any]:
        waiting = list(outs)
        found: list[ir.Operand] = []
        for place in range(position):
            if place not in dropped:
                found.append(waiting.pop(0))
            elif isinstance(dropped[place], ir.Const) and block.results[place] == dropped[place]:
                found.append(s.builder.select(ran(), dropped[place], starts[place]))
            else:
                found.append(dropped[place])
        return found

    return kept, rare, restore


def _used(block: ir.Block) -> set[ir.Operand]:
    found: set[ir.Operand] = set()
    for let in block.statements:
        found.update(ir.operands_of(let.op))
        for inner in ir.blocks_of(let.op):
            found |= _used(inner)
            found.update(inner.results)
    return found


# ---- operations ------------------------------------------------------------------------------------------------------


def union_operand(s: Specializer, op: ssa.Op) -> ssa.Var | None:
    """An operand of several types that an operation has to resolve."""
    if isinstance(op, _INDIFFERENT):
        return None
    env = s.frames[-1].env
    for operand in operands(op):
        if not isinstance(operand, ssa.Var):
            continue
        value = env.get(operand)
        if isinstance(value, ScalarV) and value.either is not None:
            if isinstance(op, ssa.Call) and _looks_into(s, op):
                return None  # resolved where the function uses it
            return operand
    return None


def _looks_into(s: Specializer, op: ssa.Call) -> bool:
    function = s.value(op.function)
    return isinstance(function, ClosureV) or (isinstance(function, Static) and looked_into(function.object) is not None)


def resolve(s: Specializer, let: ssa.Let, var: ssa.Var) -> Value | None:
    """The value of a statement one of whose operands may have several types."""
    env = s.frames[-1].env
    value = env[var]
    assert isinstance(value, ScalarV) and value.either is not None
    kinds = value.either.kinds

    def done_on(chosen: ScalarV) -> Value | None:
        env[var] = chosen
        try:
            return s.single(let)
        finally:
            env[var] = value

    def alone(index: int) -> Value | None:
        return done_on(alternative(s, value, index))

    if isinstance(let.op, ssa.Call):
        reason = handed_back(s, lambda: alone(len(kinds) - 1))
        if reason is not None:
            return opaque_operation(s, let, reason)
    plain = ScalarV(value.operand)
    found = [tried(s, partial(alone, index)) for index in range(len(kinds))]
    if all(key == found[0] for key in found) and all(
        _is_faithful(s, let.op, kind, kinds[-1], found[0]) for kind in kinds[:-1]
    ):
        return done_on(plain)
    tag = value.either.tag
    if value.either.rare:
        here = s.builder.prim("eq", tag, ir.Const(len(kinds) - 1, PYINT), type=PYBOOL)
        s.check(here, "Deoptimize", "a loop that has not run leaves a value of another type")
        return done_on(plain)

    def run(index: int) -> list[Value]:
        result = alone(index)
        return [NONE if result is None else result]

    def chain(indices: Sequence[int]) -> list[Value]:
        *others, index = indices
        if not others:
            return run(index)
        here = s.builder.prim("eq", tag, ir.Const(index, PYINT), type=PYBOOL)
        return branch(s, here, lambda: run(index), lambda: chain(others))

    from parakeet_py.typed_ir.branches import branch

    possible = [index for index, key in enumerate(found) if not isinstance(key, UnsupportedError)]
    if possible:  # what cannot be done with a value of one type, or raises, is left to Python where it is of that
        for index, key in enumerate(found):
            if isinstance(key, UnsupportedError):
                here = s.builder.prim("ne", tag, ir.Const(index, PYINT), type=PYBOOL)
                s.check(here, "Deoptimize", key.message)
                if s.dead:
                    return NeverV()
    results = chain(possible or range(len(kinds)))
    return results[0] if let.outs or isinstance(results[0], NeverV) else None


def handed_back(s: Specializer, run: Callable[[], Value | None]) -> str | None:
    """Why Python would do an operation, if it would; it is then given the value, whatever it is."""
    sites = len(s.sites)
    reasons: list[str] = []

    def seen() -> bool:
        reasons.extend(site.reason for site in s.sites[sites:])
        return bool(reasons)

    try:
        tried(s, run, seen)
    except NeedObservation as need:
        return need.reason
    return reasons[-1] if reasons else None


def tried(s: Specializer, run: Callable[[], Value | None], stop: Callable[[], bool] = lambda: False) -> object:
    """What type of value an operation would give; nothing of it is kept. `SEEN` if `stop` says so after it."""
    b, sites, frames = s.builder, len(s.sites), len(s.frames)
    mark = b.mark()
    try:
        result = run()
        if stop():
            return SEEN
        return () if result is None else _key(gates.template_of(result, varying=True))
    except UnsupportedError as error:
        return error
    finally:
        del s.frames[frames:], s.sites[sites:]
        b.rollback(mark)


def _key(template: gates.Template) -> object:
    """What tells types of values apart."""
    match template:
        case gates.ArrayT(kind):
            return kind.dtype, kind.rank
        case gates.Structure(like, parts):
            return type(like), tuple(map(_key, parts))
    return template


def _is_faithful(s: Specializer, op: ssa.Op, kind: Scalar, main: Scalar, result: object) -> bool:
    """Is it all the same whether a value of `kind` is made `main` before an operation, or what NumPy makes of it?"""
    if is_exact(kind, main):
        return True
    match op:
        case ssa.Unary("not"):
            return np.dtype(main.dtype).kind in "fc"
        case ssa.Compare(_, left, right):  # Python compares ints with floats exactly, NumPy as floats
            return any(_is_numpy_float(s.value(side)) for side in (left, right))
        case ssa.SetItem(target, _, _):
            array = s.value(target)
            return isinstance(array, ArrayV) and np.dtype(array.dtype).kind in "fc"
    dtype = result.dtype if isinstance(result, Scalar) else result[0] if isinstance(result, tuple) and result else None
    return dtype == main.dtype and np.dtype(main.dtype).kind in "fc"


def _is_numpy_float(value: Value) -> bool:
    match value:
        case ScalarV(_, None):
            return not value.python and np.dtype(value.dtype).kind in "fc"
        case ArrayV():
            return np.dtype(value.dtype).kind in "fc"
    return False
