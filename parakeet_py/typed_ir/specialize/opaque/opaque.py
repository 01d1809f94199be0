"""Operations handed back to Python: what is called, how its arguments are put together, what it must return.

An `OpaqueSite` names an operation (a call, an attribute, a subscript, an operator) and holds a recipe of its
operands: compiled code passes the leaves, the runtime rebuilds the Python objects around them. The type of the result
was observed on an earlier run (`Observations`), or, where it differs from run to run, is that of any object; a result
of another type than expected makes the compiled code give up. How the operation is done at run time is in
`call/handed_back`.

`emit_opaque` goes through it in this order: what is refused; the operands; the result; how compiled code goes on if the
operation raises, or if its result is another (`_WaysOn`); the site; what is not known of memory afterwards; the value.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.callee_effects import is_of_numpy
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYBOOL, PYINT, Array
from parakeet_py.frontend import ssa
from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key
from parakeet_py.library.intrinsics import hand_back
from parakeet_py.messages.arrays import UNUSUAL_ARRAY
from parakeet_py.signature.object_assembly import Recipe
from parakeet_py.signature.specs import (
    ArraySpec,
    NoneSpec,
    ObjectSpec,
    RecordsSpec,
    ScalarSpec,
    Spec,
    StaticSpec,
    TimesSpec,
    TupleSpec,
)
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays import record_arrays
from parakeet_py.typed_ir.specialize.containers import owned_containers
from parakeet_py.typed_ir.specialize.forms import parts_of, roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.instances.values import holds
from parakeet_py.typed_ir.specialize.observed import ANY, loosened
from parakeet_py.typed_ir.specialize.opaque import made_containers, watched_lists
from parakeet_py.typed_ir.specialize.opaque.frame_states import exit_block, leave_by
from parakeet_py.typed_ir.specialize.opaque.operands import recipe_of
from parakeet_py.typed_ir.specialize.opaque.operations import BOOL, Operation, operation_of
from parakeet_py.typed_ir.specialize.opaque.purity import has_python_methods
from parakeet_py.typed_ir.specialize.opaque.python_closures import is_python_only
from parakeet_py.typed_ir.specialize.opaque.result_leaves import result_types
from parakeet_py.typed_ir.specialize.opaque.sites import TRUTHS, OpaqueSite, cannot_raise, is_harmless
from parakeet_py.typed_ir.specialize.paths.guarded import handled_by_python
from parakeet_py.typed_ir.specialize.python import random_generators
from parakeet_py.typed_ir.specialize.restarts import STRICT, ListOfPython, NeedObservation
from parakeet_py.typed_ir.specialize.times import times
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    MapV,
    MethodV,
    NeverV,
    ObjectV,
    RecordV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TimeV,
    TupleV,
    Value,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
_GIVING_NONE: dict[type | None, frozenset[str]] = {  # methods of containers
    list: frozenset({"append", "clear", "extend", "insert", "remove", "reverse", "sort"}),
    dict: frozenset({"clear", "update"}),
    set: frozenset({"add", "clear", "difference_update", "discard", "intersection_update", "remove", "update"}),
    deque: frozenset(
        {"append", "appendleft", "clear", "extend", "extendleft", "insert", "remove", "reverse", "rotate"}
    ),
}
OF_OBJECTS = frozenset({0})
"""The memory of objects that are no arrays."""
_ARRAYS = ArraySpec | TimesSpec | RecordsSpec


def opaque_operation(s: Context, let: ssa.Let, reason: str) -> Value | None:
    """Emit a statement as an opaque call; its result type must have been observed, or be the same for all objects."""
    op = operation_of(s, let.op)
    if op.reads_frame:
        raise s.unsupported(f"{op.callee.__name__}() needs the Python function itself")
    if op.may_keep or op.may_keep_items:
        nested = not op.may_keep
        if owned_containers.given(s, let.op, nested) or owned_containers.lent(s, op.operands, nested):
            raise s.unsupported(f"{reason}, with a list or dict that is changed")
    key = site_key(s, let.pos, type(let.op).__name__)
    if isinstance(let.op, ssa.Attribute) and isinstance(op.values[0], ObjectV):
        cls, name = class_of(s, op.values[0]), let.op.name
        if cls in _GIVING_NONE and isinstance(vars(cls).get(name), types.MethodDescriptorType):
            return MethodV(op.values[0], name)
        seen = s.python.observed.find(key)
        if isinstance(seen, ObjectSpec) and seen.type in _METHODS:
            return MethodV(op.values[0], name)  # looked up when it is called
        if seen is not None and s.loops.looping:
            raise s.unsupported(f"{reason} in a loop: it is faster in Python as a whole")
    return emit_opaque(s, op, key, reason, wants_result=bool(let.outs), is_statement=True)


def opaque_box(s: Context, value: Value, reason: str = "values of different types meet") -> ObjectV:
    """A value as a Python object, where other paths have objects of other types, or Python has to make it."""
    s.deferred_views.shown(roots_of(value))
    made = emit_opaque(s, Operation("same", (value,)), site_key(s, s.frame.pos, "same"), reason, ANY)
    assert isinstance(made, ObjectV)
    return made


def opaque_truth(s: Context, value: Value) -> ir.Operand:
    """bool(value), done by Python."""
    truth = Operation("truth", (value,))
    made = emit_opaque(s, truth, site_key(s, s.frame.pos, "truth"), "the truth of an object", BOOL)
    assert isinstance(made, ScalarV)
    return made.operand


def site_key(s: Context, pos: ssa.Pos, name: str) -> Key:
    """The key of an operation, which is that of the evaluator."""
    return (*s.frame.path, s.frame.function.filename, pos, name)


def emit_opaque(
    s: Context,
    op: Operation,
    key: Key,
    reason: str,
    result: Spec | None = None,
    *,
    wants_result: bool = True,
    is_statement: bool = False,
) -> Value | None:
    """Emit an opaque call whose result has the spec `result`, or else the observed one; is it all of a statement?"""
    _refuse(s, op, reason)
    observed = _observed(s, op, key, reason)
    leaves: list[ir.Operand] = []
    recipes = tuple([recipe_of(s, value, leaves) for value in _as_given(s, op)])
    result = result or op.result() or _of_method(s, op)
    if wants_result and result is None:
        if observed is None:
            return _guessed(s, op, key, reason)
        result = op.unshared(ANY if ListOfPython(key) in s.facts.known else observed)
        if op.name == "call" and not op.is_pure:
            result = loosened(result)
    if op.may_ask_what_is_handled and handled_by_python(s):
        return NeverV()
    _refuse_result(s, op, result, reason)
    ways = _ways_on(s, op, reason, is_statement)
    site = _site(s, op, recipes, leaves, result, ways, key, reason)
    _forget(s, op, result)
    kinds = [PYINT] * ways.flagged + ([] if result is None else result_types(result))
    outs = list(s.builder.emit(ir.Opaque(site, tuple(leaves)), *kinds, name="opaque"))
    flag = outs.pop(0) if ways.flagged else ir.ZERO
    if ways.exit is not None:
        leave_by(s, flag, ways.exit)
    if ways.catches and not ways.left:
        s.guards[-1].stay_if_zero(s, flag)
    return None if result is None else _made(s, op, key, result, outs)


# ---- what is refused -------------------------------------------------------------------------------------------------


def _refuse(s: Context, op: Operation, reason: str) -> None:
    """Refuse what Python cannot do in the midst of compiled code, and what it does faster with all around it."""
    if s.elements.in_body:
        inside = "a recursive function" if s.procedures.active else "an element function of a parallel operator"
        raise s.unsupported(f"{reason} inside {inside} cannot be handed back to Python")
    if any(_is_unusual(s, value) for value in op.operands):
        raise s.unsupported(UNUSUAL_ARRAY)
    if op.name == "call" and op.may_keep and any(_holds_map(s, value) for value in op.operands):
        raise s.unsupported("a dict or set of the function's own, given to Python code that might change it")
    if op.may_keep and any(map(owned_containers.holds_own, op.operands)):
        s.give_list("a list given to Python whose items are assigned")
    if s.instances.first is not None and any(map(holds, op.operands)):
        raise s.unsupported(f"{reason}, of an object that the function has made")
    if s.loops.looping and op.is_cheap:
        raise s.unsupported(f"{reason} in a loop: it is faster in Python as a whole")
    if s.python.strict:
        raise s.unsupported(f"{reason}: {STRICT}")


def _observed(s: Context, op: Operation, key: Key, reason: str) -> Spec | None:
    """What calls have shown of the result; None: nothing yet."""
    observed = s.python.observed.find(key)
    if observed is CHANGED:
        for value in op.operands:
            s.need_whole(value)
        watched_lists.need_whole_arguments(s)
        raise s.unsupported(
            f"{reason}, and {op.describe()} may change a list, dict, global or the form of an array that is in use here"
        )
    if observed is not None and not op.is_seldom and in_numpy(s):
        raise s.unsupported(f"{reason} in a function of NumPy's own")
    seen: Spec | None = observed
    return seen


def _guessed(s: Context, op: Operation, key: Key, reason: str) -> Value:
    """Where no call has been: that has to be seen first, or compiled code gives up there."""
    need = NeedObservation(key, reason, s.unsupported(f"{reason}, and no call has shown yet what it gives"))
    if op.callee is hand_back:  # what the library says is for Python: no call shows that
        need = NeedObservation(key, reason, s.unsupported(reason))
    if not s.python.guess:
        raise need
    s.python.guessed.append(need)
    s.check(ir.Const(False, PYBOOL), "Deoptimize", f"{reason}, where no call has been before")
    return NeverV()


def _refuse_result(s: Context, op: Operation, result: Spec | None, reason: str) -> None:
    if isinstance(result, ObjectSpec) and any(map(times.any_array_in, op.operands)):
        raise s.unsupported(f"{reason}, and gives what may be a view", times.HINT)
    if any(map(is_python_only, op.operands)) and op.keeps_functions(result):
        raise s.unsupported(f"{reason}, of a function that has annotations, or uses names which may be bound again")


def _is_unusual(s: Context, value: Value) -> bool:
    """Is this an argument that is an array of which nothing is compiled?"""
    if not isinstance(value, ObjectV) or value.var not in s.arguments.unusual_arrays:
        return False
    return not record_arrays.is_records(s, value)


def _holds_map(s: Context, value: Value) -> bool:
    """Is this a dict or set of the function's own, or does it hold one? What is made of a set that is written out is
    Python's alone, if the function does not use that set again."""
    if isinstance(value, MapV):
        return id(value) not in s.python.displays or made_containers.is_used_again(s, value)
    return any(_holds_map(s, part) for part in parts_of(value))


