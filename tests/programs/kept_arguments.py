"""Arrays and lists that are arguments, kept by a callee or changed by another name; nested functions looked into."""

import functools

import numpy as np

from tests.arrays import arr
from tests.corpus import program
from tests.programs.kept import Keeper

# ---- arrays: what is kept is the array itself -----------------------------------------------------------------------


@program([(arr("f8", 4), 3), (arr("i4", 5), 0)], opaque=None, fell_back=None, mutates=(0,))
def array_in_a_partial(x, n):
    p = functools.partial(np.sum, x)
    x[0] = n + 100
    return p()


@program(
    [lambda: (np.arange(4.0), 3, Keeper()), lambda: (np.arange(5), 0, Keeper())],
    opaque=None,
    fell_back=None,
    mutates=(0,),
)
def array_kept_by_an_object(x, n, k):
    y = x * 2
    k.array(y)
    y[0] = n + 100
    x[1] = n
    return [v.tolist() for v in k.kept], y


@program([(arr("f8", 4), 3), (arr("i4", 5), 0)], opaque=None, fell_back=None, mutates=(0,))
def array_of_an_object(x, n):
    k = Keeper(x, x[1:])
    x[1] = n + 100
    return k.kept


@program([(arr("f8", 4), 3), (arr("i4", 5), 0)], opaque=None, fell_back=None)
def memory_view_of_a_new_array(x, n):
    y = x + 1
    m = memoryview(y)
    y[0] = n
    return m[0], m.tolist()


@program([(arr("f8", 4), 3), (arr("i4", 5), 0)], opaque=None, fell_back=None)
def iterator_over_a_new_array(x, n):
    y = x + 1
    it, flat = iter(y), y.flat
    y[1] = n
    return list(it), flat[1]


@program([(arr("f8", 4), 3), (arr("i4", 5), 0)], opaque=None, fell_back=None)
def views_in_a_dict(x, n):
    y = x + 1
    d = {"all": y, "rest": y[1:]}
    y[1] = n
    y = y * 2
    return d, y


# ---- lists that are arguments, changed by another name ---------------------------------------------------------------


class Holder:
    """Holds a list."""

    def __init__(self, values):
        self.values = values

    def __eq__(self, other):
        return self.values == other.values

    __hash__ = None

    def change(self):
        exec("self.values[0] += 1.5")


def numbers(count):
    return [float(i * 7 % 5) for i in range(count)]


def twice(count):
    values = numbers(count)
    return values, values, np.arange(600.0)


def apart(count):
    return numbers(count), numbers(count), np.arange(600.0)


def held(count):
    values = numbers(count)
    return Holder(values), values, np.arange(600.0)


LENGTHS = (3, 6, 50)


@program([*[functools.partial(twice, n) for n in LENGTHS], *[functools.partial(apart, n) for n in LENGTHS]],
         opaque=None, fell_back=None, mutates=(0, 1))  # fmt: skip
def appended_by_another_name(a, b, x):
    total = (x * 2).sum()
    for v in b:
        total += v
    a.append(total)
    y = x * 3
    for v in b:
        y = y + v
    return total, y, len(b)


@program([functools.partial(held, n) for n in LENGTHS], opaque=None, fell_back=None)
def changed_by_a_method(holder, values, x):
    total = (x * 2).sum()
    holder.change()
    return total * values[0] + sum(values)


@program([functools.partial(held, n) for n in LENGTHS], opaque=None, fell_back=None)
def changed_where_it_is_held(holder, values, x):
    own = holder.values
    total = (x * 2).sum()
    holder.change()
    own.append(1.0)
    return total * own[0] + own[1], values


@program([functools.partial(held, n) for n in LENGTHS], opaque=None, fell_back=None, mutates=(1,))
def changed_in_a_tuple(holder, values, x):
    pair = (values, 2)
    total = (x * 2).sum()
    holder.change()
    y = x * pair[0][0]
    pair[0].append(3.0)
    return total, y, pair


def rows_of_arrays():
    x = np.arange(8.0)
    return [x[:4], x[1:5], np.ones(3)]


@program([lambda: (rows_of_arrays(),)], opaque=None, fell_back=None, mutates=(0,))
def arrays_of_a_list_that_leaves(rows):
    first, other = rows[0], rows[1]
    first[0] = 7.0
    other[1] += first.sum()
    rows[2][:] = rows[0][:3]
    return first + other, rows


@program([lambda: ((np.ones(3), [np.ones(4), {"z": np.arange(5)}]),)], opaque=None, fell_back=None, mutates=(0,))
def array_of_a_dict_of_a_list(pair):
    first, (second, named) = pair
    named["z"][0] = 100
    return first[:2], second.sum(), named


def array_and_list_of_it():
    x = np.arange(4.0)
    return [x], x


def first_is_doubled(values):
    """Code that is not compiled."""
    eval("1")
    values[0][0] += 1.0
    values[0] *= 2.0
    return 2.0


@program([array_and_list_of_it], opaque=None, fell_back=None, mutates=(0, 1))
def array_beside_a_list_of_it(values, x):
    x *= 2.0
    values[0][1] = 3.0
    x += first_is_doubled(values)
    values[0][2] -= 1.0
    values.append(x + 1.0)
    values[1][0] = -1.0
    return x.sum(), values


def described(function):
    return function.__name__, function.__doc__, dict(function.__annotations__), function.__defaults__


class Describing:
    """What is called with a function, as registries of functions are."""

    def __call__(self, function):
        return described(function)


describing = Describing()


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def nested_function_with_annotations(x):
    def scaled(y: float, by: "int" = 2) -> np.ndarray:
        """The array by something."""
        return x * y * by

    return describing(scaled), described(scaled), scaled(2.0)


@program([(arr("f8", 3), 2)], opaque=None, fell_back=None)
def nested_function_with_annotations_of_local_names(x, n):
    kind = type(n)

    def scaled(y: kind, z: "kind"):
        return x * y + z

    return describing(scaled), scaled(2.0, 1)


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def dispatched_by_annotations(x):
    z = np.polynomial.polynomial.polyroots(x)  # an observed call

    @functools.singledispatch
    def name(value):
        return "any"

    @name.register
    def _(value: int):
        return "int"

    return name(1), name("a"), z.size


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def what_nested_functions_are_made_of(x):
    z = np.polynomial.polynomial.polyroots(x)  # an observed call

    def scaled(y):
        return y * x

    return [cell.cell_contents for cell in scaled.__closure__], scaled.__code__.co_varnames, scaled(2.0), z.size


def _one_of(a, b, chosen):
    return chosen is a, chosen is b


@program([([1, 2], [3, 4], 0), ([1, 2], [3, 4], 1), ([1, 2], [3, 4], 5)], opaque=None, fell_back=None)
def lists_chosen_by_path(a, b, n):
    """Of two arguments; the very lists, for those who ask and for those who are given one."""
    first = a if n else b
    last = a
    for i in range(3):
        if i == n:
            last = b
    return _one_of(a, b, first), _one_of(a, b, last), _one_of(a, b, n or a)


@program([([1, 2], [3, 4], 0), ([1, 2], [3, 4], 1)], opaque=None, fell_back=None, mutates=(0, 1))
def lists_chosen_by_path_and_changed(a, b, n):
    chosen = a if n else b
    chosen.append(5)
    return sum(a), sum(b), chosen
