"""The statements of the untyped IR, each executed over abstract values.

`execute` is the one place that knows every operation of the untyped IR. Control flow and unpacking have several
results; all others have one at most. An operation that cannot be compiled (`HandBack`) is undone and done by Python;
a loop whose body needs the index by value (`WrittenOut`) is undone and unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.frontend import ssa
from parakeet_py.library import registry
from parakeet_py.typed_ir.places import place
from parakeet_py.typed_ir.specialize import inputs, messages
from parakeet_py.typed_ir.specialize.compile_time_values import static_key
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    containers,
    dict_items,
    hash_maps,
    list_changes,
    owned_containers,
    strings,
)
from parakeet_py.typed_ir.specialize.containers.list_operators import records_together
from parakeet_py.typed_ir.specialize.paths import (
    branches,
    guarded,
    iterator_consumption,
    loops,
    tagged_operations,
    tagged_unions,
)
from parakeet_py.typed_ir.specialize.python import attributes
from parakeet_py.typed_ir.specialize.restarts import HandBack, Restart, WrittenOut
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    ClosureV,
    ComprehensionV,
    DictV,
    MethodV,
    NeverV,
    SliceV,
    Static,
    TupleV,
    UnboundV,
    Value,
    is_known,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def execute(s: Context, let: ssa.Let) -> list[Value]:
    """The values of one statement."""
    if isinstance(let.op, ssa.For | ssa.While | ssa.Comprehension) and not s.frame.namespace.trusted:
        s.loops.has_loops = True
    match let.op:
        case ssa.If() as op:
            return branches.specialize_if(s, op)
        case ssa.For() as op:
            return _loop(s, op)
        case ssa.While() as op:
            return loops.specialize_while(s, op)
        case ssa.Guarded() as op:
            return guarded.specialize_guarded(s, op)
        case ssa.Unpack() as op:
            return containers.unpack(s, op)
        case ssa.ChangeList() as op:
            return list_changes.change(s, op)
    return [value] if (value := single(s, let)) is not None else []


def _dict(s: Context, items: Sequence[tuple[ssa.Operand | None, ssa.Operand]]) -> Value:
    """A dict display: items one after another, of equal keys the last."""
    entries: dict[Any, Value] = {}
    for key, operand in items:
        value = s.value(operand)
        if key is not None:
            entries[static_key(s, s.value(key))] = value
            continue
        held = value if isinstance(value, DictV) else dict_items.contents(s, value)
        if held is None:
            raise s.unsupported("** of something that is not a dict of known keys")
        entries.update(held.items)
    return DictV(tuple(entries.items()))


def _loop(s: Context, op: ssa.For) -> list[Value]:
    """A for loop; started again unrolled when its body needs the index by value."""
    start = s.checkpoint()
    try:
        return loops.specialize_for(s, op)
    except Restart as restart:
        wanted = WrittenOut.of(op)
        if restart.facts != (wanted,) or id(op) in s.loops.unroll:
            raise
        s.rollback(start)
        s.loops.unroll.add(id(op))
        s.facts.learned.append(wanted)
        return loops.specialize_for(s, op)


def single(s: Context, let: ssa.Let) -> Value | None:
    """The value of a statement with one out (None: it has none)."""
    variant = tagged_unions.variant_operand(s, let.op)
    if variant is not None:
        return tagged_unions.resolve(s, let, variant)
    tagged = tagged_operations.tagged_operand(s, let.op)
    if tagged is not None:
        return tagged_operations.resolve(s, let, tagged)
    if _looks_at_no_exception(s, let.op):
        return messages.raise_value(s, UnboundV())
    start = s.checkpoint()
    if not s.frame.namespace.trusted:
        s.deferred_views.site = (s.frame.path, let.pos)
    try:
        return computed(s, let.op)
    except (HandBack, UnsupportedError) as reason:
        if s.frame.namespace.trusted or not _is_for_python(s, let.op, reason):
            raise
        s.rollback(start)
        s.builder.pos = place(s.frame.function, let.pos, s.frame.caller)
        if s.loops.looping and tagged_unions.fails(s, let.op):
            return NeverV()
        return s.opaque_operation(let, reason.message if isinstance(reason, UnsupportedError) else str(reason))


def _looks_at_no_exception(s: Context, op: ssa.Op) -> bool:
    """Whether an operation is of a handler that no compiled path comes to: the name of its exception has nothing bound
    to it, and of other names that is checked before."""
    if s.frame.namespace.trusted or not isinstance(op, ssa.Attribute | ssa.Call | ssa.Compare):
        return False
    return any(isinstance(s.value(operand), UnboundV) for operand in ssa.operands_of(op))


def _is_for_python(s: Context, op: ssa.Op, reason: Exception) -> bool:
    """Can Python do this operation alone? Of what is not compiled at all it can do calls of NumPy's functions and of
    arrays' methods: nothing of the function is inside these."""
    if isinstance(reason, HandBack):
        return True
    if type(reason) is not UnsupportedError or not isinstance(op, ssa.Call) or s.elements.in_body:
        return False
    match s.value(op.function):
        case Static(target):
            return registry.function_for(target) is not None or registry.is_static(target)
        case MethodV(ArrayV(), name):
            return registry.method_for(name) is not None
    return False


