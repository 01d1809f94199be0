"""The flags of an array, `a.flags.c_contiguous` and so on.

The layout of an argument is what NumPy's flags say of it. Of an array that is made here more may become known at run
time: one in Fortran order with a single axis that is longer than 1, or with no elements, is in C order as well. Where
who owns the memory is asked for, Python answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parakeet_py.base.types import PYBOOL
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.arrays.strided import in_order
from parakeet_py.typed_ir.specialize.values import ArrayV, ScalarV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_NAMES = {  # of subscripts: a.flags["C"]
    **dict.fromkeys(("C", "C_CONTIGUOUS", "CONTIGUOUS"), "c_contiguous"),
    **dict.fromkeys(("F", "F_CONTIGUOUS", "FORTRAN"), "f_contiguous"),
    **dict.fromkeys(("W", "WRITEABLE"), "writeable"),
    **dict.fromkeys(("A", "ALIGNED"), "aligned"),
    **{name.upper(): name for name in ("behaved", "fnc", "forc")},
}


def flag_at(s: Context, array: ArrayV, key: object) -> Value:
    """a.flags[key]"""
    if key not in _NAMES:
        raise s.hand_back(f"the flag {key!r} of an array")
    return array_flag(s, array, _NAMES[key])


def array_flag(s: Context, array: ArrayV, name: str) -> Value:
    """a.flags.name"""
    b = s.builder
    if name in ("aligned", "behaved") and s.arguments.has_unaligned:
        raise s.unsupported(f"the flag {name} of arrays some of which are not aligned")
    match name:
        case "writeable" | "behaved":
            s.arguments.asks_writeable = True
            return _known(not array.readonly)
        case "aligned":
            return _known(True)
        case "c_contiguous" | "contiguous":
            return ScalarV(_contiguous(s, array, "C"))
        case "f_contiguous":
            return ScalarV(_contiguous(s, array, "F"))
        case "forc":
            return ScalarV(b.logical_or(_contiguous(s, array, "C"), _contiguous(s, array, "F")))
        case "fnc":
            other = b.prim("not", _contiguous(s, array, "C"), type=PYBOOL)
            return ScalarV(b.logical_and(_contiguous(s, array, "F"), other))
    raise s.hand_back(f"the flag {name} of an array")


def _known(value: bool) -> ScalarV:
    return ScalarV(ir.Const(value, PYBOOL))


def _contiguous(s: Context, array: ArrayV, order: str) -> ir.Operand:
    s.deferred_views.shown(array.roots)
    argument = array.var in s.arguments.leaf_param
    if array.layout == order or array.rank == 0:
        return ir.Const(True, PYBOOL)
    if argument and (order == "C" or array.layout != "C"):
        return ir.Const(False, PYBOOL)  # it would have that layout
    return in_order(s, array, order)
