"""`array.shape = shape` for arrays that the function has made.

The array stays the object it is: whatever name it has, it has the new shape from here on. Names stand for values, so
every one that stands for this array is bound to a view of the other shape. That is done for statements which run in any
case: behind a branch or in a loop the names around it would have to know whether it has run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.specialize.forms import arrays_of
from parakeet_py.typed_ir.specialize.values import ArrayV, MethodV, ScalarV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context


def set_shape(s: Context, array: ArrayV, shape: Value) -> None:
    """array.shape = shape"""
    what = "assignment to the attribute .shape"
    if array.var in s.arguments.leaf_param or array.layout != "C":
        raise s.unsupported(f"{what} of an array that is not the function's own, or not contiguous")
    if len(s.builder.scopes) > 1 or s.python.sites:
        raise s.unsupported(f"{what} in branches and loops, or after a call that is handed back")
    s.will_store(array)  # what has been copied of it would have to change too
    shape = TupleV((shape,)) if isinstance(shape, ScalarV) else shape
    made = s.call(MethodV(array, "reshape"), [shape], {})
    assert isinstance(made, ArrayV)
    names = [value for frame in s.frames for value in frame.env.values()]
    arrays = {id(value) for value in names if isinstance(value, ArrayV) and value.var is array.var}
    if isinstance(s.builder.definition.get(array.var), ir.View) and len(arrays) > 1:
        raise s.unsupported(f"{what} of a view that may be another array's too")
    for frame in s.frames:
        for var, value in frame.env.items():
            frame.env[var] = _renewed(s, value, array.var, made)


def _renewed(s: Context, value: Any, old: ir.Var, new: ArrayV) -> Any:
    """What a name stands for, with the new array in place of the old one."""
    match value:
        case ArrayV(var) if var is old:
            return new
        case TupleV(items):
            return replace(value, items=tuple(_renewed(s, item, old, new) for item in items))
    if any(array.var is old for array in arrays_of([value])):
        raise s.unsupported("assignment to the attribute .shape of an array that something else holds")
    return value
