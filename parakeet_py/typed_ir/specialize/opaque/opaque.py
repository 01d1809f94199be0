"""Operations handed back to Python: what is called, how its arguments are put together, what it must return.

An `OpaqueSite` names an operation (a call, an attribute, a subscript, an operator) and holds a template of its
operands: compiled code passes the leaves, the runtime rebuilds the Python objects around them. The type of the result
was observed on an earlier run (`Observations`), or, where it differs from run to run, is that of any object; a result
of another type than expected makes the compiled code give up. How the operation is done at run time is in
`call/handed_back`.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.callee_effects import effects_of, is_fresh, is_of_numpy
from parakeet_py.base.types import OBJECT, PYBOOL, PYINT, Array, Scalar, Type
from parakeet_py.frontend import ssa
from parakeet_py.frontend.desugar import managers
from parakeet_py.frontend.evaluate.kept_closures import uses_up
from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key
from parakeet_py.messages.arrays import UNUSUAL_ARRAY
from parakeet_py.signature.specs import (
    ArraySpec,
    NoneSpec,
    ObjectSpec,
    ScalarSpec,
    Spec,
    StaticSpec,
    TimesSpec,
    TupleSpec,
)
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.specialize.containers import dict_items, owned_containers
from parakeet_py.typed_ir.specialize.forms import array_of, parts_of, roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes
from parakeet_py.typed_ir.specialize.instances.values import holds
from parakeet_py.typed_ir.specialize.observed import ANY, loosened, without_lists
from parakeet_py.typed_ir.specialize.opaque import made_containers, watched_lists
from parakeet_py.typed_ir.specialize.opaque.frame_states import exit_block, leave_by
from parakeet_py.typed_ir.specialize.opaque.operands import template_of
from parakeet_py.typed_ir.specialize.opaque.purity import has_python_methods, is_pure, may_store, of_random
from parakeet_py.typed_ir.specialize.opaque.python_closures import needs_captured_names
from parakeet_py.typed_ir.specialize.opaque.sites import (
    RAISES,
    TRUTHS,
    OpaqueSite,
    cannot_raise,
    is_harmless,
    is_rare,
)
from parakeet_py.typed_ir.specialize.python import random_generators
from parakeet_py.typed_ir.specialize.restarts import HandBack, ListOfPython, NeedObservation
from parakeet_py.typed_ir.specialize.times import times
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    CharV,
    ComprehensionV,
    GeneratorV,
    IteratorV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TimeV,
    TupleV,
    Value,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def operation_of(s: Context, op: ssa.Op) -> tuple[str, list[Value], dict[str, Value]]:
    """The name and operands of an operation that can be handed back."""
    match op:
        case ssa.Call(function, args, kwargs):
            target, given, named = s.value(function), s.items(args), s.keywords(kwargs)
            if len(given) + len(named) <= 2 and _uses_up(target):
                given = [_listed(s, arg) for arg in given]
            return "call", [target, *given], named
        case ssa.Attribute(obj, name):
            return f"attribute:{name}", [s.value(obj)], {}
        case ssa.Subscript(obj, index):
            return "subscript", [s.value(obj), s.value(index)], {}
        case ssa.SetItem(obj, index, value):
            return "set_item", [s.value(obj), s.value(index), s.value(value)], {}
        case ssa.Binary(name, left, right):
            return f"binary:{name}", [s.value(left), s.value(right)], {}
        case ssa.Inplace(name, left, right):
            return f"inplace:{name}", [s.value(left), s.value(right)], {}
        case ssa.Compare(name, left, right):
            return f"compare:{name}", [s.value(left), s.value(right)], {}
        case ssa.Unary(name, operand):
            return f"unary:{name}", [s.value(operand)], {}
        case ssa.BuildString(parts) if not any("{" in spec or "}" in spec for _, _, spec in parts):
            fields = [(f"!{how}" if how else "") + (f":{spec}" if spec else "") for _, how, spec in parts]
            template = "".join(f"{{{field}}}" for field in fields)
            return "call", [Static(str.format), lift(template), *(s.value(part) for part, _, _ in parts)], {}
    raise s.unsupported(f"{type(op).__name__} of objects that are not compiled")


def _listed(s: Context, value: Value) -> Value:
    if isinstance(value, GeneratorV):
        return s.as_list(value)
    if not isinstance(value, ComprehensionV):
        return dict_items.listed(s, value) if isinstance(value, IteratorV) else value
    try:
        return s.as_list(value)
    except HandBack as reason:
        raise s.unsupported(f"{reason}, among what is given to Python code") from None


_CHEAP = frozenset({"binary", "compare", "inplace", "same", "truth", "unary"})  # for Python itself
_BOOL = ScalarSpec("bool", True)
_METHODS = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


def opaque_operation(s: Context, let: ssa.Let, reason: str) -> Value | None:
    """Emit a statement as an opaque call; its result type must have been observed, or be the same for all objects."""
    operation, values, keywords = operation_of(s, let.op)
    if (
        operation == "call"
        and isinstance(values[0], Static)
        and effects_of(values[0].object).frame
        and (len(values) == 1 or values[0].object not in (vars, dir))
    ):
        raise s.unsupported(f"{values[0].object.__name__}() needs the Python function itself")
    if _may_keep(operation, values) or _may_keep_items(values[0]):
        nested = not _may_keep(operation, values)
        if owned_containers.given(s, let.op, nested) or owned_containers.lent(s, (*values, *keywords.values()), nested):
            raise s.unsupported(f"{reason}, with a list or dict that is changed")
    key = site_key(s, let.pos, type(let.op).__name__)
    if isinstance(let.op, ssa.Attribute) and isinstance(values[0], ObjectV):
        seen = s.python.observed.find(key)
        if isinstance(seen, ObjectSpec) and seen.type in _METHODS:
            return MethodV(values[0], let.op.name)  # looked up when it is called
        if seen is not None and s.loops.looping:
            raise s.unsupported(f"{reason} in a loop: it is faster in Python as a whole")
    result = _BOOL if operation in TRUTHS else None
    return emit_opaque(
        s, operation, values, keywords, key, reason, result, wants_result=bool(let.outs), is_statement=True
    )


def opaque_box(s: Context, value: Value, reason: str = "values of different types meet") -> ObjectV:
    """A value as a Python object, where other paths have objects of other types, or Python has to make it."""
    s.shadows.shown(roots_of(value))
    made = emit_opaque(s, "same", [value], {}, site_key(s, s.frame.pos, "same"), reason, ANY)
    assert isinstance(made, ObjectV)
    return made


def opaque_truth(s: Context, value: Value) -> ir.Operand:
    """bool(value), done by Python."""
    made = emit_opaque(s, "truth", [value], {}, site_key(s, s.frame.pos, "truth"), "the truth of an object", _BOOL)
    assert isinstance(made, ScalarV)
    return made.operand


def site_key(s: Context, pos: ssa.Pos, name: str) -> Key:
    """The key of an operation, which is that of the evaluator."""
    return (*s.frame.path, s.frame.function.filename, pos, name)


def emit_opaque(
    s: Context,
    operation: str,
    values: list[Value],
    keywords: dict[str, Value],
    key: Key,
    reason: str,
    result: Spec | None,
    *,
    wants_result: bool = True,
    is_statement: bool = False,
) -> Value | None:
    """Emit an opaque call whose result has the spec `result`, or else the observed one; is it all of a statement?"""
    if s.elements.in_body:
        inside = "a recursive function" if s.procedures.active else "an element function of a parallel operator"
        raise s.unsupported(f"{reason} inside {inside} cannot be handed back to Python")
    if any(
        isinstance(value, ObjectV) and value.var in s.arguments.unusual_arrays
        for value in (*values, *keywords.values())
    ):
        raise s.unsupported(UNUSUAL_ARRAY)
    if (
        operation == "call"
        and any(map(_holds_map, (*values, *keywords.values())))
        and not _leaves_maps_alone(values[0])
    ):
        raise s.unsupported("a dict or set of the function's own, given to Python code that might change it")
    if _may_keep(operation, values) and any(map(owned_containers.holds_own, (*values, *keywords.values()))):
        s.give_list("a list given to Python whose items are assigned")
    if s.instances.first is not None and any(map(_holds_instance, (*values, *keywords.values()))):
        raise s.unsupported(f"{reason}, of an object that the function has made")
    text = describe_operation(operation, values)
    if s.loops.looping and operation.partition(":")[0] in _CHEAP:
        raise s.unsupported(f"{reason} in a loop: it is faster in Python as a whole")
    if s.python.strict:
        raise s.unsupported(f"{reason}: with strict=True nothing is handed back to Python")
    observed = s.python.observed.find(key)
    if observed is CHANGED:
        for value in (*values, *keywords.values()):
            s.need_whole(value)
        watched_lists.need_whole_arguments(s)
        raise s.unsupported(f"{reason}, and {text} changes a list, dict or global that is in use here")
    if observed is not None and not is_seldom(operation, values[0]) and in_numpy(s):
        raise s.unsupported(f"{reason} in a function of NumPy's own")
    leaves: list[ir.Operand] = []
    passed = [*values, *keywords.values()]
    if _may_keep(operation, values) or may_store(operation, values, tuple(keywords)):
        made_containers.give(s, passed)
        passed = [watched_lists.themselves(s, value) for value in passed]
    templates = tuple([template_of(s, value, leaves) for value in passed])
    result = result or _known_result(operation, values)
    if wants_result and result is None:
        if observed is None:
            need = NeedObservation(key, reason, s.unsupported(f"{reason}, and no call has shown yet what it gives"))
            if not s.python.guess:
                raise need
            s.python.guessed.append(need)
            s.check(ir.Const(False, PYBOOL), "Deoptimize", f"{reason}, where no call has been before")
            return NeverV()
        result = ANY if ListOfPython(key) in s.facts.known else observed
        result = _without_shared_lists(operation, values, tuple(keywords), result)
        if operation == "call" and not (
            isinstance(values[0], Static) and is_pure(values[0].object, len(values) - 1, tuple(keywords))
        ):
            result = loosened(result)
    if isinstance(result, ObjectSpec) and any(map(times.any_array_in, (*values, *keywords.values()))):
        raise s.unsupported(f"{reason}, and gives what may be a view", times.HINT)
    if any(map(needs_captured_names, (*values, *keywords.values()))) and not _keeps_none(operation, values, result):
        raise s.unsupported(f"{reason}, of a function that uses names which may be bound again")
    exit = exit_block(s, (*values, *keywords.values())) if is_statement else None
    left = bool(s.guards) and s.guards[-1].goes_to_python(exit is not None)
    if left and exit is None:
        raise s.unsupported(f"{reason}, inside `with`, where Python could not go on")
    catches = s.guards[-1].classes if left else s.guards[-1].around_python(s) if s.guards else ()
    if not left and assigned_attributes.may_have_assigned(s) and not cannot_raise(operation):
        # An exception has to find the objects with what has been assigned: Python goes on from the statement.
        if exit is None or s.guards:
            raise s.unsupported(f"{reason}, in a function that assigns attributes, where Python could not go on")
        left, catches = True, ((BaseException,),)
    regular = not s.loops.unrolling and not any(
        frame.namespace.trusted or frame.function.name in ("element", "condition") for frame in s.frames
    )
    foreign = any(_has_own_methods(s, value) for value in (*values[1:], *keywords.values()))
    line, trace = s.frame.pos.line, entries(s.builder.pos)
    made_site = OpaqueSite(
        operation, templates, tuple(keywords), result, text, reason, line, key, trace, regular, catches, foreign
    )
    harmless = is_harmless(made_site)
    watched = [] if harmless or operation in TRUTHS else watched_lists.holders(s)
    leaves += [holder for holder, _ in watched]
    paths = tuple(path for _, path in watched)
    site = s.add_site(replace(made_site, exits=exit is not None, left=left, watched=paths))
    s.python.effects += not harmless
    s.python.changes += not harmless
    roots = frozenset(root for value in values for root in roots_of(value))
    given = roots | frozenset(root for value in keywords.values() for root in roots_of(value))
    if may_store(operation, values, tuple(keywords)):
        s.shadows.store(given)
        if any(isinstance(value, ObjectV) for value in values):
            s.shadows.change(OF_OBJECTS)
    if _may_keep(operation, values):
        s.shadows.keep(given, bool(s.loops.looping))
    elif any(isinstance(value, ObjectV) for value in values[1:]) and isinstance(result, ArraySpec | TimesSpec):
        s.shadows.keep(OF_OBJECTS, bool(s.loops.looping))  # of a function of NumPy's, as `frombuffer`
    flagged = exit is not None or bool(catches)
    kinds = [PYINT] * flagged + ([] if result is None else result_types(result))
    outs = list(s.builder.emit(ir.Opaque(site, tuple(leaves)), *kinds, name="opaque"))
    flag = outs.pop(0) if flagged else ir.ZERO
    if exit is not None:
        leave_by(s, flag, exit)
    if catches and not left:
        s.guards[-1].stay_if_zero(s, flag)
    if result is None:
        return None
    fresh = (
        operation == "call"
        and isinstance(values[0], Static)
        and is_fresh(values[0].object, len(values) - 1, tuple(keywords))
    )
    made = result_value(s, result, outs, frozenset() if fresh else roots | s.arguments.param_roots)
    watched_lists.note_lists(s, made, key)
    if isinstance(made, ObjectV) and isinstance(result, ObjectSpec):
        s.arguments.object_specs[made.var] = result
    if random_generators.is_generator(result) and not _has_other_bits(s, [*values, *keywords.values()]):
        random_generators.made_by_python(s, made)
    return made


def _without_shared_lists(operation: str, values: Sequence[Value], keywords: Sequence[str], result: Spec) -> Spec:
    """The result of an operation, with lists as objects that others may know, too."""
    match operation, values[0]:
        case "call", Static(target):
            if is_fresh(target, len(values) - 1, keywords):
                return result
            return without_lists(result, effects_of(target).makes == "list")
        case "call", MethodV(ArrayV() | TextV() | CharV()):
            return result
    return without_lists(result)


OF_OBJECTS = frozenset({0})
"""The memory of objects that are no arrays."""


def _has_other_bits(s: Context, values: list[Value]) -> bool:
    """May an operation have given a random generator over other bits than PCG64's, which alone are compiled?

    `default_rng` gives back a generator that it is given: of objects it has to be known what they are.
    """
    maker = values[0].object if isinstance(values[0], Static) else None
    if maker is not np.random.Generator and maker is not np.random.default_rng:
        return True
    return not all(
        isinstance(one, ScalarV | TaggedScalar | ArrayV | TupleV)
        or (isinstance(one, Static) and not isinstance(one.object, np.random.Generator | np.random.BitGenerator))
        or (isinstance(one, ObjectV) and class_of(s, one) in (np.random.PCG64, np.random.SeedSequence))
        for one in values[1:]
    )


def _has_own_methods(s: Context, value: Value) -> bool:
    """May an object, or one in a tuple or list that is known, have methods in Python that a function in C runs?"""
    if isinstance(value, TupleV):
        return any(_has_own_methods(s, item) for item in value.items)
    if not isinstance(value, ObjectV):
        return False
    kind = class_of(s, value)
    return kind is None or has_python_methods(kind)


def class_of(s: Context, value: ObjectV) -> type | None:
    """The class of an object, if it is known."""
    index = s.arguments.leaf_param.get(value.var)
    spec = s.arguments.object_specs.get(value.var) if index is None else s.arguments.spec(index)
    return spec.type if isinstance(spec, ObjectSpec) and spec != ANY else None


def is_unchanging(s: Context, value: Value) -> bool:
    """Is this a value that nothing can change: a number, what is known, a string?"""
    return isinstance(value, ScalarV | TaggedScalar | Static) or (
        isinstance(value, ObjectV) and class_of(s, value) in (str, bytes, int, float, complex, bool)
    )


def _keeps_none(operation: str, values: list[Value], result: Spec | None) -> bool:
    """Does a call keep none of the functions it is given?"""
    target = values[0]
    known = operation == "call" and isinstance(target, Static) and uses_up(target.object)
    return known and (result is None or OBJECT not in result_types(result))


def in_numpy(s: Context) -> bool:
    """Is this inside a Python function of NumPy's that another function calls?

    Such a function is inlined where all of it that is reached is compiled. Otherwise it is handed back as one call:
    Python does each of its steps faster than compiled code can ask for it.
    """
    inside = [is_of_numpy(one.namespace.globals.get("__name__")) for one in s.frames if not one.namespace.trusted]
    return not inside[0] and any(inside)


def is_seldom(operation: str, function: Value) -> bool:
    """Does an operation make or raise an exception, or print?"""
    return operation == "call" and isinstance(function, Static) and is_rare(function.object)


def _known_result(operation: str, values: list[Value]) -> Spec | None:
    """What a call gives whenever it returns, for some well-known functions."""
    if operation == "attribute:__name__":
        return ANY  # of the class of what was caught, mostly: a text for each, which nothing else depends on
    if _is_text(operation, values[0]):
        return ANY  # another text for each call, mostly
    if operation != "call" or not isinstance(values[0], Static):
        return None
    target = values[0].object
    if target is print or any(target is one for one in RAISES):
        return NoneSpec()
    if (target is list or target is tuple) and len(values) == 2 and isinstance(values[1], ArrayV):
        return ANY  # of another length for other arguments
    if target is np.random.default_rng and not any(map(_may_be_generator, values[1:])):
        return ObjectSpec(np.random.Generator)
    known = type(target) is type and (issubclass(target, BaseException) or target in of_random())
    return ObjectSpec(target) if known else None


def _may_be_generator(seed: Value) -> bool:
    """May this be a generator, perhaps of a class of the user's, which `default_rng` gives as it is?"""
    if isinstance(seed, Static):
        return _is_random(seed.object)
    return not isinstance(seed, ScalarV) and array_of(seed) is None


