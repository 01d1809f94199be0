"""Python's operators over abstract values: arithmetic, comparisons, `is`, `in`, `not`.

Numbers and arrays go to `elementwise` and `python_scalars`; here is what Python's own containers do (concatenation,
repetition, lexicographic order, membership) and what is known about identity. Whatever is known is computed now.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.base.types import PYBOOL, Scalar
from parakeet_py.signature import enums
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize import messages
from parakeet_py.typed_ir.specialize.arrays import convert
from parakeet_py.typed_ir.specialize.arrays.array_store import fit_outputs, store_array
from parakeet_py.typed_ir.specialize.arrays.ufuncs import UNARY_UFUNCS, binary, call_ufunc, inplace
from parakeet_py.typed_ir.specialize.containers import (
    array_lists,
    dynamic_lists,
    list_operators,
    membership,
    set_operators,
    strings,
)
from parakeet_py.typed_ir.specialize.forms import is_list
from parakeet_py.typed_ir.specialize.instances import instance_lists, instances, operators
from parakeet_py.typed_ir.specialize.paths.iterator_consumption import is_passed_on
from parakeet_py.typed_ir.specialize.python import long_ints, python_scalars
from parakeet_py.typed_ir.specialize.times import arithmetic
from parakeet_py.typed_ir.specialize.values import (
    NONE,
    ArrayV,
    DictV,
    MapV,
    MessageV,
    NeverV,
    ObjectV,
    RangeV,
    ScalarV,
    Static,
    TimeV,
    TupleV,
    Unknown,
    Value,
    VariantV,
    fits_int64,
    known,
    lift,
    py,
)

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

LONGEST = 1024  # items of a sequence that is known item by item


def _as_numbers(left: Value, right: Value) -> tuple[Value, Value]:
    """The operands, members of IntEnums among them as numbers: to NumPy these are no Python ints, but of its int64."""

    def number(value: Value, beside: Value) -> Value:
        found = enums.number_of(value.object) if isinstance(value, Static) else None
        match beside:
            case _ if found is None or not fits_int64(found):
                return value
            case ArrayV() | ScalarV(python=False):
                return lift(np.int64(found))
            case ScalarV():
                return py(found)
            case Static(object=other) if enums.number_of(other) is not None:
                return py(found)
        return value

    return number(left, right), number(right, left)


def binary_operator(s: Context, op: str, left: Value, right: Value) -> Value:
    left, right = _as_numbers(left, right)
    if instances.is_instance(left) or instances.is_instance(right):
        return operators.binary(s, op, left, right)
    if isinstance(left, TimeV) or isinstance(right, TimeV):
        return arithmetic.binary(s, op, left, right)
    if isinstance(left, TupleV | MessageV | Static) or isinstance(right, TupleV | MessageV):
        made = _sequence_operator(s, op, left, right)
        if made is not None:
            return made
    if op == "add" and (together := list_operators.together(s, left, right)) is not None:
        return together
    if set_operators.is_set(left) and (made := set_operators.operator(s, op, left, right)) is not None:
        return made
    if _between_containers(left, right):
        raise s.unsupported(f"{op} of {s.describe(left)} and {s.describe(right)}")
    if op == "matmul":
        return s.call(Static(np.matmul), [left, right], {})
    return binary(s, op, left, right if s.frame.namespace.trusted else beside_complex(s, op, left, right))


def beside_complex(s: Context, op: str, left: Value, right: Value) -> Value:
    """The right operand as the operator of the left one sees it: Python's complex numbers take NumPy's float64 for the
    Python float that it is as well, and give a Python number."""
    number = isinstance(left, ScalarV) and left.python and left.dtype == "complex128"
    if number and op in _OF_COMPLEX and isinstance(right, ScalarV) and right.type == Scalar("float64"):
        return s.as_python(right)
    return right


_OF_COMPLEX = ("add", "sub", "mul", "truediv", "pow", "eq", "ne")


def _between_containers(left: Value, right: Value) -> bool:
    """Is this Python's own operator on a list, tuple or range, with no array or NumPy scalar on the other side?"""
    for one, other in ((left, right), (right, left)):
        if _is_sequence(one) and (_is_sequence(other) or (isinstance(other, ScalarV) and other.python)):
            return True
    return False


def _is_sequence(value: Value) -> bool:
    return isinstance(value, TupleV | RangeV) or is_list(value)


