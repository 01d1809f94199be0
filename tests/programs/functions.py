"""Functions within functions: closures, lambdas, helpers, defaults, keyword and variadic arguments, globals."""

import functools
import math

import numpy as np

import tests.programs.functions as this_module
from tests.arrays import arr
from tests.corpus import ELEMENTARY, Case, case, program, raising

GAIN = 2.0
TABLE = np.arange(5.0)
LIMITS = (0, 3)


def _square(x):
    return x * x


def _scale_and_shift(x, scale=2, *, shift=1):
    return x * scale + shift


def _halve_in_place(x):
    x *= 0.5


def _bounds(x):
    return x.min(), x.max()


def _setting(name, value):
    return lambda: setattr(this_module, name, value)


@program([(arr("f8", 4), 3), (arr("i4", 4), 2.5), (2, 3)])
def nested_function(x, k):
    def inner(y):
        return y * k + 1

    return inner(x) - inner(k)


@program([(arr("f8", 4), 3), (5, 2)])
def closure_sees_later_assignment(x, k):
    def inner():
        return x + k

    before = inner()
    k = k * 10
    return before, inner()


@program([(3,), (0,)])
def nonlocal_counter(n):
    count = 0

    def bump(by):
        nonlocal count
        count += by

    for i in range(n):
        bump(i)
    return count


@program([(arr("f8", 4), 2), (3, 4)])
def lambdas(x, k):
    twice = lambda f, v: f(f(v))  # noqa: E731
    add = lambda v, n=k: v + n  # noqa: E731
    return twice(add, x), (lambda a, b=2: a * b)(k)


@program([(arr("f8", 4), True), (arr("f8", 4), False)], ulp=ELEMENTARY, fell_back=None)
def function_chosen_at_run_time(x, flag):
    f = np.sin if flag else np.sqrt
    return f(np.abs(x))


@program([(arr("f8", 4), 2.0), (arr("f4", 4), 3)])
def function_returned(x, k):
    def scaler(a):
        def scale(v):
            return v * a

        return scale

    by_k, by_two = scaler(k), scaler(2)
    return by_k(x) + by_two(x)


@program([(arr("f8", 4),), (3,), (arr("i4", 2, 2),)])
def helper_called(x):
    return _square(x) + _square(2)


@program([(arr("f8", 4),), (3,)])
def helper_with_keywords(x):
    return _scale_and_shift(x), _scale_and_shift(x, 3), _scale_and_shift(x, shift=x, scale=1)


@program([(arr("f8", 4),), (arr("f4", 2, 2),)], mutates=(0,))
def helper_that_mutates(x):
    _halve_in_place(x)
    _halve_in_place(x[1:])
    return x


@program([(arr("f8", 6),), (arr("i4", 6),)])
def helper_with_tuple(x):
    low, high = _bounds(x)
    return (x - low) / (high - low + 1)


@program([(10,), (1,)])
def recursive_twice(n):
    return n if n < 2 else recursive_twice(n - 1) + recursive_twice(n - 2)


def hanoi(n):
    return 0 if n == 0 else hanoi(n - 1) + 1 + hanoi(n - 1)


@program([(arr("f8", 3), 3), (arr("f8", 3), 0)])
def a_recursive_helper(x, n):
    return x * hanoi(n)


@program([(arr("f8", 5),)])
def counted_by_kind(x):
    counts = {}
    for value in x:
        key = int(value) % 3
        counts[key] = counts.get(key, 0) + 1
    return counts


@program([(10,), (1,), (0,)])
def recursion(n):
    def factorial(k):
        return 1 if k <= 1 else k * factorial(k - 1)

    return factorial(n)


@program(
    [
        (arr("f8", 4), 2),
        case(arr("f8", 4), kwargs={"k": 3}),
        (arr("f8", 4),),
        case(kwargs={"k": 1.5, "x": 2}),
    ]
)
def default_arguments(x, k=2, scale=1.5):
    return x * k + scale


@program([case(arr("f8", 4), kwargs={"shift": 2}), case(1, kwargs={"shift": 2, "scale": 5})])
def keyword_only(x, *, scale=3, shift):
    return x * scale + shift


