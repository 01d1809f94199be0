"""Statements: bindings, cells, loops, branches, checks, calls back into Python.

Counted loops have Python's `range` meaning. With step 1 the loop counts its index itself; with any other step the
number of iterations is computed first, so that an index near the end of int64 cannot wrap into an endless loop. Loops
are written already rotated (test before the first iteration, then at the bottom), the form LLVM's loop passes want.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from parakeet_py.base.exact_loops import is_loop
from parakeet_py.base.interrupts import poll
from parakeet_py.base.types import Array, Object, Scalar
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import access_checks, arrays, parallel
from parakeet_py.llvm.codegen.arrays import AnyValue, Descriptor
from parakeet_py.llvm.codegen.builder import is_literal
from parakeet_py.llvm.codegen.cast import cast
from parakeet_py.llvm.codegen.loops import bit_choices, nests, polls, quotients, streams, vector_tails
from parakeet_py.llvm.codegen.loops.hints import ONE_VECTOR, gathers, is_bit, narrows, numbers_of, of_kind, stays_scalar
from parakeet_py.llvm.codegen.scalar import primitive
from parakeet_py.llvm.codegen.scope import UNLIKELY, LoopGroup, Scope
from parakeet_py.llvm.runtime.call_context import OUT_OF_MEMORY
from parakeet_py.typed_ir.ir import (
    Cast,
    Const,
    Dim,
    Interrupted,
    Load,
    Operand,
    Prim,
    Reshape,
    Stride,
    Strided,
    Var,
    View,
    dtype_of,
)


def emit_block(scope: Scope, block: ir.Block) -> None:
    """Write the statements of a block; what cannot be reached is left out."""
    poll()
    with scope.f.inner():
        for statement in block.statements:
            if scope.f.dead:
                return
            emit(scope, statement)


def emit(scope: Scope, statement: ir.Statement) -> None:
    """Write one statement."""
    locations, first = scope.f.module.locations, 0
    if locations is not None:
        first = scope.f.written
        locations.pos = getattr(statement, "pos", None) or locations.pos
    if scope.f.module.checks is not None:
        scope.f.module.checks.pos = getattr(statement, "pos", None) or scope.f.module.checks.pos
    match statement:
        case ir.Let(out, rhs):
            scope.values[out] = _right_hand_side(scope, statement, out, rhs)
            if is_bit(rhs, scope.bits):
                scope.bits[out] = numbers_of(rhs, scope.bits)
        case ir.Declare(cell, init):
            scope.declare(cell, None if init is None else scope.operand(init))
        case ir.Write(cell, value):
            scope.write(cell, scope.operand(value))
        case ir.Store(array, indices, value):
            stored = scope.operand(value)
            assert not isinstance(stored, Descriptor)
            places = [scope.scalar(index) for index in indices]
            if scope.f.module.checks is not None:
                access_checks.check_access(scope, array, places, "store into")
            place = arrays.address(scope.f, scope.array(array), places)
            arrays.store_element(scope.f, dtype_of(array), place, stored, scope.access(array))
        case ir.If():
            _if(scope, statement)
        case ir.For():
            _for(scope, statement)
        case ir.While():
            _while(scope, statement)
        case ir.Break():
            scope.f.branch(scope.exits[-1])
            scope.f.dead = True
        case ir.Parallel():
            parallel.emit_region(scope, statement, emit_block)
        case ir.Check():
            _check(scope, statement)
        case ir.Retain(array) | ir.Release(array):
            _count_reference(scope, array, release=isinstance(statement, ir.Release))
        case ir.Matmul(out, left, right):
            if scope.f.module.checks is not None:
                access_checks.check_product(scope, out, left, right)
            from parakeet_py.llvm.codegen import matmul  # few functions have any, and every first call would read it

            matmul.matmul(scope, statement, emit_block)
        case ir.Routine(_, name, outs, ins):
            if scope.f.module.checks is not None:
                access_checks.check_routine(scope, name, outs, ins)
            from parakeet_py.llvm.codegen import routines

            routines.routine(scope, statement)
        case ir.Opaque():
            _opaque(scope, statement)
        case ir.Call():
            from parakeet_py.llvm.codegen import calls

            calls.call(scope, statement)
        case ir.Clock():
            _clock(scope, statement)
        case (
            ir.Grid()
            | ir.Barrier()
            | ir.CopyRun()
            | ir.CopyGroup()
            | ir.CopyWait()
            | ir.WarpProduct()
            | ir.BulkProduct()
            | ir.Launch()
        ):
            scope.unit.statement(scope, statement)
    if locations is not None:
        locations.locate(scope.f, first)


# ---- right-hand sides ------------------------------------------------------------------------------------------------


def _right_hand_side(scope: Scope, let: ir.Let, out: Var, rhs: ir.Rhs) -> AnyValue:
    f = scope.f
    match rhs:
        case Prim("div", (numerator, Const(value=divisor) as constant)) if out in scope.chained:
            return quotients.divide(f, dtype_of(constant), scope.scalar(numerator), float(divisor.real))
        case Prim("div", (numerator, by)) if out in scope.steady:
            return quotients.divide_steadily(f, scope.scalar(numerator), scope.scalar(by))
        case Prim(name, operands):
            values = []
            for operand in operands:
                value = scope.operand(operand)
                assert not isinstance(value, Descriptor)
                values.append(value)
            if is_loop(name):
                from parakeet_py.llvm.codegen.routines import element

                return element(f, name, tuple(values), tuple(map(dtype_of, operands)), dtype_of(out))
            return primitive(
                f,
                name,
                dtype_of(operands[-1]),
                tuple(values),
                reassoc=let.reassoc,
                python=isinstance(out.type, Scalar) and out.type.python,
                overflow=lambda bit: scope.leave_if(
                    bit, scope.failure(scope.unit.overflow_code(let.pos), scope.order, [])
                ),
            )
        case Cast(operand):
            value = scope.operand(operand)
            assert not isinstance(value, Descriptor)
            return cast(f, value, dtype_of(operand), dtype_of(out))
        case ir.Read(cell):
            return scope.read(cell)
        case Load(array, indices):
            places = [scope.scalar(index) for index in indices]
            if f.module.checks is not None:
                access_checks.check_access(scope, array, places, "load from")
            place = arrays.address(f, scope.array(array), places)
            return arrays.load_element(f, dtype_of(array), place, scope.access(array))
        case Interrupted():
            return polls.look(scope)
        case Dim(array, axis):
            return scope.array(array)[f"extent{axis}"]
        case ir.NewArray(extents, space):
            assert isinstance(out.type, Array)
            sizes = [scope.scalar(extent) for extent in extents]
            if space == "stack":
                return arrays.stack_array(f, out.type, sizes)
            if space == "shared":
                return scope.unit.value(scope, let)
            return arrays.heap_array(
                f, out.type, sizes, lambda bit: scope.leave_if(bit, scope.failure(OUT_OF_MEMORY, "0", []))
            )
        case View(base, starts, axes):
            assert isinstance(out.type, Array)
            return arrays.view(
                f,
                out.type,
                scope.array(base),
                [scope.scalar(start) for start in starts],
                [(axis.source, scope.scalar(axis.extent), scope.scalar(axis.step)) for axis in axes],
            )
        case Reshape(base, extents):
            assert isinstance(out.type, Array)
            sizes = [scope.scalar(extent) for extent in extents]
            return arrays.reshape(f, out.type, scope.array(base), sizes)
        case ir.Pack():
            from parakeet_py.llvm.codegen.pack import pack

            if f.module.checks is not None:
                access_checks.check_pack(scope, rhs)
            return pack(scope, rhs)
        case ir.Pairwise():
            from parakeet_py.llvm.codegen.routines import pairwise

            if f.module.checks is not None:
                start, count = [scope.scalar(index) for index in rhs.start], scope.scalar(rhs.count)
                access_checks.check_run(scope, rhs.array, start, count, "sum of")
            return pairwise(scope, rhs)
        case Stride(array, axis):
            return scope.array(array)[f"stride{axis}"]
        case Strided(base, offset, extents, strides):
            assert isinstance(out.type, Array)
            place, *numbers = [scope.scalar(operand) for operand in (offset, *extents, *strides)]
            sizes, steps = numbers[: len(extents)], numbers[len(extents) :]
            return arrays.strided(f, out.type, scope.array(base), place, sizes, steps)
        case ir.Lane() | ir.Shuffle() | ir.Ballot() | ir.Peers() | ir.Atomic() | ir.Offered():
            return scope.unit.value(scope, let)
    raise AssertionError(rhs)


# ---- control ---------------------------------------------------------------------------------------------------------


def _if(scope: Scope, statement: ir.If) -> None:
    f = scope.f
    condition = scope.scalar(statement.condition)
    if condition in ("true", "false"):
        emit_block(scope, statement.then if condition == "true" else statement.orelse)
        return
    unpredictable = statement.condition in scope.bits
    if unpredictable and bit_choices.is_choice(scope, statement):
        bit_choices.choose(scope, statement, condition, emit)
        return
    then, end = f.label("then"), f.label("end")
    orelse = f.label("else") if statement.orelse.statements else end
    hint = "!prof" if statement.rare else "!unpredictable" if unpredictable else ""
    node = f", {hint} {f.module.shared_node(UNLIKELY if statement.rare else '!{}')}" if hint else ""
    f.branch_if(condition, then, orelse, node)
    reached = orelse == end
    for label, block in ((then, statement.then), (orelse, statement.orelse)):
        if label != end:
            f.begin(label)
            emit_block(scope, block)
            if not f.dead:
                f.branch(end)
                reached = True
    if reached:
        f.begin(end)


def _for(scope: Scope, statement: ir.For) -> None:
    start, stop, step = (scope.scalar(operand) for operand in (statement.start, statement.stop, statement.step))
    order, first, last = "slt", start, stop
    if step != "1":
        order, first, last = "ult", "0", _iterations(scope, start, stop, step)
    if not polls.polls(scope, statement):
        tailed = vector_tails.divided(scope, statement, first, last, emit) if step == "1" else None
        if tailed is None:
            result = streams.streamed(scope, statement) if step == "1" else None
            if result is None:
                _counted(scope, statement, first, last, order)
                return
            streams.write(scope, result, first, last, lambda low, high: _counted(scope, statement, low, high, order))
            return
        loop, middle, lanes = tailed
        _counted(scope, loop, first, middle, order)
        _counted(scope, loop, middle, last, order, hints=[*vector_tails.HINTS, f'vectorize.width", i32 {lanes}'])
        return
    if polls.has_long_loops(statement):
        _counted(scope, statement, first, last, order, countdown=polls.Countdown(scope, statement))
        return
    with polls.strips(scope, statement, first, last, order) as (begin, end, leave_to):
        _counted(scope, statement, begin, end, order, leave_to=leave_to)


def _counted(
    scope: Scope,
    statement: ir.For,
    first: str,
    last: str,
    order: str,
    *,
    leave_to: str = "",
    countdown: polls.Countdown | None = None,
    hints: Sequence[str] = (),
) -> None:
    """A loop, or a strip of one, over the numbers of its iterations (the indices, if it counts by 1), compared by
    `order`. A Break leaves it for the label `leave_to` (its own end if there is none)."""
    f = scope.f
    start, stop, step = (scope.scalar(operand) for operand in (statement.start, statement.stop, statement.step))
    index = f.fresh(re.sub("[^A-Za-z0-9_]", "_", statement.index.name) + ".")
    counter, begin = index, first
    if step != "1":
        counter, begin = f"{index}.k", f.binary("add", "i64", start, f.binary("mul", "i64", first, step))
    body, end = f.label("loop"), f.label("end")
    inner = nests.inner_ranges(scope, statement)
    guard = nests.guard(scope, order, (first, last), inner)
    before = f.block
    if guard is None:
        f.branch(body)
    else:
        f.branch_if(guard, body, end)
    entered = set(inner) - scope.entered
    scope.entered |= entered

    f.begin(body)
    counting = f.reserve()
    indexing = f.reserve() if counter != index else None
    scope.values[statement.index] = index
    if (least := f.bound(start)) is not None and (f.bound(step) or -1) > 0:
        f.bounds[index] = least
    scope.exits.append(leave_to or end)
    scope.loops.append(statement)
    outer_order = scope.order
    if (scope.parent is not None or scope.unit.is_region) and len(scope.exits) == 1:
        scope.order = index
    properties = [f.module.shared_node('!{!"llvm.loop.mustprogress"}')]
    inside = list(ir.walk(statement.body))
    scalar = stays_scalar(statement)
    open_ended = statement.kind == "vector" and not (is_literal(start) and is_literal(stop))
    if open_ended and any(isinstance(inner, ir.Write) for inner in inside):
        # several accumulators at once hide how long an operation takes; `unroll.disable` would forbid that too
        properties.append(f.module.shared_node('!{!"llvm.loop.unroll.runtime.disable"}'))
    elif (open_ended and not scalar) or any(isinstance(inner, ir.For | ir.While) for inner in inside):
        properties.append(f.module.shared_node('!{!"llvm.loop.unroll.disable"}'))  # only costs time to compile
    if open_ended and not scalar and gathers(statement):
        properties += [f.module.shared_node(f'!{{!"llvm.loop.{hint}}}') for hint in ONE_VECTOR]
    if open_ended and narrows(statement):
        properties.append(f.module.shared_node('!{!"llvm.loop.interleave.count", i32 4}'))
    if scalar:
        properties.append(f.module.shared_node('!{!"llvm.loop.vectorize.enable", i1 false}'))
    properties += [
        f.module.shared_node(f'!{{!"llvm.loop.{hint}}}') for hint in (*of_kind(statement.kind, last), *hints)
    ]
    grouped = statement.kind in ("vector", "independent", "lanes") and _enter_group(scope, statement.body, properties)
    widened, f.widened = f.widened, statement.kind in ("vector", "lanes")
    scope.chained = quotients.chained(scope, statement) if statement.kind == "serial" else frozenset()
    scope.steady = quotients.steady(scope, statement) if statement.kind == "vector" and not hints else frozenset()
    emit_block(scope, statement.body)
    scope.entered -= entered
    f.widened = widened
    if grouped:
        scope.groups.pop()
    scope.order = outer_order
    scope.exits.pop()
    scope.loops.pop()

    if f.dead:  # the body always leaves: one iteration at most
        f.fill(counting, f"{counter} = phi i64 [ {first}, %{before} ]")
        if indexing is not None:
            f.fill(indexing, f"{index} = phi i64 [ {begin}, %{before} ]")
        f.begin(end)
        return
    if countdown is not None:
        countdown.step()
    latch = f.block
    # no iteration follows the last index that is before `stop`, so counting by 1 cannot overflow
    f.effect(f"{counter}.next = add {'nsw' if order == 'slt' else 'nuw'} i64 {counter}, 1")
    f.fill(counting, f"{counter} = phi i64 [ {first}, %{before} ], [ {counter}.next, %{latch} ]")
    if indexing is not None:
        f.effect(f"{index}.next = add i64 {index}, {step}")
        f.fill(indexing, f"{index} = phi i64 [ {begin}, %{before} ], [ {index}.next, %{latch} ]")
    again = f.binary(f"icmp {order}", "i64", f"{counter}.next", last)
    node = f.node(f"distinct !{{self, {', '.join(properties)}}}")
    f.branch_if(again, body, end, f", !llvm.loop {node}")
    f.begin(end)


def _iterations(scope: Scope, start: str, stop: str, step: str) -> str:
    """len(range(start, stop, step)) as an unsigned number."""
    f = scope.f
    if all(map(is_literal, (start, stop, step))):
        return str(len(range(int(start), int(stop), int(step))))
    if not step.startswith("%"):
        low, high = (start, stop) if int(step) > 0 else (stop, start)
        size = str(abs(int(step)))
    else:
        up = f.binary("icmp sgt", "i64", step, "0")
        low, high = f.select(up, "i64", start, stop), f.select(up, "i64", stop, start)
        size = f.select(up, "i64", step, f.binary("sub", "i64", "0", step))
    span = f.binary("sub", "i64", f.binary("sub", "i64", high, low), "1")
    count = f.binary("add", "i64", f.binary("udiv", "i64", span, size), "1")
    return f.select(f.binary("icmp slt", "i64", low, high), "i64", count, "0")


def _enter_group(scope: Scope, body: ir.Block, properties: list[str]) -> bool:
    """Say that the accesses of a loop's body are independent between iterations."""
    own = frozenset(
        statement.out
        for statement in ir.walk(body)
        if isinstance(statement, ir.Let) and isinstance(statement.rhs, ir.NewArray)
    )
    roots = scope.unit.function.roots
    if any(array not in roots for array in own):
        return False
    node = scope.f.node("distinct !{}")
    own_roots = frozenset(root for array in own for root in roots[array])
    scope.groups.append(LoopGroup(node, own, own_roots))
    properties.append(scope.f.node(f'!{{!"llvm.loop.parallel_accesses", {node}}}'))
    return True


