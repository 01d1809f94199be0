"""The checker: everything `ir.py` promises that can be seen without running the program.

Scoping (each variable bound once, before its uses, in scope), dtypes and ranks of every operand and result, arity of
blocks, and effects: bodies of `Reduce`, `Scan`, `Compress` and `Scatter` store only into what they allocate themselves,
no parallel body calls back into Python, combining functions are scalar. Problems are collected and raised together,
each with its place in the user's source.

What it cannot see: that indices are in range, that extents agree at run time, that iterations of a storing `Map` are
independent. The interpreter tests the first two on every run, and the last with shuffled points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from parakeet_py.base import exact_loops, grammar, routines
from parakeet_py.base.types import BOOL, FLOATS, INTEGERS, Array, Object, Scalar, Type, same_bits
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.ir import Block, Const, Function, Let, Op, Operand, Var, dtype_of, operands_of
from parakeet_py.typed_ir.print import format_statement, show
from parakeet_py.typed_ir.semantics import fits
from parakeet_py.typed_ir.writer import result_dtype

_ARITIES = {"select": 3, "complex": 2} | dict.fromkeys(
    ir.FLOAT_UNARY
    | ir.FLOAT_TESTS
    | {"neg", "abs", "neg_checked", "abs_checked", "not", "real", "imag", "conj", "bits", "from_bits", "on_device"},
    1,
)
_NUMBERS = frozenset({*INTEGERS, *FLOATS, "complex64", "complex128"})
_INEXACT = frozenset({*FLOATS, "complex64", "complex128"})
_ANY = _NUMBERS | {"bool"}


class InvalidTypedIR(AssertionError):
    """The program breaks the rules of the typed IR; its maker (specializer or pass) is at fault."""

    def __init__(self, name: str, problems: Sequence[str]) -> None:
        super().__init__(f"{name}: {len(problems)} problem(s) in the typed IR\n  " + "\n  ".join(problems))
        self.problems = tuple(problems)


def check_function(function: Function) -> None:
    """Raise `InvalidTypedIR` with every problem found."""
    problems = []
    for one in (function, *function.procedures):
        checker = _Checker(one.filename, {made.name: made for made in function.procedures})
        checker.bind(one.params, "a parameter")
        checker.block(one.body)
        problems += checker.problems
    if problems:
        raise InvalidTypedIR(function.name, problems)


def _domain(name: str) -> frozenset[str]:
    """The dtypes a primitive's arguments may have."""
    if name in ir.CHECKED:
        return frozenset({"int64"})
    if name == ir.MUL_HIGH:
        return frozenset({"uint64"})
    if name == "on_device":
        return frozenset({"bool"})
    if name in ("and", "or", "xor", "not"):
        return frozenset({"bool", *INTEGERS})
    if name in ("shl", "shr"):
        return frozenset(INTEGERS)
    if name in ("lt", "le", "gt", "ge") or name in ir.EXTREMA:
        return _ANY - {"complex64", "complex128"}
    if name in ("eq", "ne", "select"):
        return _ANY
    if name == "div" or name in ir.FLOAT_UNARY or name == "pow":
        return _INEXACT
    if name in ir.DIVISION:
        return frozenset({*INTEGERS, *FLOATS})
    if name in ("complex", "power") or name in ir.BOUNDED:
        return frozenset({"float32", "float64"})
    if name in ir.FLOAT_TESTS or name in ir.FLOAT_BINARY:
        return frozenset(FLOATS)
    if name in ir.REINTERPRET:
        return frozenset(FLOATS) if name == "bits" else frozenset(map(same_bits, FLOATS))
    if name in ir.COMPLEX_PARTS:
        return frozenset({"complex64", "complex128"})
    return _NUMBERS


_DOMAINS = {name: _domain(name) for name in ir.PRIMS}