def _is_random(seed: Any) -> bool:
    return isinstance(seed, np.random.Generator | np.random.BitGenerator | np.random.RandomState)


_OF_TEXT = (repr, ascii, format, hex, oct, bin, chr, np.array2string, np.array_repr, np.array_str, np.binary_repr)


def _is_text(operation: str, first: Value) -> bool:
    """Does this make a text of values?"""
    match operation, first:
        case "binary:mod", Static(str()):
            return True
        case "call", MethodV(Static(str()), "format" | "join"):
            return True
        case "call", Static(types.BuiltinMethodType(__self__=str(), __name__="format" | "join")):
            return True
        case "call", Static(target):
            return any(target is one for one in _OF_TEXT)
    return False


def _uses_up(target: Value) -> bool:
    """Does this function go through a whole iterator, so that a list will do?"""
    match target:
        case Static(obj):
            return effects_of(obj).uses_up
        case MethodV(Static(str()), "join"):
            return True
    return False


def _holds_map(value: Value) -> bool:
    return isinstance(value, MapV) or any(map(_holds_map, parts_of(value)))


def _holds_instance(value: Value) -> bool:
    return holds(value)


def _may_keep(operation: str, values: Sequence[Value]) -> bool:
    """May an operation keep, or give back, a list or dict that it is given? What is not known does."""
    match operation.partition(":")[0], values[0]:
        case "call", Static(target):
            return effects_of(target).keeps
        case "call", MethodV(Static(target), method):
            return effects_of(getattr(target, method, None)).keeps
        case "call", MethodV(ArrayV() | MapV()):
            return False
        case "call", _:
            return True
        case "same", value:
            return not isinstance(value, MessageV)  # which is formatted at once
        case "truth", _:
            return False
        case "attribute", _:
            return not isinstance(values[0], ObjectV)
    return any(isinstance(value, ObjectV) for value in values)