def _while(scope: Scope, statement: ir.While) -> None:
    f = scope.f
    head, body, end = f.label("while"), f.label("body"), f.label("end")
    countdown = polls.Countdown(scope, statement) if polls.polls(scope, statement) else None
    f.branch(head)
    f.begin(head)
    scope.exits.append(end)
    scope.loops.append(statement)
    scope.chained = quotients.chained(scope, statement)
    emit_block(scope, statement.head)
    if not f.dead:
        f.branch_if(scope.scalar(statement.condition), body, end)
        f.begin(body)
        if countdown is not None:
            countdown.step()
        emit_block(scope, statement.body)
        if not f.dead:
            f.branch(head)
    scope.exits.pop()
    scope.loops.pop()
    f.begin(end)


def _check(scope: Scope, statement: ir.Check) -> None:
    condition = scope.scalar(statement.condition)
    if condition == "true":
        return
    f = scope.f
    order = scope.order if statement.order is None else scope.scalar(statement.order)
    arguments = [_message_argument(scope, argument) for argument in statement.args[:6]]
    lines = scope.failure(statement.failure, order, arguments)
    bad = f.exit("bad", lines)
    if condition == "false":
        f.branch(bad)
        f.dead = True
        return
    good = f.label("good")
    f.branch_if(condition, good, bad)
    f.begin(good)


