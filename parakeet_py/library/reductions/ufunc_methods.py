"""reduce, accumulate, reduceat, outer and at of ufuncs; methods of arrays that make Python objects."""

from __future__ import annotations

import sys

import numpy as np

from parakeet_py.library.arrays.memory_views import flat_place
from parakeet_py.library.arrays.shape import positions, ravel
from parakeet_py.library.intrinsics import (
    as_array,
    as_numeric,
    assign,
    cast,
    check,
    constant,
    copy,
    dtype_of,
    elementwise,
    hand_back,
    index_check,
    is_array,
    is_sequence,
    is_weak,
    is_writeable,
    layout_of,
    load,
    may_overlap,
    prim,
    python_scalar,
    reduce_axes,
    reshape,
    scatter,
    unsupported,
)
from parakeet_py.library.linalg.products import strong
from parakeet_py.library.reductions.reductions import (
    can_reduce,
    check_not_empty,
    flat_index,
    reduce_ufunc,
    reduction_kind,
    starting,
)
from parakeet_py.library.reductions.scans import accumulate, can_accumulate
from parakeet_py.library.registry import helper, method, procedure, static
from parakeet_py.library.shared import NO_VALUE, finish, into, reduction_axes, single_axis


@method("ufunc.reduce")
def ufunc_reduce(ufunc, array, /, axis=0, dtype=None, out=None, keepdims=False, initial=NO_VALUE, where=True):
    if initial is None:
        hand_back("a reduction without an initial value")
    if not can_reduce(ufunc):
        if where is not True or not one_after_another(ufunc, dtype_of(as_array(array))):
            hand_back("a reduction with this ufunc")
        return reduced_from_first(ufunc, as_array(array), axis, dtype, out, keepdims, initial)
    return reduce_ufunc(ufunc, as_numeric(array), axis, dtype, out, keepdims, initial, where)


@static
def one_after_another(ufunc, kind):
    """Whether a ufunc without identity is reduced along one axis, from the first element on.

    np.power of floats and np.arctan2 are not: NumPy's vector loops take several elements at a time.
    """
    return ufunc in FROM_FIRST and (ufunc is not np.power or kind.kind in "iu")


FROM_FIRST = {
    *(np.subtract, np.divide, np.floor_divide, np.remainder, np.fmod, np.power, np.float_power, np.lcm),
    *(np.copysign, np.nextafter, np.heaviside, np.left_shift, np.right_shift),
}


def reduced_from_first(ufunc, a, axis, dtype, out, keepdims, initial):
    """((a[0] op a[1]) op a[2])... along one axis."""
    axes = reduction_axes(axis, a.ndim)
    if len(axes) != 1:
        hand_back("a reduction in order along several axes or none")
    along = axes[0]
    kind = reduction_kind(ufunc, dtype_of(a), dtype, None if out is None else dtype_of(out))
    before = (slice(None),) * along
    first = 1 if initial is NO_VALUE else 0
    if initial is NO_VALUE:
        check_not_empty(ufunc, a, axes)
        total = cast(a[(*before, 0)], kind)
    elif a.ndim == 1:
        total = cast(starting(initial, kind), kind)
    else:
        none = a[(*before, slice(0, 0))]  # the reduction of no elements has the shape and order of the result
        start = cast(starting(initial, kind), kind)
        (total,) = reduce_axes(none, axes, (start,), lambda x, *at: (cast(x, kind),), lambda s, x: (s,))
    for i in range(first, a.shape[along]):
        if a.ndim == 1:
            total = ufunc(total, cast(a[i], kind))
        else:
            assign(total, ufunc(total, cast(a[(*before, i)], kind)))
    return finish(total, axes, a.ndim, keepdims, out)


@static
def out_of_segment(ufunc):
    return f"index {{0}} out-of-bounds in {ufunc.__name__}.reduceat [0, {{1}})"


@static
def adds_inexact(ufunc, kind):
    return ufunc is np.add and kind.kind in "fc"


@static
def summed_as(kind):
    """What NumPy adds such numbers in, and the zero that changes none of them, -0.0 neither."""
    wide = np.dtype(np.float32) if kind == np.float16 else kind
    return wide, {"f": -0.0, "c": complex(-0.0, -0.0)}.get(kind.kind, 0)