def _may_keep_items(target: Value) -> bool:
    """The same of the lists in a list that a function is given; what only goes through items is not meant: of that the
    frontend has seen what becomes of them."""
    if not isinstance(target, Static):
        return False
    effects = effects_of(target.object)
    return effects.keeps_items and not effects.items_only


def _leaves_maps_alone(target: Value) -> bool:
    return not _may_keep("call", [target])


def result_types(spec: Spec) -> list[Type]:
    match spec:
        case ArraySpec(dtype, rank, layout, _, _):
            return [Array(dtype, rank, layout)]
        case ScalarSpec(dtype, python):
            return [Scalar(dtype, python)]
        case ObjectSpec():
            return [OBJECT]
        case TimesSpec(_, numbers):
            return [OBJECT, *result_types(numbers)]
        case TupleSpec(items):
            return [kind for item in items for kind in result_types(item)]
    return []


def caught_by(site: OpaqueSite, error: BaseException) -> int:
    """The number of the handler around an operation that catches this; 0: none."""
    for number, classes in enumerate(site.catches):
        if isinstance(error, classes):
            return number + 1
    return 0


def no_leaves(spec: Spec | None) -> list[Any]:
    """Leaves that stand for nothing where an operation has given none."""
    return [_nothing(kind) for kind in ([] if spec is None else result_types(spec))]