def in_numpy(s: Context) -> bool:
    """Is this inside a Python function of NumPy's that another function calls?

    Such a function is inlined where all of it that is reached is compiled. Otherwise it is handed back as one call:
    Python does each of its steps faster than compiled code can ask for it.
    """
    inside = [is_of_numpy(one.namespace.globals.get("__name__")) for one in s.frames if not one.namespace.trusted]
    return not inside[0] and any(inside)


# ---- the site --------------------------------------------------------------------------------------------------------


def _as_given(s: Context, op: Operation) -> list[Value]:
    """The operands; lists and dicts that may be kept or changed are the very objects."""
    passed = list(op.operands)
    if op.may_keep or op.may_store:
        made_containers.give(s, passed)
        passed = [watched_lists.themselves(s, value) for value in passed]
    elif op.may_give_items:
        made_containers.give(s, [value for value in passed if shared_containers.has_containers(value)])
    return passed


@record
class _WaysOn:
    """How a call goes on behind an operation, other than with its result.

    By `exit`, Python does the rest of the call. What the operation raises goes to the handlers of the classes
    `catches`, or, if it is `left`, is raised where Python does the rest.
    """

    exit: ir.Block | None
    left: bool
    catches: tuple[tuple[type[BaseException], ...], ...]

    @property
    def flagged(self) -> bool:
        """Does the first result of the operation say how the call goes on?"""
        return self.exit is not None or bool(self.catches)


