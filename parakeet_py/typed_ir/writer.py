"""Writing typed IR by hand: a `Writer` collects statements and gives back the variables they bind.

Passes use it for the statements they add, tests for whole programs. It folds nothing: what is asked for is emitted.
Index arithmetic has Python-int type, as extents have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from parakeet_py.base import exact_loops
from parakeet_py.base.types import PYINT, Array, Scalar, Type, real_dtype, same_bits
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Let, Op, Operand, Var, dtype_of
from parakeet_py.typed_ir.passes.analysis.linear import Linear
from parakeet_py.typed_ir.rewrite import NOWHERE


def index_const(value: int) -> Const:
    return Const(value, PYINT)


def result_dtype(name: str, args: Sequence[Operand]) -> str:
    """The dtype of a scalar primitive's result."""
    if name in ir.COMPARE or name in ir.FLOAT_TESTS:
        return "bool"
    dtype = dtype_of(args[-1])
    if exact_loops.is_loop(name):
        return exact_loops.result_dtype(name, tuple(map(dtype_of, args))) or dtype
    if name in ("real", "imag") or (name == "abs" and dtype.startswith("complex")):
        return real_dtype(dtype)
    if name == "complex":
        return "complex64" if dtype == "float32" else "complex128"
    return same_bits(dtype) if name in ir.REINTERPRET else dtype


class Writer:
    """Statements in order, all at one position of the source."""

    def __init__(self, pos: Pos = NOWHERE) -> None:
        self.pos = pos
        self.statements: list[Let] = []

    def block(self, *results: Operand) -> Block:
        return Block(tuple(self.statements), results)

    def let(self, op: Op, *outs: Var) -> None:
        self.statements.append(Let(outs, op, self.pos))

    def bind(self, op: Op, type_: Type, name: str = "t") -> Var:
        out = Var(name, type_)
        self.statements.append(Let((out,), op, self.pos))
        return out

    # ---- scalars ----

    def prim(self, name: str, *args: Operand, title: str = "t", type_: Type | None = None) -> Var:
        if type_ is None:
            dtype = result_dtype(name, args)
            python = all(isinstance(arg.type, Scalar) and arg.type.python for arg in args)
            type_ = Scalar(dtype, python and dtype in ("bool", "int64", "float64", "complex128"))
        return self.bind(ir.Prim(name, args), type_, title)

    def cast(self, arg: Operand, dtype: str, title: str = "t") -> Var:
        return self.bind(ir.Cast(arg), Scalar(dtype), title)

    def check(self, condition: Operand, exception: str, message: str, *args: Operand) -> None:
        self.let(ir.Check(condition, ir.Failure(exception, message), args))

    # ---- arrays ----

    def dim(self, array: Var, axis: int = 0) -> Var:
        return self.bind(ir.Dim(array, axis), PYINT, "n")

    def load(self, array: Var, *indices: Operand) -> Var:
        return self.bind(ir.Load(array, indices), Scalar(dtype_of(array)), "e")

    def store(self, array: Var, indices: Sequence[Operand], value: Operand) -> None:
        self.let(ir.Store(array, tuple(indices), value))

    def alloc(self, dtype: str, *extents: Operand, title: str = "a") -> Var:
        return self.bind(ir.Alloc(extents), Array(dtype, len(extents)), title)

    def view(
        self, base: Var, starts: Sequence[Operand], axes: Sequence[ir.ViewAxis], layout: str = "A", title: str = "v"
    ) -> Var:
        return self.bind(ir.View(base, tuple(starts), tuple(axes)), Array(dtype_of(base), len(axes), layout), title)

    # ---- operators ----

    def map(
        self,
        extents: Sequence[Operand],
        body: Callable[..., Operand | Sequence[Operand] | None],
        title: str = "m",
    ) -> tuple[Var, ...]:
        """A `Map`; `body(builder, *indices)` emits the body and returns its results."""
        indices = tuple(Var("i", PYINT) for _ in extents)
        inner = Writer(self.pos)
        results = _several(body(inner, *indices))
        outs = tuple(Var(title, Array(dtype_of(result), len(extents))) for result in results)
        self.let(ir.Map(tuple(extents), indices, inner.block(*results)), *outs)
        return outs

    def map1(self, extents: Sequence[Operand], body: Callable[..., Operand], title: str = "m") -> Var:
        """A `Map` with one result."""
        (out,) = self.map(extents, body, title)
        return out

    def reduce(
        self,
        extents: Sequence[Operand],
        reduced: Sequence[Operand],
        body: Callable[..., Operand | Sequence[Operand] | None],
        combine: str | Callable[..., Operand | Sequence[Operand]],
        inits: Sequence[Operand],
        title: str = "r",
    ) -> tuple[Var, ...]:
        """A `Reduce`; `combine` names a primitive, or emits the body of the combining function."""
        indices = tuple(Var("i", PYINT) for _ in extents)
        reduced_indices = tuple(Var("k", PYINT) for _ in reduced)
        inner = Writer(self.pos)
        results = _several(body(inner, *indices, *reduced_indices))
        outs = tuple(
            Var(title, Array(dtype_of(result), len(extents)) if extents else Scalar(dtype_of(result)))
            for result in results
        )
        self.let(
            ir.Reduce(
                tuple(extents),
                indices,
                tuple(reduced),
                reduced_indices,
                inner.block(*results),
                tuple(inits),
                combiner(combine, [dtype_of(result) for result in results]),
            ),
            *outs,
        )
        return outs


def combiner(combine: str | Callable[..., Operand | Sequence[Operand]], dtypes: Sequence[str]) -> ir.Lambda:
    """The function (accumulators..., contributions...) -> accumulators of a `Reduce`, `Scan` or `Scatter`."""
    params = tuple(Var(name, Scalar(dtype)) for name in ("acc", "new") for dtype in dtypes)
    inner = Writer()
    results = inner.prim(combine, *params) if isinstance(combine, str) else combine(inner, *params)
    return ir.Lambda(params, inner.block(*_several(results)))


def _several(results: Operand | Sequence[Operand] | None) -> tuple[Operand, ...]:
    if results is None:
        return ()
    return (results,) if isinstance(results, Var | Const) else tuple(results)


def linear_value(writer: Writer, form: Linear) -> Operand:
    """Emit the value of a linear form that is known not to overflow, nor the sum of what is added in it."""
    total: Operand | None = index_const(form.constant) if form.constant > 0 else None
    for var, k in sorted(form.terms, key=lambda term: term[1] < 0):
        term: Operand = var if abs(k) == 1 else writer.prim("mul", var, index_const(abs(k)), type_=PYINT)
        if total is None and k < 0:
            total = index_const(0)
        name = "add" if k > 0 else "sub"
        total = term if total is None else writer.prim(name, total, term, type_=PYINT)
    if total is None or not form.terms:
        return index_const(form.constant)
    return total if form.constant >= 0 else writer.prim("sub", total, index_const(-form.constant), type_=PYINT)
