"""np.einsum: sums of products over named indices.

The subscripts are brought to one form first: a string of letters for every operand, each letter once (an operand with
repeated letters is replaced by its diagonal), the axes of an ellipsis under letters of their own. Products of two
operands that are matrix products, of stacks of matrices too, go to BLAS; everything else is one elementwise product
over all letters, summed as it is made. Results lie in memory as NumPy's iterator makes them.
"""

from __future__ import annotations

import numpy as np

from parakeet_py.library.arrays.shape import size_of
from parakeet_py.library.intrinsics import (
    allocate,
    as_array,
    assign,
    cast,
    check,
    constant,
    dtype_of,
    elementwise,
    elementwise_order,
    generate,
    hand_back,
    is_known,
    is_writeable,
    load,
    order_of,
    permute,
    reduce_axes,
    reshape,
    standing_for_view,
    stride_of,
    strided,
    wants_view,
)
from parakeet_py.library.linalg.products import tensordot
from parakeet_py.library.reductions.reductions import accumulator_kind
from parakeet_py.library.registry import implements, static
from parakeet_py.library.shared import converted, into, inverse_axes, result_kind

MOST = 6  # operands of one product
SINGLE = "single operand"

# ---- subscripts ------------------------------------------------------------------------------------------------------


@static
def in_letters(numbers):
    """Indices given as a list of numbers, as letters."""
    letters = []
    for number in numbers:
        if number is Ellipsis:
            letters.append("...")
        else:
            letters.append(chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26))
    return "".join(letters)


@static
def wrong(text):
    raise ValueError(text)


@static
def normal_form(subscripts, ranks):
    """The letters of each operand and of the result."""
    text = subscripts.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        wrong("more or fewer operands than subscripts")
    if not set(text.replace("...", "").replace("->", "", 1)) <= set(LETTERS + ","):
        wrong("invalid subscripts")
    spread = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    if any(term.count("...") > 1 or (extra if "..." not in term else extra < 0) for term, extra in zip(terms, spread)):
        wrong("subscripts do not fit the operands")
    dots = "".join(chr(256 + axis) for axis in range(max(spread)))
    terms = [term.replace("...", dots[len(dots) - extra :]) for term, extra in zip(terms, spread, strict=True)]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        result = dots + "".join(letter for letter in sorted(set(letters)) if letters.count(letter) == 1)
    elif dots and "..." not in result:
        wrong("the result has no ellipsis")
    result = result.replace("...", dots)
    if len(set(result)) != len(result) or not set(result) <= set("".join(terms)):
        wrong("the result has unknown or repeated letters")
    return tuple(terms), result


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@static
def once(term):
    """The letters of a term, each once."""
    return "".join(dict.fromkeys(term))


@static
def positions_of(letters, term):
    """Where letters first stand in a term."""
    return tuple(term.index(letter) for letter in letters)


@static
def all_letters(terms, result):
    """All letters, those of the result first."""
    return once(result + "".join(terms))


@static
def axes_from(start, stop):
    return tuple(range(start, stop))


# ---- operands --------------------------------------------------------------------------------------------------------


@static
def by_stride(order, term, letters):
    """The letters of a diagonal from the slowest to the fastest: each is as slow as the slowest of its axes."""
    found = once("".join(term[axis] for axis in order))
    return tuple(letters.index(letter) for letter in found)


@static
def collapse_message(which, letter):
    return f"dimensions in {which} for collapsing index '{letter}' don't match ({{0}} != {{1}})"


@static
def all_positions_of(letters, term):
    """For each letter all the axes of a term that it stands for."""
    return tuple(tuple(axis for axis, own in enumerate(term) if own == letter) for letter in letters)


def must_collapse(a, term, which):
    """Refuse an operand whose axes of one index have different extents."""
    for axis, at in enumerate(positions_of(term, term)):
        if axis != at:
            first, other = a.shape[at], a.shape[axis]
            check(first == other, "ValueError", collapse_message(which, term[axis]), first, other)


def diagonal_of_term(a, term, which):
    """An operand without the elements whose repeated indices differ; `which` it is, for a message."""
    letters = once(term)
    if letters == term:
        return a
    must_collapse(a, term, which)
    shape = tuple([a.shape[axis] for axis in positions_of(letters, term)])
    order = by_stride(order_of(a), term, letters)
    places = inverse_axes(order)
    own = positions_of(term, letters)

    def element(*turned):
        place = [turned[at] for at in places]
        return load(a, *[place[axis] for axis in own])

    return permute(generate(tuple([shape[axis] for axis in order]), element), places)