def _ways_on(s: Context, op: Operation, reason: str, is_statement: bool) -> _WaysOn:
    exit = exit_block(s, op.operands) if is_statement else None
    left = bool(s.guards) and s.guards[-1].goes_to_python(exit is not None)
    if left and exit is None:
        raise s.unsupported(
            f"{reason}, inside `with`, or a `try` whose handlers Python runs, where Python could not go on"
        )
    catches = s.guards[-1].classes if left else s.guards[-1].around_python(s) if s.guards else ()
    if not left and assigned_attributes.may_have_assigned(s) and not cannot_raise(op.name):
        # An exception has to find the objects with what has been assigned: Python goes on from the statement.
        if exit is None or s.guards:
            raise s.unsupported(f"{reason}, in a function that assigns attributes, where Python could not go on")
        left, catches = True, ((BaseException,),)
    return _WaysOn(exit, left, catches)


def _site(
    s: Context,
    op: Operation,
    recipes: tuple[Recipe, ...],
    leaves: list[ir.Operand],
    result: Spec | None,
    ways: _WaysOn,
    key: Key,
    reason: str,
) -> int:
    """Add the site of an operation; to the leaves of its operands come objects that have to be looked at after it."""
    regular = not s.loops.unrolling and not any(
        frame.namespace.trusted or frame.function.name in ("element", "condition") for frame in s.frames
    )
    made = OpaqueSite(
        op.name,
        recipes,
        op.names,
        result,
        op.describe(),
        reason,
        s.frame.pos.line,
        key,
        entries(s.builder.pos),
        regular,
        ways.catches,
        foreign=any(_has_own_methods(s, value) for value in op.operands[1:]),
        arrays=_reshapable(op, leaves) if ways.exit is not None else (),
    )
    harmless = is_harmless(made)
    s.python.effects += not harmless
    s.python.changes += not harmless
    watched = [] if harmless or op.name in TRUTHS else watched_lists.holders(s)
    leaves += [holder for holder, _ in watched]
    paths = tuple(path for _, path in watched)
    return s.add_site(replace(made, exits=ways.exit is not None, left=ways.left, watched=paths))


