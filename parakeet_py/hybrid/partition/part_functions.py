"""Typed functions made of operators' own: combines of partial results, and parts that stand alone.

Variables are unique in a function, so whatever is used once more is a fresh copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from parakeet_py.base.types import INTEGERS, Array, Scalar, Type, itemsize
from parakeet_py.typed_ir.ir import Block, Const, Function, Lambda, Operand, Prim, Var, dtype_of
from parakeet_py.typed_ir.rewrite import fresh_copy
from parakeet_py.typed_ir.writer import Writer


def combine_function(combine: Lambda, types: Sequence[Type], name: str) -> Function:
    """The function that combines two partial results, scalars or arrays of them."""
    left = tuple(Var("acc", kind) for kind in types)
    right = tuple(Var("new", kind) for kind in types)
    w = Writer()
    if not any(isinstance(kind, Array) for kind in types):
        return standalone(name, (*left, *right), w.block(*applied(w, combine, [*left, *right])))
    kind = left[0].type
    assert isinstance(kind, Array)
    extents = [w.dim(left[0], axis) for axis in range(kind.rank)]
    results = w.map(
        extents, lambda v, *point: applied(v, combine, [v.load(array, *point) for array in (*left, *right)])
    )
    return standalone(name, (*left, *right), w.block(*results))


def standalone(name: str, params: tuple[Var, ...], body: Block) -> Function:
    """A function of its own: its variables are shared with no other."""
    fresh = tuple(Var(param.name, param.type) for param in params)
    return Function(name, fresh, fresh_copy(body, dict(zip(params, fresh, strict=True))))


def fresh_lambda(function: Lambda) -> Lambda:
    params = tuple(Var(param.name, param.type) for param in function.params)
    return Lambda(params, fresh_copy(function.body, dict(zip(function.params, params, strict=True))))


def applied(w: Writer, function: Lambda, values: Sequence[Operand]) -> list[Operand]:
    """The results of a function, written out."""
    copied = fresh_copy(function.body, dict(zip(function.params, values, strict=True)))
    w.statements += copied.statements
    return list(copied.results)


_IDENTITIES = {"add": 0, "or": 0, "xor": 0, "mul": 1, "and": -1}


def identity_of(combine: Lambda) -> Const | None:
    """The identity of a combine that is one exact, commutative primitive: then neither grouping nor order shows."""
    body = combine.body
    if len(body.statements) != 1 or len(combine.params) != 2:
        return None
    op, dtype = body.statements[0].op, dtype_of(combine.params[0])
    if not isinstance(op, Prim) or body.results != body.statements[0].outs or {*op.args} != {*combine.params}:
        return None
    kind = Scalar(dtype)
    if dtype == "bool":
        return {"or": Const(False, kind), "xor": Const(False, kind), "and": Const(True, kind)}.get(op.name)
    if dtype not in INTEGERS:
        return None
    bits, unsigned = 8 * itemsize(dtype), dtype.startswith("u")
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if op.name in ("minimum", "maximum"):
        return Const(most if op.name == "minimum" else least, kind)
    if op.name not in _IDENTITIES:
        return None
    return Const(most if unsigned and op.name == "and" else _IDENTITIES[op.name], kind)