@method("ufunc.reduceat")
def ufunc_reduceat(ufunc, array, /, indices, axis=0, dtype=None, out=None):
    a, places = as_array(array), as_array(indices)
    if a.ndim == 0 or places.ndim != 1 or dtype_of(places).kind not in "iu" or not can_reduce(ufunc):
        hand_back("ufunc.reduceat of these")
    along = single_axis(axis, a.ndim)
    kind = reduction_kind(ufunc, dtype_of(a), dtype, None if out is None else dtype_of(out))
    extent, count = a.shape[along], places.shape[0]
    message = out_of_segment(ufunc)

    def start_of(place):
        check((place >= 0) & (place < extent), "IndexError", message, place, extent)
        return cast(place, "int64")

    starts = elementwise(start_of, places)
    before = (slice(None),) * along
    # New memory in the order that NumPy's iterator finds: the positions run along the axis, the array along the others.
    made = elementwise(
        lambda x, start: cast(x, kind),
        a[(*before, slice(0, 1))],
        starts[(*(None,) * along, slice(None), *(None,) * (a.ndim - along - 1))],
    )
    wide, nothing = summed_as(kind)
    for i in range(count):
        first = int(load(starts, i))
        last = extent
        if i + 1 < count:
            last = int(load(starts, i + 1))
        if last > first + 1 and adds_inexact(ufunc, kind):  # the first element and, line by line, the sum of the others
            lines = np.moveaxis(a[(*before, slice(first + 1, last))], along, -1)
            if wide != kind:
                lines = elementwise(lambda x: cast(cast(x, kind), wide), lines)
            lines = lines if a.ndim == 1 else copy(lines, "C")
            (rest,) = reduce_axes(
                lines,
                (a.ndim - 1,),
                (constant(nothing, wide),),
                lambda x, *at: (cast(x, wide),),
                lambda s, x: (s + x,),
                wide,
            )
            made[(*before, i)] = elementwise(
                lambda x, total: cast(cast(cast(x, kind), wide) + total, kind), a[(*before, first)], rest
            )
        elif last > first + 1:  # of a single element NumPy computes nothing
            made[(*before, i)] = reduce_ufunc(ufunc, a[(*before, slice(first, last))], along, dtype=kind)
        else:
            made[(*before, i)] = a[(*before, first)]
    return made if out is None else into(out, made)


@method("ufunc.accumulate")
def ufunc_accumulate(ufunc, array, /, axis=0, dtype=None, out=None):
    a = as_array(array)
    if not can_accumulate(ufunc):
        hand_back("an accumulation with this ufunc")
    if a.ndim == 0:
        unsupported("cannot accumulate on a scalar")
    return accumulate(ufunc, a, single_axis(axis, a.ndim), dtype, out)


@static
def new_axes(rank):
    return (Ellipsis, *(None,) * rank)


@method("ufunc.outer")
def ufunc_outer(ufunc, A, B, /):
    a, b = strong(A), strong(B)
    if is_array(a) and is_array(b):
        return ufunc(a[new_axes(b.ndim)], b)
    return ufunc(a, b)


@static
def ufunc_kind(ufunc, kind, values):
    return ufunc.resolve_dtypes((kind, values, None))[-1]


@static
def any_arrays(*flags):
    return any(flags)


def coordinates(place):
    """An index as integers: a mask stands for the places where it is true."""
    if dtype_of(place).kind == "b" and is_array(place) and place.ndim > 0:
        return np.nonzero(place)
    if dtype_of(place).kind not in "iu":
        hand_back("ufunc.at with these indices")
    return (place,)


def selected_places(places, extents):
    """Positions in C order of all that indices select, in the order in which NumPy goes through them, and their shape;
    where indices select rows or the like, the positions have an axis for these."""
    wrapped = tuple([wrapped_place(place, axis, extents[axis]) for axis, place in enumerate(places)])
    chosen = wrapped[0].shape if len(wrapped) == 1 else np.broadcast_shapes(*[place.shape for place in wrapped])
    row = elementwise(lambda *found: flat_index(found, extents[: len(found)]), *wrapped)
    rest = extents[len(places) :]
    if len(rest) == 0:
        return (row if len(chosen) == 1 else ravel(row)), chosen
    size = 1
    for extent in rest:
        size = size * extent
    first = ravel(row) if len(chosen) != 1 else row
    at = elementwise(lambda k, inner: k * size + inner, first[:, None], np.arange(size)[None, :])
    return at, chosen + rest


def wrapped_place(place, axis, extent):
    return elementwise(lambda index: cast(index_check(index, extent, axis), "int64"), as_array(place))


