"""What loops go through: the items of what has a known length, or a number of positions and the item at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.builder import may_raise
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.specialize.arrays import indexing, record_arrays
from parakeet_py.typed_ir.specialize.compile_time_values import is_demandable
from parakeet_py.typed_ir.specialize.containers import strings
from parakeet_py.typed_ir.specialize.forms import form_of
from parakeet_py.typed_ir.specialize.instances import instance_columns, text_columns
from parakeet_py.typed_ir.specialize.python.python_scalars import int_add
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    GeneratorV,
    ItemAt,
    IteratorV,
    MessageV,
    MethodV,
    ObjectV,
    RangeV,
    RecordV,
    ScalarV,
    Static,
    TextV,
    TupleV,
    Value,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


_HINTS = {  # what to give a loop instead
    "a range": "write the range in the function, or pass it as an argument",
    "a set": "go over sorted(x), if the order does not matter",
    "a frozenset": "go over sorted(x), if the order does not matter",
    "a tuple": "go over an array, a list, or the range or comprehension that it is made of",
    "a dict_items": "go over np.array(list(d.values())), or over a dict that the function fills itself",
    "a dict_values": "go over np.array(list(d.values()))",
    "a dict_keys": "go over np.array(list(d))",
    "a TextIOWrapper": "read it in a function that is not accelerated, such as np.loadtxt(file)",
    "an object": "make an array of what the loop needs, in a function that is not accelerated",
    "a generator": "pass np.array(list(x)), or call the generator function in here",
}


def static_items(iterable: Value) -> list[Value] | None:
    """The items of an iterable whose length is known at compile time."""
    match iterable:
        case TupleV(items):
            return list(items)
        case DictV(items):
            return [py(key) if isinstance(key, int | float) else Static(key) for key, _ in items]
        case IteratorV("zip", items):
            parts = [static_items(item) for item in items]
            if not parts or any(part is None for part in parts):
                return None if parts else []
            return [TupleV(tuple(row)) for row in zip(*parts, strict=False)]
        case IteratorV("enumerate", (start, inner)):
            own = static_items(inner)
            if own is None or not (isinstance(start, ScalarV) and isinstance(start.operand, ir.Const)):
                return None
            first = int(start.operand.value.real)
            return [TupleV((py(first + position), item)) for position, item in enumerate(own)]
        case IteratorV("reversed", (inner,)):
            own = static_items(inner)
            return None if own is None else own[::-1]
        case MessageV(template, ()):
            return [Static(character) for character in template.format()]
        case Static(str() as text):
            return [Static(character) for character in text]
    return None


def counted(s: Context, iterable: Value) -> tuple[ir.Operand, ir.Operand, ir.Operand, ItemAt]:
    """(start, stop, step, item at an index) of an iterable of run-time length."""
    b = s.builder
    places = form_of(iterable).places
    if places is not None and (found := places(s, iterable)) is not None:
        length, item_at = found
        return ZERO, length, ONE, item_at
    match iterable:
        case RangeV(start, stop, step):
            return start.operand, stop.operand, step.operand, ScalarV
        case TextV(codes) as text:
            return ZERO, codes.extents[0], ONE, lambda index: strings.char_at(s, text, index)
        case ArrayV(rank=0):
            raise s.unsupported("iteration over a 0-d array")
        case MethodV(ArrayV() as array, "flat"):
            if array.layout == "C":
                return counted(s, s.call_library("flat_line", [array]))
            size: ir.Operand = ONE
            for extent in array.extents:
                size = b.index_mul(size, extent)
            return ZERO, size, ONE, lambda index: s.call_library("flat_item", [array, ScalarV(index)])
        case ArrayV() as whole:
            return ZERO, whole.extents[0], ONE, lambda index: indexing.read(s, whole, ScalarV(index))
        case ObjectV() if (shape := record_arrays.shape_of(s, iterable)) is not None and shape.rank:
            records = iterable
            return ZERO, shape.extents[0], ONE, lambda index: RecordV(records, ScalarV(index))
        case RecordV() if (taken := _records(s, iterable)) is not None:
            return taken
        case ObjectV() if (many := instance_columns.length(s, iterable)) is not None:
            instances = iterable
            return ZERO, many, ONE, lambda index: instance_columns.at(instances, index)
        case ObjectV() if (count := text_columns.length(s, iterable)) is not None:
            words = iterable
            return ZERO, count, ONE, lambda index: text_columns.at(s, words, index)
        case IteratorV("enumerate", (first, inner)):
            length, item_at = positions(s, inner)
            assert isinstance(first, ScalarV)
            begin = first.operand
            return ZERO, length, ONE, lambda index: TupleV((ScalarV(int_add(s, begin, index)), item_at(index)))
        case IteratorV("zip", items):
            lengths = [positions(s, item) for item in items]
            shortest = lengths[0][0]
            for length, _ in lengths[1:]:
                shortest = b.index_min(shortest, length)
            return ZERO, shortest, ONE, lambda index: TupleV(tuple(item_at(index) for _, item_at in lengths))
        case IteratorV("reversed", (inner,)):
            length, item_at = positions(s, inner)
            last = b.index_add(length, ONE, -1)
            return ZERO, length, ONE, lambda index: item_at(b.index_sub(last, index))
        case ComprehensionV(_, _, element):
            with s.loops.copies_taken(False):
                length, item_at = positions(s, lazy_source(s, iterable))
            return ZERO, length, ONE, lambda index: s.call(element, [item_at(index)], {})
        case Static(obj) if callable(getattr(obj, "__iter__", None)):
            raise s.unsupported(f"iteration over {type(obj).__name__}")
    what = s.describe(iterable)
    raise s.unsupported(f"iteration over {what}", _HINTS.get(what, ""))


def _records(s: Context, value: RecordV) -> tuple[ir.Operand, ir.Operand, ir.Operand, ItemAt] | None:
    """Some records of an array. Those that NumPy copies are read where they are, so only a loop that stores nothing may
    go through them."""
    if value.copied is not None and not s.loops.takes_copies:
        return None
    places = record_arrays.places_of(s, value)
    if places is None:
        return None
    if value.copied is not None:
        record_arrays.need_unchanged(s, value)
        s.loops.copies += 1
    return ZERO, places.extents[0], ONE, lambda index: record_arrays.at(s, value, places, index)


def lazy_source(s: Context, value: ComprehensionV) -> Value:
    """What a generator goes through, for a loop in which its items are computed one by one."""
    if value.kind not in ("generator", "inner") or value.condition is not None or value.flatten:
        raise s.unsupported("a loop over a generator with conditions or several loops", "write the loops as statements")
    return value.iterable


def pending(s: Context, value: Value) -> Value:
    """An iterable inside of `zip` or `enumerate`: what is computed item by item stays so."""
    if isinstance(value, GeneratorV):
        return value
    if not isinstance(value, ComprehensionV):
        return s.as_list(value)
    if value.kind in ("generator", "inner") and (_changes(value.element) or _changes(value.condition)):
        raise s.unsupported("an iterator inside another, as its steps change things", "go through a list of its items")
    if static_items(value.iterable) is not None:
        scope, start = s.builder.scopes[-1], len(s.builder.scopes[-1].statements)
        listed = s.as_list(value)
        if s.builder.scopes[-1] is not scope or may_raise(scope.statements[start:]):
            raise s.unsupported("an iterator inside another, as its steps may raise", "go through a list of its items")
        return listed
    lazy_source(s, value)
    return value


def _changes(value: Value | None) -> bool:
    """Does a nested function, or one that it has captured, change what is not its own?"""
    if not isinstance(value, ClosureV):
        return False
    outside: set[ssa.Operand] = {*value.function.captures}
    for let in value.function.statements():
        match let.op:
            case ssa.Global() | ssa.Free():
                outside.update(out for out in let.outs if isinstance(out, ssa.Var))
            case (
                ssa.SetItem(changed)
                | ssa.DeleteItem(changed)
                | ssa.SetAttribute(changed)
                | ssa.ChangeList(_, changed)
                | ssa.Inplace(_, changed)
            ) if changed in outside:
                return True
    return any(map(_changes, value.captures))


def positions(s: Context, iterable: Value) -> tuple[ir.Operand, ItemAt]:
    """(length, item at position 0, 1, ...) of an iterable."""
    b = s.builder
    if isinstance(iterable, RangeV):
        start, step = iterable.start.operand, iterable.step.operand
        return range_length(s, iterable), lambda index: ScalarV(b.index_add(start, b.index_mul(step, index)))
    items = static_items(iterable)
    if items is not None:
        found = s.table_of(TupleV(tuple(items)))
        if found is None:
            raise s.unsupported("a zip of a tuple with something of run-time length")
        return ir.Const(len(items), PYINT), found
    start, stop, step, item_at = counted(s, iterable)
    return stop, item_at


_WIDE = (1 << 62) - 1  # the sum or difference of two such numbers fits


def range_bound(s: Context, number: ScalarV) -> ir.Operand:
    """An argument of `range`; Python goes through ranges of numbers that do not fit 64 bits with a sign."""
    b = s.builder
    if number.dtype == "uint64":
        most = ir.Const((1 << 63) - 1, Scalar("uint64"))
        s.check(b.prim("le", number.operand, most, type=PYBOOL), "Deoptimize", "a range of numbers beyond 64 bits")
    return b.cast(number.operand, PYINT)


def check_steps(s: Context, start: ScalarV, stop: ScalarV, step: ScalarV) -> None:
    """Where a range has steps, their number is a quotient, and counting must not go beyond 64 bits."""
    if step.operand not in (ir.Const(1, PYINT), ir.Const(-1, PYINT)):
        _check_narrow(s, start.operand, stop.operand, step.operand)


def _check_narrow(s: Context, *numbers: ir.Operand) -> None:
    """Python goes through ranges of numbers whose differences may be beyond 64 bits."""
    b = s.builder
    for number in numbers:
        if isinstance(number, ir.Const):
            if abs(number.whole) > _WIDE:
                raise s.hand_back("a range of numbers beyond 62 bits")
        elif not b.is_small(number):
            low = b.prim("ge", number, ir.Const(-_WIDE, PYINT), type=PYBOOL)
            high = b.prim("le", number, ir.Const(_WIDE, PYINT), type=PYBOOL)
            s.check(b.logical_and(low, high), "Deoptimize", "a range of numbers beyond 62 bits")


def range_length(s: Context, value: RangeV) -> ir.Operand:
    """The number of a range's elements, which 64 bits have to hold (as Python says of `len`)."""
    b = s.builder
    start, stop, step = value.start.operand, value.stop.operand, value.step.operand
    if not isinstance(step, ir.Const):
        if not is_demandable(s, step):
            return _dynamic_length(s, start, stop, step)
        step = ir.Const(s.static_int(value.step, "the step of a range"), PYINT)
    amount = step.whole
    low, high = (start, stop) if amount > 0 else (stop, start)
    if low != ZERO:
        _check_narrow(s, low, high)
    span = b.max0(b.index_sub(high, low))
    if abs(amount) == 1:
        return span
    result = b.prim("floordiv", b.index_add(span, ir.Const(abs(amount) - 1, PYINT)), ir.Const(abs(amount), PYINT))
    return b.as_count(result)


def range_has_items(s: Context, value: RangeV) -> ir.Operand:
    """Whether a range is not empty."""
    b = s.builder
    start, stop, step = value.start.operand, value.stop.operand, value.step.operand
    rising, falling = (b.prim(order, start, stop, type=PYBOOL) for order in ("lt", "gt"))
    return b.select(b.prim("gt", step, ZERO, type=PYBOOL), rising, falling)


def _dynamic_length(s: Context, start: ir.Operand, stop: ir.Operand, step: ir.Operand) -> ir.Operand:
    """The length of a range whose step is known at run time only; it is not 0."""
    b = s.builder
    forward = b.prim("gt", step, ir.Const(0, PYINT), type=PYBOOL)
    span = b.max0(b.select(forward, b.index_sub(stop, start), b.index_sub(start, stop)))
    least = ir.Const(1 - (1 << 63), PYINT)  # steps below it, one, make the same of any span
    size = b.select(forward, step, b.prim("neg", b.prim("maximum", step, least)))
    whole = b.prim("floordiv", span, size)
    more = b.prim("ne", b.prim("mod", span, size), ir.Const(0, PYINT), type=PYBOOL)
    length = b.prim("add", whole, b.cast(more, PYINT))
    return b.as_count(length)
