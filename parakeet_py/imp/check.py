"""Is a function well-formed Imp?

Checked: every variable is bound once on the way to each use and before it; cells are declared before they are read or
written; ranks, dtypes and argument counts agree; `Break` stands in a loop; a region contains no other region, makes no
heap memory, counts no references and writes no cell of the outside; failure codes exist; array operands have roots.
All violations are collected and raised together.

References are counted in another way: by the interpreter, which follows each block through a run.
"""

from __future__ import annotations

from collections.abc import Iterable

from parakeet_py.base import routines
from parakeet_py.base.types import Array, Scalar, itemsize
from parakeet_py.imp.ir import (
    Atomic,
    Ballot,
    Barrier,
    Block,
    Break,
    Call,
    Cell,
    Check,
    Declare,
    For,
    Function,
    Grid,
    If,
    Lane,
    Launch,
    Let,
    Matmul,
    NewArray,
    Offered,
    Opaque,
    Pack,
    Parallel,
    Peers,
    Read,
    Release,
    Retain,
    Rhs,
    Routine,
    Shuffle,
    Statement,
    Store,
    WarpProduct,
    While,
    Write,
)
from parakeet_py.imp.print import format_statement
from parakeet_py.typed_ir.ir import (
    COMPARE,
    COMPLEX_PARTS,
    FLOAT_TESTS,
    PRIMS,
    REINTERPRET,
    Cast,
    Const,
    Dim,
    Load,
    Operand,
    Prim,
    Reshape,
    Stride,
    Strided,
    Var,
    View,
)