def _message_argument(scope: Scope, operand: Operand) -> str:
    """A check's argument as 64 bits."""
    dtype = dtype_of(operand)
    value = scope.operand(operand)
    assert not isinstance(value, Descriptor)
    if dtype.startswith("float"):
        wide = cast(scope.f, value, dtype, "float64")
        return scope.f.value(f"bitcast double {wide} to i64")
    whole = cast(scope.f, value, dtype, "int64")
    assert isinstance(whole, str)
    return whole


# ---- references and calls back into Python ---------------------------------------------------------------------------


def _count_reference(scope: Scope, holder: Var | ir.Cell, release: bool) -> None:
    """Objects and memory of Python are kept alive by the caller, and only blocks are counted; unless the function calls
    back into Python, which may give it new objects at any time."""
    if not isinstance(holder.type, Array) and not scope.unit.hands_back:
        return
    value = scope.lookup(holder) if isinstance(holder, Var) else scope.read(holder)
    block = value["block"] if isinstance(value, Descriptor) else "null"
    object_ = value["base"] if isinstance(value, Descriptor) else value
    assert isinstance(object_, str)
    if scope.f.module.checks is not None:
        access_checks.check_count(scope, block, object_ if scope.unit.hands_back else "null", holder, release)
    if scope.unit.hands_back:
        function = scope.f.module.declare("void", "pk_count", "ptr, ptr, ptr, i64")
        scope.f.effect(f"call void {function}(ptr %ctx, ptr {block}, ptr {object_}, i64 {-1 if release else 1})")
        return
    if block == "null":
        return
    if release:
        function = scope.f.module.declare("void", "pk_release", "ptr, ptr")
        scope.f.effect(f"call void {function}(ptr %ctx, ptr {block})")
    else:
        function = scope.f.module.declare("void", "pk_retain", "ptr")
        scope.f.effect(f"call void {function}(ptr {block})")


