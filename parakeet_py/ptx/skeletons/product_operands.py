"""What a product of two matrices consists of, for the kernels that compute it (`tiled_products`,
`tensor_core_products`).

A `Matmul` is one, and so is a reduction that sums the products of elements of two matrices along an axis, as products
of integers and of float16 are: there the elements may be cast first. One that keeps more than two axes is a product for
each point of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import BOOL, Array, Scalar, is_complex
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.lower.combine import primitives
from parakeet_py.imp.lower.loops import Axis, axes_of
from parakeet_py.imp.writer import ONE, ZERO, array_type
from parakeet_py.ptx.kernels.regions import unravel, walked
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Const, Operand, Var, dtype_of


@record
class Factor:
    """One of the matrices.

    Attributes
    ----------
    depth_first : its first axis is the one that is summed over
    axes : those axes of the array that the matrix has
    fixed : where in the others it is, as the typed IR says: index variables of the batch, or what is known outside
    """

    array: Var
    depth_first: bool
    axes: tuple[int, int] = (0, 1)
    fixed: tuple[Operand, ...] = ()

    @property
    def deep(self) -> int:
        """The axis that is summed over."""
        return self.axes[not self.depth_first]

    @property
    def fast(self) -> int:
        """The axis in which neighbours are neighbours in memory."""
        kind = array_type(self.array)
        return 0 if kind.layout == "F" else kind.rank - 1

    @property
    def along(self) -> bool:
        """Whether neighbours along the shared axis are neighbours in memory."""
        return self.fast == self.deep

    def place(self, lo: Lowering, other: Operand, depth: Operand) -> tuple[Operand, ...]:
        """The indices of an element."""
        pair = (depth, other) if self.depth_first else (other, depth)
        return inserted(lo, self.fixed, self.axes, pair)

    @property
    def dtype(self) -> str:
        return array_type(self.array).dtype


@record
class Product:
    """out = left @ right, summed in the dtype of out.

    Attributes
    ----------
    depth : the extent of the shared axis
    out_axes, out_fixed : as those of a `Factor`
    batch : the space of a batch, whose matrices are those at one point; None if there is only one product
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
    out_axes: tuple[int, int] = (0, 1)
    out_fixed: tuple[Operand, ...] = ()
    batch: tuple[Axis, ...] | None = None

    @property
    def dtype(self) -> str:
        return array_type(self.out).dtype

    def store(self, lo: Lowering, row: Operand, column: Operand, value: Operand) -> None:
        lo.store(self.out, inserted(lo, self.out_fixed, self.out_axes, (row, column)), value)

    def count(self, lo: Lowering) -> Operand:
        """How many products there are."""
        return lo.product(axis.extent for axis in self.batch or ())

    def bind(self, lo: Lowering, number: Operand) -> None:
        """Say, inside of a region, which one of a batch is meant."""
        unravel(lo, self.batch or (), number, True)


def ends_there(lo: Lowering, product: Product) -> Operand:
    """Whether both matrices end where the sum does: pieces of 16 bytes, and boxes, have nothing else in them then."""
    found: Operand = Const(True, BOOL)
    for factor in (product.left, product.right):
        found = lo.prim("and", found, lo.compare("eq", lo.extent(factor.array, factor.deep), product.depth), type_=BOOL)
    return found


def inserted(
    lo: Lowering, fixed: Sequence[Operand], axes: tuple[int, int], pair: tuple[Operand, Operand]
) -> tuple[Operand, ...]:
    """Indices of an array of which a matrix has two axes."""
    found = [*lo.operands(fixed)]
    for axis, index in zip(axes, pair, strict=True):
        found.insert(axis, index)
    return tuple(found)


def zero_of(dtype: str) -> Const:
    return Const(0j if is_complex(dtype) else 0.0 if dtype.startswith("float") else 0, Scalar(dtype))


def of_matmul(lo: Lowering, op: ir.Matmul) -> Product:
    """A product of two matrices."""
    left, right, out = (lo.array(var) for var in (op.left, op.right, op.out))
    extents = lo.extent(out, 0), lo.extent(out, 1), lo.extent(left, 1)
    return Product(Factor(left, False), Factor(right, True), out, *extents, True)


def of_reduction(lo: Lowering, op: ir.Reduce, out: Var) -> Product | None:
    """A reduction as a product that is left in `out`; None if it is none."""
    if len(op.indices) < 2 or len(op.reduced_indices) != 1 or primitives(op.combine) != ("add",):
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
    if len(op.body.statements) != len(_needed(definitions, op.body.results[0])):
        return None
    several, column, (depth,) = len(op.indices) > 2, op.indices[-1], op.reduced_indices
    sides: dict[bool, ir.Load] = {}
    for load in loads:
        if load is None or any(load.indices.count(index) > 1 for index in (*op.indices, depth)):
            return None
        if depth not in load.indices or not (several or len(load.indices) == 2) or {*definitions} & {*load.indices}:
            return None
        sides[column in load.indices] = load
    if len(sides) != 2:
        return None
    rows = [index for index in op.indices if index in sides[False].indices and index not in sides[True].indices]
    if not rows:
        return None
    left, right = _factor(lo, sides[False], rows[-1], depth), _factor(lo, sides[True], column, depth)
    row, halves = op.indices.index(rows[-1]), kind == "float32" and left.dtype == right.dtype == "float16"
    extents, last = lo.operands((*op.extents, *op.reduced_extents)), len(op.indices) - 1
    whole_lines = lo.extent(left.array, left.deep) == extents[-1]  # libraries take the shared extent from there
    as_they_are = right.depth_first and not left.depth_first and whole_lines
    product = Product(left, right, out, extents[row], extents[last], extents[-1], halves and as_they_are)
    if not several:
        return product
    batch = [axis for place, axis in enumerate(axes_of(op.indices, extents[:-1])) if place not in (row, last)]
    fixed = tuple(axis.index for axis in batch)
    return replace(product, out_axes=(row, last), out_fixed=fixed, batch=tuple(walked(lo, batch)))


def _factor(lo: Lowering, load: ir.Load, other: Var, depth: Var) -> Factor:
    places = load.indices.index(other), load.indices.index(depth)
    fixed = tuple(index for index in load.indices if index not in (other, depth))
    return Factor(lo.array(load.array), places[1] < places[0], (min(places), max(places)), fixed)


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