KINDS = ("serial", "vector", "independent")
LANES = ("thread", "block", "threads", "blocks", "lane")
UPDATES = ("add", "sub", "mul", "minimum", "maximum", "fmin", "fmax", "and", "or", "xor")
ATOMICS = (*UPDATES, "exchange", "compare", "load", "store")
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
            checker.operand(result, scope, "result")
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

    # ---- operands ----------------------------------------------------------------------------------------------------

    def operand(self, operand: Operand, scope: set[Var], what: str = "operand") -> None:
        if isinstance(operand, Var):
            if operand not in scope:
                self.fail(f"{what} {operand!r} is not bound here")
        elif not isinstance(operand, Const):
            self.fail(f"{what} {operand!r} is no operand")

    def index(self, operand: Operand, scope: set[Var], what: str = "index") -> None:
        self.operand(operand, scope, what)
        if getattr(operand.type, "dtype", None) != "int64" or not isinstance(operand.type, Scalar):
            self.fail(f"{what} {operand!r} is {operand.type!r}, not int64")

    def array(self, var: Var, scope: set[Var]) -> Array:
        self.operand(var, scope, "array")
        if not isinstance(var.type, Array):
            self.fail(f"{var!r} is {var.type!r}, no array")
            return Array("float64", 0)
        if var not in self.function.roots:
            self.fail(f"{var!r} has no memory roots")
        return var.type

    def access(self, var: Var, indices: tuple[Operand, ...], scope: set[Var]) -> str:
        kind = self.array(var, scope)
        if len(indices) != kind.rank:
            self.fail(f"{len(indices)} indices for {var!r} of rank {kind.rank}")
        for index in indices:
            self.index(index, scope)
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
        match statement:
            case Let(out, rhs):
                self.rhs(out, rhs, scope, cells)
                self.bind(out, scope)
            case Declare(cell, init):
                if init is not None:
                    self.operand(init, scope)
                    self.same_type(cell, init)
                cells.add(cell)
            case Write(cell, value):
                self.operand(value, scope)
                self.same_type(cell, value)
                if cell not in cells:
                    self.fail(f"{cell!r} is not declared here")
                if self.outer_cells is not None and cell in self.outer_cells:
                    self.fail(f"{cell!r} belongs to the outside of the region")
            case Store(array, indices, value):
                dtype = self.access(array, indices, scope)
                self.operand(value, scope)
                if getattr(value.type, "dtype", None) != dtype:
                    self.fail(f"{value!r} is {value.type!r}, stored into {dtype}")
            case If(condition, then, orelse):
                self.boolean(condition, scope)
                self.inside([then], scope, cells, False)
                self.inside([orelse], scope, cells, False)
            case For(index, start, stop, step, body, kind):
                for bound in (start, stop, step):
                    self.index(bound, scope, "bound")
                if kind not in KINDS:
                    self.fail(f"unknown kind of loop {kind!r}")
                self.inside([body], {*scope, index}, cells, True)
            case While(head, condition, body):
                self.loops += 1
                inner, inner_cells = self.block(head, scope, cells)
                self.boolean(condition, inner)
                self.block(body, inner, inner_cells)
                self.loops -= 1
            case Break():
                if not self.loops:
                    self.fail("break outside of a loop")
            case Parallel(lo, hi, extent, grain, work, body):
                for number in (extent, grain, work):
                    self.index(number, scope, "size")
                if self.outer_cells is not None:
                    self.fail("a region inside a region")
                    return
                self.region(body, {*scope, lo, hi}, cells)
            case Grid(blocks, threads, body):
                self.index(blocks, scope, "size")
                if not 1 <= threads <= MAX_BLOCK_THREADS:
                    self.fail(f"a block of {threads} threads")
                if self.outer_cells is not None:
                    self.fail("a region inside a region")
                    return
                self.in_grid = True
                self.region(body, scope, cells)
                self.in_grid = False
            case Barrier(place):
                if place not in ("block", "warp"):
                    self.fail(f"no such barrier: {place}")
                self.gpu_only("a barrier")
            case WarpProduct(sums, tile, left, right):
                self.gpu_only("a product of a warp")
                elements = [self.access(factor.array, factor.at, scope) for factor in (left, right)]
                if elements not in (["float16"] * 2, ["float32"] * 2) or len(sums) != 4 * tile.rows * tile.columns:
                    self.fail(f"no product of {elements} in {len(sums)} sums")
                if tile.columns % 2 or tile.depth % 16:
                    self.fail(f"no such tile: {tile}")
                for cell in sums:
                    if cell not in cells or getattr(cell.type, "dtype", None) != "float32":
                        self.fail(f"{cell!r} is no float32 cell declared here")
            case Launch(_, blocks, args):
                self.index(blocks, scope, "size")
                for arg in args:
                    self.operand(arg, scope)
                if self.outer_cells is not None:
                    self.fail("a launch inside a region")
            case Check(condition, failure, args, order):
                self.boolean(condition, scope)
                if not 0 < failure < len(self.function.failures):
                    self.fail(f"no failure {failure}")
                for arg in args:
                    self.operand(arg, scope)
                if order is not None:
                    self.index(order, scope, "order")
                elif self.outer_cells is not None:
                    self.fail("a check inside a region needs its iteration number")
            case Retain(place) | Release(place):
                if place not in scope and place not in cells:
                    self.fail(f"{place!r} is not bound here")
                if self.outer_cells is not None:
                    self.fail("references are counted inside a region")
            case Matmul(out, left, right):
                dtypes = {self.array(each, scope).dtype for each in (out, left, right)}
                if len(dtypes) != 1:
                    self.fail("matmul of different dtypes")
            case Routine(failed, name, outs, ins):
                for each in (*outs, *ins):
                    lines = self.array(each, scope)
                    if lines.layout not in "CS" and routines.family(name) in ("sort", "argsort"):
                        self.fail(f"{name} of lines that are not contiguous")
                if failed is not None:
                    self.bind(failed, scope)
            case Call(outs, procedure, args, _, _, failure):
                if self.outer_cells is not None:
                    self.fail("a call inside a region")
                if not 0 < failure < len(self.function.failures):
                    self.fail(f"no failure {failure}")
                for arg in args:
                    self.operand(arg, scope)
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
            case Opaque(outs, _, args):
                if self.outer_cells is not None:
                    self.fail("a call of Python inside a region")
                for arg in args:
                    self.operand(arg, scope)
                for out in outs:
                    self.bind(out, scope)

    def region(self, body: Block, scope: set[Var], cells: set[Cell]) -> None:
        loops, self.loops, self.outer_cells = self.loops, 0, set(cells)
        self.block(body, scope, cells)
        self.loops, self.outer_cells = loops, None

    def gpu_only(self, what: str) -> None:
        if not self.in_grid:
            self.fail(f"{what} outside of GPU code")

    def boolean(self, operand: Operand, scope: set[Var]) -> None:
        self.operand(operand, scope, "condition")
        if getattr(operand.type, "dtype", None) != "bool":
            self.fail(f"condition {operand!r} is {operand.type!r}")

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

    def rhs(self, out: Var, rhs: Rhs, scope: set[Var], cells: set[Cell]) -> None:
        match rhs:
            case Prim(name, args):
                for arg in args:
                    self.operand(arg, scope)
                if name not in PRIMS:
                    self.fail(f"unknown primitive {name!r}")
                self.dtypes(out, name, args)
            case Cast(arg):
                self.operand(arg, scope)
            case Read(cell):
                if cell not in cells:
                    self.fail(f"{cell!r} is not declared here")
            case Load(array, indices):
                dtype = self.access(array, indices, scope)
                if getattr(out.type, "dtype", None) != dtype:
                    self.fail(f"{out!r} is {out.type!r}, loaded from {dtype}")
            case Dim(array, axis) | Stride(array, axis):
                if not 0 <= axis < self.array(array, scope).rank:
                    self.fail(f"{array!r} has no axis {axis}")
            case NewArray(extents, space):
                for extent in extents:
                    self.index(extent, scope, "extent")
                if not isinstance(out.type, Array) or out.type.rank != len(extents):
                    self.fail(f"{len(extents)} extents for {out!r} of {out.type!r}")
                constant = all(isinstance(extent, Const) for extent in extents)
                if space not in ("heap", "stack", "shared") or (space != "heap" and not constant):
                    self.fail(f"no such space: {space}, extents {extents}")
                if space == "heap" and self.outer_cells is not None:
                    self.fail(f"{out!r} is made on the heap inside a region")
            case Lane(name):
                if name not in LANES:
                    self.fail(f"threads do not know their {name}")
                self.gpu_only("a thread's place")
            case Shuffle(mode, value, amount):
                if mode not in ("down", "up", "xor", "index"):
                    self.fail(f"no such shuffle: {mode}")
                self.gpu_only("a shuffle")
                self.operand(value, scope)
                self.index(amount, scope)
                self.same_type(out, value)
            case Ballot(mode, condition):
                if mode not in ("any", "all"):
                    self.fail(f"no such ballot: {mode}")
                self.gpu_only("a ballot")
                self.boolean(condition, scope)
            case Peers(value):
                self.gpu_only("a comparison of lanes")
                self.index(value, scope, "compared value")
            case Offered(left, right, result):
                for matrix in (left, right, result):
                    if self.array(matrix, scope).rank != 2:
                        self.fail(f"{matrix!r} is no matrix")
                if self.outer_cells is not None:
                    self.fail("a library inside a region")
            case Pack(array, place, end, values, flags, count):
                for operand in (place, end, count):
                    self.index(operand, scope)
                kinds = [self.array(each, scope) for each in (array, values, flags)]
                if any(kind.rank != 1 or kind.layout == "A" for kind in kinds):
                    self.fail(f"{array!r} is packed, or from, what is not one run of memory")
                if kinds[0].dtype != kinds[1].dtype or kinds[2].dtype != "bool" or itemsize(kinds[0].dtype) > 8:
                    self.fail(f"values {kinds[1]!r} with flags {kinds[2]!r} are packed into {kinds[0]!r}")
            case Atomic(name, array, indices, value, expected):
                if name not in ATOMICS or (expected is None) != (name != "compare"):
                    self.fail(f"no such atomic: {name}")
                self.gpu_only("an atomic")
                dtype = self.access(array, indices, scope)
                for operand in (out, value, *(() if expected is None else (expected,))):
                    if getattr(operand.type, "dtype", None) != dtype:
                        self.fail(f"{operand!r} is {operand.type!r}, in an atomic on {dtype}")
            case View(base, starts, axes):
                if len(starts) != self.array(base, scope).rank:
                    self.fail(f"{len(starts)} starts for {base!r}")
                for operand in (*starts, *(o for axis in axes for o in (axis.extent, axis.step))):
                    self.index(operand, scope)
                if getattr(out.type, "rank", -1) != len(axes):
                    self.fail(f"{len(axes)} axes for {out!r} of {out.type!r}")
            case Strided(base, offset, extents, strides):
                self.array(base, scope)
                for operand in (offset, *extents, *strides):
                    self.index(operand, scope)
                if not getattr(out.type, "rank", -1) == len(extents) == len(strides):
                    self.fail(f"{len(extents)} extents and {len(strides)} strides for {out!r} of {out.type!r}")
            case Reshape(base, extents):
                if self.array(base, scope).layout != "C":
                    self.fail(f"{base!r} is not contiguous")
                for operand in extents:
                    self.index(operand, scope)
                if getattr(out.type, "rank", -1) != len(extents):
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
