"""The typed IR: SSA with machine scalars, array descriptors and parallel array operators.

It is what specialization makes of the untyped IR for one signature: every cast, broadcast, axis, view, bounds check
and allocation that NumPy leaves implicit is a statement here. Statements are `Let(outs, op, pos)` in A-normal form;
operands are a typed `Var` or a scalar `Const`. Control is structured (`If`, `For`, `While`) with merges as block
results, as in the untyped IR.

**Arrays** are descriptors (memory, extents, strides). `View`, `Reshape`, `Strided` make a new one of the same memory;
`Alloc` and the operators make new memory. Memory is mutable: `Store` changes it for every view of it. Order of
statements is the order of effects.

**Index spaces.** There is one elementwise operator, `Map`: an index space (`extents`), index variables and a body that
reads what it needs with `Load` at explicit indices. NumPy's broadcasting, gathers, generated arrays and shifted
stencil reads are all index expressions in the body, so that fusing a producer is substituting its body at an index,
and the way an operator reads an input (identity, shifted, broadcast, whole) can be computed from those expressions.
A `Map` may also `Store` into existing arrays; what builds it has proved that no iteration reads or writes an element
another iteration writes. Iterations may run in any order, in parallel.

`Reduce`, `Scan`, `Compress` and `Scatter` have the same shape: an index space, a body that says what each point
contributes, and how contributions combine. `combine` is associative (regrouping is allowed, reordering is not) and
`inits` is its identity. Operators may be nested in bodies: there they are loops inside one iteration.

Indices of `Load`, `Store` and `View` are never negative and always in range: the specializer has emitted the wrap-
around and a `Check` before. A `Check` that fails leaves the function with its exception, effects so far standing.

**Procedures.** Calls are inlined by the specializer, but for two kinds: a recursion, and long functions of the library,
which many functions share. These become procedures: functions of their own among `Function.procedures`, which a `Call`
names.

**Fields.** The annotations of an operator's fields say what they are (`base/grammar.py`): an operand, a variable it
binds, a block, an array it reads or writes. Walking, rebuilding, effects and half of the checker follow from them.

What this IR cannot say: unstructured jumps, exceptions caught, Python objects other than as arguments of `Opaque`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Annotated

from parakeet_py.base import grammar
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.grammar import Use
from parakeet_py.base.types import PYINT, Array, Scalar, Type
from parakeet_py.frontend.ssa import Pos

_uids = itertools.count(1)


@record(eq=False)
class Var:
    """An immutable variable; identity is equality. Printed `name.uid`."""

    name: str
    type: Type
    uid: int = field(default_factory=lambda: next(_uids))

    def __repr__(self) -> str:
        return f"{self.name}.{self.uid}"


@record
class Const:
    """A scalar literal: bool, int, float or complex `value`, exactly representable in `type.dtype`."""

    value: bool | int | float | complex
    type: Scalar

    def __eq__(self, other: object) -> bool:
        # repr distinguishes -0.0 from 0.0 and True from 1, and makes NaN equal to itself.
        return isinstance(other, Const) and self.type == other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash(value) if value == value else 0  # the hash of a NaN is that of the object

    @property
    def whole(self) -> int:
        """The value of a constant that is an integer or a bool."""
        assert not isinstance(self.value, float | complex), f"{self} is no integer"
        return int(self.value)


ZERO, ONE = Const(0, PYINT), Const(1, PYINT)

# ---- what fields are -------------------------------------------------------------------------------------------------

Operand = Var | Const
Operands = tuple[Operand, ...]
Index = Annotated[Var | Const, Use.INDEX]  # an int64
Indices = tuple[Index, ...]
Truth = Annotated[Var | Const, Use.TRUTH]  # a bool
Bound = Annotated[Var, Use.BINDS]  # known in the blocks of the operator, or behind the statement
Bounds = tuple[Bound, ...]
BoundIndex = Annotated[Var, Use.BINDS, Use.INDEX]
BoundIndices = tuple[BoundIndex, ...]
Shaped = Annotated[Var, Use.SHAPE]  # an array whose extents or strides are read, not its elements
Reads = Annotated[Var, Use.READS]  # an array whose elements are read
Writes = Annotated[Var, Use.WRITES]  # an array whose elements are stored into
Updates = Annotated[Var, Use.READS, Use.WRITES]

# ---- scalar primitives -----------------------------------------------------------------------------------------------
# All arguments and the result have one dtype unless a line says otherwise.

ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "abs"})  # integers wrap; abs of complex gives its real dtype
CHECKED = frozenset({"add_checked", "sub_checked", "mul_checked", "neg_checked", "abs_checked"})
# ^ int64 only; OverflowError when the result does not fit
DIVISION = frozenset({"div", "floordiv", "mod", "fmod"})
# ^ div: floats, complex. floordiv, mod: Python's rounding and signs as NumPy computes them (integers: x//0 == x%0 == 0,
#   min//-1 wraps). fmod: C's signs.
BITS = frozenset({"and", "or", "xor", "not", "shl", "shr"})  # not: logical for bool. Shifts by >= width: 0, or -1 for
#   shr of a negative number, as NumPy's.
MUL_HIGH = "mul_high"  # uint64 only: the upper half of the 128 bits of a product
HALF_POWERS = (0.5, -0.5, 1.5, -1.5)  # exponents of a `pow` that is computed by a root and a division at most
COMPARE = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})  # give bool; complex: eq, ne only
EXTREMA = frozenset({"minimum", "maximum", "fmin", "fmax"})  # minimum/maximum propagate NaN, fmin/fmax ignore it
# float32, float64 only: maximum and minimum that give the second of two zeros of both signs on every processor
BOUNDED = frozenset({"at_least", "at_most"})
_ELEMENTARY_UNARY = frozenset(
    {
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt"),
        *("sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        *("erf", "erfc", "gamma", "lgamma"),
    }
)
ELEMENTARY = _ELEMENTARY_UNARY | {
    "pow",
    "power",
    "atan2",
    "hypot",
}  # approximations, which may differ by where they run
ROUNDED = frozenset({"sqrt", "floor", "ceil", "trunc", "rint"})  # have one result only
FLOAT_UNARY = _ELEMENTARY_UNARY | ROUNDED
FLOAT_TESTS = frozenset({"isnan", "isinf", "isfinite", "signbit"})  # float -> bool
# power: pow, but x*x, sqrt(x), 1/x, x and 1 where the exponent is 2, 0.5, -1, 1 or 0 (of float32 and float64)
FLOAT_BINARY = frozenset({"pow", "power", "atan2", "hypot", "copysign", "nextafter"})
# real, imag: complex -> real; complex: (re, im) -> complex
COMPLEX_PARTS = frozenset({"real", "imag", "conj", "complex"})
# bits: a float as the signed integer that has the same bits; from_bits: back
REINTERPRET = frozenset({"bits", "from_bits"})
# on_device: (bool) -> bool; true in what runs on a GPU, else its argument: for what is better done in another way there
ON_DEVICE = "on_device"
SELECT = "select"  # (bool, a, a) -> a; both values are computed
PRIMS = (
    ARITHMETIC
    | CHECKED
    | DIVISION
    | BITS
    | COMPARE
    | EXTREMA
    | BOUNDED
    | FLOAT_UNARY
    | FLOAT_TESTS
    | FLOAT_BINARY
    | COMPLEX_PARTS
    | REINTERPRET
    | {SELECT, ON_DEVICE, MUL_HIGH}
)


@record
class Pure:
    """What depends on its operands alone, not on the contents of memory, and changes nothing."""


@record
class Prim(Pure):
    """A scalar primitive; pure but for the overflow of the CHECKED ones."""

    TEXT = "{name} {args}"

    name: str
    args: Operands


@record
class Cast(Pure):
    """Convert to the dtype of the out as `ndarray.astype` does (C casts; to bool: != 0; complex to real: real part)."""

    arg: Operand


# ---- arrays ----------------------------------------------------------------------------------------------------------


@record
class Dim(Pure):
    """The extent of an axis: a Python int >= 0."""

    TEXT = "dim {array}, {axis}"

    array: Shaped
    axis: int


@record
class Stride(Pure):
    """How many bytes the memory of an array moves along an axis."""

    TEXT = "stride {array}, {axis}"

    array: Shaped
    axis: int


@record
class Load:
    TEXT = "{array}[{indices}]"

    array: Reads
    indices: Indices


@record
class Store:
    """Write one element; no outs."""

    TEXT = "{array}[{indices}] := {value}"

    array: Writes
    indices: Indices
    value: Operand


@record
class Alloc:
    """New contiguous memory with unspecified contents; the out's layout (C or F) orders it."""

    TEXT = "alloc ({extents})"

    extents: Indices