@method("ufunc.at")
def ufunc_at(ufunc, a, indices, b=NO_VALUE, /):
    if not is_writeable(a):
        hand_back("ufunc.at of a read-only array, to which NumPy writes all the same")
    values = None if b is NO_VALUE else as_numeric(b)
    kind = dtype_of(a)
    if values is not None and is_weak(values):
        values = cast(values, dtype_of(values))
    if is_array(values) and values.ndim == 0:
        values = values[()]
    if isinstance(indices, tuple):
        for index in indices:
            if isinstance(index, slice) or index is None or index is Ellipsis:
                hand_back("ufunc.at with these indices")
        places = tuple([as_numeric(index) for index in indices])
    elif isinstance(indices, slice):
        hand_back("ufunc.at with these indices")
    else:
        place = as_numeric(indices)
        if not is_array(place) and is_array(values):
            hand_back("ufunc.at with one index and an array of values")
        places = (place if is_array(place) else as_array((place,)),)
    if a.ndim == 1:
        target = a
    elif layout_of(a) == "C":
        target = reshape(a, (a.size,))
    else:
        hand_back("ufunc.at of a strided array")
    places = tuple([one for place in places for one in coordinates(place)])
    if len(places) == 0 or len(places) > a.ndim or not any_arrays(*[is_array(place) for place in places]):
        hand_back("ufunc.at with these indices")
    at, shape = selected_places(places, a.shape)
    if is_array(values):
        if values.ndim > len(shape):
            hand_back("ufunc.at with values of more axes than the indices select")
        for own, extent in zip(values.shape[::-1], shape[::-1]):
            fits = own == extent if len(shape) == 1 else (own == extent) | (own == 1)
            check(fits, "Deoptimize", "values of ufunc.at that are broadcast, or do not fit the indices")
        if may_overlap(values, a):
            values = copy(values, "C")
        if len(shape) > 1:
            values = np.broadcast_to(values, shape)
            if at.ndim != len(shape):
                values = np.reshape(values, at.shape)
    if values is not None and ufunc_kind(ufunc, kind, dtype_of(values)) == kind:
        scatter(target, at, values, lambda old, new: cast(ufunc(old, new), kind))
    else:
        at, values = ravel(at), ravel(values) if is_array(values) else values
        for k in range(at.shape[0]):
            place = load(at, k)
            old = target[place]
            if values is None:
                new = ufunc(old)
            else:
                new = ufunc(old, load(values, k) if is_array(values) else values)
            target[place] = cast(new, kind)


# ---- arrays as Python objects ----------------------------------------------------------------------------------------


@method("tolist")
def tolist(a):
    if a.ndim == 0:
        return python_scalar(a[()])
    if a.ndim == 1:
        return [python_scalar(x) for x in a]
    if a.ndim == 2:
        return [[python_scalar(x) for x in row] for row in a]
    if a.ndim == 3:
        return [[[python_scalar(x) for x in row] for row in table] for table in a]
    hand_back("tolist of more than three axes")


@method("item")
def item(a, *args):
    if len(args) == 0:
        check(a.size == 1, "ValueError", "can only convert an array of size 1 to a Python scalar")
        return python_scalar(load(a, *[0 for axis in positions(a.ndim)]))
    if len(args) == 1 and is_sequence(args[0]):
        if isinstance(args[0], list):
            hand_back("indices of an item in a list")
        args = tuple(args[0])
    if len(args) == a.ndim:
        return python_scalar(a[tuple(args)])
    if len(args) != 1 or a.ndim == 0:
        unsupported("incorrect number of indices for array")
    return python_scalar(load(a, *flat_place(a, args[0])))


# ---- Python's builtins on arrays -------------------------------------------------------------------------------------


@static
def empty_message(name):
    return (
        f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
    )


def extreme(a, name, wins):
    """The first element that no later one beats; comparisons with NaN are false, as in Python."""
    check(a.shape[0] > 0, "ValueError", empty_message(name))
    best = load(a, 0)
    for i in range(1, a.shape[0]):
        x = load(a, i)
        best = prim("select", cast(wins(x, best), "bool"), x, best)
    return best


@helper
def of_tuples(function):
    """A function of one tuple, for one of several arguments."""
    return lambda items: function(*items)


@helper
def python_min(a):
    return extreme(a, "min", lambda x, best: x < best)


@helper
def python_max(a):
    return extreme(a, "max", lambda x, best: x > best)


@static
def compensates() -> bool:
    """Whether Python's sum of floats carries a compensation (Neumaier), since 3.12."""
    return sys.version_info >= (3, 12)


def compensates_more() -> bool:
    """Whether its sum of complex numbers does, and that of floats for ints among them, since 3.14."""
    return sys.version_info >= (3, 14)


@helper
def python_item(a, i, number):
    """An element of a list or an array; `number` makes Python's of it."""
    return load(a, i) if number is None else number(load(a, i))


@helper
def python_sum_step(total, lost, x):
    """One more float of Python's sum, and what its rounding has lost."""
    both = total + x
    return both, lost + prim("select", abs(total) >= abs(x), (total - both) + x, (x - both) + total)


@helper
def python_sum_end(total, lost):
    """The sum with what has been lost; of nothing it keeps the sign of zero."""
    return prim("select", lost == 0.0, total, prim("select", prim("isfinite", lost), total + lost, total))


