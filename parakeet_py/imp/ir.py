"""Imp: the loop language. Storage is explicit, loops have kinds, nothing is implicit any more.

Lowering (imp/lower/function.py) turns every operator of the typed IR into loop nests here; the LLVM and PTX back ends
print what they find. Immutable values are the typed IR's `Var` and `Const`, right-hand sides its `Prim` and `Cast`.
What varies (an out of an `If`, a loop-carried variable, an accumulator) is a `Cell`: declared once, then read and
written.

**Arrays** are descriptors: (object, base, block, data, extents, strides in bytes). `data` points at element 0. `block`
is the reference-counted heap block that owns the memory (null for memory that Python owns), `base` the Python array
that owns it otherwise, `object` the very Python array that this descriptor is (null for views and temporaries).
`NewArray` makes a block with one reference; every descriptor kept in a variable or cell holds one reference to its
block, dropped by `Release` after its last use; `Retain` adds one when a descriptor is copied. All storage that a region
needs is allocated before the region starts; inside a `Parallel` body only `space="stack"` arrays are made.

**Loops**: `For` counts. Its kind says what may be done with it: `serial` (iterations in order), `vector` (innermost,
independent or reducing through `reassoc` operations: meant to be vectorized), `independent` (iterations do not depend
on each other, but stay on one thread). `Parallel` is a partitioned body: it runs on a range [lo, hi) of the split
index space and knows nothing about who runs the other ranges; ranges start at multiples of `grain`. Its body declares
its own cells; it may read outer values, store into outer arrays, and `Check`, but not write outer cells.

A `Check` that fails records its failure with `order` (the iteration number, so that of several failing iterations of a
Parallel the first in iteration order wins) and leaves the body or function at once.

**GPU.** A lowering for GPUs writes `Grid` regions instead of `Parallel` ones: the body is what one thread does, and it
asks which one it is (`Lane`). Threads of a block share `space="shared"` arrays and meet at a `Barrier`; threads of a
warp exchange values by `Shuffle` and compare them by `Peers`; memory that several threads change is changed by
`Atomic`. Outlining (ptx/outline.py) makes a kernel of every region and leaves a `Launch` in its place.

`Function.roots` gives for each array variable or cell the set of memory roots it may point into; accesses with disjoint
root sets never alias.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Annotated

from parakeet_py.base import grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import Use
from parakeet_py.base.types import Type
from parakeet_py.frontend.ssa import Pos
from parakeet_py.typed_ir.ir import (
    AnyView,
    Bound,
    BoundIndex,
    Bounds,
    Cast,
    Dim,
    Failure,
    Index,
    Indices,
    Interrupted,
    Load,
    Operand,
    Operands,
    Prim,
    Reads,
    Shaped,
    Stride,
    Truth,
    Updates,
    Var,
    Writes,
)

_uids = itertools.count(1)


@record(eq=False)
class Cell:
    """A mutable variable (scalar, array descriptor or Python object). Printed `$name.uid`."""

    name: str
    type: Type
    uid: int = field(default_factory=lambda: next(_uids))

    def __repr__(self) -> str:
        return f"${self.name}.{self.uid}"


BoundCell = Annotated[Cell, Use.BINDS]
WrittenCell = Annotated[Cell, Use.WRITES]


# ---- right-hand sides ------------------------------------------------------------------------------------------------


@record
class Read:
    """The present value of a cell."""

    TEXT = "{cell}"

    cell: Cell


@record
class NewArray:
    """Contiguous memory with unspecified contents in the out's layout (C or F); `space` is heap, stack or shared (the
    latter two with constant extents only)."""

    TEXT = "new {space} ({extents})"

    extents: Indices
    space: str = "heap"


@record
class Lane:
    """Where a GPU thread is (int64): `thread` in its block, `block` in the grid, `threads` of a block, `blocks` of the
    grid, `lane` in its warp; `groups`: 1 if the GPU multiplies in groups of warps (see `WarpProduct`), else 0; `boxes`
    (bool): the kernel is compiled for bulk copies (`BulkProduct`)."""

    TEXT = "this {name}"

    name: str


@record
class Shuffle:
    """The value that another thread of the warp has here: `down` or `up` by amount, `xor` the lane number with it, or
    of the lane `index`. All threads of the warp take part; one whose source does not exist gets its own value."""

    TEXT = "shuffle {mode} {value} by {amount}"

    mode: str
    value: Operand
    amount: Index


@record
class Ballot:
    """Whether a condition holds in `any` or in `all` threads of the block, which all arrive here."""

    TEXT = "{mode} thread {condition}"

    mode: str
    condition: Truth


PEERS = 256


@record
class Peers:
    """Of the lanes of the warp that have the same integer here: how many are before this one, plus PEERS times how many
    there are. All threads of the warp take part; it is compared by its lowest 32 bits."""

    TEXT = "lanes with {value}"

    value: Index


@record
class Atomic:
    """Change an element at once and give its old value: `add`, `sub`, `mul`, `minimum`, `maximum`, `fmin`, `fmax`,
    `and`, `or`, `xor` (as the primitives of these names; of complex ones `add` alone, part by part), `exchange`, and
    `compare`: store if the old value has the bits of `expected`. `load` and `store` (which gives its own value) are
    an acquire and a release: who has loaded what was stored sees everything that was stored before. `relaxed_load` and
    `relaxed_store` order nothing but themselves."""

    TEXT = "atomic {name} {array}[{indices}], {value}{expected: where %}"

    name: str
    array: Updates
    indices: Indices
    value: Operand
    expected: Operand | None = None


@record
class Pack:
    """Store those of the first `count` values whose flags are true side by side into `array`, from `place` on, and give
    the place behind them; nothing is stored at `end` or behind. One axis each, of adjacent elements of one to
    sixteen bytes; values and flags are on the stack, in a multiple of 64 places."""

    TEXT = "pack {values} where {flags}, {count} of them, into {array} from {place} to {end}"

    array: Writes
    place: Index
    end: Index
    values: Reads
    flags: Reads
    count: Index


@record
class Pairwise:
    """The pairwise sum (`add`) or product (`mul`) of `count` adjacent elements, beginning with one of an array along
    whose axis of unit stride they lie. float32, float64 and complex ones of these; -0.0 or 1.0 for none."""

    TEXT = "pairwise {name} of {count} from {array}[{start}]"

    name: str
    array: Reads
    start: Indices
    count: Index


@record
class Offered:
    """Whether a library of the device computes left @ right into `out`, in the place of a kernel that says it does
    nothing else (`Grid.product`). For the host of a GPU."""

    TEXT = "offered {out} = {left} @ {right}"

    left: Shaped
    right: Shaped
    out: Shaped


Rhs = (
    Prim
    | Cast
    | Read
    | Load
    | Dim
    | Stride
    | NewArray
    | AnyView
    | Lane
    | Shuffle
    | Ballot
    | Peers
    | Atomic
    | Pack
    | Pairwise
    | Offered
    | Interrupted
)

# ---- statements ------------------------------------------------------------------------------------------------------


@record
class Let:
    """Bind an immutable variable. `reassoc`: a float add or mul that accumulates may be regrouped; a float
    minimum or maximum that does may give either of two zeros, and anything once it has met a NaN."""

    out: Bound
    rhs: Rhs
    pos: Pos
    reassoc: bool = False


@record
class Declare:
    """Bring a cell into being; unspecified (scalar) or null (array, object) until written unless `init` is given."""

    cell: BoundCell
    init: Operand | None = None


@record
class Write:
    TEXT = "{cell} := {value}"

    cell: WrittenCell
    value: Operand


@record
class Store:
    TEXT = "{array}[{indices}] := {value}"

    array: Writes
    indices: Indices
    value: Operand
    pos: Pos


@record
class If:
    """`rare`: the condition seldom holds; a processor goes on without waiting for it."""

    condition: Truth
    then: Block
    orelse: Block
    rare: bool = False


@record
class For:
    """index = start, start+step, ... before stop. `kind`: serial; independent; vector; lanes (a vector loop from 0 to a
    small constant, all at once); few (a serial loop with hardly any iterations)."""

    index: BoundIndex
    start: Index
    stop: Index
    step: Index
    body: Block
    kind: str = "serial"


@record
class While:
    """Run `head`, leave unless `condition` (a value bound in head, or a constant), run `body`, again; `few` times."""

    head: Block
    condition: Truth
    body: Block
    few: bool = False


@record
class Break:
    """Leave the innermost For or While."""

    TEXT = "break"


@record
class Parallel:
    """Run `body` over [0, extent) in ranges [lo, hi). `work` estimates the scalar operations of one iteration: the
    region stays on the calling thread when extent * work is too small to share."""

    lo: BoundIndex
    hi: BoundIndex
    extent: Index
    grain: Index
    work: Index
    body: Block
    name: str = "region"


@record
class Check:
    """Fail unless `condition`; `code` is filled in by `Function.failures` order when lowered."""

    TEXT = "check {condition} else failure {failure}{args: (%)}{order: in iteration %}"

    condition: Truth
    failure: int
    args: Operands
    order: Index | None
    pos: Pos


@record
class Retain:
    TEXT = "retain {array}"

    array: Var | Cell


@record
class Release:
    """Drop the reference that a variable or cell holds (its block may be null; objects too)."""

    TEXT = "release {array}"

    array: Var | Cell


@record
class Matmul:
    """BLAS: out = left @ right; ranks (2,2), (2,1), (1,2); any layout (what BLAS cannot read is copied there)."""

    TEXT = "{out} := matmul {left}, {right}"

    out: Writes
    left: Reads
    right: Reads
    pos: Pos


@record
class Routine:
    """Run a compiled loop of NumPy, as the typed IR's `Routine` does; binds `failed`, if there, to whether it did."""

    failed: Bound | None
    name: str
    outs: tuple[Updates, ...]
    ins: tuple[Reads, ...]
    pos: Pos