def _has_own_methods(s: Context, value: Value) -> bool:
    """May an object, or one in a tuple or list that is known, have methods in Python that a function in C runs?"""
    if isinstance(value, TupleV):
        return any(_has_own_methods(s, item) for item in value.items)
    if isinstance(value, Static):
        return has_python_methods(type(value.object))  # of a class, the methods of its metaclass
    if not isinstance(value, ObjectV):
        return False
    kind = class_of(s, value)
    return kind is None or has_python_methods(kind)


def class_of(s: Context, value: ObjectV) -> type | None:
    """The class of an object, if it is known."""
    index = s.arguments.leaf_param.get(value.var)
    spec = s.arguments.object_specs.get(value.var) if index is None else s.arguments.spec(index)
    return spec.type if isinstance(spec, ObjectSpec) and spec != ANY else None


def _of_method(s: Context, op: Operation) -> Spec | None:
    """What a method of a container gives whenever it returns, if that is known."""
    match op.name, op.values[0]:
        case "call", MethodV(ObjectV() as owner, name) if name in _GIVING_NONE.get(class_of(s, owner), ()):
            return NoneSpec()
    return None


def is_unchanging(s: Context, value: Value) -> bool:
    """Is this a value that nothing can change: a number, what is known, a string?"""
    return isinstance(value, ScalarV | TaggedScalar | Static) or (
        isinstance(value, ObjectV) and class_of(s, value) in (str, bytes, int, float, complex, bool)
    )


# ---- what it gives ---------------------------------------------------------------------------------------------------