@static
def spread_term(term, letters):
    """The permutation and the index that lay an operand out over all letters."""
    present = [letter for letter in letters if letter in term]
    return positions_of(present, term), tuple(slice(None) if letter in term else None for letter in letters)


def laid_out(a, term, letters):
    order, index = spread_term(term, letters)
    return permute(a, order)[index]


def must_fit(arrays, terms, result):
    """Refuse operands of which one index has different extents, none of them 1."""
    extents = ()
    for a in arrays:
        extents = extents + a.shape
    message = remapped_message(terms, result)
    for one, left, other, right in pairs_of_axes(terms):
        x, y = arrays[one].shape[left], arrays[other].shape[right]
        check((x == y) | (x == 1) | (y == 1), "ValueError", message, *extents)


@static
def remapped_message(terms, result):
    """NumPy's message: every shape, and how it lies over all letters, without the new axes in front."""
    letters = result + "".join(sorted(set("".join(terms)) - set(result)))
    parts, first = [], 0
    for term in terms:
        own = {letter: f"{{{first + axis}}}" for axis, letter in enumerate(term)}
        first += len(term)
        remapped = [own.get(letter, "newaxis") for letter in letters]
        while remapped and remapped[0] == "newaxis":
            remapped.pop(0)
        shape = ",".join(own.values()) + ("," if len(own) == 1 else "")
        parts.append(f"({shape})->({','.join(remapped)}{',' if len(letters) == 1 else ''}) ")
    return f"operands could not be broadcast together with remapped shapes [original->remapped]: {''.join(parts)}"


@static
def pairs_of_axes(terms):
    """The axes of one index, two at a time: an operand and the axis of it, another and its axis."""
    found = []
    for one, left in enumerate(terms):
        for other in range(one + 1, len(terms)):
            found += [(one, at, other, terms[other].index(c)) for at, c in enumerate(left) if c in terms[other]]
    return tuple(found)


# ---- matrix products -------------------------------------------------------------------------------------------------


@static
def matrix_product(terms, result):
    """The letters of two operands as a product of stacks of matrices: of the stack, the rows, the columns, summed."""
    if len(terms) != 2:
        return None
    left, right = terms
    shared = [letter for letter in left if letter in right]
    summed = "".join(letter for letter in shared if letter not in result)
    stack = "".join(letter for letter in shared if letter in result)
    rows = "".join(letter for letter in left if letter not in right)
    columns = "".join(letter for letter in right if letter not in left)
    if not summed or not set(rows + columns) <= set(result) or (stack and not (rows and columns)):
        return None
    return stack, rows, columns, summed


def multiplied(a, b, terms, result, plan):
    """A matrix product, with its axes in the order of the result."""
    stack, rows, columns, summed = plan
    left, right = terms
    for one, other in zip(positions_of(summed, left), positions_of(summed, right)):
        check(a.shape[one] == b.shape[other], "Deoptimize", "operands that do not fit, or are broadcast")
    if stack == "":
        made = tensordot(a, b, (positions_of(summed, left), positions_of(summed, right)))
    else:
        shape = tuple([a.shape[axis] for axis in positions_of(stack, left)])
        for one, other in zip(positions_of(stack, left), positions_of(stack, right)):
            check(a.shape[one] == b.shape[other], "Deoptimize", "operands that do not fit, or are broadcast")
        kind = result_kind(dtype_of(a), dtype_of(b))
        a, b = converted(a, kind), converted(b, kind)
        many = tuple([a.shape[axis] for axis in positions_of(rows, left)])
        other = tuple([b.shape[axis] for axis in positions_of(columns, right)])
        depth = size_of(tuple([a.shape[axis] for axis in positions_of(summed, left)]))
        a = reshape(permute(a, positions_of(stack + rows + summed, left)), (*shape, size_of(many), depth))
        b = reshape(permute(b, positions_of(stack + summed + columns, right)), (*shape, depth, size_of(other)))
        made = reshape(np.matmul(a, b), (*shape, *many, *other))
    return permute(as_array(made), positions_of(result, stack + rows + columns))


def arranged(made, order):
    """An array in an order of axes, from the slowest to the fastest."""
    if made.ndim < 2 or order_of(made) == order:
        return made
    out = allocate(made.shape, dtype_of(made), order)
    assign(out, made)
    return out