@record
class Opaque:
    """Call back into Python through call site `site`; array results come back owned by Python (base set). With
    `leaves`, the function does not go on after it."""

    outs: Bounds
    site: int
    args: Operands
    pos: Pos
    leaves: bool = False


@record
class Call:
    """Call one of the function's procedures by its name; `stores` are the positions of the arrays it may store into.
    Array results hand a reference to the caller; each is new memory of its own if they are `fresh`. Fails with
    `failure` when it is one of too many: `levels` more. A procedure of the library (no levels) has failures of its own:
    number n of them is number `failure` + n here."""

    outs: Bounds
    procedure: str
    args: Operands
    stores: tuple[int, ...]
    levels: int
    failure: int
    pos: Pos
    fresh: bool = False


@record
class Clock:
    """A kernel begins, or ends after `counts` (its points, its bytes): its number in the table of those that are timed,
    outside (`lower.timed_kernels`)."""

    TEXT = "clock {kernel} {what} ({counts})"

    kernel: int
    what: str  # begin or end
    counts: Indices = ()


@record
class Grid:
    """A GPU region: `body` is run by `blocks` x `threads` threads. `contract`: products and sums may be fused whatever
    the settings (which cannot be seen). `product`: all it does is left @ right into an array: (left, right, array).
    `at_once`: threads fail alike, and after stores, so the first one says all about it."""

    blocks: Index
    threads: int
    body: Block
    name: str = "kernel"
    contract: bool = False
    product: tuple[Reads, Reads, Writes] | None = None
    at_once: bool = False


