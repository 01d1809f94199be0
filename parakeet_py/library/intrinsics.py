"""The words of the accelerated language that the library is written in.

Library functions are ordinary Python, compiled by the same pipeline as the user's; these functions are what they may
use beyond it. They have no Python body: the specializer knows each by identity
(typed_ir/specialize/intrinsics/words.py). Arguments called *known* must have their value at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _intrinsic(name: str) -> NoReturn:
    raise RuntimeError(f"{name} is a word of the accelerated language; it cannot be called from Python")


def elementwise(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function of scalars to broadcast arrays: one new array per result (a tuple for several)."""
    _intrinsic("elementwise")


def generate(shape: Any, function: Callable[..., Any]) -> Any:
    """A new array of a shape (tuple of ints, length known) from a function of the indices (Python ints)."""
    _intrinsic("generate")


def reduce_axes(array: Any, axes: Any, inits: Any, contribute: Any, combine: Any, summed: Any = None) -> Any:
    """Reduce known `axes` (sorted tuple) of an array.

    `contribute(element, *indices along the axes)` gives a tuple of contributions, `combine(*accumulators,
    *contributions)` the new accumulators, `inits` is the tuple of their identities. Returns a tuple of arrays over the
    other axes (scalars when there are none). `summed`: the dtype of a sum whose elements are added in NumPy's order.
    """
    _intrinsic("reduce_axes")


def scan_axis(array: Any, axis: Any, init: Any, contribute: Any, combine: Any, inclusive: Any = True) -> Any:
    """Prefix combination along a known axis: `contribute(element)`, `combine(accumulator, contribution)`."""
    _intrinsic("scan_axis")


def nonzero(array: Any) -> Any:
    """The coordinates of true elements in C order: a tuple of 1-D int64 arrays."""
    _intrinsic("nonzero")


def compress(mask: Any, array: Any) -> Any:
    """The elements of a 1-D array where a 1-D mask of equal length is true."""
    _intrinsic("compress")


def scatter(target: Any, indices: Any, values: Any, combine: Any, chunk: Any = 0) -> None:
    """target[indices[k]] = combine(target[...], values[k]) for each k in C order; a 1-D target, indices in range.

    With a chunk, values are added up so many at a time, and then their sums.
    """
    _intrinsic("scatter")


def load(array: Any, *indices: Any) -> Any:
    """The element at indices the caller knows to be in range: nothing is wrapped around or checked."""
    _intrinsic("load")


def store(array: Any, index: Any, value: Any) -> None:
    """array[index] = value for an integer, at an index of a 1-D array that the caller knows to be in range."""
    _intrinsic("store")


def extent_is_one(array: Any, axis: Any) -> bool | None:
    """Whether a known axis has extent 1, as far as that is known; else None."""
    _intrinsic("extent_is_one")


def allocate(shape: Any, dtype: Any, order: Any = "C") -> Any:
    """New memory with unspecified contents; the order is C, F or the axes from the slowest to the fastest."""
    _intrinsic("allocate")


def assign(target: Any, value: Any, users: bool = False, where: Any = None) -> None:
    """target[...] = value with NumPy's unsafe casting; a scalar of the user's has to fit.

    With a mask only where it is true.
    """
    _intrinsic("assign")


def copy(array: Any, order: Any = "K") -> Any:
    """A new array with the same elements."""
    _intrinsic("copy")


def cast(value: Any, dtype: Any) -> Any:
    """An array or scalar converted to a known dtype (always a new array; scalars become NumPy scalars)."""
    _intrinsic("cast")


def constant(value: Any, dtype: Any) -> Any:
    """A known number as a NumPy scalar of a known dtype."""
    _intrinsic("constant")


def prim(name: Any, *operands: Any) -> Any:
    """A primitive of the typed IR on scalars of one dtype; comparisons and tests give NumPy bools."""
    _intrinsic("prim")


def dtype_of(value: Any) -> Any:
    """The dtype of an array or scalar (Python scalars: int64, float64, complex128, bool), known."""
    _intrinsic("dtype_of")


def is_weak(value: Any) -> bool:
    """True for a Python scalar."""
    _intrinsic("is_weak")


def is_array(value: Any) -> bool:
    """True for an array (of any rank)."""
    _intrinsic("is_array")


def is_known(value: Any) -> bool:
    """True when the value is known at compile time."""
    _intrinsic("is_known")


def is_sequence(value: Any) -> bool:
    """True for tuples and lists."""
    _intrinsic("is_sequence")


def has_known_length(value: Any) -> bool:
    """True for sequences of known length."""
    _intrinsic("has_known_length")


def as_array(value: Any, dtype: Any = None) -> Any:
    """np.asarray: arrays as they are, sequences as new arrays (of a known dtype if given), scalars as 0-d arrays."""
    _intrinsic("as_array")


def as_numeric(value: Any) -> Any:
    """Arrays and scalars as they are, sequences as new arrays."""
    _intrinsic("as_numeric")


def python_scalar(value: Any) -> Any:
    """A NumPy scalar as the Python scalar of its kind."""
    _intrinsic("python_scalar")


