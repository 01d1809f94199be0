"""What a product of two matrices consists of, for the kernels that compute it (`tiled_products`,
`tensor_core_products`).

A `Matmul` is one, and so is a reduction that sums the products of elements of two matrices along an axis, as products
of integers and of float16 are: there the elements may be cast first.
"""

from __future__ import annotations

from collections.abc import Mapping

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import Array, Scalar, is_complex
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Operand, Var, dtype_of


@record
class Factor:
    """One of the matrices; `depth_first`: its first axis is the one that is summed over."""

    array: Var
    depth_first: bool

    @property
    def along(self) -> bool:
        """Whether neighbours along the shared axis are neighbours in memory."""
        return (array_type(self.array).layout == "F") == self.depth_first

    @property
    def dtype(self) -> str:
        return array_type(self.array).dtype


@record
class Product:
    """out = left @ right, summed in the dtype of out.

    Attributes
    ----------
    depth : the extent of the shared axis
    whole : a library may do it, and products and sums may be fused: a `Matmul`, or one of float16, whose products are
        exact in float32
    """

    left: Factor
    right: Factor
    out: Var
    rows: Operand
    columns: Operand
    depth: Operand
    whole: bool

    @property
    def dtype(self) -> str:
        return array_type(self.out).dtype


def zero_of(dtype: str) -> Const:
    return Const(0j if is_complex(dtype) else 0.0 if dtype.startswith("float") else 0, Scalar(dtype))


def of_matmul(lo: Lowering, op: ir.Matmul) -> Product:
    """A product of two matrices."""
    left, right, out = (lo.array(var) for var in (op.left, op.right, op.out))
    extents = lo.extent(out, 0), lo.extent(out, 1), lo.extent(left, 1)
    return Product(Factor(left, False), Factor(right, True), out, *extents, True)


def of_reduction(lo: Lowering, op: ir.Reduce, out: Var) -> Product | None:
    """A reduction as a product that is left in `out`; None if it is none."""
    if len(op.indices) != 2 or len(op.reduced_indices) != 1 or primitives(op.combine) != ("add",):
        return None
    kind = dtype_of(op.inits[0])
    if kind == "bool" or op.inits != (zero_of(kind),):
        return None
    definitions = {let.outs[0]: let.op for let in op.body.statements if let.outs}
    match definitions.get(op.body.results[0]) if isinstance(op.body.results[0], Var) else None:
        case ir.Prim("mul", (first, second)):
            loads = [_loaded(definitions, operand) for operand in (first, second)]
        case _:
            return None
    (row, column), (depth,) = op.indices, op.reduced_indices
    found = {}
    for load in loads:
        if load is None or len(load.indices) != 2:
            return None
        for index, other in ((row, depth), (depth, column)):
            if set(load.indices) == {index, other} and array_type(load.array).rank == 2:
                found[index] = Factor(lo.array(load.array), load.indices[0] is depth)
    if len(found) != 2 or len(op.body.statements) != len(_needed(definitions, op.body.results[0])):
        return None
    extents = lo.operands((*op.extents, *op.reduced_extents))
    left, right = found[row], found[depth]
    halves = kind == "float32" and left.dtype == right.dtype == "float16"
    as_they_are = right.depth_first and not left.depth_first
    return Product(left, right, out, extents[0], extents[1], extents[2], halves and as_they_are)


def _loaded(definitions: Mapping[Var, object], operand: Operand) -> ir.Load | None:
    """The element that an operand is, perhaps cast."""
    while isinstance(operand, Var):
        match definitions.get(operand):
            case ir.Cast(arg):
                operand = arg
            case ir.Load() as load:
                return load
            case _:
                return None
    return None


def _needed(definitions: Mapping[Var, object], result: Operand) -> set[Var]:
    """The variables that a result is computed from."""
    found: set[Var] = set()
    waiting = [result]
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Var) and operand in definitions and operand not in found:
            found.add(operand)
            match definitions[operand]:
                case ir.Prim(_, args):
                    waiting += args
                case ir.Cast(arg):
                    waiting.append(arg)
    return found


def flat(lo: Lowering, factor: Factor) -> tuple[Var, Operand]:
    """A contiguous matrix as its elements in a line, and how many of these a line of it has."""
    array, kind = factor.array, array_type(factor.array)
    extents = lo.extent(array, 0), lo.extent(array, 1)
    if kind.layout == "F":
        axes = tuple(ir.ViewAxis(axis, extents[axis], ONE) for axis in (1, 0))
        array = lo.let(array.name, Array(kind.dtype, 2, "C"), ir.View(array, (ZERO, ZERO), axes))
        extents = extents[1], extents[0]
    line = lo.let(array.name, Array(kind.dtype, 1, "C"), ir.Reshape(array, (lo.multiply(*extents),)))
    return line, extents[1]
