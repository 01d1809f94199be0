"""The operands of operations handed back, as templates (see `parakeet_py.signature.object_assembly`) that compiled code
fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.types import PYINT, Scalar
from parakeet_py.signature.object_assembly import ContainerT, LeafT, StaticT, Template
from parakeet_py.signature.specs import text_of
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import indexing
from parakeet_py.typed_ir.specialize.containers import constant_tables, dynamic_lists, nested_lists, ragged_arrays
from parakeet_py.typed_ir.specialize.containers import nested_lists as rows
from parakeet_py.typed_ir.specialize.instances import values
from parakeet_py.typed_ir.specialize.instances import values as instance_values
from parakeet_py.typed_ir.specialize.opaque.python_closures import code_of, stays
from parakeet_py.typed_ir.specialize.paths import tagged_unions
from parakeet_py.typed_ir.specialize.paths.templates import EitherT, Fixed, RowT, Structure, types_of
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArraysV,
    ArrayV,
    CharV,
    ClosureV,
    DictV,
    GrowV,
    InstanceV,
    ItemV,
    ListV,
    MapV,
    MessageV,
    MethodV,
    ObjectV,
    RangeV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TupleV,
    Unknown,
    Value,
    VariantV,
    known,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def template_of(s: Context, value: Value, leaves: list[ir.Operand]) -> Template:
    """The template of an operand; its leaves are appended."""
    if isinstance(value, ListV | GrowV):
        constant_tables.not_a_row(s, value)
        nested_lists.not_for_python(s, value)
        s.need_whole(value)
    match value:
        case TaggedScalar(_, tag, payloads):
            alternatives = map(ScalarV, payloads)
            return ContainerT("one_of", tuple(template_of(s, part, leaves) for part in (ScalarV(tag), *alternatives)))
        case ScalarV(ir.Var() as var) | ArrayV(var=var) | ObjectV(var):
            if var not in leaves:
                leaves.append(var)
            leaf = LeafT(leaves.index(var))
            if isinstance(value, ArrayV) and value.readonly and var not in s.arguments.leaf_param:
                return ContainerT("readonly", (leaf,))
            return leaf
        case ListV(array, "copies"):
            return ContainerT("copies_of", (template_of(s, array, leaves),))
        case ListV(array, items) if items != "table" and (items == "array" or not items or array.rank == 1):
            return ContainerT("items_of" if items else "list_of", (template_of(s, array, leaves),))
        case TupleV(items, kind, named):
            parts = tuple(template_of(s, item, leaves) for item in items)
            return ContainerT(kind, parts) if named is None else ContainerT("named", parts, (named,))
        case InstanceV() | RefV() | ItemV():
            maker, held = values.boxed(s, value)
            return ContainerT("named", tuple(template_of(s, item, leaves) for item in held), (maker,))
        case TextV(codes) if codes.var not in s.arguments.leaf_param:
            return ContainerT("named", (template_of(s, codes, leaves),), (text_of,))
        case CharV(code):
            return ContainerT("named", (template_of(s, code, leaves),), (chr,))
        case SliceV(lower, upper, step):
            return ContainerT("slice", tuple(template_of(s, part, leaves) for part in (lower, upper, step)))
        case RangeV(start, stop, step):
            return ContainerT("range", tuple(template_of(s, part, leaves) for part in (start, stop, step)))
        case DictV(entries):
            keys = tuple(key for key, _ in entries)
            return ContainerT("dict", tuple(template_of(s, item, leaves) for _, item in entries), keys)
        case MethodV(obj, name):
            return ContainerT("method", (template_of(s, obj, leaves),), (name,))
        case MapV(entries, _, kind):
            if kind == "worn":
                raise s.unsupported("a set from which items have been removed, given to Python")
            return ContainerT(f"{kind}_of", (template_of(s, entries, leaves),))
        case GrowV():
            return _list_template(s, value, leaves)
        case ArraysV(data=data, places=places):
            if value.root != ragged_arrays.CHECKED:
                raise s.unsupported("a list of arrays, given to Python code")
            lines = [indexing.read(s, column, SliceV(NONE, value.length, NONE)) for column in places]
            return ContainerT("arrays_of", tuple(template_of(s, part, leaves) for part in (data, *lines)))
        case VariantV(tag, options):
            if not all(
                isinstance(option, ScalarV | TaggedScalar | Static | InstanceV | RefV | ItemV | TextV | CharV)
                for option in options
            ):
                return template_of(s, tagged_unions.boxed(s, value), leaves)
            return ContainerT("one_of", tuple(template_of(s, part, leaves) for part in (tag, *options)))
        case ClosureV():
            return _closure_template(s, value, leaves)
        case MessageV(template, args) if args:
            return ContainerT("format", tuple([template_of(s, arg, leaves) for arg in args]), (template,))
    try:
        return StaticT(known(value))
    except Unknown:
        raise s.unsupported(f"{s.describe(value)} cannot be handed to Python code") from None


def _list_template(s: Context, value: GrowV, leaves: list[ir.Operand]) -> Template:
    """The template of a list that has grown."""
    match value.item:
        case Structure(TupleV(kind=sequence, named=named), parts) if parts:
            columns, pools = list(value.columns), list(value.pools)
            made = []
            for part in parts:
                own = [columns.pop(0) for _ in types_of(part)]
                inner = tuple(pools.pop(0) for _ in rows.row_templates(part))
                made.append(_list_template(s, GrowV(value.length, tuple(own), part, inner), leaves))
            return ContainerT("zipped", tuple(made), (named or (list if sequence == "list" else tuple),))
        case Structure(InstanceV(cls, names), parts) if parts:
            left = list(value.columns)
            maker = instance_values.list_boxed(s, cls, names, parts, value.columns)
            varying = [part for name, part in zip(names, parts, strict=True) if name not in dict(maker.fixed)]
            lists = [GrowV(value.length, tuple(left.pop(0) for _ in types_of(part)), part) for part in varying]
            return ContainerT("zipped", tuple(_list_template(s, one, leaves) for one in lists), (maker,))
        case Structure(CharV()):
            return ContainerT("zipped", (_list_template(s, GrowV(value.length, value.columns, PYINT), leaves),), (chr,))
        case RowT():
            ends, held = rows.compact(s, value)
            places = ContainerT("list_of", (template_of(s, ends, leaves),))
            return ContainerT("rows_of", (places, _list_template(s, held, leaves)))
        case Structure(TupleV(kind="list"), ()):
            return ContainerT("empty_lists", (template_of(s, value.length, leaves),))
        case None | Scalar():
            return template_of(s, dynamic_lists.shown(s, value), leaves)
        case EitherT(kinds):
            tags, *payloads = value.columns
            lists = [GrowV(value.length, (column,), kind) for kind, column in zip(kinds, payloads, strict=True)]
            items = [_list_template(s, one, leaves) for one in lists]
            which = _list_template(s, GrowV(value.length, (tags,), PYINT), leaves)
            return ContainerT("chosen", (which, *items), (False,) * len(items))
        case Structure(VariantV(), (_, *parts)):
            tags, *columns = value.columns
            items = []
            for part in parts:
                if isinstance(part, Fixed):
                    items.append(template_of(s, part.value, leaves))
                    continue
                some = tuple(columns.pop(0) for _ in types_of(part))
                items.append(_list_template(s, GrowV(value.length, some, part), leaves))
            which = _list_template(s, GrowV(value.length, (tags,), PYINT), leaves)
            return ContainerT("chosen", (which, *items), tuple(isinstance(part, Fixed) for part in parts))
    raise s.unsupported("a list of such items cannot be handed to Python code")


def _closure_template(s: Context, value: ClosureV, leaves: list[ir.Operand]) -> Template:
    """The template of a nested function; the leaves of what it has captured are appended."""
    captured = dict(zip((var.name for var in value.function.captures), value.captures, strict=True))
    code = None if value.free else code_of(value, frozenset(captured))
    if code is None or not all(map(stays, (*value.captures, *value.defaults))):
        raise s.unsupported("a nested function cannot be handed to Python code")
    others = [name for name in code.co_freevars if name in captured]
    parts = [template_of(s, captured[name], leaves) for name in others]
    parts += [template_of(s, default, leaves) for default in value.defaults]
    return ContainerT("function", tuple(parts), (code, value.namespace.owner))