@record
class AnyView(Pure):
    """Its out is another array over the memory of `base`, with its own `extents`."""

    base: Shaped

    @property
    def extents(self) -> Indices:
        raise NotImplementedError


@record
class ViewAxis:
    """One axis of a view. Along it the index into base axis `source` grows by `step` (which may be negative or zero);
    source None: a new axis along which memory does not move (newaxis, broadcasting)."""

    source: int | None
    extent: Index
    step: Index


@record
class View(AnyView):
    """view[i...] is base[starts[a] + step * i (for the axis whose source is a)]; base axes without a view axis are
    fixed at their start. Each base axis is the source of at most one view axis."""

    starts: Indices
    axes: tuple[ViewAxis, ...]

    @property
    def extents(self) -> Indices:
        return tuple([axis.extent for axis in self.axes])


@record
class Reshape(AnyView):
    """The same memory in C order under new extents (the product is equal). The base's layout is C."""

    TEXT = "reshape {base} to ({extents})"

    extents: Indices


@record
class Strided(AnyView):
    """An array of any dtype over the memory of `base`: its first element is `offset` bytes from the base's, strides
    are bytes. All elements lie among the base's, and different ones apart where it is stored through."""

    TEXT = "strided {base} from byte {offset}: ({extents}) by ({strides}) bytes"

    offset: Index
    extents: Indices
    strides: Indices