WORDS_OF_KERNEL = 5  # in the table of timed kernels: when it began, nanoseconds, runs, points, bytes


def _clock(scope: Scope, statement: ir.Clock) -> None:
    """Note the time in the table of timed kernels, both of which are in this process."""
    f = scope.f
    assert f.module.clocks is not None, "a function with clocks, and nowhere to note the time"
    clock, which, table = f.module.clocks
    now = f.alloca("[2 x i64]", 8)
    f.effect(f"call i32 inttoptr (i64 {clock} to ptr)(i32 {which}, ptr {now})")
    seconds = f.value(f"load i64, ptr {now}")
    rest = f.value(f"load i64, ptr {f.value(f'getelementptr inbounds i64, ptr {now}, i64 1')}")
    clocked = f.binary("add", "i64", f.binary("mul", "i64", seconds, "1000000000"), rest)
    words = [f"inttoptr (i64 {table + 8 * (statement.kernel * WORDS_OF_KERNEL + k)} to ptr)" for k in range(5)]
    if statement.what == "begin":
        f.effect(f"store i64 {clocked}, ptr {words[0]}")
        return
    took = f.binary("sub", "i64", clocked, f.value(f"load i64, ptr {words[0]}"))
    for word, amount in zip(words[1:], (took, "1", *map(scope.scalar, statement.counts)), strict=True):
        f.effect(f"store i64 {f.binary('add', 'i64', f.value(f'load i64, ptr {word}'), amount)}, ptr {word}")


