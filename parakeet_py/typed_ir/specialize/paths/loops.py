"""Specialization of loops: counted loops over anything iterable, while loops.

A loop over a tuple is unrolled; a loop over a range or an array is specialized to a fixed point: the types of its
carried variables start as those of their initial values and grow until one pass over the body leaves them unchanged.
One pass will do where the body does not read those that grow, as in `err = 1`, `while err > 1e-6: ... err = a.max()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from parakeet_py.base import grammar
from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import PYBOOL, PYINT, Scalar
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar.signals import look
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ZERO
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import record_arrays
from parakeet_py.typed_ir.specialize.containers import dict_items, strings
from parakeet_py.typed_ir.specialize.forms import parts_of, roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instance_lists
from parakeet_py.typed_ir.specialize.opaque import frame_states
from parakeet_py.typed_ir.specialize.paths import generators, iterator_consumption, join, tagged_scalars, tagged_unions
from parakeet_py.typed_ir.specialize.paths.iterables import counted, lazy_source, range_length, static_items
from parakeet_py.typed_ir.specialize.paths.sides import object_of, same_objects
from parakeet_py.typed_ir.specialize.paths.templates import (
    ArrayT,
    EitherT,
    Template,
    template_of,
    types_of,
    with_inner_roots,
)
from parakeet_py.typed_ir.specialize.restarts import NotGrown, WrittenOut
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ComprehensionV,
    ItemAt,
    NeverV,
    RangeV,
    RecordV,
    ScalarV,
    TupleV,
    Turn,
    UnboundV,
    Value,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


MAX_UNROLL = 64
MOST_PASSES = 12  # over a loop, until the types of its variables settle


def _loop_values(
    s: Context,
    inits: Sequence[Value],
    templates: Sequence[Template],
    params: Sequence[ir.Var],
    results: Sequence[ir.Operand],
    outs: list[ir.Var],
    given: Sequence[Value],
) -> list[Value]:
    """The values of a loop's outs, where an iteration gives `given`. A name that is not bound before, and in every
    iteration to one array from outside the loop, stands for that array."""
    values = [join.value_of(s, template, outs) for template in templates]
    leaves = results[len(results) - len(params) :]
    place = 0
    for position, (init, template) in enumerate(zip(inits, templates, strict=True)):
        if isinstance(init, UnboundV) and isinstance(template, ArrayT):
            leaf = leaves[place]
            if isinstance(leaf, ir.Var) and s.in_scope(leaf):
                values[position] = join.value_of(s, template, [leaf])
        if (
            isinstance(init, ScalarV)
            and isinstance(init.operand, ir.Const)
            and leaves[place : place + 1] == (params[place],)
        ):
            values[position] = init  # see `_constants`
        for one in (init, given[position]):
            shared_containers.may_be(s, values[position], one)
        place += len(types_of(template))
    return same_objects(values, _carried_objects(inits, templates, params, results))


def _carried_objects(
    inits: Sequence[Value],
    templates: Sequence[Template],
    params: Sequence[ir.Var],
    results: Sequence[ir.Operand],
) -> list[tuple[object, ...]]:
    """For each variable of a loop, the array it has before and the one that an iteration gives it."""
    results = results[len(results) - len(params) :]
    came: list[tuple[object, ...]] = []
    place = 0
    for init, template in zip(inits, templates, strict=True):
        if isinstance(template, ArrayT):
            came.append((object_of(init), "kept" if results[place] == params[place] else results[place]))
        else:
            came.append((None,))
        place += len(types_of(template))
    return came


# ---- for -------------------------------------------------------------------------------------------------------------


def specialize_for(s: Context, op: ssa.For) -> list[Value]:
    iterable = tagged_unions.sole(s, s.value(op.iterable), "'NoneType' object is not iterable")
    return for_each(s, op, iterable, [s.value(init) for init in op.inits])


def for_each(s: Context, op: ssa.For, iterable: Value, inits: list[Value]) -> list[Value]:
    if isinstance(iterable, ComprehensionV) and (iterable.condition is not None or iterable.flatten):
        iterable = generators.of_expression(s, iterable)
    s.frames[-1].turns.pop(id(op), None)
    if iterator_consumption.is_lazy(iterable):
        return generators.for_each(s, op, iterable, inits)
    if (view := dict_items.view(s, iterable)) is not None:
        keys, source, kind = view
        return _unroll(s, op, keys, inits, lambda key: dict_items.part(s, source, kind, key))
    strings.need(s, iterable)
    items = static_items(lazy_source(s, iterable) if isinstance(iterable, ComprehensionV) else iterable)
    if items is not None:
        if len(items) > MAX_UNROLL:
            raise s.unsupported(f"a loop over a {len(items)}-item sequence is too long to unroll")
        if isinstance(iterable, ComprehensionV):
            element = iterable.element
            return _unroll(s, op, items, inits, lambda item: s.call(element, [item], {}), True)
        return _unroll(s, op, items, inits)
    copies, changes = s.loops.copies, s.python.changes
    with s.loops.copies_taken(True):
        start, stop, step, item_at = counted(s, iterable)
    if s.loops.copies > copies:
        try:
            results = _counted_loop(s, op, iterable, (start, stop, step), item_at, inits)
        except UnsupportedError:  # rows before a store and behind it are none of one kind
            if s.python.changes != changes:
                _leave_copies(s, iterable)
            raise
        if s.python.changes != changes:
            _leave_copies(s, iterable)
            hint = "go over the places, np.flatnonzero(mask), or take the fields before, as p['x'][mask]"
            raise s.unsupported("a loop over selected records that stores", hint)
        return results
    if isinstance(iterable, RangeV) and iterable.parallel and not inits and not op.stoppable:
        return _independent_loop(s, op, iterable)
    bounds = [int(bound.value.real) for bound in (start, stop, step) if isinstance(bound, ir.Const)]
    if id(op) in s.loops.unroll and len(bounds) == 3 and len(numbers := range(*bounds)) <= MAX_UNROLL:
        return _unroll(s, op, [item_at(ir.Const(number, PYINT)) for number in numbers], inits)
    return _counted_loop(s, op, iterable, (start, stop, step), item_at, inits)


def _unroll(
    s: Context,
    op: ssa.For,
    items: list[Value],
    inits: list[Value],
    element: Callable[[Value], Value] = lambda item: item,
    lazy: bool = False,
) -> list[Value]:
    """The body once per item. A stop flag nests the rest of the iterations in its else branch. `lazy`: `element` may do
    something that shows."""
    params = inits
    for position, item in enumerate(items):
        s.bind(op.item, element(item))
        if not lazy:

            def left(items: list[Value] = items[position + 1 :]) -> Value:
                return TupleV(tuple(map(element, items)))

            s.frames[-1].turns[id(op)] = Turn(NONE, left=left)
        for var, value in zip(op.params, params, strict=True):
            s.bind(var, value)
        s.loops.unrolling += 1
        try:
            with s.loops.for_type(len(items) - position):
                results = s.run(op.body)
        finally:
            s.loops.unrolling -= 1
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
            return _unroll(s, op, items[position + 1 :], now, element, lazy)

        return s.branch(stop, leave, rest)
    return [py(False), *params] if op.stoppable else params


def _counted_loop(
    s: Context,
    op: ssa.For,
    iterable: Value,
    bounds: tuple[ir.Operand, ir.Operand, ir.Operand],
    item_at: ItemAt,
    inits: list[Value],
) -> list[Value]:
    b = s.builder
    start, stop, step = bounds
    inits = s.mergeable([*inits, *assigned_attributes.carried(s)])
    templates = s.loop_templates(op, inits)
    index = _loop_index(s, start, stop, step)

    def body() -> list[Value]:
        s.bind(op.item, shared_containers.in_turn(s, item_at(index)))
        s.frames[-1].turns[id(op)] = Turn(iterable, index)
        _look(s, op)
        return s.run(op.body)

    try:
        (block,), params, templates, given = _fixed_point(s, op, templates, body, inits=inits)
    except NotGrown:
        if all(isinstance(bound, ir.Const) for bound in (start, stop, step)) and id(op) not in s.loops.unroll:
            s.facts.restart(WrittenOut.of(op), "the index of a loop has to be known here")
        raise
    starts = _leaves(s, inits, templates)
    kinds = [kind for template in templates for kind in types_of(template)]
    if op.stoppable or not any(isinstance(template, EitherT) for template in templates):
        node = ir.For(index, start, stop, step, params, starts, block, op.stoppable)
        outs = list(b.emit(node, *([PYBOOL] if op.stoppable else []), *kinds, name="loop"))
        stopped = [ScalarV(outs.pop(0))] if op.stoppable else []
        values = assigned_attributes.taken(
            s, _loop_values(s, inits, templates, params, block.results, outs, given), len(inits) - len(op.inits)
        )
        return [*stopped, *values]

    def ran() -> ir.Operand:
        forward = isinstance(step, ir.Const) and step.value.real > 0
        if isinstance(step, ir.Const):
            return b.prim("lt" if forward else "gt", start, stop, type=PYBOOL)
        up = b.prim("gt", step, ZERO, type=PYBOOL)
        return b.select(up, b.prim("lt", start, stop, type=PYBOOL), b.prim("gt", start, stop, type=PYBOOL))

    kept, rare, restore = tagged_scalars.settled(s, templates, params, starts, block, ran)
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
        EitherT(template.kinds, position in rare) if isinstance(template, EitherT) else template
        for position, template in enumerate(templates)
    ]
    return assigned_attributes.taken(
        s, _loop_values(s, inits, templates, params, block.results, every, given), len(inits) - len(op.inits)
    )


def _look(s: Context, op: ssa.For | ssa.While) -> None:
    """Look at signals where an iteration begins, if there are handlers around, or other loops of the function look;
    unless the loop does so itself, inside a `try` of its own."""
    if (s.guards or _looks(s.frames[0].function.body)) and not _looks(op.body):
        frame_states.leave_if_interrupted(s)


def _looks(block: ssa.Block) -> bool:
    """Does any loop here look at signals, inside a `try`?"""
    calls = (let.op for let in grammar.walk(block) if isinstance(let.op, ssa.Call))
    return any(isinstance(one.function, ssa.Const) and one.function.value is look for one in calls)


def _leave_copies(s: Context, iterable: Value) -> None:
    """Let NumPy copy the records that a loop goes through, and that it may change."""
    for one in (iterable, *parts_of(iterable)):
        if isinstance(one, RecordV) and one.copied is not None:
            raise record_arrays.as_object(s, one)


def _independent_loop(s: Context, op: ssa.For, iterable: RangeV) -> list[Value]:
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


def _loop_index(s: Context, start: ir.Operand, stop: ir.Operand, step: ir.Operand) -> ir.Var:
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


def _fixed_point(
    s: Context,
    op: ssa.For | ssa.While,
    templates: list[Template],
    body: Callable[[], list[Value]],
    condition: Callable[[], ir.Operand] | None = None,
    inits: Sequence[Value] = (),
) -> tuple[list[ir.Block], tuple[ir.Var, ...], list[Template], list[Value]]:
    """Specialize a loop's blocks, the condition's before the body's, until the templates of its params hold; with what
    an iteration gives the params."""
    b = s.builder
    constants = _constants(op, inits)
    unread = _unread(s, op, inits)
    before = s.memory.newest
    inside = s.memory.new_root()  # all memory made by an iteration
    sites, sources, fields_before = (
        len(s.python.sites),
        assigned_attributes.carried_sources(s),
        assigned_attributes.carried(s),
    )
    for _ in range(MOST_PASSES):
        del s.python.sites[sites:]
        params: list[ir.Var] = []
        values = []
        names = [*(var.name for var in op.params), *("field" for _ in templates[len(op.params) :])]
        for name, template in zip(names, templates, strict=True):
            own = [ir.Var(name, kind) for kind in types_of(template)]
            params.extend(own)
            values.append((own, template))

        def enter(
            values: list[tuple[list[ir.Var], Template]] = values, constants: dict[int, ScalarV] = constants
        ) -> list[Value]:
            """Bind the params; the attributes among them."""
            for position, (var, (own, template)) in enumerate(zip(op.params, values, strict=False)):
                held_now = constants.get(position) or join.value_of(s, template, list(own))
                if position < len(inits):
                    shared_containers.may_be(s, held_now, inits[position])
                s.bind(var, held_now)
            held = [join.value_of(s, template, list(own)) for own, template in values[len(op.params) :]]
            assigned_attributes.take(s, held)
            return held

        blocks: list[ir.Block] = []
        if condition is not None:
            with b.block() as statements:
                held = enter()
                with _looping(s, before):
                    test = condition()
                if any(new is not old for new, old in zip(assigned_attributes.carried(s), held, strict=False)):
                    raise s.unsupported("an attribute assigned in the condition of a loop")
            blocks.append(ir.Block(tuple(statements), (test,)))
        with b.block() as statements:
            held = enter()
            changed, used = s.instances.list_changes, len(s.instances.used)
            with _looping(s, before):
                results = body()
                instance_lists.after_loop(s, changed, used, results)
            results = assigned_attributes.with_results(s, results, len(held))
            stop: tuple[ir.Operand, ...] = ()
            if op.stoppable:
                first, *results = results
                stop = (ir.Const(True, PYBOOL) if isinstance(first, NeverV) else s.truth(first),)
            results = s.leaving(s.mergeable(results), before)
            record_arrays.stay_inside(s, results, len(s.builder.scopes) - 1)
            assigned_attributes.must_be_bound(s, sources, fields_before, results[len(op.params) :])
            if s.deferred_views.made:
                leaving = (root for result in results for root in roots_of(result) if root > before)
                s.deferred_views.merge(inside, frozenset(leaving))
            joined = [
                join.join(s, template, with_inner_roots(template_of(result, varying=True), before, inside))
                for template, result in zip(templates, results, strict=True)
            ]
            kept = {position for position in constants if _is_same(results[position], constants[position])}
            grown = {position for position, new in enumerate(joined) if new != templates[position]}
            scalar = all(isinstance(joined[position], Scalar | EitherT) for position in grown)
            if len(s.python.sites) > sites:  # calls of Python may be given all variables
                unread = set()
            settled = scalar and grown <= unread and len(kept) == len(constants)
            if settled:
                for position in kept:
                    own, template = values[position]
                    results[position] = join.value_of(s, template, list(own))
                leaves = _leaves(s, results, joined)
        if settled and grown:
            for position in grown:
                template = joined[position]
                values[position] = [ir.Var(names[position], kind) for kind in types_of(template)], template
            params = [var for own, _ in values for var in own]
            if condition is not None:
                with b.block() as tests:
                    enter()
                    with _looping(s, before):
                        test = condition()
                blocks = [ir.Block(tuple(tests), (test,))]
        if len(kept) < len(constants):
            constants = {position: constants[position] for position in kept}
        elif settled:
            templates = joined
            for var, result in zip(op.params, results, strict=False):
                shared_containers.may_be(s, s.value(var), result)
            s.loops.remember(s.frame.path, op, templates)
            return [*blocks, ir.Block(tuple(statements), (*stop, *leaves))], tuple(params), templates, results
        templates = joined
    raise s.unsupported("the types of a loop's variables do not settle")


def _constants(op: ssa.For | ssa.While, inits: Sequence[Value]) -> dict[int, ScalarV]:
    """The variables of a loop that are taken to stay what they are, until an iteration gives something else: the exits
    of `try` statements, which say that nothing has raised, if nothing can."""
    named = enumerate(zip(op.params, inits, strict=False))
    return {
        position: init
        for position, (var, init) in named
        if var.name.startswith("exit") and isinstance(init, ScalarV) and isinstance(init.operand, ir.Const)
    }


def _unread(s: Context, op: ssa.For | ssa.While, inits: Sequence[Value]) -> set[int]:
    """The variables of a loop that are scalars before it, and that its body does not read: whatever their types are, it
    is the same. It is not where it may have learned types from a condition on others."""
    if len(inits) > len(op.params):
        return set()
    used = grammar.free_variables(op.body)
    found = {p for p, var in enumerate(op.params) if var not in used and isinstance(inits[p], ScalarV)}
    if isinstance(op, ssa.While):
        given = dict(zip(op.params, inits, strict=True))
        read = [given.get(var) or s.value(var) for var in grammar.free_variables(op.condition)]
        if not all(isinstance(value, ScalarV) for value in read):
            return set()
    return found


def _is_same(result: Value, constant: ScalarV) -> bool:
    return isinstance(result, NeverV) or (isinstance(result, ScalarV) and result.operand == constant.operand)


@contextmanager
def _looping(s: Context, roots: int) -> Iterator[None]:
    s.loops.looping += 1
    around, s.loops.loop_roots = s.loops.loop_roots, roots
    try:
        yield
    finally:
        s.loops.looping -= 1
        s.loops.loop_roots = around


def _leaves(s: Context, values: list[Value], templates: list[Template]) -> tuple[ir.Operand, ...]:
    return tuple(
        leaf for value, template in zip(values, templates, strict=True) for leaf in join.leaves_of(s, value, template)
    )


def specialize_while(s: Context, op: ssa.While) -> list[Value]:
    b = s.builder
    inits = s.mergeable([*(s.value(init) for init in op.inits), *assigned_attributes.carried(s)])
    templates = s.loop_templates(op, inits)

    tested: list[ir.Operand] = []

    def condition() -> ir.Operand:
        tested[:] = [s.truth(s.run(op.condition)[0])]
        return tested[0]

    def body() -> list[Value]:
        s.learn(tested[0], True)
        _look(s, op)
        return s.run(op.body)

    (test, turn), params, templates, given = _fixed_point(s, op, templates, body, condition, inits)
    node = ir.While(params, _leaves(s, inits, templates), test, turn, op.stoppable)
    kinds = [kind for template in templates for kind in types_of(template)]
    outs = list(b.emit(node, *([PYBOOL] if op.stoppable else []), *kinds, name="loop"))
    stopped = [ScalarV(outs.pop(0))] if op.stoppable else []
    values = _loop_values(s, inits, templates, params, turn.results, outs, given)
    return [*stopped, *assigned_attributes.taken(s, values, len(inits) - len(op.inits))]