# ---- control ---------------------------------------------------------------------------------------------------------


@record
class If:
    """`seldom`: `orelse` is for what hardly happens, or takes little time: it is not worth much code."""

    condition: Truth
    then: Block
    orelse: Block
    seldom: bool = False


@record
class For:
    """index = start, start+step, ... while before stop (step != 0, int64). body.results = ([stop flag], next params);
    outs = ([was stopped], final params)."""

    index: BoundIndex
    start: Index
    stop: Index
    step: Index
    params: Bounds
    inits: Operands
    body: Block
    stoppable: bool = False


@record
class While:
    """`condition` has one bool result. Otherwise as `For`."""

    params: Bounds
    inits: Operands
    condition: Block
    body: Block
    stoppable: bool = False


@record
class Failure:
    """What a failed check raises: the name of a builtin exception and a message with {0}, {1}... for the arguments.

    One of the library's own checks stands for what NumPy raises there, which may say more.
    """

    exception: str
    message: str
    of_library: bool = False


@record
class Check:
    """Raise unless `condition`; the arguments are int64 or float64 operands put into the message."""

    condition: Truth
    failure: Failure
    args: Operands = ()


# ---- parallel operators ----------------------------------------------------------------------------------------------


@record
class Lambda:
    params: Bounds
    body: Block


@record
class Map:
    """For every point of the index space, in any order: run the body. Outs are new C-order arrays (one per body result)
    of shape `extents`; the body may also Store into existing arrays (independent iterations)."""

    extents: Indices
    indices: BoundIndices
    body: Block


@record
class Reduce:
    """out[indices] = combine over reduced_indices (C order) of body's results, starting from inits.

    `extents` are the kept axes (outs are new C-order arrays of that shape; scalars when it is empty). `combine` takes
    (accumulators..., contributions...) and gives new accumulators.

    `runs` says in which order floats are added: (row, chunk), or nothing where any grouping will do. The reduced space
    is cut into rows of `row` contributions (0: all of it), each row into chunks of `chunk` (0: the row; the last one
    may be shorter). A chunk is summed pairwise (see `imp.lower.pairwise_sums`), and to the accumulators are added the
    sums of the chunks, one after the other. So (0, 0) is one pairwise sum, and (0, 1) adds element after element.
    """

    extents: Indices
    indices: BoundIndices
    reduced_extents: Indices
    reduced_indices: BoundIndices
    body: Block
    inits: Operands
    combine: Lambda
    runs: Indices = ()


@record
class Scan:
    """Prefix combination along `axis` of the index space; inclusive: out[i] combines 0..i, exclusive: 0..i-1."""

    extents: Indices
    indices: BoundIndices
    axis: int
    body: Block
    inits: Operands
    combine: Lambda
    inclusive: bool = True


@record
class Compress:
    """Keep the points whose first body result is true, in C order. Outs: their count (pyint), then one new 1-D array
    per further body result."""

    extents: Indices
    indices: BoundIndices
    body: Block


@record
class Scatter:
    """For every point in C order: body.results = (keep, target index..., value); where keep, target[index] =
    combine(target[index], value). No outs; the body does not read the target.

    With a `chunk`, there is one axis and `combine` adds: so many points at a time are added to zeros, and their sums to
    the target, chunk after chunk."""

    target: Updates
    extents: Indices
    indices: BoundIndices
    body: Block
    combine: Lambda
    chunk: int = 0


@record
class Matmul:
    """out[...] = left @ right for float or complex arrays of equal dtype; ranks (2,2), (2,1) or (1,2). No outs; `out`
    has the right shape and does not overlap the inputs."""

    TEXT = "{out} := matmul {left}, {right}"

    out: Writes
    left: Reads
    right: Reads


