"""What comes out of a typed function: how its results are boxed, and which parameters it writes.

A returned value is a tree of tuples and lists over leaves. The leaves are results of the typed function; the tree is a
`Result`, from which entry stubs make Python objects. One operand that is returned twice is one leaf, so that Python
sees one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import PYINT, Array, Scalar
from parakeet_py.signature.object_assembly import Assembled
from parakeet_py.signature.results import (
    Result,
    ResultEither,
    ResultLeaf,
    ResultListOf,
    ResultRows,
    ResultStatic,
    ResultTuple,
    SetAttributes,
    SetColumns,
)
from parakeet_py.signature.specs import Source, text_of
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays import record_arrays, strided
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    list_objects,
    ragged_arrays,
    strings,
)
from parakeet_py.typed_ir.specialize.forms import roots_of
from parakeet_py.typed_ir.specialize.instances import assigned_attributes, instances, values
from parakeet_py.typed_ir.specialize.opaque.operands import recipe_of
from parakeet_py.typed_ir.specialize.paths import tagged_unions, tags
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    CharV,
    DictV,
    InstanceV,
    ItemV,
    MapV,
    MessageV,
    MethodV,
    NeverV,
    ObjectV,
    RangeV,
    RecordV,
    RefV,
    ScalarV,
    SliceV,
    Static,
    TaggedScalar,
    TextV,
    TimeV,
    TupleV,
    Value,
    VariantV,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


class Leaves(list[ir.Operand]):
    """The operands of the leaves of a result, and which of them are views.

    Equal views are one variable, but as many objects as Python makes: a view is boxed once for each value of it.
    `units` are the dtypes of those that are times.
    """

    def __init__(self) -> None:
        super().__init__()
        self.views: dict[int, ArrayV] = {}
        self.units: dict[int, str] = {}


def result_tree(s: Context, value: Value, leaves: Leaves, unit: str = "") -> Result:
    """How the result is boxed; its leaves are appended to `leaves`. `unit` is the dtype of an array of times."""

    def leaf(
        operand: ir.Operand, kind: str, dtype: str, python: bool, rank: int = 0, view: ArrayV | None = None
    ) -> ResultLeaf:
        for position, other in enumerate(leaves):
            same = isinstance(operand, ir.Var) and other is operand and leaves.units.get(position, "") == unit
            if same and leaves.views.get(position) is view:
                return ResultLeaf(position, kind, dtype, python, rank)  # type: ignore[arg-type]
        if view is not None:
            leaves.views[len(leaves)] = view
        if unit:
            leaves.units[len(leaves)] = unit
        leaves.append(operand)
        return ResultLeaf(len(leaves) - 1, kind, dtype, python, rank)  # type: ignore[arg-type]

    if s.instances.first is not None:
        values.check_result(s, value)
    if _is_assembled(s, value):
        return _assembled(s, ragged_arrays.as_result(s, value), leaves)
    if _holds_text(s, value):
        value = s.boxed(ragged_arrays.as_result(s, value), "a result that Python puts together")
    if (rows := list_objects.rows_of(s, value)) is not None:
        ends, together = rows
        return ResultRows(result_tree(s, together, leaves), leaf(ends.var, "array", ends.dtype, False, 1))
    value = array_lists.shown(s, value)
    list_objects.check_result(s, value)
    match value:
        case ScalarV(operand):
            return leaf(operand, "scalar", value.dtype, value.python)
        case TaggedScalar(kinds, tag, payloads):
            number = leaf(tag, "scalar", "int64", True)
            choices = zip(kinds, payloads, strict=True)
            return ResultEither(number, tuple(leaf(one, "scalar", kind.dtype, kind.python) for kind, one in choices))
        case VariantV():
            return _variant(s, value, leaves)
        case ArrayV(var):
            s.deferred_views.result(value, s.arguments.param_roots)
            view = isinstance(s.builder.definition.get(var), ir.AnyView)
            made = leaf(strided.with_steps(s, var), "array", value.dtype, False, value.rank, value if view else None)
            return replace(made, view=view, readonly=value.readonly and var not in s.arguments.leaf_param)
        case ObjectV(var):
            return leaf(var, "object", "", False)
        case TimeV():
            return _time(s, value, leaves)
        case InstanceV() | RefV() | ItemV():
            maker, held = values.boxed(s, value)
            return ResultTuple(tuple(result_tree(s, item, leaves) for item in held), "tuple", maker)
        case TextV(codes) if codes.var not in s.arguments.leaf_param:
            return ResultTuple((result_tree(s, codes, leaves),), "tuple", text_of)
        case CharV(code):
            return ResultTuple((result_tree(s, code, leaves),), "tuple", chr)
        case TupleV(items, kind, named):
            parts = tuple(result_tree(s, item, leaves) for item in items)
            return ResultTuple(parts, kind, named)  # type: ignore[arg-type]
        case _ if (numbers := list_objects.numbers_of(value)) is not None:
            array, of_numpy = numbers
            return ResultListOf(leaf(array.var, "array", array.dtype, False, array.rank), of_numpy)
        case Static(obj):
            return ResultStatic(obj)
        case RecordV():
            raise record_arrays.as_object(s, value)
        case NeverV() if s.dead:
            return ResultStatic(None)
    raise s.unsupported(f"a function cannot return {s.describe(value)}")


def _time(s: Context, value: TimeV, leaves: Leaves) -> Result:
    """A datetime64 or timedelta64, or an array of them."""
    if value.object is not None:
        return result_tree(s, value.object, leaves)
    made = result_tree(s, value.value, leaves, value.unit)
    assert isinstance(made, ResultLeaf)
    argument = isinstance(value.value, ArrayV) and value.value.var in s.arguments.leaf_param
    return replace(made, view=made.view or argument, unit=value.unit)


def _variant(s: Context, value: VariantV, leaves: Leaves) -> Result:
    """Numbers, None and strings are chosen by a tag when they are boxed; other values are boxed before."""
    choices: list[ResultLeaf | ResultStatic] = []
    operands: list[ir.Operand] = []
    tag: ir.Operand = ir.Const(0, PYINT)
    b = s.builder

    def choose_from(scalars: Sequence[ir.Operand]) -> None:
        for operand in scalars:
            operands.append(operand)
            kind = ScalarV(operand).type
            choices.append(ResultLeaf(len(leaves) + len(operands), "scalar", kind.dtype, kind.python))

    for number in tags.possible(s, value):
        here = tags.is_option(s, value, number)
        match value.options[number]:
            case Static(obj):
                tag = b.select(here, ir.Const(len(choices), PYINT), tag)
                choices.append(ResultStatic(obj))
            case ScalarV(operand):
                tag = b.select(here, ir.Const(len(choices), PYINT), tag)
                choose_from([operand])
            case TaggedScalar(_, own, payloads):
                tag = b.select(here, b.prim("add", own, ir.Const(len(choices), PYINT)), tag)
                choose_from(payloads)
            case _:
                return result_tree(s, tagged_unions.boxed(s, value), leaves)
    made = ResultEither(ResultLeaf(len(leaves), "scalar", "int64", True), tuple(choices))
    leaves.extend([tag, *operands])
    return made


def _assembled(s: Context, value: Value, leaves: Leaves) -> Result:
    """A result that Python puts together when its leaves have been boxed."""
    own: list[ir.Operand] = []
    s.deferred_views.shown(roots_of(value))
    recipe = recipe_of(s, value, own)
    items = []
    for operand in own:
        position = next((place for place, one in enumerate(leaves) if one is operand), len(leaves))
        if position == len(leaves) or not isinstance(operand, ir.Var):
            position = len(leaves)
            leaves.append(operand)
        match operand.type:
            case Array(dtype, rank):
                assert isinstance(operand, ir.Var)
                view = isinstance(s.builder.definition.get(operand), ir.AnyView)
                items.append(ResultLeaf(position, "array", dtype, False, rank, view))
            case Scalar(dtype, python):
                items.append(ResultLeaf(position, "scalar", dtype, python))
            case _:
                items.append(ResultLeaf(position, "object"))
    return ResultTuple(tuple(items), "tuple", Assembled(recipe))


def _is_assembled(s: Context, value: Value) -> bool:
    """Is (part of) a result a dict, a set, or a list that is kept in columns?"""
    return any(map(_is_in_columns, _pieces(s, value))) and not _holds_text(s, value)


def _is_in_columns(value: Value) -> bool:
    match value:
        case DictV() | MapV() | RangeV() | SliceV():
            return True
        case VariantV(_, options):
            return any(instances.is_instance(option) or strings.is_text(option) for option in options)
    return list_objects.is_assembled(value)


def _holds_text(s: Context, value: Value) -> bool:
    """Is (part of) a result made by an operation that may raise, or see what the function has stored?"""
    return any(isinstance(one, MessageV) or _is_of_array(one) for one in _pieces(s, value))


def _is_of_array(value: Value) -> bool:
    return isinstance(value, MethodV) and isinstance(value.object, ArrayV) and value.name in ("flat", "flags")


def _pieces(s: Context, value: Value) -> Iterator[Value]:
    yield value
    match value:
        case TupleV(items):
            for item in items:
                yield from _pieces(s, item)
        case InstanceV() | RefV() | ItemV():
            for item in values.parts(s, value)[2]:
                yield from _pieces(s, item)
        case DictV(entries):
            for _, item in entries:
                yield from _pieces(s, item)


def stored_params(function: ir.Function) -> frozenset[int]:
    """The parameters (leaf positions) whose memory the function may write."""
    roots: dict[ir.Var, frozenset[int]] = {}
    positions = {var: position for position, var in enumerate(function.params) if isinstance(var.type, Array)}
    written: set[int] = set()

    def base(var: ir.Var) -> frozenset[int]:
        return roots.get(var, frozenset({positions[var]}) if var in positions else frozenset())

    def carry(params: Sequence[ir.Var], following: Sequence[frozenset[int]]) -> bool:
        """Whether the parameters of a loop may have other memory in its second iteration than was known."""
        more = {param: base(param) | its for param, its in zip(params, following, strict=True)}
        changed = any(its != base(param) for param, its in more.items() if isinstance(param.type, Array))
        roots.update(more)
        return changed

    def visit(block: ir.Block) -> list[frozenset[int]]:
        for let in block.statements:
            written.update(*map(base, ir.arrays_written(let.op)))
            match let.op:
                case ir.AnyView(view_base):
                    roots[let.outs[0]] = base(view_base)
                case ir.Call(_, args, fresh=fresh):
                    given = () if fresh else args
                    everywhere = frozenset(one for arg in given if isinstance(arg, ir.Var) for one in base(arg))
                    roots.update((out, everywhere) for out in let.outs if isinstance(out.type, Array))
                case ir.Opaque(_, args):
                    written.update(*(base(arg) for arg in args if isinstance(arg.type, Array)))
                case ir.For(params=params, inits=inits) | ir.While(params=params, inits=inits):
                    for param, init in zip(params, inits, strict=True):
                        if isinstance(init, ir.Var):
                            roots[param] = roots.get(param, frozenset()) | base(init)
            inner = [visit(inner_block) for inner_block in ir.blocks_of(let.op)]
            if isinstance(let.op, ir.For | ir.While):
                while carry(let.op.params, inner[-1][let.op.stoppable :]):
                    inner = [visit(inner_block) for inner_block in ir.blocks_of(let.op)]
            if isinstance(let.op, ir.If | ir.For | ir.While):
                everything = frozenset(position for results in inner for one in results for position in one)
                for out in let.outs:
                    if isinstance(out.type, Array):
                        roots[out] = everything | frozenset(
                            position
                            for init in ir.operands_of(let.op)
                            if isinstance(init, ir.Var)
                            for position in base(init)
                        )
        return [base(result) if isinstance(result, ir.Var) else frozenset() for result in block.results]

    visit(function.body)
    return frozenset(written)


# ---- assigned attributes ---------------------------------------------------------------------------------------------


def with_attributes(s: Context, tree: Result, leaves: Leaves) -> Result:
    """The result tree with what assigned attributes hold."""
    tree = _with_columns(s, tree, leaves)
    changed = assigned_attributes.changed(s)
    if not changed:
        return tree
    objects: dict[Source, Result] = {}
    names, values = [], []
    for source in changed:
        owner = source[:-1] if len(source) > 3 else None
        key: Source = owner or ("parameter", source[1])
        if key not in objects:
            objects[key] = _object(s, source, leaves)
        names.append((list(objects).index(key), str(source[-1])))
        values.append(result_tree(s, s.builder.fields[source], leaves))
    return ResultTuple((tree, *objects.values(), *values), "tuple", SetAttributes(tuple(names)))


def _with_columns(s: Context, tree: Result, leaves: Leaves) -> Result:
    """The result tree with what has been assigned to the items of lists of instances."""
    of_lists: dict[Source, list[Source]] = {}
    for column in s.assigned.columns:
        of_lists.setdefault(column[:-1], []).append(column)
    for source, columns in of_lists.items():
        parts: list[Result] = [_object(s, (*source, ""), leaves)]
        for column in columns:
            for array in s.assigned.columns[column]:
                parts.append(ResultLeaf(len(leaves), "array", array.dtype, False, 1))
                leaves.append(array.var)
            values = parts[-2]
            assert isinstance(values, ResultLeaf)
            parts[-2] = ResultListOf(values)
        names = tuple(str(column[-1])[1:] for column in columns)
        tree = ResultTuple((tree, *parts), "tuple", SetColumns(names))
    return tree


def _object(s: Context, source: Source, leaves: Leaves) -> ResultLeaf:
    """The object that an attribute is one of."""
    owner = s.arguments.hidden[source[:-1]] if len(source) > 3 else None
    for var, index in s.arguments.leaf_param.items():
        if (owner is None and index == source[1]) or (isinstance(owner, ObjectV) and owner.var is var):
            if var not in leaves:
                leaves.append(var)
            return ResultLeaf(leaves.index(var), "object")
    raise UnsupportedError(f"assignment to {assigned_attributes.described(source)}")