@program([(1, 2), (1,), (1, 2.5, arr("f8", 3), 4)])
def variadic(first, *rest):
    total = first
    for value in rest:
        total = total + value
    return total, len(rest)


@program([case(1, kwargs={"a": 2}), case(1, kwargs={"b": 2.5, "a": 1})], opaque=None, fell_back=None)
def keyword_variadic(x, **options):
    return x + options["a"]


@program([(arr("f8", 3),), (2,)])
def arguments_spread(x):
    pair = (x, 3)
    return _scale_and_shift(*pair), _scale_and_shift(x, **{"scale": 4, "shift": 0})


@program([Case((arr("f8", 4),), setup=_setting("GAIN", gain)) for gain in (2.0, 3.5, 4, 2.0)])
def global_constant_that_changes(x):
    """A global is read at every call: its value, and its type, may have changed."""
    return x * GAIN


@program(
    [Case((arr("f8", 5),), setup=_setting("TABLE", t)) for t in (np.arange(5.0), np.arange(5)[::-1], np.float32(3))]
)
def global_array_that_changes(x):
    return x + TABLE


@program([Case((arr("f8", 5),), setup=_setting("_square", f)) for f in (_square, np.abs, lambda v: v - 1)])
def global_function_that_changes(x):
    return _square(x) + 1


@program([Case((arr("f8", 3),), setup=_setting("LIMITS", v)) for v in ((0, 3), (-1, 1, 2))])
def global_tuple(x):
    return np.clip(x, LIMITS[0], LIMITS[1]), len(LIMITS)


@program([(7,), (2.5,)], ulp=1)
def modules_and_attributes(x):
    return math.pi * x, np.linalg.norm(np.array([x, x])), this_module.LIMITS[0] + x


def _make_adder(amount, table):
    def adder(x):
        return x + amount + table[: len(x)]

    return adder


program([(arr("f8", 3),), (arr("i4", 2),)], name="closure_over_numbers_and_arrays")(_make_adder(2.5, np.arange(9.0)))
program([(arr("f8", 3),), (4,)], name="a_lambda")(lambda x: x * 2 + 1)


class Oscillator:
    """Methods take `self`, whose attributes are constants and functions."""

    frequency = 2.0

    def __init__(self, damping):
        self.damping = damping
        self.offsets = np.array([1.0, 2.0, 3.0])

    def step(self, x):
        return x * self.frequency - self.damping + self.offsets

    @staticmethod
    def energy(x, v):
        return 0.5 * (x * x + v * v)


program([(arr("f8", 3),)], name="a_method", opaque=None)(Oscillator(0.5).step)
program([(arr("f8", 3), arr("f8", 3, seed=1))], name="a_static_method")(Oscillator.energy)
program([(arr("f8", 3), arr("f8", 3, seed=1)), (2, 3.5)], name="a_ufunc")(np.add)
program([(arr("f8", 3), arr("f8", 3, seed=1))], name="a_ufunc_of_two_results")(np.divmod)
program([((1, 2, 3),), ([4, 5],)], name="a_builtin")(sum)
program([(arr("f8", 3), 2)], name="a_partial", opaque=None, fell_back=None)(
    functools.partial(_scale_and_shift, shift=5)
)


@program([(arr("f8", 2, 3), "rows"), (arr("f8", 2, 3), "columns")], regrouped=8)
def string_argument(x, by):
    return x.sum(axis=1) if by == "rows" else x.sum(axis=0)


@program([(arr("f8", 3), np.float32), (arr("f8", 3), np.int64), (arr("f8", 3), float)])
def type_argument(x, kind):
    return x.astype(kind), np.zeros(2, dtype=kind)


@program([(arr("f8", 3, values="positive"), np.sqrt), (arr("f8", 3), np.abs), (arr("f8", 3), _square)])
def function_argument(x, f):
    return f(x) + 1


@program([raising(TypeError), raising(TypeError, 1), raising(TypeError, 1, 2, 3)], message=True)
def wrong_argument_count(a, b):
    return a + b