@record
class Routine:
    """Run a compiled loop of NumPy (see `routines`): it writes `outs`, which it may read, and reads `ins`; no two of
    them overlap. Its out, if it has one, is whether it has failed."""

    TEXT = "{outs} := {name}({ins})"

    name: str
    outs: tuple[Updates, ...]
    ins: tuple[Reads, ...]


@record
class Opaque:
    """Call back into Python: `site` indexes the function's `opaque_sites`; args are the leaves its template names.
    Outs are the leaves of the observed result type; a result of another type leaves the function. With `leaves`, this
    always leaves it: Python does the rest of the call with these leaves."""

    TEXT = "opaque {site}({args})"

    site: int
    args: Operands
    leaves: bool = False


@record
class Interrupted:
    """Has a handler of a signal raised an exception? Loops with handlers around them ask in every iteration; it is seen
    now and then. Python then does the rest of the call, and raises it."""

    TEXT = "interrupted"


@record
class Call:
    """Call a procedure of the function by its name; `stores` are the positions of the arrays it may store into. Outs
    are its results; arrays among them may be (views of) arguments, unless they are `fresh`: then each is new memory of
    its own. Python would have made `levels` calls of it: too many raise RecursionError (none, if it is of the library).
    What neither `fails` nor stores may be dropped. Not in the bodies of parallel operators."""

    procedure: str
    args: Operands
    stores: tuple[int, ...]
    levels: int = 1
    fresh: bool = False
    fails: bool = True


Op = (
    Prim
    | Cast
    | Dim
    | Stride
    | Load
    | Store
    | Alloc
    | View
    | Reshape
    | Strided
    | If
    | For
    | While
    | Check
    | Map
    | Reduce
    | Scan
    | Compress
    | Scatter
    | Matmul
    | Routine
    | Opaque
    | Interrupted
    | Call
)
PARALLEL = (Map, Reduce, Scan, Compress, Scatter)


@record
class Let:
    outs: Bounds
    op: Op
    pos: Pos


@record
class Block:
    statements: tuple[Let, ...]
    results: Operands = ()


@record
class Function:
    """One specialization. `params` are the leaves of the signature in order (positional, then hidden);
    `body.results` the leaves of the result tree. `disjoint` says that no two array parameters overlap unless both
    are only read; `static_extents` the (parameter, axis, extent) that the signature settles. Extents of 1
    are always settled: an axis of a parameter that is not named there has another extent. `inner`: this is one of the
    `procedures` of another function; nothing is known of its extents. `library`: it is one of the library's, and the
    same object in all functions that call it; its procedures are among those of the function around, too. `dropped`:
    if it fails, nothing reads the arrays that it was given."""

    name: str
    params: tuple[Var, ...]
    body: Block
    filename: str = ""
    disjoint: bool = True
    static_extents: tuple[tuple[Var, int, int], ...] = ()
    procedures: tuple[Function, ...] = ()
    inner: bool = False
    library: bool = False
    dropped: bool = False

    def statements(self) -> Iterator[Let]:
        """Every statement, depth first."""
        return walk(self.body)


grammar.leaf(grammar.Leaf.OPERAND, Var)
grammar.leaf(grammar.Leaf.CONSTANT, Const)
grammar.leaf(grammar.Leaf.BLOCK, Block)
grammar.leaf(grammar.Leaf.PLAIN, Function)

operands_of: Callable[[Op], Operands] = grammar.operands  # that it reads itself: not those inside its blocks
binders_of: Callable[[Op], tuple[Var, ...]] = grammar.binders  # that it binds inside its blocks
blocks_of: Callable[[Op], tuple[Block, ...]] = grammar.blocks
arrays_read: Callable[[Op], tuple[Var, ...]] = grammar.reads
walk: Callable[[Block], Iterator[Let]] = grammar.walk


def arrays_written(op: Op) -> tuple[Var, ...]:
    """The arrays whose elements an operator itself changes, but for what Python behind an `Opaque` may do."""
    if isinstance(op, Call):
        return tuple([arg for arg in map(op.args.__getitem__, op.stores) if isinstance(arg, Var)])
    return grammar.writes(op)


VIEWS = (View, Reshape, Strided)
CALLS = (Matmul, Routine, Opaque, Call)  # they run code that was not made of this function
MAKERS = (Alloc, Map, Reduce, Scan, Compress)  # their outs are new memory


def scalar_type(operand: Operand) -> Scalar:
    """The type of a scalar operand."""
    assert isinstance(operand.type, Scalar), f"{operand} is no scalar"
    return operand.type


def dtype_of(operand: Operand) -> str:
    """The dtype of a scalar operand or of an array's elements."""
    kind = operand.type
    assert isinstance(kind, Scalar | Array), f"{operand} has no dtype"
    return kind.dtype