class _Checker:
    def __init__(self, filename: str, procedures: Mapping[str, Function]) -> None:
        self.filename = filename
        self.procedures = procedures
        self.problems: list[str] = []
        self.scope: set[Var] = set()
        self.bound: set[Var] = set()
        self.local: list[set[Var]] = []  # arrays made inside each enclosing body that may store only into those
        self.in_parallel = 0
        self.let: Let | None = None

    # ---- reporting ----

    def problem(self, text: str) -> None:
        where = self.filename or "?"
        if self.let is not None:
            pos: Pos | None = self.let.pos
            place = f"{where}:{pos.line}:{pos.column}" if pos is not None else where
            first = format_statement(self.let).splitlines()[0]
            self.problems.append(f"{place}: {text}, in `{first}`")
        else:
            self.problems.append(f"{where}: {text}")

    def require(self, condition: bool, text: str) -> bool:
        if not condition:
            self.problem(text)
        return condition

    # ---- scoping ----

    def bind(self, variables: Sequence[Var], what: str) -> None:
        for var in variables:  # texts are made where something is wrong only: this sees every statement
            if var in self.bound:
                self.problem(f"{var!r} is bound twice ({what})")
            self.bound.add(var)
            self.scope.add(var)

    def use(self, operands: Sequence[Operand]) -> None:
        for operand in operands:
            if isinstance(operand, Var):
                if operand not in self.scope:
                    why = "is out of scope" if operand in self.bound else "is not bound"
                    self.problem(f"{operand!r} {why}")
            else:
                self.constant(operand)

    def constant(self, const: Const) -> None:
        dtype, value = const.type.dtype, const.value
        if dtype == "bool":
            good = isinstance(value, bool)
        elif dtype in INTEGERS:
            good = isinstance(value, int) and not isinstance(value, bool) and fits(value, dtype)
        elif dtype in FLOATS:
            good = isinstance(value, float)
        else:
            good = isinstance(value, complex)
        if not good:
            self.problem(f"{value!r} is no constant of type {const.type!r}")

    def block(self, block: Block) -> None:
        added: list[Var] = []
        for let in block.statements:
            outer, self.let = self.let, let
            self.use(operands_of(let.op))
            if self.parts(let.op):
                self.op(let.op, let.outs)
            self.bind(let.outs, "an out")
            added += let.outs
            own = isinstance(let.op, ir.AnyView) and bool(self.local) and let.op.base in self.local[-1]
            if self.local and (own or isinstance(let.op, ir.MAKERS)):
                self.local[-1].update(let.outs)
            self.let = outer
        self.use(block.results)
        self.scope.difference_update(added)

    def inside(self, block: Block, binders: Sequence[Var] = ()) -> None:
        self.bind(binders, "inside")
        self.block(block)
        self.scope.difference_update(binders)

    # ---- types ----

    def parts(self, op: Op) -> bool:
        """Whether the parts of an operator are what its grammar says: indices, conditions, arrays, and its stores."""
        found = len(self.problems)
        for operand in grammar.indices(op):
            self.scalar(operand, "int64", "an index, extent or bound")
        for operand in grammar.truths(op):
            self.scalar(operand, "bool", "the condition")
        for array in grammar.arrays(op):
            if not isinstance(array.type, Array):
                self.problem(f"{show(array)} is not an array")
        for array in ir.arrays_written(op):
            if self.local and array not in self.local[-1]:
                self.problem(f"{array!r} is written in a body that may not store")
        return len(self.problems) == found

    def scalar(self, operand: Operand, dtype: str, what: str) -> None:
        if not (isinstance(operand.type, Scalar) and operand.type.dtype == dtype):
            self.problem(f"{what} is {show(operand)}, not {dtype}")

    def array(self, operand: Operand, rank: int) -> Array:
        """The type of what the grammar has shown to be an array."""
        assert isinstance(operand.type, Array)
        if operand.type.rank != rank:
            self.problem(f"{show(operand)} is not of rank {rank}")
        return operand.type

    def agree(self, target: Type, source: Type, what: str) -> None:
        """May a value of type `source` flow into a variable of type `target`? The python flag does not matter."""
        match target, source:
            case Scalar(left, _), Scalar(right, _):
                good = left == right
            case Array(left, rank, layout), Array(right, other, had):
                known = layout in ("A", had) or (layout == "S" and had == "C") or (rank <= 1 and layout == "F")
                good = left == right and rank == other and (known or rank == 0)
            case _:
                good = isinstance(target, Object)
        if not good:
            self.problem(f"{what}: {source!r} flows into {target!r}")

    def flows(self, targets: Sequence[Var], sources: Sequence[Operand], what: str) -> None:
        if self.require(len(targets) == len(sources), f"{what}: {len(sources)} values for {len(targets)} variables"):
            for target, source in zip(targets, sources, strict=True):
                self.agree(target.type, source.type, f"{what} {target!r}")

    def outs(self, outs: Sequence[Var], *types: Type) -> None:
        if self.require(len(outs) == len(types), f"{len(outs)} outs, not {len(types)}"):
            for out, type_ in zip(outs, types, strict=True):
                self.agree(out.type, type_, f"{out!r}")

    def combine(self, combine: ir.Lambda, dtypes: Sequence[str]) -> None:
        params = combine.params
        if self.require(len(params) == 2 * len(dtypes), f"combine takes {len(params)} values, not {2 * len(dtypes)}"):
            for param, dtype in zip(params, [*dtypes, *dtypes], strict=True):
                self.scalar(param, dtype, "a parameter of combine")
        for let in combine.body.statements:
            self.require(isinstance(let.op, ir.Prim | ir.Cast), "combine may only compute with scalars")
        self.inside(combine.body, params)
        self.require(len(combine.body.results) == len(dtypes), f"combine gives {len(combine.body.results)} values")
        for result, dtype in zip(combine.body.results, dtypes, strict=False):
            self.scalar(result, dtype, "a result of combine")

    def body(
        self, body: Block, indices: Sequence[Var], extents: Sequence[Operand], may_store: bool = False
    ) -> list[str]:
        """A parallel body; gives the dtypes of its results."""
        self.require(len(indices) == len(extents), f"{len(indices)} indices for {len(extents)} extents")
        self.in_parallel += 1
        if not may_store:
            self.local.append(set())
        self.inside(body, indices)
        if not may_store:
            self.local.pop()
        self.in_parallel -= 1
        dtypes = []
        for result in body.results:
            if isinstance(result.type, Scalar):
                dtypes.append(result.type.dtype)
            else:
                self.problem(f"a body gives {show(result)}, not a scalar")
                dtypes.append("?")
        return dtypes

    # ---- operators ----

    def op(self, op: Op, outs: tuple[Var, ...]) -> None:
        match op:
            case ir.Prim():
                self.prim(op, outs)
            case ir.Cast(arg):
                if not isinstance(arg.type, Scalar):
                    self.problem(f"cast of {show(arg)}")
                good = len(outs) == 1 and isinstance(outs[0].type, Scalar)
                self.require(good, "a cast gives one scalar")
            case ir.Dim(array, axis) | ir.Stride(array, axis):
                self.require(0 <= axis < _array(array).rank, f"{array!r} has no axis {axis}")
                self.outs(outs, Scalar("int64"))
            case ir.Load(array, indices):
                self.outs(outs, Scalar(self.array(array, len(indices)).dtype))
            case ir.Store(array, indices, value):
                self.scalar(value, self.array(array, len(indices)).dtype, "the value")
                self.outs(outs)
            case ir.Alloc(extents):
                if self.require(len(outs) == 1 and isinstance(outs[0].type, Array), "one out, an array"):
                    layout = self.array(outs[0], len(extents)).layout
                    self.require(layout in ("C", "F"), f"{show(outs[0])} is new memory")
            case ir.AnyView():
                for problem in view_problems(op):
                    self.problem(problem)
                if self.require(len(outs) == 1 and isinstance(outs[0].type, Array), "one out, an array"):
                    dtype = self.array(outs[0], len(op.extents)).dtype
                    if dtype != dtype_of(op.base) and not isinstance(op, ir.Strided):
                        self.problem(f"{show(outs[0])} is a view of {show(op.base)}")
                if isinstance(op, ir.Reshape):
                    self.outs(outs, Array(dtype_of(op.base), len(op.extents)))
            case ir.If(_, then, orelse):
                for block in (then, orelse):
                    self.inside(block)
                    self.flows(outs, block.results, "the merge of")
            case ir.For() | ir.While():
                self.loop(op, outs)
            case ir.Check(_, _, args):
                for arg in args:
                    good = isinstance(arg.type, Scalar) and arg.type.dtype in ("int64", "float64")
                    self.require(good, f"the argument {show(arg)} of a message")
            case ir.Map() | ir.Reduce() | ir.Scan() | ir.Compress() | ir.Scatter():
                self.parallel(op, outs)
            case ir.Matmul(out, left, right):
                kinds = [_array(side) for side in (out, left, right)]
                dtypes = {kind.dtype for kind in kinds}
                ranks = tuple(kind.rank for kind in kinds)
                self.require(len(dtypes) == 1 and dtypes <= _INEXACT, f"matmul of {sorted(dtypes)}")
                self.require(ranks in ((2, 2, 2), (1, 2, 1), (1, 1, 2)), f"matmul of ranks {ranks}")
                self.outs(outs)
            case ir.Routine(name, targets, inputs):
                self.routine(name, targets, inputs)
                self.outs(outs, *([BOOL] if routines.reports(name) else []))
            case ir.Call(name, args, stores):
                self.require(not self.in_parallel, "a call inside a parallel body")
                if self.require(name in self.procedures, f"there is no procedure {name}"):
                    self.flows(self.procedures[name].params, args, "the argument")
                    self.flows(outs, self.procedures[name].body.results, "the result")
                for position in stores:
                    self.require(isinstance(args[position].type, Array), "a store into what is no array")
            case ir.Interrupted():
                self.require(not self.in_parallel, "a look at signals inside a parallel body")
                self.outs(outs, BOOL)
            case ir.Opaque():
                self.require(not self.in_parallel, "a call back into Python inside a parallel body")

    def routine(self, name: str, targets: tuple[Var, ...], inputs: tuple[Var, ...]) -> None:
        shapes = routines.shapes(name)
        for arrays, sides in ((targets, shapes.outs), (inputs, shapes.ins)):
            if not self.require(len(arrays) == len(sides), f"{name} of {len(arrays)} arrays"):
                return
            for array, axes in zip(arrays, sides, strict=True):
                kind = _array(array)
                lines = routines.family(name) in ("sort", "argsort")
                good = kind.rank == 1 + len(axes) and (kind.layout in "CS" or not lines)
                self.require(good, f"{name} of {show(array)}")

    def prim(self, op: ir.Prim, outs: tuple[Var, ...]) -> None:
        name, args = op.name, op.args
        if exact_loops.is_loop(name):
            self.exact_loop(name, args, outs)
            return
        if not self.require(name in ir.PRIMS, f"there is no primitive {name}"):
            return
        arity = _ARITIES.get(name, 2)
        if not self.require(len(args) == arity, f"{name} takes {arity} arguments, not {len(args)}"):
            return
        if not self.require(all(isinstance(arg.type, Scalar) for arg in args), f"{name} of what is no scalar"):
            return
        values = args
        if name == "select":
            self.scalar(args[0], "bool", "the condition")
            values = args[1:]
        dtypes = {dtype_of(arg) for arg in values}
        if len(dtypes) != 1:
            self.problem(f"{name} of different dtypes {', '.join(map(show, values))}")
        else:
            self.require(dtypes <= _DOMAINS[name], f"{name} is not defined for {', '.join(dtypes)}")
            self.outs(outs, Scalar(result_dtype(name, args)))

    def exact_loop(self, name: str, args: tuple[Operand, ...], outs: tuple[Var, ...]) -> None:
        if self.require(all(isinstance(arg.type, Scalar) for arg in args), f"{name} of what is no scalar"):
            found = exact_loops.result_dtype(name, tuple(map(dtype_of, args)))
            good = found is not None and exact_loops.arity(name) == len(args)
            if self.require(good, f"{name} is not defined for {', '.join(map(show, args))}"):
                self.outs(outs, Scalar(found or ""))

    def loop(self, op: ir.For | ir.While, outs: tuple[Var, ...]) -> None:
        self.flows(op.params, op.inits, "the start of")
        if isinstance(op, ir.For):
            self.require(not (isinstance(op.step, Const) and op.step.value == 0), "a step of 0")
        self.bind(op.params, "a loop parameter")
        if isinstance(op, ir.While):
            self.inside(op.condition)
            if self.require(len(op.condition.results) == 1, "the condition of a loop has one result"):
                self.scalar(op.condition.results[0], "bool", "the condition")
        self.inside(op.body, (op.index,) if isinstance(op, ir.For) else ())
        self.scope.difference_update(op.params)
        results = op.body.results
        if op.stoppable and self.require(bool(results) and bool(outs), "a stoppable loop has a stop flag"):
            self.scalar(results[0], "bool", "the stop flag")
            self.scalar(outs[0], "bool", "whether the loop was stopped")
            results, outs = results[1:], outs[1:]
        self.flows(op.params, results, "the next")
        self.flows(outs, op.params, "the last")

    def parallel(self, op: ir.Map | ir.Reduce | ir.Scan | ir.Compress | ir.Scatter, outs: tuple[Var, ...]) -> None:
        rank = len(op.extents)
        match op:
            case ir.Map(extents, indices, body):
                dtypes = self.body(body, indices, extents, may_store=True)
                self.outs(outs, *(Array(dtype, rank) for dtype in dtypes))
            case ir.Reduce(extents, indices, reduced, reduced_indices, body, inits, combine, runs):
                self.require(len(runs) in (0, 2), f"{len(runs)} numbers for runs")
                dtypes = self.body(body, (*indices, *reduced_indices), (*extents, *reduced))
                self.outs(outs, *(Array(dtype, rank) if extents else Scalar(dtype) for dtype in dtypes))
                self.inits(inits, dtypes)
                self.combine(combine, dtypes)
            case ir.Scan(extents, indices, axis, body, inits, combine, _):
                dtypes = self.body(body, indices, extents)
                self.require(0 <= axis < rank, f"there is no axis {axis}")
                self.outs(outs, *(Array(dtype, rank) for dtype in dtypes))
                self.inits(inits, dtypes)
                self.combine(combine, dtypes)
            case ir.Compress(extents, indices, body):
                dtypes = self.body(body, indices, extents)
                if self.require(dtypes[:1] == ["bool"], "compress needs a bool first"):
                    self.outs(outs, Scalar("int64"), *(Array(dtype, 1) for dtype in dtypes[1:]))
            case ir.Scatter(target, extents, indices, body, combine, chunk):
                self.require(not chunk or rank == 1, "chunks of several axes")
                dtypes = self.body(body, indices, extents)
                kind = _array(target)
                wanted = ["bool", *["int64"] * kind.rank, kind.dtype]
                self.require(dtypes == wanted, f"the body gives {dtypes}, not {wanted}")
                self.combine(combine, [kind.dtype])
                self.outs(outs)

    def inits(self, inits: Sequence[Operand], dtypes: Sequence[str]) -> None:
        if self.require(len(inits) == len(dtypes), f"{len(inits)} initial values for {len(dtypes)} results"):
            for init, dtype in zip(inits, dtypes, strict=True):
                self.scalar(init, dtype, "an initial value")


def _array(operand: Operand) -> Array:
    assert isinstance(operand.type, Array)
    return operand.type


def view_problems(op: ir.AnyView) -> Iterator[str]:
    """What is wrong with a view whose operands are of the right types; Imp has the same views."""
    base = _array(op.base)
    match op:
        case ir.View(_, starts, axes):
            sources = [axis.source for axis in axes if axis.source is not None]
            if len(starts) != base.rank:
                yield f"{len(starts)} starts for {show(op.base)}"
            if len(set(sources)) != len(sources):
                yield "two view axes have one source"
            if not all(0 <= source < len(starts) for source in sources):
                yield "a source the base does not have"
        case ir.Reshape() if base.layout != "C" and base.rank:
            yield f"{show(op.base)} is reshaped, but its layout is not C"
        case ir.Strided(_, _, extents, strides) if len(extents) != len(strides):
            yield f"{len(extents)} extents and {len(strides)} strides"