def _sequence_operator(s: Context, op: str, left: Value, right: Value) -> Value | None:
    match op, left, right:
        case "add", TupleV(a, kind), TupleV(b, other) if kind == other:
            return TupleV(a + b, kind)
        case ("mul", TupleV() as sequence, ScalarV() as count) | ("mul", ScalarV() as count, TupleV() as sequence):
            return _repeated(s, sequence, _count(s, sequence, count))
        case "add", (Static() | MessageV()), (Static() | MessageV()):
            try:
                return lift(known(left) + known(right))
            except TypeError:
                return None
            except Unknown:
                joined = messages.joined(s, [left, right])
                return None if joined is None else messages.at_once(s, joined)
        case "mod", Static(str() as text), _:
            try:
                return lift(text % known(right))
            except (TypeError, ValueError):
                return None
            except Unknown:
                made = messages.percent(s, text, right) if s.out is not None and is_passed_on(s, s.out) else None
                return None if made is None else messages.at_once(s, made)
    return None


def _count(s: Context, sequence: TupleV, count: ScalarV) -> ScalarV:
    """A repeat count, which may be an integer of NumPy's; all else is Python's to refuse."""
    if count.python:
        return count
    if np.dtype(count.dtype).kind not in "iu":
        raise s.hand_back(f"a {sequence.kind} times a NumPy number")
    number = s.as_python(count)
    assert isinstance(number, ScalarV)
    return number


def _repeated(s: Context, sequence: TupleV, count: ScalarV) -> Value:
    """sequence * count; long lists of numbers are arrays."""
    length = len(sequence.items)
    alike = sequence.kind == "list" and length and dynamic_lists.is_uniform(sequence)
    if alike and isinstance(count.operand, ir.Var) and count.dtype in ("int64", "bool"):
        return array_lists.shown(s, dynamic_lists.repeated(s, sequence, count))
    times = s.static_int(count, "a repeat count")
    if length * times <= LONGEST:
        return TupleV(sequence.items * times, sequence.kind)
    if alike:
        return array_lists.shown(s, dynamic_lists.repeated(s, sequence, count))
    raise s.hand_back(f"a {sequence.kind} of {length * times} items")


def inplace_operator(s: Context, op: str, left: Value, right: Value) -> Value:
    if instances.is_instance(left):
        return operators.binary(s, op, left, right, inplace=True)
    if isinstance(left, TimeV):
        return arithmetic.inplace(s, op, left, right)
    if isinstance(left, MapV):
        raise s.unsupported("a set or dict changed by an operator")
    if isinstance(left, ArrayV):
        if op == "matmul":
            product = binary_operator(s, op, left, right)
            if not fit_outputs(s, [product], [left]):
                return NeverV()
            store_array(s, left, product, casting="same_kind", out=True)
            return left
        return inplace(s, op, left, right)
    if is_list(left) or isinstance(left, DictV):
        numpy_does_it = isinstance(right, ArrayV) or (isinstance(right, ScalarV) and not right.python and op != "mul")
        if not numpy_does_it:
            raise s.unsupported("a list or dict that has other names too, changed where it is")
    return binary_operator(s, op, left, right)


def _of_sets(s: Context, op: str, left: Value, right: Value) -> Value | None:
    if op != "ne":
        return set_operators.operator(s, op, left, right)
    same = set_operators.operator(s, "eq", left, right)
    return None if same is None else ScalarV(s.builder.prim("not", s.truth(same)))


def compare(s: Context, op: str, left: Value, right: Value) -> Value:
    if op in ("is", "isnot"):
        same = instance_lists.same_place(s, left, right)
        if same is not None:
            return same if op == "is" else ScalarV(s.builder.prim("not", same.operand, type=PYBOOL))
        return py(identical(s, left, right) == (op == "is"))
    if op in ("in", "notin"):
        return membership.contains(s, left, right, op == "notin")
    if strings.is_text(left) or strings.is_text(right):
        return strings.compare(s, op, left, right)
    if instances.is_instance(left) or instances.is_instance(right):
        return operators.compare(s, op, left, right)
    if isinstance(left, TimeV) or isinstance(right, TimeV):
        return arithmetic.binary(s, op, left, right)
    left, right = _as_numbers(left, right)
    if set_operators.is_set(left) and (made := _of_sets(s, op, left, right)) is not None:
        return made
    right = right if s.frame.namespace.trusted else beside_complex(s, op, left, right)
    try:
        a, c = known(left), known(right)
    except Unknown:
        pass
    else:
        import operator

        if not isinstance(left, ScalarV) or not isinstance(right, ScalarV):
            return lift(getattr(operator, op)(a, c))
    if isinstance(left, TupleV) and isinstance(right, TupleV) and op not in ("eq", "ne"):
        return _ordered(s, op, left, right)
    if isinstance(left, TupleV) and isinstance(right, TupleV):
        if len(left.items) != len(right.items) or left.kind != right.kind:
            return py(op == "ne")
        equal: ir.Operand = ir.Const(True, PYBOOL)
        for x, y in zip(left.items, right.items, strict=True):
            equal = s.builder.logical_and(equal, membership.same_item(s, x, y))
        return ScalarV(equal if op == "eq" else s.builder.prim("not", equal))
    odd = left if isinstance(left, Static) else right
    if isinstance(odd, Static) and op in ("eq", "ne") and (odd.object is None or isinstance(odd.object, str)):
        return _compare_with_odd(s, op, right if odd is left else left, odd.object)
    if _between_containers(left, right):
        raise s.unsupported(f"a comparison of {s.describe(left)} and {s.describe(right)}")
    if (isinstance(left, TupleV) or is_list(left)) and isinstance(right, ArrayV):
        return binary(s, _MIRRORED[op], right, left)  # whose method Python calls: exceptions name it first
    return binary(s, op, left, right)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _compare_with_odd(s: Context, op: str, value: Value, odd: str | None) -> Value:
    """`value == "text"` or `value == None`, where the value is neither."""
    match value:
        case ObjectV() | MessageV() | ArrayV():
            raise s.hand_back("a comparison with a string or None")
        case VariantV():
            raise s.unsupported("a comparison of a value of varying type")
        case ScalarV() if not value.python and odd is not None:
            return lift(np.bool_(op == "ne"))
    return py(op == "ne")


