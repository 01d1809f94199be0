"""Specialization of control flow: branches, counted loops over anything iterable, while loops.

A condition known at compile time picks its branch and leaves no trace. A loop over a tuple is unrolled; a loop over a
range or an array is specialized to a fixed point: the types of its carried variables start as those of their initial
values and grow until one pass over the body leaves them unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from parakeet_py.frontend import ssa
from parakeet_py.typed_ir import (
    array_lists,
    dict_items,
    field_state,
    gates,
    grown_lists,
    hash_maps,
    ir,
    opaque,
    unions,
    variants,
)
from parakeet_py.typed_ir.guarded import after_branch
from parakeet_py.typed_ir.guarded import side as guarded_side
from parakeet_py.typed_ir.indexing import read
from parakeet_py.typed_ir.ir import ONE, ZERO
from parakeet_py.typed_ir.python_scalars import int_add
from parakeet_py.typed_ir.requests import NeedUnroll, NotGrown
from parakeet_py.typed_ir.types import PYBOOL, PYINT
from parakeet_py.typed_ir.values import (
    ArraysV,
    ArrayV,
    ComprehensionV,
    DictV,
    GeneratorV,
    GrowV,
    IteratorV,
    ListV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    RangeV,
    ScalarV,
    Static,
    TupleV,
    UnboundV,
    Value,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize import Specializer


MAX_UNROLL = 64


def specialize_if(s: Specializer, op: ssa.If) -> list[Value]:
    condition = s.truth(s.value(op.condition))
    if isinstance(condition, ir.Const):
        return s.run(op.then if condition.value else op.orelse)
    return branch(s, condition, lambda: s.run(op.then), lambda: s.run(op.orelse))


def branch(
    s: Specializer, condition: ir.Operand, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
) -> list[Value]:
    """Emit an `If` whose two sides are given as functions that return their values."""
    if s.guards and s.guards[-1].is_open(s):
        with_exits = _branch(s, condition, lambda: guarded_side(s, then), lambda: guarded_side(s, orelse))
        return after_branch(s, with_exits)
    return _branch(s, condition, then, orelse)


def _branch(
    s: Specializer, condition: ir.Operand, then: Callable[[], list[Value]], orelse: Callable[[], list[Value]]
) -> list[Value]:
    b = s.builder
    sides = []
    before = field_state.carried(s)
    for run, holds in ((then, True), (orelse, False)):
        field_state.take(s, before)
        with b.block() as statements:
            variants.learn(s, condition, holds)
            values = field_state.with_results(s, run(), len(before))
            sides.append(Side(statements, s.settle(values), dict(b.equal), b.scopes[-1]))
    first = len(sides[0].values) - len(before)
    kept = [
        place
        for place, value in enumerate(before, first)
        if all(side.values[place] is value or isinstance(side.values[place], NeverV) for side in sides)
    ]
    values = joined(s, condition, *(side.without(kept) for side in sides))
    for place in kept:
        values.insert(place, before[place - first])
    return field_state.taken(s, values, len(before))


class Side(NamedTuple):
    """One side of a branch: what has been written, its values, and the state of the builder at its end."""

    statements: list[ir.Let]
    values: list[Value]
    facts: dict[Any, Any]
    scope: Any

    def without(self, places: Sequence[int]) -> Side:
        """The side without the values at some places."""
        return self._replace(values=[value for place, value in enumerate(self.values) if place not in places])


def ends_in_failure(statements: Sequence[ir.Let]) -> bool:
    """Do these statements end in a check that always fails, or one on each side of a branch?"""
    last = statements[-1].op if statements else None
    if isinstance(last, ir.If):
        return ends_in_failure(last.then.statements) and ends_in_failure(last.orelse.statements)
    return isinstance(last, ir.Check) and isinstance(last.condition, ir.Const) and not last.condition.value


def joined(s: Specializer, condition: ir.Operand, then: Side, orelse: Side) -> list[Value]:
    """Emit the `If` of two sides; its values."""
    b = s.builder
    sides = (then, orelse)
    left, right = then.values, orelse.values
    templates = [
        gates.join_or_box(s, gates.template_of(x, varying=False), gates.template_of(y, varying=False))
        for x, y in zip(left, right, strict=True)
    ]
    blocks = []
    for (statements, values, facts, scope), others in zip(sides, (right, left), strict=True):
        b.scopes.append(scope)  # the block is still open: casts for the gate go to its end
        saved, b.equal = b.equal, facts
        leaves = [
            leaf
            for value, template, other in zip(values, templates, others, strict=True)
            for leaf in gates.leaves_of(s, value, template, other)
        ]
        b.equal = saved
        b.scopes.pop()
        blocks.append(ir.Block(tuple(statements), tuple(leaves)))
    kinds = [kind for template in templates for kind in gates.types_of(template)]
    outs = list(b.emit(ir.If(condition, *blocks), *kinds, name="phi"))
    for side, holds in ((then, False), (orelse, True)):
        if ends_in_failure(side.statements):
            variants.learn(s, condition, holds)
    values = [gates.value_of(s, template, outs) for template in templates]
    for position, (one, other) in enumerate(zip(left, right, strict=True)):
        for value, absent in ((one, other), (other, one)):
            if isinstance(absent, UnboundV | NeverV) and isinstance(value, ArrayV) and s.in_scope(value.var):
                values[position] = value  # wherever there is a value, it is this array
    return _same_objects(values, list(zip(map(_object, left), map(_object, right), strict=True)))


def _same_objects(values: list[Value], came: Sequence[tuple[object, ...]]) -> list[Value]:
    """Two names of one array on every path are two names of one array afterwards."""
    first: dict[tuple[object, ...], int] = {}
    for position, (value, key) in enumerate(zip(values, came, strict=True)):
        if isinstance(value, ArrayV) and None not in key:
            values[position] = values[first.setdefault(key, position)]
    return values


def _object(value: Value) -> object:
    """What is equal for names of one array, or where both have none; None for other values."""
    return value if isinstance(value, ArrayV) else type(value) if isinstance(value, UnboundV | NeverV) else None


def _loop_values(
    s: Specializer,
    inits: Sequence[Value],
    templates: Sequence[gates.Template],
    params: Sequence[ir.Var],
    results: Sequence[ir.Operand],
    outs: list[ir.Var],
) -> list[Value]:
    """The values of a loop's outs. A name that is not bound before, and in every iteration to one array from outside
    the loop, stands for that array."""
    values = [gates.value_of(s, template, outs) for template in templates]
    leaves = results[len(results) - len(params) :]
    place = 0
    for position, (init, template) in enumerate(zip(inits, templates, strict=True)):
        if isinstance(init, UnboundV) and isinstance(template, gates.ArrayT):
            leaf = leaves[place]
            if isinstance(leaf, ir.Var) and s.in_scope(leaf):
                values[position] = gates.value_of(s, template, [leaf])
        place += len(gates.types_of(template))
    return _same_objects(values, _carried_objects(inits, templates, params, results))


def _carried_objects(
    inits: Sequence[Value],
    templates: Sequence[gates.Template],
    params: Sequence[ir.Var],
    results: Sequence[ir.Operand],
) -> list[tuple[object, ...]]:
    """For each variable of a loop, the array it has before and the one that an iteration gives it."""
    results = results[len(results) - len(params) :]
    came: list[tuple[object, ...]] = []
    place = 0
    for init, template in zip(inits, templates, strict=True):
        if isinstance(template, gates.ArrayT):
            came.append((_object(init), "kept" if results[place] == params[place] else results[place]))
        else:
            came.append((None,))
        place += len(gates.types_of(template))
    return came


# ---- for -------------------------------------------------------------------------------------------------------------


def specialize_for(s: Specializer, op: ssa.For) -> list[Value]:
    iterable = variants.sole(s, s.value(op.iterable), "'NoneType' object is not iterable")
    return for_each(s, op, iterable, [s.value(init) for init in op.inits])


def for_each(s: Specializer, op: ssa.For, iterable: Value, inits: list[Value]) -> list[Value]:
    from parakeet_py.typed_ir import generators

    if isinstance(iterable, ComprehensionV) and (iterable.condition is not None or iterable.flatten):
        iterable = generators.of_expression(s, iterable)
    if generators.is_lazy(iterable):
        return generators.for_each(s, op, iterable, inits)
    if (view := dict_items.view(s, iterable)) is not None:
        keys, source, kind = view
        return _unroll(s, op, keys, inits, lambda key: dict_items.part(s, source, kind, key))
    items = static_items(lazy_source(s, iterable) if isinstance(iterable, ComprehensionV) else iterable)
    if items is not None:
        if len(items) > MAX_UNROLL:
            raise s.unsupported(f"a loop over a {len(items)}-item sequence is too long to unroll")
        if isinstance(iterable, ComprehensionV):
            element = iterable.element
            return _unroll(s, op, items, inits, lambda item: s.call(element, [item], {}))
        return _unroll(s, op, items, inits)
    start, stop, step, item_at = counted(s, iterable)
    if isinstance(iterable, RangeV) and iterable.parallel and not inits and not op.stoppable:
        return _independent_loop(s, op, iterable)
    if s.unroll_wanted(op) and all(isinstance(bound, ir.Const) for bound in (start, stop, step)):
        numbers = range(*(int(bound.value.real) for bound in (start, stop, step)))
        if len(numbers) <= MAX_UNROLL:
            return _unroll(s, op, [item_at(ir.Const(number, PYINT)) for number in numbers], inits)
    return _counted_loop(s, op, start, stop, step, item_at, inits)


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


def counted(s: Specializer, iterable: Value):  # type: ignore[no-untyped-def]
    """(start, stop, step, item at an index) of an iterable of run-time length."""
    b = s.builder
    match iterable:
        case RangeV(start, stop, step):
            return start.operand, stop.operand, step.operand, ScalarV
        case ListV(array):
            return ZERO, array.extents[0], ONE, lambda index: s.list_item(iterable, ScalarV(index))
        case GrowV(length):
            return ZERO, length.operand, ONE, lambda index: grown_lists.item_at(s, iterable, index)
        case ArraysV(length):
            return ZERO, length.operand, ONE, lambda index: array_lists.item_at(s, iterable, index)
        case MapV(kind="dict"):
            return counted(s, hash_maps.keys(iterable))
        case ArrayV(rank=0):
            raise s.unsupported("iteration over a 0-d array")
        case MethodV(ArrayV() as array, "flat"):
            if array.layout == "C":
                return counted(s, s.call_library("flat_line", [array]))
            size: ir.Operand = ONE
            for extent in array.extents:
                size = b.index_mul(size, extent)
            return ZERO, size, ONE, lambda index: s.call_library("flat_item", [array, ScalarV(index)])
        case ArrayV():
            return ZERO, iterable.extents[0], ONE, lambda index: read(s, iterable, ScalarV(index))
        case IteratorV("enumerate", (first, inner)):
            length, item_at = positions(s, inner)
            assert isinstance(first, ScalarV)
            return ZERO, length, ONE, lambda index: TupleV((ScalarV(int_add(s, first.operand, index)), item_at(index)))
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
            length, item_at = positions(s, lazy_source(s, iterable))
            return ZERO, length, ONE, lambda index: s.call(element, [item_at(index)], {})
        case Static(obj) if callable(getattr(obj, "__iter__", None)):
            raise s.unsupported(f"iteration over {type(obj).__name__}")
    raise s.unsupported(f"iteration over {s.describe(iterable)}")


def lazy_source(s: Specializer, value: ComprehensionV) -> Value:
    """What a generator goes through, for a loop in which its items are computed one by one."""
    if value.kind != "generator" or value.condition is not None or value.flatten:
        raise s.unsupported("a loop over a generator with conditions or several loops", "write the loops as statements")
    return value.iterable


def pending(s: Specializer, value: Value) -> Value:
    """An iterable inside of `zip` or `enumerate`: what is computed item by item stays so."""
    if isinstance(value, GeneratorV):
        return value
    if not isinstance(value, ComprehensionV) or static_items(value.iterable) is not None:
        return s.as_list(value)
    lazy_source(s, value)
    return value


def positions(s: Specializer, iterable: Value):  # type: ignore[no-untyped-def]
    """(length, item at position 0, 1, ...) of an iterable."""
    b = s.builder
    if isinstance(iterable, RangeV):
        start, step = iterable.start.operand, iterable.step.operand
        return range_length(s, iterable), lambda index: ScalarV(b.index_add(start, b.index_mul(step, index)))
    items = static_items(iterable)
    if items is not None:
        raise s.unsupported("a zip of a tuple with something of run-time length")
    start, stop, step, item_at = counted(s, iterable)
    return stop, item_at


def range_length(s: Specializer, value: RangeV) -> ir.Operand:
    """len(range(...))."""
    b = s.builder
    start, stop, step = value.start.operand, value.stop.operand, value.step.operand
    if not isinstance(step, ir.Const):
        amount = s.static_int(value.step, "the step of a range")
        step = ir.Const(amount, PYINT)
    amount = int(step.value.real)
    span = b.index_sub(stop, start) if amount > 0 else b.index_sub(start, stop)
    span = b.max0(span)
    if abs(amount) == 1:
        return span
    result = b.prim("floordiv", b.index_add(span, ir.Const(abs(amount) - 1, PYINT)), ir.Const(abs(amount), PYINT))
    if isinstance(result, ir.Var):
        b.nonnegative.add(result)
        b.small.add(result)
    return result


def _unroll(
    s: Specializer,
    op: ssa.For,
    items: list[Value],
    inits: list[Value],
    element: Callable[[Value], Value] = lambda item: item,
) -> list[Value]:
    """The body once per item. A stop flag nests the rest of the iterations in its else branch."""
    params = inits
    for position, item in enumerate(items):
        s.bind(op.item, element(item))
        for var, value in zip(op.params, params, strict=True):
            s.bind(var, value)
        s.unrolling += 1
        try:
            results = s.run(op.body)
        finally:
            s.unrolling -= 1
        if not op.stoppable:
            params = results
            continue
        stop, params = s.truth(results[0]), results[1:]
        if isinstance(stop, ir.Const):
            if stop.value:
                return [py(True), *params]
            continue
        now = params

        def leave(now: list[Value] = now) -> list[Value]:
            return [py(True), *now]

        def rest(position: int = position, now: list[Value] = now) -> list[Value]:
            return _unroll(s, op, items[position + 1 :], now, element)

        return branch(s, stop, leave, rest)
    return [py(False), *params] if op.stoppable else params


def _counted_loop(  # type: ignore[no-untyped-def]
    s: Specializer, op: ssa.For, start: ir.Operand, stop: ir.Operand, step: ir.Operand, item_at, inits: list[Value]
) -> list[Value]:
    b = s.builder
    inits = s.settle([*inits, *field_state.carried(s)])
    templates = s.loop_templates(op, inits)
    index = _loop_index(s, start, stop, step)

    def body() -> list[Value]:
        s.bind(op.item, item_at(index))
        return s.run(op.body)

    try:
        blocks, params, templates = _fixed_point(s, op, templates, inits, [body], op.stoppable)
    except NotGrown:
        if all(isinstance(bound, ir.Const) for bound in (start, stop, step)) and not s.unroll_wanted(op):
            raise NeedUnroll(op) from None
        raise
    block = ir.Block(*blocks[0])
    starts = _leaves(s, inits, templates)
    kinds = [kind for template in templates for kind in gates.types_of(template)]
    if op.stoppable or not any(isinstance(template, gates.EitherT) for template in templates):
        node = ir.For(index, start, stop, step, params, starts, block, op.stoppable)
        outs = list(b.emit(node, *([PYBOOL] if op.stoppable else []), *kinds, name="loop"))
        stopped = [ScalarV(outs.pop(0))] if op.stoppable else []
        values = field_state.taken(
            s, _loop_values(s, inits, templates, params, block.results, outs), len(inits) - len(op.inits)
        )
        return [*stopped, *values]

    def ran() -> ir.Operand:
        forward = isinstance(step, ir.Const) and step.value.real > 0
        if isinstance(step, ir.Const):
            return b.prim("lt" if forward else "gt", start, stop, type=PYBOOL)
        up = b.prim("gt", step, ZERO, type=PYBOOL)
        return b.select(up, b.prim("lt", start, stop, type=PYBOOL), b.prim("gt", start, stop, type=PYBOOL))

    kept, rare, restore = unions.settled(s, templates, params, starts, block, ran)
    node = ir.For(
        index,
        start,
        stop,
        step,
        tuple(params[place] for place in kept),
        tuple(starts[place] for place in kept),
        ir.Block(block.statements, tuple(block.results[place] for place in kept)),
        False,
    )
    every = restore(list(b.emit(node, *(kinds[place] for place in kept), name="loop")))
    templates = [
        gates.EitherT(template.kinds, position in rare) if isinstance(template, gates.EitherT) else template
        for position, template in enumerate(templates)
    ]
    return field_state.taken(
        s, _loop_values(s, inits, templates, params, block.results, every), len(inits) - len(op.inits)
    )


def _independent_loop(s: Specializer, op: ssa.For, iterable: RangeV) -> list[Value]:
    """A prange loop that carries nothing: a Map over its iterations, which store what they have to."""
    b = s.builder
    length = range_length(s, iterable)
    point = s.index_var("i", length)
    with b.block() as statements, s.element_function(stores=True):
        item = b.index_add(iterable.start.operand, b.index_mul(iterable.step.operand, point))
        s.bind(op.item, ScalarV(item))
        s.run(op.body)
    b.emit(ir.Map((length,), (point,), ir.Block(tuple(statements))))
    return []


def _loop_index(s: Specializer, start: ir.Operand, stop: ir.Operand, step: ir.Operand) -> ir.Var:
    b = s.builder
    index = ir.Var("i", PYINT)
    if b.is_small(start) and b.is_small(stop):
        b.small.add(index)
    if isinstance(step, ir.Const):
        first, last = b.form(start), b.form(stop)
        if step.value.real > 0:
            b.lower[index], b.upper[index] = first, (last[0], last[1] - 1)
            if b.at_least_zero(first):
                b.nonnegative.add(index)
        else:
            b.upper[index], b.lower[index] = first, (last[0], last[1] + 1)
            if b.at_least_zero(b.lower[index]):
                b.nonnegative.add(index)
    return index


def _fixed_point(s: Specializer, op, templates, inits, runs, stoppable):  # type: ignore[no-untyped-def]
    """Specialize a loop's blocks until the templates of its params hold; returns the blocks (statements, results)."""
    b = s.builder
    before = s.roots
    inside = s.new_root()  # all memory made by an iteration
    sites = len(s.sites)
    for _ in range(12):
        del s.sites[sites:]
        params: list[ir.Var] = []
        values = []
        names = [*(var.name for var in op.params), *("field" for _ in templates[len(op.params) :])]
        for name, template in zip(names, templates, strict=True):
            own = [ir.Var(name, kind) for kind in gates.types_of(template)]
            params.extend(own)
            values.append((own, template))
        blocks = []
        joined = list(templates)
        stop_leaf: list[ir.Operand] = []
        for number, run in enumerate(runs):
            with b.block() as statements:
                for var, (own, template) in zip(op.params, values, strict=False):
                    s.bind(var, gates.value_of(s, template, list(own)))
                held = [gates.value_of(s, template, list(own)) for own, template in values[len(op.params) :]]
                field_state.take(s, held)
                s.looping += 1
                try:
                    results = run()
                finally:
                    s.looping -= 1
                if number == len(runs) - 1:
                    results = field_state.with_results(s, results, len(held))
                elif any(new is not old for new, old in zip(field_state.carried(s), held, strict=False)):
                    raise s.unsupported("an attribute assigned in the condition of a loop")
                if number < len(runs) - 1:
                    blocks.append((tuple(statements), tuple(results)))
                    continue
                if stoppable:
                    stop = s.truth(results[0]) if not isinstance(results[0], NeverV) else ir.Const(True, PYBOOL)
                    stop_leaf = [stop]
                    results = results[1:]
                results = s.settle(results)
                if s.shadows.made:
                    leaving = (root for result in results for root in opaque.roots_of(result) if root > before)
                    s.shadows.merge(inside, frozenset(leaving))
                joined = [
                    gates.join(
                        s, template, gates.with_inner_roots(gates.template_of(result, varying=True), before, inside)
                    )
                    for template, result in zip(templates, results, strict=True)
                ]
                if joined == templates:
                    leaves = (*stop_leaf, *_leaves(s, results, templates))
                    blocks.append((tuple(statements), leaves))
                    s.remember_templates(op, templates)
                    return blocks, tuple(params), templates
        templates = joined
    raise s.unsupported("the types of a loop's variables do not settle")