@record
class Barrier:
    """All threads of a block (`scope` "block") wait for each other and see what the others have stored; "warp": those
    of a warp."""

    TEXT = "barrier {scope}"

    scope: str = "block"


@record
class CopyRun:
    """A thread begins to copy neighbouring elements, 16 bytes, to shared memory: from `place` of a matrix to (slice,
    line, element) of `target`, where only a `WarpProduct` finds them; zeros if they are not `there`. They have arrived
    when the thread has come to a `CopyWait` for them."""

    TEXT = "copy 16 bytes of {source}[{place}] to {target}[{at}] where {there}"

    target: Writes
    at: Indices
    source: Reads
    place: Indices
    there: Truth


@record
class CopyGroup:
    """The copies that a thread has begun since the last one are a group."""

    TEXT = "group copies"


@record
class CopyWait:
    """The thread waits for all its groups of copies but the last `left` ones."""

    TEXT = "wait for copies but {left} groups"

    left: int


@record
class WarpFactor:
    """A factor of a `WarpProduct`: slices in shared memory that `CopyRun` has filled, as (slice, line, element), whose
    last axis is the shared one (`along`) or whose last but one is, and where in it the tile begins."""

    array: Reads
    at: Indices
    along: bool


@record
class WarpTile:
    """Extents of a `WarpProduct`: so many times 16 rows and 8 columns (an even number of times), and elements of depth
    (a multiple of 16; of float64, of 8)."""

    rows: int
    columns: int
    depth: int