def _ordered(s: Context, op: str, left: TupleV, right: TupleV) -> Value:
    """Lexicographic comparison: the first items that differ decide, else the lengths."""
    import operator

    if left.kind != right.kind:
        raise s.unsupported(f"'{op}' not supported between a {left.kind} and a {right.kind}")
    result: Value = py(getattr(operator, op)(len(left.items), len(right.items)))
    for x, y in reversed(list(zip(left.items, right.items, strict=False))):
        equal = membership.same_item(s, x, y)
        decided = s.compare(op, x, y)  # which is the result itself, where NumPy has one of its own
        if isinstance(decided, ScalarV) and isinstance(result, ScalarV) and decided.type == result.type:
            result = ScalarV(s.builder.select(equal, result.operand, decided.operand))
        else:
            (result,) = s.branch(equal, partial(list, [result]), partial(list, [decided]))
    return result


def _made_apart(s: Context, left: ArrayV, right: ArrayV) -> bool:
    """Is one array a view that the function makes, and the other an argument or another view?"""
    views = [isinstance(s.builder.definition.get(one.var), ir.AnyView) for one in (left, right)]
    return any(views) and all(
        view or one.var in s.arguments.leaf_param for view, one in zip(views, (left, right), strict=True)
    )


def identical(s: Context, left: Value, right: Value) -> bool:
    """`left is right`, where the compiler can tell."""
    if instances.is_instance(left) or instances.is_instance(right):
        return operators.identical(s, left, right)
    if isinstance(left, ObjectV) or isinstance(right, ObjectV):
        if NONE in (left, right) and not any(isinstance(side, ObjectV) and side.any for side in (left, right)):
            return False  # an argument that is None has another signature
        raise s.hand_back("`is` between objects")
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Static):
            if isinstance(other, Static):
                return one.object is other.object
            return False
    if any(isinstance(left, kind) != isinstance(right, kind) for kind in (ArrayV, ScalarV)):
        return False
    if isinstance(left, ArrayV) and isinstance(right, ArrayV):
        if left is right:
            return True
        if left.var is right.var:
            if isinstance(s.builder.definition.get(left.var), ir.AnyView):
                raise s.unsupported("`is` between views, which may be made anew each time")
            return True
        if not (left.roots & right.roots) or _made_apart(s, left, right):
            return False
        if left.var in s.arguments.leaf_param and right.var in s.arguments.leaf_param:
            raise s.hand_back("`is` between arguments that overlap")
    if isinstance(left, ScalarV) and isinstance(right, ScalarV):
        if left.python != right.python or left.dtype != right.dtype:
            return False
        if left.python and left.dtype == "bool":
            return s.static(left, "an operand of `is`") is s.static(right, "an operand of `is`")
    raise s.unsupported("`is` between values that are not known to be distinct")


def unary_operator(s: Context, op: str, value: Value) -> Value:
    if op == "not":
        return ScalarV(s.builder.prim("not", s.truth(value), type=PYBOOL))
    if instances.is_instance(value):
        return operators.unary(s, op, value)
    if isinstance(value, TimeV):
        return arithmetic.unary(s, op, value)
    known_result = long_ints.unary_of_known(op, value)
    if known_result is not None:
        return known_result
    convert.must_not_be_container(s, value, f"unary {op}")
    number = s.numeric(value)
    if isinstance(number, ScalarV) and number.python:
        return python_scalars.python_unary(s, op, number)
    return call_ufunc(s, UNARY_UFUNCS[op], [number])