@program([raising(TypeError, 1, 2, kwargs={"a": 1}), raising(TypeError, 1, kwargs={"c": 1})], message=True)
def wrong_keyword(a, b=2):
    return a + b


@program([raising(TypeError, 1, kwargs={"a": 2}), raising(TypeError, 1, 2, 3, kwargs={"b": 1})], message=True)
def keyword_of_what_is_given_by_its_place(a, b=2, *more, **named):
    return a + b + len(more) + len(named)


@program([raising(TypeError, 3)])
def helper_with_wrong_argument_count(x):
    return _square(x, x)


def _decay(rate, drift):
    return lambda t, y: drift - rate * y


def _counter():
    calls = 0

    def count(t, y):
        nonlocal calls
        calls += 1
        return y * 0 + calls

    return count


def _factorial():
    def factorial(t, y):
        return y if t <= 0 else y * factorial(t - 1, y)

    return factorial


@program(
    [
        lambda: (_decay(2.0, 0.5), 1.0, 3),
        lambda: (_decay(3.0, 0.25), 1.0, 3),
        lambda: (_decay(2, np.arange(3.0)), np.ones(3), 2),
        lambda: (_decay(np.full(3, 0.5), 1.0), np.ones(3), 2),
        lambda: ((lambda t, y, scale=2.0: y * scale), np.ones(3), 2),
        lambda: ((lambda t, y, scale=3.0: y * scale), np.ones(3), 2),
        lambda: ((lambda t, y: np.sin(y)), 0.5, 2),
        lambda: (_decay(_decay, 1.0), 1.0, 0),
    ],
    ulp=4,
)
def euler(f, y, n):
    """A nested function is known by its code; what it closes over may be another at each call."""
    t = 0.0
    for _ in range(n):
        y = y + 0.125 * f(t, y)
        t += 0.125
    return y


@program([lambda: (_counter(), 1.0), lambda: (_factorial(), 2.0)], opaque=None)
def call_of_what_is_not_inlined(f, y):
    return f(2, y), f(3, y)


@program(
    [lambda: (_decay(2.0, 1.0), _decay(3.0, 1.0), True, 5.0), lambda: (_decay(2.0, 1.0), _decay(3.0, 1.0), False, 5.0)]
)
def either_function(f, g, first, y):
    h = f if first else g
    return h(0.0, y)


def _reader_and_writer():
    n = 0

    def read(y):
        return y + n

    def write():
        nonlocal n
        n += 1

    return read, write


@program([lambda: (*_reader_and_writer(), 1.0)], opaque=None)
def closure_that_changes_meanwhile(read, write, y):
    before = read(y)
    write()
    return before, read(y)


def _storing(x):
    return lambda y: x.sum() + y.sum()


def _sharing():
    x = np.arange(4.0)
    return _storing(x), x


@program([_sharing], mutates=(1,))
def closure_over_another_argument(f, x):
    before = f(x)
    x[1:] += x[:-1]
    return before, f(x)


@program([lambda: (_decay(2.0, 1.0), 1.0)], opaque=None)
def function_given_back(f, y):
    return f is f, callable(f), f(0.0, y)


@program([(arr("u1", 12), "Sum"), (arr("u1", 12), " mean "), (arr("u1", 12), "first-last")])
def known_texts(x, how):
    """Strings are known when a function is compiled, and so is what their methods give."""
    count = 0
    for c in x:
        if ord("0") <= c <= ord("z"):
            count += 1
    if how.strip().lower() == "sum":
        return x.sum(), count
    if how.startswith(" m"):
        return x.mean(), chr(65) in "ABC", hex(255)
    return [part.upper() for part in how.split("-")]


@program([(5,), (0,), (-1,)])
def shared_names(n):
    if n < 0:
        return None
    count = 0
    last = 0.0

    def add(k):
        nonlocal count, last
        count += k
        last = k * 0.5
        return count

    total = sum(add(i) for i in range(n) if i % 2)
    for i in range(n):
        if i % 2:
            total += add(i)
    return count, last, total, [add(1) for _ in range(n)]