@record
class WarpProduct:
    """A GPU warp multiplies two matrices of float16, of float32 rounded to TF32, or of float64, and adds to `sums`,
    float32 (of float64: float64). Each lane has four places of every 16 x 8 (in C order): rows lane // 4 and 8 below,
    columns lane % 4 * 2 and the next. All threads of the warp take part.

    Where groups of four warps multiply (`Lane`), tiles of float16 of 4 times 16 rows and 4 times 8 columns are those of
    a group: its rows are where the tile begins, its columns four times as many from the first one on. Of each 16 x 8,
    in the order of the columns, the lanes of a warp have the 16 rows that follow from its number in the group."""

    sums: tuple[WrittenCell, ...]
    tile: WarpTile
    left: WarpFactor
    right: WarpFactor


@record
class BoxFactor:
    """A factor of a `BulkProduct`: a matrix that two axes of an array are, and where in it the tile begins; `deep` is
    the shared axis. The one or the other has neighbours in memory."""

    array: Reads
    at: Indices
    deep: int
    other: int


@record
class BulkProduct:
    """A block of a GPU adds to `sums` the product of two matrices of float16, 128 x 128 of it, which begins where the
    factors say. Each lane has the places that it has of a `WarpProduct` of groups of warps.
    A block has one warp more here, which does nothing behind it. `slices`: 64 elements of the shared axis each, or
    fewer in the last."""

    sums: tuple[WrittenCell, ...]
    left: BoxFactor
    right: BoxFactor
    slices: Index


@record
class Launch:
    """Run kernel number `kernel` by `blocks` blocks; the args are what its body took from around it."""

    TEXT = "launch kernel {kernel}, {blocks} blocks ({args})"

    kernel: int
    blocks: Index
    args: Operands


Statement = (
    Let
    | Declare
    | Write
    | Store
    | If
    | For
    | While
    | Break
    | Parallel
    | Check
    | Retain
    | Release
    | Matmul
    | Routine
    | Opaque
    | Call
    | Clock
    | Grid
    | Barrier
    | CopyRun
    | CopyGroup
    | CopyWait
    | WarpProduct
    | BulkProduct
    | Launch
)


@record
class Block:
    statements: tuple[Statement, ...]


@record
class FailureSite:
    """A failure code's meaning: what to raise and where in the user's source."""

    failure: Failure
    pos: Pos


@record
class Function:
    """One specialization as loops. `params` and `results` are leaves as in the typed function; a result array hands
    its reference to the caller. `failures[code]` says what a failed Check raises (code 0 is not used); procedures
    share their caller's, but for those of the `library`; and neither they nor others know who else holds the memory of
    their parameters. `timed`: what its `Clock`s are about."""

    name: str
    params: tuple[Var, ...]
    body: Block
    results: tuple[Operand, ...]
    failures: tuple[FailureSite, ...]
    roots: dict[Var | Cell, frozenset[int]] = field(hash=False)
    procedures: tuple[Function, ...] = ()
    library: bool = False
    timed: tuple[object, ...] = field(default=(), hash=False)  # the statements of the typed IR that `Clock` numbers


grammar.leaf(grammar.Leaf.PLACE, Cell)
grammar.leaf(grammar.Leaf.BLOCK, Block)
grammar.leaf(grammar.Leaf.PLAIN, Function)

Part = Statement | Rhs
operands_in: Callable[[Part], Operands] = grammar.operands  # that it reads itself: not those in its blocks
binders_of: Callable[[Part], tuple[Var | Cell, ...]] = grammar.binders
blocks_of: Callable[[Part], tuple[Block, ...]] = grammar.blocks
walk: Callable[[Block], Iterator[Statement]] = grammar.walk


def arrays_written(statement: Part) -> tuple[Var, ...]:
    """The arrays whose elements a statement itself changes, but for what Python behind an `Opaque` may do."""
    if isinstance(statement, Call):
        stored = [statement.args[position] for position in statement.stores]
        return tuple([array for array in stored if isinstance(array, Var)])
    return grammar.writes(statement)