def _opaque(scope: Scope, statement: ir.Opaque) -> None:
    f = scope.f
    count = sum(arrays.slots_out(argument.type) for argument in statement.args)
    given = f.alloca(f"[{count} x i64]", 8) if count else "null"
    slot = 0
    for argument in statement.args:
        value = scope.operand(argument)
        if f.module.checks is not None:
            what = f"operand {argument!r} of a call of Python"
            if isinstance(value, Descriptor):
                access_checks.check_leaving(scope, value, what)
                access_checks.check_owner(scope, value, what)
            elif isinstance(argument.type, Object):
                access_checks.check_object(scope, scope.scalar(argument), what)
        arrays.leave(f, argument.type, value, given, slot)
        slot += arrays.slots_out(argument.type)
    count = sum(arrays.slots_in(out.type) for out in statement.outs)
    taken = f.alloca(f"[{count} x i64]", 8) if count else "null"
    function = f.module.declare("i32", "pk_opaque", "ptr, i64, ptr, ptr")
    status = f.value(f"call i32 {function}(ptr %ctx, i64 {statement.site}, ptr {given}, ptr {taken})")
    scope.leave_if(f.binary("icmp ne", "i32", status, "0"), [scope.leave(status)])
    slot = 0
    for out in statement.outs:
        value = arrays.enter(f, out.type, taken, slot, f.value)
        if isinstance(value, Descriptor):  # the slots are used again by the next call
            loaded = {name: value[name] for name in arrays.field_names(value.type, f.module.checks is not None)}
            value = arrays.complete(f, value.type, loaded)
        scope.values[out] = value
        slot += arrays.slots_in(out.type)