def _reshapable(op: Operation, leaves: Sequence[ir.Operand]) -> tuple[int, ...]:
    """The arrays among the leaves of operands whose shape, dtype or flags an unknown operation might set."""
    if not (op.may_keep and op.may_store):
        return ()
    return tuple(number for number, leaf in enumerate(leaves) if isinstance(leaf.type, Array))


def _forget(s: Context, op: Operation, result: Spec | None) -> None:
    """Note what an operation may have stored into, and which memory it may keep for later operations to store into."""
    given = frozenset(root for value in op.operands for root in roots_of(value))
    if op.may_store:
        s.deferred_views.store(given)
        if any(isinstance(value, ObjectV | RecordV) for value in op.values):
            s.deferred_views.change(OF_OBJECTS)
    if op.may_keep:
        s.deferred_views.keep(given, bool(s.loops.looping))
    elif any(isinstance(value, ObjectV) for value in op.values[1:]) and isinstance(result, _ARRAYS):
        s.deferred_views.keep(OF_OBJECTS, bool(s.loops.looping))  # of a function of NumPy's, as `frombuffer`


def _made(s: Context, op: Operation, key: Key, result: Spec, outs: list[ir.Var]) -> Value:
    """The value of a result, and what is known of it."""
    roots = frozenset(root for value in op.values for root in roots_of(value))
    made = result_value(s, result, outs, frozenset() if op.is_fresh else roots | s.arguments.param_roots)
    watched_lists.note_lists(s, made, key)
    if isinstance(made, ObjectV) and isinstance(result, ObjectSpec):
        s.arguments.object_specs[made.var] = result
    if isinstance(made, ObjectV) and isinstance(result, RecordsSpec):
        s.arguments.object_specs[made.var] = ObjectSpec(result.type)
    if random_generators.is_generator(result) and not _has_other_bits(s, op):
        random_generators.made_by_python(s, made)
    return made


def _has_other_bits(s: Context, op: Operation) -> bool:
    """May an operation have given a random generator over other bits than PCG64's, which alone are compiled?

    `default_rng` gives back a generator that it is given: of objects it has to be known what they are.
    """
    if op.callee is not np.random.Generator and op.callee is not np.random.default_rng:
        return True
    return not all(
        isinstance(one, ScalarV | TaggedScalar | ArrayV | TupleV)
        or (isinstance(one, Static) and not isinstance(one.object, np.random.Generator | np.random.BitGenerator))
        or (isinstance(one, ObjectV) and class_of(s, one) in (np.random.PCG64, np.random.SeedSequence))
        for one in op.operands[1:]
    )


def result_value(s: Context, spec: Spec, outs: list[ir.Var], roots: frozenset[int]) -> Value:
    """The value of a result with these leaves, whose arrays may share memory with `roots`."""
    match spec:
        case ArraySpec(_, rank, _, _, writeable):
            var = outs.pop(0)
            extents = tuple(s.dim(var, axis) for axis in range(rank))
            return ArrayV(var, extents, roots | {s.memory.new_root()}, not writeable, (False,) * rank)
        case ScalarSpec():
            return ScalarV(outs.pop(0))
        case ObjectSpec():
            return ObjectV(outs.pop(0), any=spec == ANY)
        case RecordsSpec(_, rank, names, columns):
            records = ObjectV(outs.pop(0))
            roots = roots | OF_OBJECTS | s.arguments.param_roots
            found = [result_value(s, column, outs, roots) for column in columns]
            record_arrays.note(s, records, names, rank, found)
            return records
        case TimesSpec(unit, numbers):
            given = ObjectV(outs.pop(0))
            beneath = result_value(s, numbers, outs, roots)
            assert isinstance(beneath, ArrayV | ScalarV)
            return TimeV(beneath, unit, given)
        case NoneSpec():
            return NONE
        case StaticSpec(value):
            return lift(value)
        case TupleSpec(items, "slice"):
            return SliceV(*(result_value(s, item, outs, roots) for item in items))
        case TupleSpec(items, kind, named):
            return TupleV(tuple(result_value(s, item, outs, roots) for item in items), kind, named)
    raise AssertionError(spec)