def _nothing(kind: Type) -> Any:
    match kind:
        case Array(dtype, rank):
            return np.empty((0,) * rank, dtype)
        case Scalar(dtype):
            return np.dtype(dtype).type(0).item()
    return None


def result_leaves_of(spec: Spec, value: Any) -> list[Any]:
    """The leaves of a result, in the order of `result_types`."""
    match spec:
        case ArraySpec() | ScalarSpec() | ObjectSpec():
            return [value]
        case TimesSpec():
            return [value, value.view(np.int64)]
        case TupleSpec(items, "slice"):
            return [leaf for item, part in zip(items, (value.start, value.stop, value.step), strict=True)
                    for leaf in result_leaves_of(item, part)]  # fmt: skip
        case TupleSpec(items):
            return [leaf for item, part in zip(items, value, strict=True) for leaf in result_leaves_of(item, part)]
    return []


def result_value(s: Context, spec: Spec, outs: list[ir.Var], roots: frozenset[int]) -> Value:
    match spec:
        case ArraySpec(_, rank, _, _, writeable):
            var = outs.pop(0)
            extents = tuple(s.dim(var, axis) for axis in range(rank))
            return ArrayV(var, extents, roots | {s.memory.new_root()}, not writeable, (False,) * rank)
        case ScalarSpec():
            return ScalarV(outs.pop(0))
        case ObjectSpec():
            return ObjectV(outs.pop(0), any=spec == ANY)
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


def describe_operation(operation: str, values: Sequence[Value]) -> str:
    """A short name for people: `numpy.linalg.svd`, `.method`, `x[...]`."""
    kind, _, name = operation.partition(":")
    if kind == "call":
        match values[0]:
            case Static(object=target) if target in (managers.entered, managers.left):
                return "with"
            case Static(obj):
                module = getattr(obj, "__module__", None)
                own = getattr(obj, "__qualname__", getattr(obj, "__name__", repr(obj)))
                return f"{module}.{own}" if module and module != "builtins" else own
            case MethodV(_, method):
                return f".{method}"
        return "a call of an object"
    names = {"attribute": f".{name}", "subscript": "subscript", "set_item": "item assignment", "truth": "bool"}
    return names.get(kind, name or "a value of varying type")