@program([(3,)])
def counters(n):
    def counter(step):
        c = 0

        def following():
            nonlocal c
            c += step
            return c

        return following

    one, ten = counter(1), counter(10)
    for _ in range(n):
        ten()
    return one(), one(), ten()


@program([(lambda: (arr("f8", 5).make(), 2))])
def shared_array(x, k):
    total, calls = np.zeros(2), 0

    def add(v):
        nonlocal total, calls
        total = total + v
        calls += 1
        return total * k

    rows = [add(v).sum() for v in x]
    while calls < 8:
        add(1.0)
    return rows, total, calls


class Tally:
    def __init__(self):
        self.n = 0

    def row(self, k):
        self.n += k
        return np.full(2, self.n)


@program([lambda: (Tally(), 4)])
def elements_that_assign(tally, n):
    return [tally.row(i) for i in range(n)], tally.n


@program([(arr("f8", 40),)])
def memcpy(a):
    """What this loop becomes calls C's function of this name."""
    b = np.empty_like(a)
    for i in range(len(a)):
        b[i] = a[i]
    return b


@program([(arr("f8", 3, 3), 2)])
def größe(a, zählt):
    return a @ a * zählt


class Line:
    def __init__(self, slope, offset):
        self.slope, self.offset = slope, offset

    def value(self, x):
        return self.slope * x + self.offset

    def __call__(self, x, power=1):
        return self.value(x) ** power


@program([lambda: (Line(1.5, 2.0), np.array([1.0, 2.0]))])
def called_instance(line, x):
    return line(x) + line(x, power=2) + line.value(1.0)


# ---- functions that Python calls, or that outlive what they have captured --------------------------------------------


def itself(function):
    return function


class Keeper:
    """Nothing looks into `__new__`."""

    def __new__(cls, function):
        made = object.__new__(cls)
        made.function = function
        return made

    def __call__(self, *args):
        return self.function(*args)


class Holder:
    def __init__(self, function):
        self.function = function


@program([(arr("f8", 4), 2)], opaque=None, mutates=(0,))
def nested_functions_for_python(a, k):
    """Such functions are made of their own code and of what they have captured."""
    scale = np.sum(a) * k

    def weight(t, more=k):
        return t * scale + a[0] + more

    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    def put(t):
        a[1] = t
        return t

    kept = Keeper(put)
    before = a * 2
    kept(7.0)
    return Keeper(weight)(1.0), Keeper(factorial)(5), Keeper(lambda: a.sum())(), before, a + 1


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def python_changes_what_it_captured(a):
    count, seen, table = 0, [], {}

    def note(t):
        nonlocal count
        count += 1
        return t

    Keeper(note)(1)
    Keeper(lambda t: seen.append(t))(2)
    Keeper(lambda t: table.update(k=t))(3)
    return count, seen, table, a * 2


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def functions_kept_while_names_change(a):
    """All see the last value of the name."""
    z = np.polynomial.polynomial.polyroots(a)  # an observed call
    made = [Keeper(lambda x: x + i) for i in range(3)]  # noqa: B023
    held = [Holder(lambda: i) for i in range(3)]  # noqa: B023
    appended = []
    for j in range(3):
        appended.append(Keeper(lambda x: x + j))  # noqa: B023
    return [one(1) for one in made], [one.function() for one in held], [one(1) for one in appended], z.size


@program([(arr("f8", 3),)], fell_back=None)
def functions_that_calls_return(a):
    t = 1

    def get():
        return t

    def inner():
        return itself(lambda: t), itself(get)

    first, second = inner()
    table = {i: itself(lambda: i) for i in range(3)}  # noqa: B023
    t = 2
    return first(), second(), table[0](), a * t


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def kept_function_of_a_name_bound_later(a):
    t = 5
    kept = Keeper(lambda x: x + t)
    t = 7
    return [kept][0](1), a * t


@program([(arr("f8", 3),)], opaque=None, fell_back=None)
def ufuncs_made_while_a_name_changes(a):
    z = np.polynomial.polynomial.polyroots(a)
    made = [np.frompyfunc(lambda x: x + i, 1, 1) for i in range(3)]  # noqa: B023
    return [one(1) for one in made], z.size
