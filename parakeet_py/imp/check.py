"""Is a function well-formed Imp?

Checked: every variable is bound once on the way to each use and before it; cells are declared before they are read or
written; ranks, dtypes and argument counts agree; `Break` stands in a loop; a region contains no other region, makes no
heap memory, counts no references and writes no cell of the outside; failure codes exist; array operands have roots.
All violations are collected and raised together.

References are counted in another way: by the interpreter, which follows each block through a run.
"""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_py.base import exact_loops, grammar, routines
from parakeet_py.base.types import Array, Scalar, itemsize
from parakeet_py.imp import ir
from parakeet_py.imp.ir import Block, Cell, Function, Rhs, Statement
from parakeet_py.imp.print import format_statement
from parakeet_py.typed_ir.check import view_problems
from parakeet_py.typed_ir.ir import (
    COMPARE,
    COMPLEX_PARTS,
    FLOAT_TESTS,
    PRIMS,
    REINTERPRET,
    AnyView,
    Const,
    Dim,
    Load,
    Operand,
    Prim,
    Stride,
    Var,
    dtype_of,
)

KINDS = ("serial", "vector", "independent", "lanes", "few")
LANES = ("thread", "block", "threads", "blocks", "lane", "groups", "boxes")
UPDATES = ("add", "sub", "mul", "minimum", "maximum", "fmin", "fmax", "and", "or", "xor")
ATOMICS = (*UPDATES, "exchange", "compare", "load", "store", "relaxed_load", "relaxed_store")
MAX_BLOCK_THREADS = 1024


class IllFormed(AssertionError):
    """A function that breaks the rules of Imp; the message lists what and where."""


def check_function(function: Function) -> None:
    """Raise `IllFormed` unless the function obeys the rules above."""
    errors = []
    for one in (function, *function.procedures):
        checker = _Checker(one, {made.name: made for made in function.procedures})
        scope = set(one.params)
        scope, _ = checker.block(one.body, scope, set())
        checker.where = "the results"
        for result in one.results:
            checker.operand(result, scope)
        errors += checker.errors
    if errors:
        raise IllFormed(f"{function.name}:\n" + "\n".join(errors))


