"""Vector loops whose last iterations are one more vector, with the lanes that are too many masked.

LLVM's vector loop leaves up to a vector less one of its iterations to a loop over single elements. Where the rows of an
array are short, that is half of the time: of 38 float64 (vectors of eight), the last six take as long as the 32 before
them. AVX-512 masks lanes at no cost. So the loop is written twice: up to a multiple of W iterations, the lanes of one
vector, and from there on as a loop of fewer than W, of which LLVM makes one masked vector:

    for index in start .. start + (n & -W):     vectors, nothing left over
    for index in start + (n & -W) .. stop:      one vector, masked

That is done where LLVM does not interleave several vectors (it makes a second, narrower vector loop for the rest then):
with at least `_LEAST` operations. Not with anything but loads, stores and arithmetic inside, nor where memory moves by
anything but an element from iteration to iteration. And masked lanes compute with zeros: what could set a flag there
that warnings are made from (0 / 0, log(0)) is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parakeet_py.base.types import Array, is_complex, is_integer, itemsize
from parakeet_py.imp import ir
from parakeet_py.imp.schedule.loop_order import is_dear
from parakeet_py.llvm.codegen.arrays import address, unit_axis
from parakeet_py.llvm.codegen.builder import ModuleText, is_literal
from parakeet_py.llvm.codegen.scope import Scope
from parakeet_py.typed_ir.ir import Cast, Const, Load, Operand, Prim, Var, dtype_of

_LEAST = 18  # operations; LLVM interleaves what costs less than 20
_MASKED = frozenset({4, 8})  # bytes of an element
_DIVISIONS = frozenset({"div", "floordiv", "mod", "fmod", "rem"})
HINTS = ('vectorize.predicate.enable", i1 true', 'interleave.count", i32 1')


class _Body:
    """The statements of a loop that counts by one: what moves with its index, how much is done."""

    def __init__(self, loop: ir.For) -> None:
        self.moved: set[Operand] = {loop.index}  # by one from iteration to iteration
        self.varying: set[Operand] = set()  # what else depends on the iteration
        self.steady: list[ir.Statement] = []  # whole numbers and truths that do not, and can be computed before it
        self.rest: list[ir.Statement] = []
        self.inside: set[Operand] = set()  # what the rest binds
        self.accesses: list[tuple[Var, tuple[Operand, ...]]] = []  # those that move
        self.operations = 0
        self.stores = False
        self.plain = all(map(self._see, loop.body.statements))

    def _see(self, statement: ir.Statement) -> bool:
        """Take a statement in; False where it must not be in such a loop."""
        match statement:
            case ir.Let(out, Prim(name, args)) if self._is_steady(out, name, args):
                self.steady.append(statement)
                return True
        self.rest.append(statement)
        if isinstance(statement, ir.Let):
            self.inside.add(statement.out)
        match statement:
            case ir.Let(out, Load(array, indices)):
                moves = not all(map(self._stays, indices))
                if moves:
                    self.varying.add(out)
                    self.operations += 1
                return not moves or self._moves_by_an_element(array, indices)
            case ir.Store(array, indices):
                self.operations += 1
                self.stores = True
                return self._moves_by_an_element(array, indices)
            case ir.Let(out, Prim("add" | "sub", (left, right))) if left in self.moved and self._stays(right):
                self.moved.add(out)
                return True
            case ir.Let(out, Prim(name, operands)):
                self._operation(out, operands)
                return not _is_left_alone(name, operands)
            case ir.Let(out, Cast(operand)):
                self._operation(out, (operand,))
                return True
        return False

    def _is_steady(self, out: Var, name: str, operands: tuple[Operand, ...]) -> bool:
        if (dtype_of(out) != "bool" and not is_integer(dtype_of(out))) or _is_left_alone(name, operands):
            return False
        return self.inside.isdisjoint(operands) and all(map(self._stays, operands))

    def _operation(self, out: Var, operands: tuple[Operand, ...]) -> None:
        if not all(map(self._stays, operands)):
            self.varying.add(out)
            self.operations += 1

    def _stays(self, operand: Operand) -> bool:
        return operand not in self.moved and operand not in self.varying

    def _moves_by_an_element(self, array: Var, indices: tuple[Operand, ...]) -> bool:
        kind = array.type
        assert isinstance(kind, Array)
        self.accesses.append((array, indices))
        unit = unit_axis(kind)
        others = [index for axis, index in enumerate(indices) if axis != unit]
        return unit is not None and indices[unit] in self.moved and all(map(self._stays, others))


def _is_left_alone(name: str, operands: tuple[Operand, ...]) -> bool:
    """Whether a primitive may set a flag for zeros, or fail; the divisions of integers are not vector code either."""
    if name == "div":
        return not (isinstance(operands[1], Const) and operands[1].value)
    return name in _DIVISIONS or is_dear(name) or name.endswith("_checked")


def lanes_of(module: ModuleText, body: _Body) -> int:
    """How many lanes the vectors of a loop have; 0 where it is to be left as it is."""
    dtypes = {dtype_of(array) for array, _ in body.accesses}
    if not body.plain or not body.stores or body.operations < _LEAST or any(map(is_complex, dtypes)):
        return 0
    size = max(map(itemsize, dtypes))
    return 0 if size not in _MASKED or "float16" in dtypes else module.host.vector_bits // (8 * size)


def divided(
    scope: Scope, loop: ir.For, first: str, last: str, emit: Callable[[Scope, ir.Statement], None]
) -> tuple[ir.For, str, int] | None:
    """A loop that counts from `first` by one, in two: without what is the same in all its iterations, which `emit` has
    written before it; where the second one begins; and the lanes of its vector. None: the loop is left as it is."""
    f = scope.f
    known = is_literal(first) and is_literal(last)
    if loop.kind != "vector" or known or f.module.host.vector_bits != 512 or f.module.checks is not None:
        return None
    body = _Body(loop)
    lanes = lanes_of(f.module, body)
    if not lanes:
        return None
    for statement in body.steady:
        emit(scope, statement)
    for array, indices in body.accesses:  # the beginnings of rows
        kind = array.type
        assert isinstance(kind, Array)
        unit = unit_axis(kind)
        if any(index in body.inside for axis, index in enumerate(indices) if axis != unit):
            continue
        address(f, scope.array(array), ["0" if axis == unit else scope.scalar(i) for axis, i in enumerate(indices)])
    whole = f.binary("and", "i64", f.binary("sub", "i64", last, first), str(-lanes))
    return replace(loop, body=ir.Block(tuple(body.rest))), f.binary("add nsw", "i64", first, whole), lanes