@helper
def python_sum(a, total, begin, number, compensated):
    """sum() of numbers one after another: `total`, which has the type of the sum already, and what comes from `begin`
    on. `compensated`: of floats in a list, where Python's sum may carry a compensation."""
    if compensated and compensates():
        lost = 0.0
        for i in range(begin, a.shape[0]):
            total, lost = python_sum_step(total, lost, float(load(a, i)))
        return python_scalar(python_sum_end(total, lost))
    for i in range(begin, a.shape[0]):
        total = total + python_item(a, i, number)
    return total


@helper
def python_complex_parts(total):
    """A complex sum as it begins: its parts, each with what its rounding has lost."""
    return total.real, 0.0, total.imag, 0.0


@helper
def python_complex_sum_step(real, lost_real, imag, lost_imag, x):
    """One more complex number of Python's sum, or a real one, which leaves the imaginary part as it is."""
    if isinstance(x, complex):
        real, lost_real = python_sum_step(real, lost_real, x.real)
        imag, lost_imag = python_sum_step(imag, lost_imag, x.imag)
    else:
        real, lost_real = python_sum_step(real, lost_real, x)
    return real, lost_real, imag, lost_imag


@helper
def python_complex_sum_end(real, lost_real, imag, lost_imag):
    """The sum with what has been lost."""
    return complex(python_scalar(python_sum_end(real, lost_real)), python_scalar(python_sum_end(imag, lost_imag)))


@helper
def python_complex_sum(a, total, begin, number):
    """sum() of numbers in a list from a complex number on, where it carries a compensation; `number` makes complex
    numbers or floats of them."""
    real, lost_real, imag, lost_imag = python_complex_parts(total)
    for i in range(begin, a.shape[0]):
        real, lost_real, imag, lost_imag = python_complex_sum_step(real, lost_real, imag, lost_imag, number(load(a, i)))
    return python_complex_sum_end(real, lost_real, imag, lost_imag)


@helper
def sum_of_some_rows(rows, total):
    """sum() of the rows of an array that has some, from a start that is not 0."""
    total = total + rows[0]
    for i in range(1, len(rows)):
        total = total + rows[i]
    return total


@helper
def python_any(items, element, condition, flatten):
    """any() of a generator expression; what comes after the item that decides is not computed."""
    for item in items:
        if condition is None or condition(item):
            if any(element(item)) if flatten else element(item):
                return True
    return False


@helper
def python_all(items, element, condition, flatten):
    """all() of a generator expression; what comes after the item that decides is not computed."""
    for item in items:
        if condition is None or condition(item):
            if not (all(element(item)) if flatten else element(item)):
                return False
    return True


@helper
def python_list(items, element, condition, flatten):
    """The list of a comprehension whose elements are arrays of any shape."""
    made = []
    for item in items:
        if condition is None or condition(item):
            if flatten:
                for inner in element(item):
                    made.append(inner)
            else:
                made.append(element(item))
    return made


@helper
def lazy_any(items):
    """any() of what a generator gives, no further than it takes."""
    for item in items:  # noqa: SIM110
        if item:
            return True
    return False


@helper
def lazy_all(items):
    """all() of what a generator gives, no further than it takes."""
    for item in items:  # noqa: SIM110
        if not item:
            return False
    return True


@helper
def lazy_items(items, element, condition, flatten):
    """What a generator expression gives."""
    for item in items:
        if condition is None or condition(item):
            if flatten:
                yield from element(item)
            else:
                yield element(item)


@helper
def lazy_next(items):
    """next() of what is used for nothing else."""
    for item in items:
        return item
    raise StopIteration


@helper
def lazy_next_or(items, default):
    """next() with a default."""
    for item in items:
        return item
    return default


@procedure
@helper
def counted(items):
    """collections.Counter(items), as a dict."""
    made = {}
    for item in items:
        made[item] = made.get(item, 0) + 1
    return made


@helper
def python_dict(items, element, condition, flatten):
    """The dict of a comprehension, whose elements are pairs."""
    made = {}
    for item in items:
        if condition is None or condition(item):
            if flatten:
                for inner in element(item):
                    made[inner[0]] = inner[1]
            else:
                key, value = element(item)
                made[key] = value
    return made


@helper
def python_list_part(items, places):
    """The items of a list at some places."""
    made = []
    for place in places:
        made.append(items[int(place)])
    return made


@helper
def python_sum_rows(a):
    """sum() of an array: its rows one after another."""
    if a.ndim == 0:
        unsupported("iteration over a 0-d array")
    check(a.shape[0] > 0, "Deoptimize", "the sum of no rows is an int")
    kind = dtype_of(0 + a)
    if a.ndim == 1:
        total = constant(0, kind)
        for i in range(a.shape[0]):
            total = total + cast(load(a, i), kind)
        return total
    (rows,) = reduce_axes(a, (0,), (constant(0, kind),), lambda x, i: (cast(x, kind),), lambda s, x: (s + x,))
    return rows