class _Checker:
    def __init__(self, function: Function, procedures: dict[str, Function]) -> None:
        self.function = function
        self.procedures = procedures
        self.errors: list[str] = []
        self.where: Statement | str = ""  # printed only when something is wrong with it
        self.loops = 0
        self.outer_cells: set[Cell] | None = None  # inside a region: the cells of the outside
        self.in_grid = False  # in code that GPU threads run

    def fail(self, message: str) -> None:
        where = self.where if isinstance(self.where, str) else format_statement(self.where).split("\n")[0]
        self.errors.append(f"  {message}\n    in: {where}")

    # ---- parts -------------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand, scope: set[Var]) -> None:
        if isinstance(operand, Var) and operand not in scope:
            self.fail(f"{operand!r} is not bound here")

    def parts(self, statement: Statement, scope: set[Var], cells: set[Cell]) -> bool:
        """Whether the parts of a statement are what its grammar says, and known where it stands."""
        found = len(self.errors)
        if not isinstance(statement, ir.While):  # what that looks at may be bound in its head
            for operand in ir.operands_in(statement):
                self.operand(operand, scope)
        for operand in grammar.indices(statement):
            if not _is_scalar(operand, "int64"):
                self.fail(f"{operand!r} is {operand.type!r}, not int64")
        for operand in grammar.truths(statement):
            if not _is_scalar(operand, "bool"):
                self.fail(f"condition {operand!r} is {operand.type!r}")
        for array in grammar.arrays(statement):
            if not isinstance(array.type, Array):
                self.fail(f"{array!r} is {array.type!r}, no array")
            elif array not in self.function.roots:
                self.fail(f"{array!r} has no memory roots")
        for cell in _used_cells(statement):
            if cell not in cells:
                self.fail(f"{cell!r} is not declared here")
        return len(self.errors) == found

    def access(self, var: Var, indices: tuple[Operand, ...]) -> str:
        kind = _array(var)
        if len(indices) != kind.rank:
            self.fail(f"{len(indices)} indices for {var!r} of rank {kind.rank}")
        return kind.dtype

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, block: Block, scope: set[Var], cells: set[Cell]) -> tuple[set[Var], set[Cell]]:
        """Check a block whose surroundings bind `scope` and `cells`; gives what holds at its end."""
        scope, cells = set(scope), set(cells)
        for statement in block.statements:
            self.where = statement
            self.statement(statement, scope, cells)
        return scope, cells

    def inside(self, blocks: Iterable[Block], scope: set[Var], cells: set[Cell], loop: bool) -> None:
        self.loops += loop
        for block in blocks:
            scope, cells = self.block(block, scope, cells)
        self.loops -= loop

    def bind(self, var: Var, scope: set[Var]) -> None:
        if var in scope:
            self.fail(f"{var!r} is bound twice")
        scope.add(var)

    def statement(self, statement: Statement, scope: set[Var], cells: set[Cell]) -> None:
        if not self.parts(statement, scope, cells):
            for binder in ir.binders_of(statement):
                (cells if isinstance(binder, Cell) else scope).add(binder)  # type: ignore[arg-type]
            return
        match statement:
            case ir.Let(out, rhs):
                self.rhs(out, rhs)
                self.bind(out, scope)
            case ir.Declare(cell, init):
                if init is not None:
                    self.same_type(cell, init)
                cells.add(cell)
            case ir.Write(cell, value):
                self.same_type(cell, value)
                if self.outer_cells is not None and cell in self.outer_cells:
                    self.fail(f"{cell!r} belongs to the outside of the region")
            case ir.Store(array, indices, value):
                dtype = self.access(array, indices)
                if not _is_scalar(value, dtype):
                    self.fail(f"{value!r} is {value.type!r}, stored into {dtype}")
            case ir.If(_, then, orelse):
                self.inside([then], scope, cells, False)
                self.inside([orelse], scope, cells, False)
            case ir.For(index=index, body=body, kind=kind):
                if kind not in KINDS:
                    self.fail(f"unknown kind of loop {kind!r}")
                self.inside([body], {*scope, index}, cells, True)
            case ir.While(head, condition, body):
                self.loops += 1
                inner, inner_cells = self.block(head, scope, cells)
                self.operand(condition, inner)
                self.block(body, inner, inner_cells)
                self.loops -= 1
            case ir.Break():
                if not self.loops:
                    self.fail("break outside of a loop")
            case ir.Parallel(lo=lo, hi=hi, body=body):
                self.region(body, {*scope, lo, hi}, cells)
            case ir.Grid(_, threads, body):
                if not 1 <= threads <= MAX_BLOCK_THREADS:
                    self.fail(f"a block of {threads} threads")
                outer, self.in_grid = self.in_grid, True
                self.region(body, scope, cells)
                self.in_grid = outer
            case ir.Barrier(place):
                if place not in ("block", "warp"):
                    self.fail(f"no such barrier: {place}")
                self.gpu_only("a barrier")
            case ir.WarpProduct(sums, tile, left, right):
                self.gpu_only("a product of a warp")
                elements = [self.access(factor.array, factor.at) for factor in (left, right)]
                double = elements == ["float64"] * 2
                if not (double or elements in (["float16"] * 2, ["float32"] * 2)):
                    self.fail(f"no product of {elements}")
                if len(sums) != 4 * tile.rows * tile.columns or tile.columns % 2 or tile.depth % (8 if double else 16):
                    self.fail(f"no such tile: {tile} in {len(sums)} sums")
                for cell in sums:
                    if not _is_scalar(cell, "float64" if double else "float32"):
                        self.fail(f"{cell!r} is no cell for sums of {elements[0]}")
            case ir.BulkProduct(sums, left, right):
                self.gpu_only("a product of a block")
                if [self.access(factor.array, factor.at) for factor in (left, right)] != ["float16"] * 2:
                    self.fail("a product of boxes that are not of float16")
                if len(sums) != 64 or not all(_is_scalar(cell, "float32") for cell in sums):
                    self.fail(f"a product of boxes in {len(sums)} sums")
            case ir.CopyRun(target, at, source, place, _):
                self.gpu_only("a copy to shared memory")
                if self.access(target, at) != self.access(source, place) or len(at) != 3:
                    self.fail(f"{source!r} is copied to {target!r}")
            case ir.CopyGroup() | ir.CopyWait():
                self.gpu_only("a group of copies")
            case ir.Launch():
                self.host_only("a launch")
            case ir.Check(_, failure, _, order):
                self.failure(failure)
                if order is None and self.outer_cells is not None:
                    self.fail("a check inside a region needs its iteration number")
            case ir.Retain() | ir.Release():
                self.host_only("the counting of references")
            case ir.Matmul(out, left, right):
                dtypes = {_array(each).dtype for each in (out, left, right)}
                if len(dtypes) != 1:
                    self.fail("matmul of different dtypes")
            case ir.Routine(failed, name, outs, ins):
                for each in (*outs, *ins):
                    if _array(each).layout not in "CS" and routines.family(name) in ("sort", "argsort"):
                        self.fail(f"{name} of lines that are not contiguous")
                if failed is not None:
                    self.bind(failed, scope)
            case ir.Call(outs, procedure, args, _, _, failure):
                self.host_only("a call")
                if procedure in self.procedures and self.procedures[procedure].library:
                    last = failure + len(self.procedures[procedure].failures) - 1
                    if not 0 <= failure <= last < len(self.function.failures):
                        self.fail(f"no failures {failure + 1} to {last}")
                else:
                    self.failure(failure)
                called = self.procedures.get(procedure)
                if called is None:
                    self.fail(f"there is no procedure {procedure}")
                elif len(called.params) != len(args) or len(called.results) != len(outs):
                    self.fail(f"{procedure} takes {len(called.params)} values and gives {len(called.results)}")
                else:
                    for param, arg in zip(called.params, args, strict=True):
                        self.same_type(param, arg)
                    for out, result in zip(outs, called.results, strict=True):
                        self.same_type(out, result)
                for out in outs:
                    self.bind(out, scope)
            case ir.Opaque(outs=outs):
                self.host_only("a call of Python")
                for out in outs:
                    self.bind(out, scope)

    def region(self, body: Block, scope: set[Var], cells: set[Cell]) -> None:
        if self.outer_cells is not None:
            self.fail("a region inside a region")
            return
        loops, self.loops, self.outer_cells = self.loops, 0, set(cells)
        self.block(body, scope, cells)
        self.loops, self.outer_cells = loops, None

    def gpu_only(self, what: str) -> None:
        if not self.in_grid:
            self.fail(f"{what} outside of GPU code")

    def host_only(self, what: str) -> None:
        if self.outer_cells is not None:
            self.fail(f"{what} inside a region")

    def failure(self, code: int) -> None:
        if not 0 < code < len(self.function.failures):
            self.fail(f"no failure {code}")

    def same_type(self, cell: Cell | Var, value: Operand) -> None:
        left, right = cell.type, value.type
        if isinstance(left, Scalar) and isinstance(right, Scalar):
            agree = left.dtype == right.dtype
        elif isinstance(left, Array) and isinstance(right, Array):
            agree = (left.dtype, left.rank) == (right.dtype, right.rank)
        else:
            agree = left == right
        if not agree:
            self.fail(f"{value!r} of {right!r} is written to {cell!r} of {left!r}")

    def rhs(self, out: Var, rhs: Rhs) -> None:
        match rhs:
            case Prim(name, args):
                if exact_loops.is_loop(name):
                    dtype = exact_loops.result_dtype(name, tuple(map(dtype_of, args)))
                    if dtype is None or not _is_scalar(out, dtype):
                        self.fail(f"{name} gives {dtype}, not {out.type!r}")
                    return
                if name not in PRIMS:
                    self.fail(f"unknown primitive {name!r}")
                self.dtypes(out, name, args)
            case Load(array, indices):
                dtype = self.access(array, indices)
                if not _is_scalar(out, dtype):
                    self.fail(f"{out!r} is {out.type!r}, loaded from {dtype}")
            case Dim(array, axis) | Stride(array, axis):
                if not 0 <= axis < _array(array).rank:
                    self.fail(f"{array!r} has no axis {axis}")
            case ir.NewArray(extents, space):
                self.rank(out, extents)
                constant = all(isinstance(extent, Const) for extent in extents)
                if space not in ("heap", "stack", "shared") or (space != "heap" and not constant):
                    self.fail(f"no such space: {space}, extents {extents}")
                if space == "heap":
                    self.host_only("memory made on the heap")
            case ir.Lane(name):
                if name not in LANES:
                    self.fail(f"threads do not know their {name}")
                self.gpu_only("a thread's place")
            case ir.Shuffle(mode, value):
                if mode not in ("down", "up", "xor", "index"):
                    self.fail(f"no such shuffle: {mode}")
                self.gpu_only("a shuffle")
                self.same_type(out, value)
            case ir.Ballot(mode):
                if mode not in ("any", "all"):
                    self.fail(f"no such ballot: {mode}")
                self.gpu_only("a ballot")
            case ir.Peers():
                self.gpu_only("a comparison of lanes")
            case ir.Offered(left, right, result):
                for matrix in (left, right, result):
                    if _array(matrix).rank != 2:
                        self.fail(f"{matrix!r} is no matrix")
                self.host_only("a library")
            case ir.Pack(array=array, values=values, flags=flags):
                kinds = [_array(each) for each in (array, values, flags)]
                if any(kind.rank != 1 or kind.layout == "A" for kind in kinds):
                    self.fail(f"{array!r} is packed, or from, what is not one run of memory")
                if kinds[0].dtype != kinds[1].dtype or kinds[2].dtype != "bool" or itemsize(kinds[0].dtype) > 16:
                    self.fail(f"values {kinds[1]!r} with flags {kinds[2]!r} are packed into {kinds[0]!r}")
            case ir.Pairwise(name, array, indices):
                dtype = self.access(array, indices)
                if name not in ("add", "mul") or dtype not in ("float32", "float64", "complex64", "complex128"):
                    self.fail(f"pairwise {name} of {dtype}")
                if self.in_grid:
                    self.fail("a library in GPU code")
            case ir.Atomic(name, array, indices, value, expected):
                if name not in ATOMICS or (expected is None) != (name != "compare"):
                    self.fail(f"no such atomic: {name}")
                self.gpu_only("an atomic")
                dtype = self.access(array, indices)
                for operand in (out, value, *(() if expected is None else (expected,))):
                    if not _is_scalar(operand, dtype):
                        self.fail(f"{operand!r} is {operand.type!r}, in an atomic on {dtype}")
            case AnyView():
                for problem in view_problems(rhs):
                    self.fail(problem)
                self.rank(out, rhs.extents)

    def rank(self, out: Var, extents: tuple[Operand, ...]) -> None:
        if not isinstance(out.type, Array) or out.type.rank != len(extents):
            self.fail(f"{len(extents)} extents for {out!r} of {out.type!r}")

    def dtypes(self, out: Var, name: str, args: tuple[Operand, ...]) -> None:
        own = args[1:] if name == "select" else args
        kinds = {getattr(arg.type, "dtype", None) for arg in own}
        if len(kinds) != 1:
            self.fail(f"{name} of different dtypes {sorted(map(str, kinds))}")
        result = getattr(out.type, "dtype", None)
        if name in COMPARE or name in FLOAT_TESTS:
            if result != "bool":
                self.fail(f"{name} gives bool, not {result}")
        elif name not in COMPLEX_PARTS | REINTERPRET and name != "abs" and {result} != kinds:
            self.fail(f"{name} of {kinds} gives {result}")


_used_cells = grammar.collector(lambda leaf, uses: leaf is grammar.Leaf.PLACE and grammar.Use.BINDS not in uses)


def _array(operand: Operand) -> Array:
    assert isinstance(operand.type, Array)
    return operand.type


def _is_scalar(operand: Operand | Cell, dtype: str) -> bool:
    return isinstance(operand.type, Scalar) and operand.type.dtype == dtype
