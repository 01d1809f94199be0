"""What goes into a typed function: its arguments, and the globals and cells it reads.

Every array, scalar and object of the signature becomes a parameter; everything else (None, strings, axes that are
known by value) stays a compile-time value. A global or a free variable is a *hidden argument*: the signature holds its
spec as it holds that of an argument. It is extended when one is read for the first time (`taken`); the parameter is
added as if it had been there from the beginning. Names of trusted namespaces (the library) are taken as they are.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from parakeet_py.base.errors import MissingValue, NoSourceError, UnsupportedError
from parakeet_py.base.types import OBJECT, PYINT, Array, Scalar
from parakeet_py.frontend import to_ssa_cached
from parakeet_py.signature.attribute_sources import OF_ARGUMENTS, OF_NONE, of_arguments
from parakeet_py.signature.facts import HiddenArgument, KnownValue, MissingAttribute, WholeList, is_held
from parakeet_py.signature.specs import (
    ArraySpec,
    FunctionSpec,
    ListSpec,
    NoneSpec,
    ObjectSpec,
    ScalarSpec,
    Signature,
    Source,
    Spec,
    StaticSpec,
    TextSpec,
    TupleSpec,
)
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import ONE
from parakeet_py.typed_ir.specialize import shared_containers
from parakeet_py.typed_ir.specialize.arrays.axis_order import fortran
from parakeet_py.typed_ir.specialize.containers import array_lists
from parakeet_py.typed_ir.specialize.forms import form_of, roots_of
from parakeet_py.typed_ir.specialize.paths import iterables
from parakeet_py.typed_ir.specialize.python import attributes
from parakeet_py.typed_ir.specialize.times import times
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    ClosureV,
    MethodV,
    Namespace,
    ObjectV,
    RangeV,
    ScalarV,
    SliceV,
    Static,
    TextV,
    TupleV,
    Value,
    lift,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def parameter(s: Context, spec: Spec, index: int) -> Value:
    """The value of an argument; its leaves become parameters of the typed function."""
    match spec:
        case ArraySpec(dtype, rank, layout, unit, writeable, inner, order, mapped, aligned, still):
            s.arguments.has_memmaps |= mapped
            s.arguments.has_unaligned |= not aligned
            var = _leaf(s, Array(dtype, rank, layout), index, f"a{index}")
            if still:
                s.builder.still[var] = still
            extents = tuple(ONE if one else s.dim(var, axis) for axis, one in enumerate(unit))
            if inner:
                extents = (*extents[:-1], ir.Const(inner, PYINT))
            known = enumerate(extents)
            s.arguments.static_extents += [
                (var, axis, int(e.value.real)) for axis, e in known if isinstance(e, ir.Const)
            ]
            root = s.arguments.shared_root if s.arguments.shared_root >= 0 else s.memory.entry_root()
            s.arguments.param_roots |= {root}
            nonunit = tuple(not one for one in unit)
            known_order = fortran(rank) if layout == "F" else order
            return ArrayV(var, extents, frozenset({root}), not writeable, nonunit, known_order)
        case ScalarSpec(dtype, python):
            return ScalarV(_leaf(s, Scalar(dtype, python), index, f"a{index}"))
        case NoneSpec():
            return NONE
        case StaticSpec(value):
            return lift(value)
        case ObjectSpec(kind):
            opaque = ObjectV(_leaf(s, OBJECT, index, f"a{index}"))
            s.arguments.classes[opaque.var] = kind
            if issubclass(kind, np.ndarray):
                s.arguments.unusual_arrays.add(opaque.var)
            return opaque
        case FunctionSpec():
            return _function(s, spec, index)
        case TextSpec():
            codes = parameter(s, spec.leaf, index)
            assert isinstance(codes, ArrayV)
            s.arguments.param_roots -= codes.roots  # nothing else sees the array
            return TextV(codes)
        case ListSpec():
            array = parameter(s, spec.leaf, index)
            assert isinstance(array, ArrayV)
            root = next(iter(array.roots))
            s.arguments.param_roots -= {root}  # nothing else sees the array
            s.arguments.list_roots[root] = index
            return array_lists.of_argument(array)
        case TupleSpec(items, "slice"):
            return SliceV(*(parameter(s, item, index) for item in items))
        case TupleSpec(items, "range"):
            start, stop, step = (parameter(s, item, index) for item in items)
            assert isinstance(start, ScalarV) and isinstance(stop, ScalarV) and isinstance(step, ScalarV)
            iterables.check_steps(s, start, stop, step)
            return RangeV(start, stop, step)
        case TupleSpec(items, kind):
            made = TupleV(tuple(parameter(s, item, index) for item in items), kind)
            if kind == "list":
                s.arguments.lists[id(made)] = (made, index)
            return made
    raise AssertionError(spec)


def _function(s: Context, spec: FunctionSpec, index: int) -> Value:
    """A function that is known by its code: a closure over parameters."""
    names = spec.code.co_freevars
    like = types.FunctionType(spec.code, spec.globals, closure=tuple([types.CellType() for _ in names]))
    try:
        untyped = to_ssa_cached(like)
    except (NoSourceError, UnsupportedError):
        s.facts.restart(
            KnownValue(s.arguments.place(index)), "a function has to be known when the function is compiled"
        )
    held = tuple([parameter(s, item, index) for item in spec.cells])
    defaults = tuple([parameter(s, item, index) for item in spec.defaults])
    return ClosureV(untyped, held, defaults, Namespace(spec.globals, like), names)


def need_whole(s: Context, value: Value) -> None:
    """Start again, with the list that is (part of) a parameter as an object; do nothing about other values."""
    for one in shared_containers.origins(s, value):
        if id(one) in s.arguments.lists:
            s.facts.restart(WholeList(s.arguments.place(s.arguments.lists[id(one)][1])))
    if s.arguments.list_roots and form_of(value).type is list:
        for root in roots_of(value) & s.arguments.list_roots.keys():
            s.facts.restart(WholeList(s.arguments.place(s.arguments.list_roots[root])))


def go_on_whole(s: Context, value: Value) -> bool:
    """Let variables that hold a list that is a hidden argument hold an object from here on, as in the next walk; is the
    value such a list? Where it is not, nothing is done."""
    if s.facts.missing or id(value) not in s.arguments.lists:
        return False
    source = next((source for source, one in s.arguments.hidden.items() if one is value), None)
    if source is None:
        return False
    s.facts.note(WholeList(source))
    made = s.boxed(NONE, "a list")
    s.arguments.object_specs[made.var] = ObjectSpec(list)
    s.arguments.hidden[source] = made
    for frame in s.frames:
        for var, held in frame.env.items():
            if held is value:
                frame.env[var] = made
            elif isinstance(held, MethodV) and held.object is value:
                frame.env[var] = MethodV(made, held.name)
    return True


def _leaf(s: Context, kind: Any, index: int, name: str) -> ir.Var:
    var = ir.Var(name, kind)
    s.arguments.params.append(var)
    s.arguments.leaf_param[var] = index
    s.builder.home[var] = s.builder.outermost
    return var


def read_global(s: Context, name: str) -> Value:
    import builtins

    namespace = s.frame.namespace
    source: Source = ("global", name)
    if namespace.globals is not s.frames[0].namespace.globals:
        module = str(namespace.globals.get("__name__"))  # not that of the function, which wrappers imitate
        source = ("attribute", module, name)
        if not namespace.trusted and getattr(sys.modules.get(module), "__dict__", None) is not namespace.globals:
            raise s.unsupported(f"the globals of {namespace.owner.__name__} are of no module")
    if name in namespace.globals:
        found = namespace.globals[name]
    elif hasattr(builtins, name):
        found = getattr(builtins, name)
    else:
        raise s.unsupported(f"name '{name}' is not defined")
    if namespace.trusted or (name not in namespace.globals and namespace.owner is not s.frames[0].namespace.owner):
        return lift(found)
    return hidden_value(s, source)


def read_cell(s: Context, name: str) -> Value:
    namespace = s.frame.namespace
    if name in s.frame.free:
        s.python.closures_read_late |= bool(s.python.sites) or len(s.builder.scopes) > 1
        return s.frame.free[name]
    try:
        found = namespace.cells[name].cell_contents
    except (KeyError, ValueError):
        raise s.unsupported(f"the free variable '{name}' is not bound yet") from None
    if namespace.owner is not s.frames[0].namespace.owner:
        if isinstance(found, types.FunctionType | types.ModuleType | type):
            return lift(found)
        raise s.unsupported(f"the free variable '{name}' of a function called from here")
    position = list(namespace.cells).index(name)
    return hidden_value(s, ("cell", position))


def hidden_value(s: Context, source: Source) -> Value:
    """The value of a hidden argument that is read here."""
    value = as_time(s, taken(s, source))
    if not _is_table(source) and (s.python.sites or len(s.builder.scopes) > 1):
        s.python.read_late.add(source)
    return value


def as_time(s: Context, value: Value) -> Value:
    """An object as the datetime64 or timedelta64 that it is; other values as they are."""
    if not isinstance(value, ObjectV) or s.arguments.classes.get(value.var) not in _OF_TIMES:
        return value
    return times.read(s, value)


_OF_TIMES = (np.ndarray, np.datetime64, np.timedelta64)


def taken(s: Context, source: Source) -> Value:
    """The value of a hidden argument, which the signature holds from now on."""
    if source not in s.arguments.hidden:
        try:
            signature = s.arguments.extended(s.arguments.signature, source)
        except MissingValue:
            if not of_arguments(source):
                raise
            s.facts.restart(MissingAttribute(OF_ARGUMENTS if is_held(source) else OF_NONE))
        if _fits_in(s, signature):
            s.facts.learned.append(HiddenArgument(source))
        else:
            s.facts.note(HiddenArgument(source))
        s.arguments.signature = signature
        _take(s, len(signature.hidden) - 1)
    return s.arguments.hidden[source]


def _fits_in(s: Context, signature: Signature) -> bool:
    """Would all be as it is if the last hidden argument of a signature had been known before?"""
    if signature.disjoint != s.arguments.signature.disjoint:
        return False
    new = signature.hidden[-1]
    kinds = set(map(type, _parts_of(new.spec)))
    given = bool(s.python.sites) and not _is_table(new.source)
    if kinds & {ArraySpec, ListSpec, TextSpec} and (given or not signature.disjoint):
        return False  # whose memory may be that of what Python has given, or of an argument
    return not (ObjectSpec in kinds and s.assigned.before)  # which may be one that has changed


def _is_table(source: Source) -> bool:
    """Is this an array of the library's, which nothing replaces or changes?"""
    return source[0] == "attribute" and str(source[1]).startswith("parakeet_py.library.")


def _parts_of(spec: Spec) -> list[Spec]:
    return [spec, *(part for item in spec.items for part in _parts_of(item))] if isinstance(spec, TupleSpec) else [spec]


def take_arguments(s: Context) -> list[Value]:
    """The values of all arguments of the signature; the hidden ones are kept in `Arguments.hidden`."""
    s.arguments.shared_root = s.memory.entry_root() if not s.arguments.signature.disjoint else -1
    with s.builder.at_entry():
        values = [parameter(s, spec, index) for index, spec in enumerate(s.arguments.signature.params)]
    for position in range(len(s.arguments.signature.hidden)):
        _take(s, position)
    return values


def _take(s: Context, position: int) -> None:
    hidden = s.arguments.signature.hidden[position]
    with s.builder.at_entry():
        s.arguments.hidden[hidden.source] = parameter(s, hidden.spec, len(s.arguments.signature.params) + position)


def import_module(s: Context, module: str, name: str | None, level: int) -> Value:
    import importlib

    package = s.frame.namespace.globals.get("__package__") if level else None
    try:
        found = importlib.import_module("." * level + module, package)
        if name is None:
            return Static(found)
        value = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise s.unsupported(str(error)) from None
    return attributes.module_value(s, found, name, value)