def _leaves(s: Specializer, values: list[Value], templates: list[gates.Template]) -> tuple[ir.Operand, ...]:
    return tuple(
        leaf for value, template in zip(values, templates, strict=True) for leaf in gates.leaves_of(s, value, template)
    )


def specialize_while(s: Specializer, op: ssa.While) -> list[Value]:
    b = s.builder
    inits = s.settle([*(s.value(init) for init in op.inits), *field_state.carried(s)])
    templates = s.loop_templates(op, inits)

    tested: list[ir.Operand] = []

    def condition() -> list[ir.Operand]:
        tested[:] = [s.truth(s.run(op.condition)[0])]
        return tested

    def body() -> list[Value]:
        variants.learn(s, tested[0], True)
        return s.run(op.body)

    blocks, params, templates = _fixed_point(s, op, templates, inits, [condition, body], op.stoppable)
    node = ir.While(params, _leaves(s, inits, templates), ir.Block(*blocks[0]), ir.Block(*blocks[1]), op.stoppable)
    kinds = [kind for template in templates for kind in gates.types_of(template)]
    outs = list(b.emit(node, *([PYBOOL] if op.stoppable else []), *kinds, name="loop"))
    stopped = [ScalarV(outs.pop(0))] if op.stoppable else []
    values = _loop_values(s, inits, templates, params, node.body.results, outs)
    return [*stopped, *field_state.taken(s, values, len(inits) - len(op.inits))]