@static
def first_of(order, count):
    """The order of the first axes only."""
    return tuple(axis for axis in order if axis < count)


# ---- einsum ----------------------------------------------------------------------------------------------------------


@static
def listed_subscripts(lists, count):
    """Subscripts from the lists of numbers for the operands, and for the result if there is one more."""
    text = ",".join(in_letters(one) for one in lists[:count])
    return text if len(lists) == count else f"{text}->{in_letters(lists[count])}"


@implements(np.einsum)
def einsum(*operands, out=None, dtype=None, order="K", casting="safe", optimize=False):
    if dtype is not None or order != "K" or len(operands) < 2:
        hand_back("np.einsum in this form")
    if not isinstance(operands[0], str):
        return einsum(*with_subscripts(operands), out=out, casting=casting, optimize=optimize)
    subscripts, arrays = operands[0], tuple([as_array(a) for a in operands[1:]])
    terms, result = normal_form(subscripts, tuple([a.ndim for a in arrays]))
    quick = optimize is not False
    if len(arrays) > MOST or (quick and len(arrays) > 2):
        hand_back("np.einsum of several operands in an order of its own")
    if out is None:
        return contracted(arrays, terms, result, quick)
    kind = result_kind(*[dtype_of(a) for a in arrays], dtype_of(out))  # the output takes part in the choice
    arrays = tuple([converted(a, kind) for a in arrays])
    return into(out, as_array(contracted(arrays, terms, result, quick)), casting)


@static
def pairs_in(count):
    return count // 2


def with_subscripts(operands):
    """The operands behind a string, for operands that have their indices as lists behind each of them."""
    count = pairs_in(len(operands))
    arrays, lists = operands[: 2 * count : 2], operands[1 : 2 * count : 2]
    if len(operands) > 2 * count:
        lists = (*lists, operands[-1])
    if not is_known(lists):
        hand_back("np.einsum with indices that are computed")
    return (listed_subscripts(lists, count), *arrays)


@static
def operand_names(count):
    return tuple(f"operand {number}" for number in range(count))


def contracted(arrays, terms, result, quick):
    if len(arrays) == 1 and len(once(terms[0])) == len(result):
        return view_of(arrays[0], terms[0], result)
    names = operand_names(len(arrays))
    arrays = tuple([diagonal_of_term(a, term, name) for a, term, name in zip(arrays, terms, names)])
    terms = tuple([once(term) for term in terms])
    must_fit(arrays, terms, result)
    letters = all_letters(terms, result)
    laid = [laid_out(a, term, letters) for a, term in zip(arrays, terms)]
    plan = matrix_product(terms, result)
    if plan is not None:
        if quick:  # NumPy takes the operands from the end
            product = multiplied(arrays[1], arrays[0], terms[::-1], result, matrix_product(terms[::-1], result))
            return product
        product = multiplied(arrays[0], arrays[1], terms, result, plan)
        if product.ndim == 0:
            return product[()]
        return arranged(product, first_of(elementwise_order(*laid), len(result)))
    kind = result_kind(*[dtype_of(a) for a in arrays])
    wide = accumulator_kind(np.add, kind)
    product = elementwise(lambda *factors: product_of(factors, wide), *laid)
    axes = axes_from(len(result), len(letters))
    if len(axes) == 0:
        if not quick and wide.kind in "fc":  # products are added to zeros, so none is -0.0
            product = np.add(product, constant(0, wide))
        return product if wide == kind else cast(product, kind)
    (total,) = reduce_axes(product, axes, (constant(0, wide),), lambda x, *at: (x,), lambda s, x: (np.add(s, x),))
    return total if wide == kind else cast(total, kind)


def view_of(a, term, result):
    """One operand, of which nothing is summed: a view."""
    letters = once(term)
    if letters == term:
        return permute(a, positions_of(result, term))
    if wants_view():
        must_collapse(a, term, SINGLE)
        shape = tuple([a.shape[axis] for axis in positions_of(result, term)])
        strides = [sum([stride_of(a, axis) for axis in axes]) for axes in all_positions_of(result, term)]
        return strided(a, 0, shape, strides)
    return standing_for_view(
        permute(diagonal_of_term(a, term, SINGLE), positions_of(result, letters)), a, is_writeable(a)
    )


def product_of(factors, kind):
    total = cast(factors[0], kind)
    for factor in factors[1:]:
        total = np.multiply(total, cast(factor, kind))
    return total
