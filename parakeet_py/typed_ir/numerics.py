"""Whether NumPy's floating-point error state matters to a function: does it compute anything NumPy looks at?"""

from __future__ import annotations

from parakeet_py.base.types import Array, Scalar, is_complex, is_float
from parakeet_py.typed_ir import ir


def computes(function: ir.Function) -> bool:
    """Does a function compute with floats of NumPy's, divide integers of NumPy's, or cast floats to them?

    Python's own numbers do not count: their errors are exceptions, whatever the state.
    """
    blocks = [function.body, *(one.body for one in function.procedures)]
    return any(_is_watched(let) for block in blocks for let in ir.walk(block))


def _is_watched(let: ir.Let) -> bool:
    match let.op:
        case ir.Load() | ir.AnyView() | ir.Dim():
            return False
        case ir.Prim(name, args):
            watched = any(_is_numpys(arg.type, name in ir.DIVISION) for arg in args)
            return watched or any(_is_numpys(out.type, False) for out in let.outs)
        case ir.Cast(operand):
            return _is_numpys(operand.type, False) or any(_is_numpys(out.type, False) for out in let.outs)
        case ir.Map() | ir.If() | ir.For() | ir.While():
            return False  # what is in them counts
    return any(_is_numpys(out.type, False) for out in let.outs)


def _is_numpys(kind: object, integers: bool) -> bool:
    if isinstance(kind, Scalar) and kind.python:
        return False
    if not isinstance(kind, Scalar | Array):
        return False
    return integers or is_float(kind.dtype) or is_complex(kind.dtype)
