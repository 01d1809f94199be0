"""Procedures and calls of them: recursion in machine code.

    { i32, scalars of results... } @<procedure>(ptr ctx, i64 levels, ptr floor, scalars and arrays..., ptr results)

Scalars travel in registers. An array is given as the address of its descriptor, written as `codegen_arrays.leave` does;
arrays among the results are written to `results` in the same way, with a reference for the caller. The status comes
first; on a failure the rest means nothing.

One of the library has no levels and no floor. It stands in a module of its own, whose machine code all functions share
(`engine.procedure_objects`): its failures are counted from the number that the caller leaves in the context.

A recursion must not end the process. `levels` is how many more of Python's calls may be made, counted down from
`sys.getrecursionlimit()`, and `floor` the address that the stack must not reach (the end of the thread's stack, with
room to spare): a call that would go below either fails with RecursionError. Both come from the context, where the gate
has put them.

Nor must it be deaf: one in some calls polls, as loops do (`runtime.loop_polls`). They are counted in a state on the
stack of the function that calls first, which the context names; as each count waits for the one before, only those
at one in `_STEP` levels are, and not at the beginning of a procedure, which may return before it saves registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parakeet_py.base.types import Array, Scalar, Type, is_complex, real_dtype
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays as codegen_arrays
from parakeet_py.llvm.codegen.access_checks import check_leaving, check_zones, span
from parakeet_py.llvm.codegen.arrays import AnyValue, Descriptor, slots_out
from parakeet_py.llvm.codegen.builder import LLVM_TYPE, FunctionText, global_name
from parakeet_py.llvm.codegen.loops.polls import begin_state, poll_before_call
from parakeet_py.llvm.codegen.scope import Scope, Unit
from parakeet_py.llvm.runtime.call_context import Context

LEVELS, FLOOR = "%levels", "%floor"
_STEP = 8


def define(procedure: ir.Function, caller: Unit, seen: str = "internal ") -> None:
    """Write a procedure; `seen` is its linkage."""
    from parakeet_py.llvm.codegen.control import emit_block

    results = [result.type for result in procedure.results]
    returns, library = _returns(results), caller.library
    unit = Unit(procedure, caller.module, hands_back=caller.hands_back, returns=returns, library=library)
    scope = Scope(unit, FunctionText(caller.module))
    f = scope.f
    given: list[str] = []
    for number, parameter in enumerate(procedure.params):
        scope.values[parameter] = _parameter(f, parameter.type, f"%p{number}", given)
    emit_block(scope, procedure.body)
    if not f.dead:
        check_zones(scope)
        value, place, slot = f"{unit.returns} zeroinitializer", 1, 0
        for result in procedure.results:
            held = scope.operand(result)
            if isinstance(result.type, Array):
                assert isinstance(held, Descriptor)
                if f.module.checks is not None:
                    check_leaving(scope, held, f"result {result!r} of {procedure.name}")
                codegen_arrays.leave(f, result.type, held, "%results", slot)
                slot += slots_out(result.type)
                continue
            for kind, part in _parts(result.type, held):
                value = f"{unit.returns} " + f.value(f"insertvalue {value}, {kind} {part}, {place}")
                place += 1
        f.effect(f"ret {value}")
    scope.aliases.finish()
    name = global_name(_symbol(procedure.name))
    limits = [] if procedure.library else [f"i64 {LEVELS}", f"ptr {FLOOR}"]
    parameters = ", ".join(["ptr %ctx", *limits, *given, "ptr noalias %results"])
    f.effect(f"; {name}")  # functions of equal texts are one, but this one is called by its name
    caller.module.define(f, f"define {seen}fastcc {unit.returns} @({parameters})", unit.attributes(f), lambda: name)


def _symbol(name: str) -> str:
    return f"procedure.{name}"


def _returns(results: Sequence[Type]) -> str:
    """The type that a procedure returns."""
    return f"{{ {', '.join(['i32', *(kind for result in results for kind in _kinds(result))])} }}"


def _kinds(kind: Type) -> list[str]:
    """The types of the registers that a scalar result takes."""
    match kind:
        case Scalar(dtype) if is_complex(dtype):
            return [LLVM_TYPE[real_dtype(dtype)]] * 2
        case Scalar(dtype):
            return [LLVM_TYPE[dtype]]
    assert isinstance(kind, Array), f"{kind!r} in a procedure"
    return []


def _parts(kind: Type, value: AnyValue) -> list[tuple[str, str]]:
    assert not isinstance(value, Descriptor)
    return list(zip(_kinds(kind), (value,) if isinstance(value, str) else value, strict=True))


def _parameter(f: FunctionText, kind: Type, name: str, given: list[str]) -> AnyValue:
    """The value of a parameter, whose declarations are added to `given`."""
    if isinstance(kind, Array):
        given.append(f"ptr noalias readonly {name}")
        return _described(f, kind, name, 0)
    types = _kinds(kind)
    names = [name] if len(types) == 1 else [f"{name}.re", f"{name}.im"]
    given += [f"{type_} {one}" for type_, one in zip(types, names, strict=True)]
    return names[0] if len(names) == 1 else (names[0], names[1])


def _described(f: FunctionText, kind: Array, slots: str, first: int) -> Descriptor:
    """The array whose descriptor is in the slots from number `first`; fields are loaded when they are asked for."""
    names = _order(kind)

    def source(name: str) -> str:
        offset = 8 * (first + names.index(name))
        place = f.entry_value(f"getelementptr inbounds i8, ptr {slots}, i64 {offset}") if offset else slots
        value = f.entry_value(f"load {codegen_arrays.field_type(name)}, ptr {place}")
        if name.startswith("extent"):
            f.bounds[value] = 0
        return value

    found = Descriptor(kind, {}, source)
    if f.module.checks is not None:
        found.fields |= span(f.entry_value, found)
    return found


def call(scope: Scope, statement: ir.Call) -> None:
    """Write a call."""
    f = scope.f
    callee = scope.unit.library.get(statement.procedure)
    given = ["ptr %ctx"]
    if callee is None:
        levels, floor = _limits(scope)
        _refuse_depth(scope, statement, levels, floor)
        if levels == LEVELS and scope.unit.polls:
            f.remembered("a recursive call has been counted", partial(_count, scope))
        given += [f"i64 {f.binary('sub', 'i64', levels, str(statement.levels))}", f"ptr {floor}"]
    for argument in statement.args:
        value = scope.operand(argument)
        if f.module.checks is not None and isinstance(value, Descriptor):
            check_leaving(scope, value, f"argument {argument!r} of {statement.procedure}")
        given += _given(f, argument.type, value)
    arrays = sum(slots_out(out.type) for out in statement.outs if isinstance(out.type, Array))
    taken = f.alloca(f"[{arrays} x i64]", 8) if arrays else "null"
    returns = _returns([out.type for out in statement.outs])
    name = global_name(_symbol(statement.procedure))
    first = _count_failures(scope, callee, statement.failure) if callee is not None else None
    made = f.value(f"call fastcc {returns} {name}({', '.join(given)}, ptr {taken})")
    if first is not None:
        f.effect(f"store i32 {first[1]}, ptr {first[0]}")
    status = f.value(f"extractvalue {returns} {made}, 0")
    scope.leave_if(f.binary("icmp ne", "i32", status, "0"), [scope.leave(status)])
    place, slot = 1, 0
    for out in statement.outs:
        if isinstance(out.type, Array):
            names = codegen_arrays.field_names(out.type)
            array = codegen_arrays.complete(f, out.type, _taken(f, out.type, names, taken, slot))
            if f.module.checks is not None:
                array.fields |= span(f.value, array)
            scope.values[out] = array
            place_of_it = f.value(f"getelementptr inbounds i8, ptr {taken}, i64 {8 * slot}") if slot else taken
            f.remembered(_written(array), partial(str, place_of_it))
            slot += slots_out(out.type)
            continue
        parts = []
        for _ in _kinds(out.type):
            parts.append(f.value(f"extractvalue {returns} {made}, {place}"))
            place += 1
        scope.values[out] = parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _count_failures(scope: Scope, callee: ir.Function, first: int) -> tuple[str, str] | None:
    """Say where the numbers of failures begin for a procedure of the library; gives where that is said and what it has
    to be again after the call, if this is one, too. Its declaration is written, if that is elsewhere."""
    f = scope.f
    if scope.unit.module.checks is None:
        kinds = [kind for param in callee.params for kind in (_kinds(param.type) or ["ptr noalias readonly"])]
        returns = _returns([result.type for result in callee.results])
        parameters = ", ".join(["ptr", *kinds, "ptr noalias"])
        f.module.declare_procedure(returns, _symbol(callee.name), parameters)
    if len(callee.failures) == 1:
        return None
    place = f.value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.FAILURES}")
    if not scope.unit.function.library:
        f.effect(f"store i32 {first}, ptr {place}")
        return None
    own = f.value(f"load i32, ptr {place}")
    f.effect(f"store i32 {f.binary('add', 'i32', own, str(first))}, ptr {place}")
    return place, own


def _limits(scope: Scope) -> tuple[str, str]:
    """How many more calls may be made, and where the stack has to end."""
    if scope.unit.returns != "i32":
        return LEVELS, FLOOR
    f = scope.f
    if "recursion" not in scope.limits:
        assert scope.parent is None, "recursion in a parallel region"
        places = [f.entry_value(f"getelementptr inbounds i8, ptr %ctx, i64 {offset}") for offset in _OFFSETS]
        scope.limits["recursion"] = (
            f.entry_value(f"load i64, ptr {places[0]}"),
            f.entry_value(f"load ptr, ptr {places[1]}"),
        )
        if scope.unit.polls:
            state = f.alloca("[4 x i64]", 16)
            begin_state(f, f.entry_effect, state)
            at = f.entry_value(f"getelementptr inbounds i8, ptr %ctx, i64 {Context.CALLS}")
            f.entry_effect(f"store ptr {state}, ptr {at}")
    return scope.limits["recursion"]


_OFFSETS = (Context.LEVELS, Context.FLOOR)


def _count(scope: Scope) -> str:
    """Count a recursive call, the first on its path, if calls of its level are counted: those of any level, where some
    calls take several and might pass by."""
    f = scope.f
    calls = [one for one in ir.walk(scope.unit.function.body) if isinstance(one, ir.Call)]
    counted = 1 if all(one.levels <= 1 for one in calls) else _STEP
    counts = f.binary("icmp ult", "i64", f.binary("and", "i64", LEVELS, str(_STEP - 1)), str(counted))
    poll_before_call(scope, Context.CALLS, counts)
    return counts


def _refuse_depth(scope: Scope, statement: ir.Call, levels: str, floor: str) -> None:
    """Fail where a call would be too deep."""
    f = scope.f
    if "here" not in scope.limits:
        here = f.alloca("i8")
        scope.limits["here"] = (here, here)
    deep = f.binary("icmp slt", "i64", levels, str(statement.levels))
    low = f.value(f"icmp ult ptr {scope.limits['here'][0]}, {floor}")
    scope.leave_if(f.binary("or", "i1", deep, low), scope.failure(statement.failure, scope.order, []))


def _given(f: FunctionText, kind: Type, value: AnyValue) -> list[str]:
    """The arguments that hand a value over."""
    if not isinstance(value, Descriptor):
        return [f"{type_} {part}" for type_, part in _parts(kind, value)]

    def written() -> str:
        slots = f.alloca(f"[{slots_out(kind)} x i64]", 8)
        codegen_arrays.leave(f, kind, value, slots, 0)
        return slots

    return [f"ptr {f.remembered(_written(value), written)}"]


def _written(array: Descriptor) -> str:
    """The name under which it is remembered where the descriptor of an array is: nothing stores there again, but the
    call that has written it, with which the array is another one."""
    return f"descriptor {[array[name] for name in _order(array.type)]}"


def _order(kind: Array) -> list[str]:
    """The fields of a descriptor in the order of its slots."""
    axes = range(kind.rank)
    names = ["object", "base", "block", "data"]
    return [*names, *(f"extent{axis}" for axis in axes), *(f"stride{axis}" for axis in axes)]


def _taken(f: FunctionText, kind: Array, names: Sequence[str], slots: str, first: int) -> dict[str, str]:
    """Fields of an array that a procedure has written (its slots are used again by the next call)."""
    order, found = _order(kind), {}
    for name in names:
        offset = 8 * (first + order.index(name))
        place = f.value(f"getelementptr inbounds i8, ptr {slots}, i64 {offset}") if offset else slots
        found[name] = f.value(f"load {codegen_arrays.field_type(name)}, ptr {place}")
    return found