def is_writeable(array: Any) -> bool:
    """NumPy's flag, known."""
    _intrinsic("is_writeable")


def layout_of(array: Any) -> str:
    """C, F, S or A, known."""
    _intrinsic("layout_of")


def may_overlap(left: Any, right: Any) -> bool:
    """Whether two arrays may share memory, as far as that is known."""
    _intrinsic("may_overlap")


def order_of(*arrays: Any) -> tuple[int, ...]:
    """The axes from the slowest to the fastest, known, of what NumPy makes of these arrays of one rank."""
    _intrinsic("order_of")


def elementwise_order(*arrays: Any) -> tuple[int, ...]:
    """The axes from the slowest to the fastest, known, of what NumPy makes elementwise of these arrays of one rank."""
    _intrinsic("elementwise_order")


def permute(array: Any, axes: Any) -> Any:
    """The view with permuted axes."""
    _intrinsic("permute")


def reshape(array: Any, shape: Any) -> Any:
    """The array under a new shape of equal size: a view of a C-contiguous array, else of a copy."""
    _intrinsic("reshape")


def stride_of(array: Any, axis: Any) -> int:
    """The bytes between the elements along an axis; anything for an axis of extent 1."""
    _intrinsic("stride_of")


def lies_in_order(array: Any, order: Any) -> bool:
    """Whether the elements lie one after the other in C or F order, found out at run time where it is not known."""
    _intrinsic("lies_in_order")


def known_in_order(array: Any, order: Any) -> Any:
    """The same array, which is known to lie in C or F order."""
    _intrinsic("known_in_order")


def strided(array: Any, offset: Any, shape: Any, strides: Any, dtype: Any = None, layout: Any = "A") -> Any:
    """Any array over the memory of another: of a shape, by strides (both from its first element and in bytes)."""
    _intrinsic("strided")


def reshaped_strides(array: Any, shape: Any) -> tuple[bool, tuple[int, ...]]:
    """Whether the array can have another shape, in C order, without a copy; the strides it has then."""
    _intrinsic("reshaped_strides")


def shared_elements(array: Any) -> Any:
    """The same array, some elements of which are the same: stores through it are left to NumPy."""
    _intrinsic("shared_elements")


def surely_strided(array: Any) -> bool:
    """Whether an array that is not known to be in C order surely isn't; known."""
    _intrinsic("surely_strided")


def standing_for_view(made: Any, base: Any, writeable: Any = False) -> Any:
    """A new array where NumPy makes a view of `base`, as long as neither of them is stored to later."""
    _intrinsic("standing_for_view")


def wants_view() -> bool:
    """Whether the memory of what is made here is stored to, so that an array cannot stand for a view; known."""
    _intrinsic("wants_view")


def read_only(array: Any) -> Any:
    """The same array, read-only."""
    _intrinsic("read_only")


def broadcast_view(array: Any, shape: Any, writeable: Any = False) -> Any:
    """The view of a shape it broadcasts to, read-only. Stores through a writeable one are left to NumPy."""
    _intrinsic("broadcast_view")


def matmul_into(out: Any, left: Any, right: Any) -> None:
    """out[...] = left @ right (float or complex, equal dtypes, ranks 2x2, 2x1, 1x2)."""
    _intrinsic("matmul_into")


def named(cls: Any, *items: Any) -> Any:
    """A named tuple of a known class."""
    _intrinsic("named")


def routine(name: Any, outs: Any, ins: Any) -> Any:
    """Run a compiled loop of NumPy (see base/routines.py); a bool where it can fail: whether it
    has."""
    _intrinsic("routine")


def hidden_array(module: Any, name: Any) -> Any:
    """The array that a module of the package holds under a name, which calls read and change where it is."""
    _intrinsic("hidden_array")


def has_routine(name: Any, *kinds: Any) -> bool:
    """Whether a compiled loop of NumPy for these known dtypes (of inputs, then outputs) can be used; known."""
    _intrinsic("has_routine")


def on_device() -> bool:
    """Whether this runs on a GPU; known only when it is lowered."""
    _intrinsic("on_device")


def check(condition: Any, exception: Any, message: Any, *args: Any) -> None:
    """Raise a builtin exception (known name) with a known message template unless the condition holds."""
    _intrinsic("check")


def hand_back(reason: Any) -> NoReturn:
    """This case is not compiled: the call that led here is made by Python."""
    _intrinsic("hand_back")


def unsupported(reason: Any) -> NoReturn:
    """This call is an error or cannot be compiled: the whole function runs in Python."""
    _intrinsic("unsupported")


def ufunc_call(ufunc: Any, *args: Any, dtype: Any = None, out: Any = None, where: Any = None, prim: Any = None) -> Any:
    """Call a known ufunc with NumPy's type resolution; `prim`: the primitive that it computes instead of its own."""
    _intrinsic("ufunc_call")


def index_check(index: Any, extent: Any, axis: Any = 0) -> Any:
    """A Python index of a known axis wrapped around and checked (IndexError)."""
    _intrinsic("index_check")