_OPERATORS = (ssa.Binary, ssa.Inplace, ssa.Compare, ssa.Unary, ssa.Subscript)


def computed(s: Context, op: ssa.Op) -> Value | None:
    """`compute`; what an operator raises over known operands, Python shall raise itself, where it is reached."""
    try:
        return compute(s, op)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        if not isinstance(op, _OPERATORS) or not any(is_known(s.value(operand)) for operand in ssa.operands_of(op)):
            raise
        raise s.hand_back(f"an operator that raises {type(error).__name__} ({error})") from None


def compute(s: Context, op: ssa.Op) -> Value | None:
    match op:
        case ssa.Global(name):
            return inputs.read_global(s, name)
        case ssa.Free(name):
            return inputs.read_cell(s, name)
        case ssa.Binary("add", left, right) if (made := records_together(s, s.value(left), s.value(right))) is not None:
            return made
        case ssa.Binary(name, left, right):
            return s.binary(name, s.shown(left), s.shown(right))
        case ssa.Inplace(name, left, right):
            return s.inplace(name, s.shown(left), s.shown(right))
        case ssa.Compare(name, left, right):
            return s.compare(name, s.shown(left), s.shown(right))
        case ssa.Unary(name, operand):
            return s.unary(name, s.value(operand))
        case ssa.Call(function, args, kwargs):
            callee, named = s.value(function), s.keywords(kwargs)
            lists = owned_containers.given(s, op) if owned_containers.may_keep(callee) else []
            before, out = list(s.builder.fields.values()), s.out
            given = array_lists.arguments(s, callee, s.items(args))
            result = s.call(
                callee, iterator_consumption.arguments(s, args, given), array_lists.keywords(s, callee, named)
            )
            owned_containers.check_made(s, callee, out, result)
            if lists:
                assigned = [one for one in s.builder.fields.values() if not any(one is other for other in before)]
                owned_containers.check_kept(s, lists, [result, *assigned])
            return result
        case ssa.Attribute(obj, name):
            return s.attribute(s.shown(obj), name)
        case ssa.Subscript(obj, index):
            return s.subscript(s.value(obj), s.value(index))
        case ssa.SetItem(obj, index, value):
            s.set_item(s.value(obj), s.value(index), s.value(value))
            return None
        case ssa.BuildTuple(items, hashed):
            return TupleV(tuple(s.items(items)), "frozenset" if hashed else "tuple")
        case ssa.BuildList(items):
            return containers.list_display(s, items)
        case ssa.BuildSet(items):
            return hash_maps.displayed(s, s.items(items))
        case ssa.BuildDict(items):
            return _dict(s, items)
        case ssa.BuildSlice(lower, upper, step):
            return SliceV(s.value(lower), s.value(upper), s.value(step))
        case ssa.Itself():
            closure = s.frame.closure
            assert closure is not None
            return closure
        case ssa.MakeClosure(function, captures, defaults):
            return ClosureV(
                function,
                tuple(s.value(capture) for capture in captures),
                tuple(s.value(default) for default in defaults),
                s.frame.namespace,
            )
        case ssa.Comprehension(kind, iterable, element, condition, flatten):
            wanted = None if condition is None else s.value(condition)
            strings.need(s, s.value(iterable))
            source = dict_items.listed(s, s.value(iterable), kind == "generator")
            if kind == "set":
                listed = ComprehensionV("list", source, s.value(element), wanted, flatten)
                return hash_maps.set_of(s, s.as_list(listed))
            if kind == "dict":
                return s.call_plain("python_dict", [source, s.value(element), wanted or NONE, lift(flatten)])
            made = ComprehensionV(kind, source, s.value(element), wanted, flatten)
            return s.as_list(made) if kind == "list" else made
        case ssa.Import(module, name, level):
            return inputs.import_module(s, module, name, level)
        case ssa.BuildString(parts):
            return messages.format_string(s, parts)
        case ssa.Raise(exception, cause, again):
            return messages.raise_value(s, s.value(exception), None if cause is None else s.value(cause), again=again)
        case ssa.Assert(condition, message):
            messages.assert_true(s, condition, message)
            return None
        case ssa.CheckBound(flag, name, free):
            error = ssa.unbound_name(name, free)
            s.check(s.truth(s.value(flag)), type(error).__name__, str(error))
            return None
        case ssa.SetAttribute(obj, name, value):
            attributes.set_attribute(s, s.value(obj), name, s.value(value))
            return None
    raise s.unsupported(f"{type(op).__name__} is not compiled")
