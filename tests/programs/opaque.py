"""Calls handed back to Python: their values, what happens around them, and that they are listed."""

import functools
import math

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, case, program, raising

_scope = {"np": np}
_calls = []


def evaluated(x, k=1):
    """What a string says is Python's to run, whatever the compiler learns."""
    return eval("x * k + 1")


class Accumulator:
    """An object the compiler knows nothing of."""

    def __init__(self):
        self.total = 0.0

    def add(self, x):
        self.total += float(np.sum(x))
        return self.total

    def __call__(self, x):
        return x - 1


_accumulator = Accumulator()


def _reset():
    _accumulator.total = 0.0
    _calls.clear()


@program([(arr("f8", 4),), (arr("f4", 2, 2),), (3,)], opaque=1)
def evaluated_function(x):
    return evaluated(x * 2) - x


@program([(arr("f8", 4), 3), (arr("i4", 4), 2.5)], opaque=2)
def keywords_to_evaluated_function(x, n):
    return evaluated(x, k=n) + evaluated(n)


@program([(arr("f8", 4, 3),), (arr("f4", 3, 3),)], opaque=0, regrouped=64)
def singular_values(a):
    s = np.linalg.svd(a + 1, compute_uv=False)
    return s / s.sum(), s[0]


@program([(arr("f8", 3, 3), arr("f8", 3))], opaque=0, regrouped=256)
def solved(a, b):
    x = np.linalg.solve(a + 9 * np.eye(3), b)
    return x, a @ x - b


@program([(arr("f8", 3, 3),)], opaque=0, regrouped=256)
def inverse_and_determinant(a):
    b = a + 9 * np.eye(a.shape[0])
    return np.linalg.inv(b) @ b, np.linalg.det(b)


@program([(arr("f8", 5, values="positive"),), (arr("f4", 5, values="positive"),)], opaque=1, ulp=8)
def gamma_function(x):
    from scipy import special

    return special.gamma(x) + 1


@program([(arr("f8", 8),), (arr("c16", 6),)], opaque=0, regrouped=32)
def fourier_transform(x):
    return np.fft.fft(x * 2).real


@program([case(arr("f8", 4), setup=_reset), case(arr("f8", 3), setup=_reset)], opaque=2)
def method_of_unknown_object(x):
    """Effects happen once each, in order."""
    first = _accumulator.add(x)
    second = _accumulator.add(x * 2)
    return first, second


@program([(arr("f8", 4),)], opaque=1)
def callable_object(x):
    return _accumulator(x) * 2


@program([case(one, 3) for one in (Accumulator, Accumulator.add, print, 2.5, "text", [1], range(2))], opaque=None)
def callable_or_not(kind, n):
    return callable(kind), n + 1 if callable(kind) else n


@program(
    [
        Case(lambda: (functools.partial(max, 3), 4)),
        Case(lambda: (Accumulator(), 4)),
        Case(lambda: (object(), 4), raises=TypeError),
    ],
    opaque=1,
)
def callable_objects(given, n):
    if not callable(given):
        raise TypeError("it cannot be called")
    return n + 1


@program([case(arr("f8", 3), 3, setup=_reset)], opaque=1)
def call_in_loop(x, n):
    total = 0.0
    for i in range(n):
        total += _accumulator.add(x * i)
    return total


@program([case(3, setup=_reset), case(0, setup=_reset)], opaque=None, fell_back=None)
def call_that_only_has_effects(n):
    for i in range(n):
        _calls.append(i)
    return n


@program([(arr("f8", 4),)], opaque=2, mutates=(0,))
def handed_back_mutation(x):
    """The opaque call writes to memory that compiled code reads afterwards."""
    y = x[1:]
    before = y.sum()
    np.random.default_rng(3).shuffle(y, axis=-1)
    return before >= y[0], y, x * 2


@program([(arr("f8", 4), True), (arr("f8", 4), False)], opaque=1)
def call_in_branch(x, flag):
    if flag:
        return evaluated(x)
    return x + 1


@program([(arr("f8", 4), 1), (arr("f8", 4), 2)], opaque=None)
def result_type_varies(x, k):
    """The observed result type is only a guess: it is guarded."""
    y = _int_or_float(k)
    return x * y, y


exec("def _int_or_float(k):\n    return k if k == 1 else k * 0.5\n", _scope)
_int_or_float = _scope["_int_or_float"]


@program([raising(KeyError, arr("f8", 3))], opaque=None, mutates=(0,))
def exception_from_handed_back_call(x):
    x += 1
    _raise_key_error(x)
    x += 1


exec("def _raise_key_error(x):\n    raise KeyError('no key')\n", _scope)
_raise_key_error = _scope["_raise_key_error"]


@program([(arr("f8", 5), 2), (arr("f8", 5), 0)], opaque=None)
def text_and_dictionaries(x, k):
    names = {0: "sum", 1: "min", 2: "max"}
    name = names[k]
    return name, name.upper(), getattr(x, name)() if k < 9 else None


@program([(5,)], opaque=None)
def seeded_random_numbers(n):
    rng = np.random.default_rng(7)
    sample = rng.normal(size=n)
    return sample * 2 + 1, sample.shape


@program([(arr("f8", 5),), (arr("i4", 5),)], opaque=None)
def polynomial_fit(x):
    return np.polyval([1.0, 2.0, 3.0], x), np.poly1d([1, 2])(x)


@program([(arr("f8", 12),)], opaque=None)
def window_view(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, 4)
    return windows.max(axis=1), windows.shape


@program([(arr("f8", 6), 3), (arr("f8", 6), 2)], opaque=None, fell_back=None)
def functional_programming(x, k):
    from functools import reduce

    return reduce(lambda a, b: a * 0.5 + b, x), list(map(lambda v: v * k, range(3))), math.comb(6, k)


@program([(arr("f8", 3),)], opaque=None)
def printed_to_nowhere(x):
    import io

    stream = io.StringIO()
    print("sum", len(x), file=stream)
    return stream.getvalue()


@program([(arr("f8", 3),), (arr("i8", 3),), (arr("c16", 3),)], opaque=3)
def types_of_numbers_given_to_python(a):
    """A float is not an np.float64, whatever machine code makes of them."""
    y = a[1].item()
    return repr(y), repr(a[1]), repr(a.sum().item())


def _scaled(x, *, by=1, shift=(0, 0)):
    return eval("x * by + shift[1]")


def _nothing(x, y):
    return eval("None")


@program(
    [
        (arr("f8", 40, 5), 1.5, 2, True, np.float32(3)),
        (arr("f8", 3, 5), -0.0, -(2**60), False, np.int64(2)),
        (arr("i4", 2, 5), 1e300, 0, True, np.complex128(1 + 2j)),
    ],
    opaque=7,
    regrouped=4096,
)
def values_of_every_kind_handed_back(a, x, n, flag, number):
    """Each kind of operand and result goes to Python and comes back as it is."""
    total = 0.0
    for i in range(len(a)):
        row = np.sort(a[i] * 2)
        total += row.sum() + _scaled(x, by=0.5)
        n = evaluated(n, k=1)
        flag = _scaled(flag, by=True, shift=(n, flag)) > 0
        number = evaluated(number)
        first = _scaled(a[i], by=i, shift=(a, n))
        _nothing(row, number)
        total += first[0]
    return total, n, flag, number, _scaled(row, shift=(x, x))


@program(
    [
        (arr("f8", 4), np.add.reduce),
        (arr("f8", 4), abs),
        (arr("f8", 4), len),
        (arr("f8", 4), np.add.accumulate),
        (arr("f8", 4), np.add.reduce),
    ],
    opaque=None,
)
def call_of_one_of_several_functions(x, function):
    """One compiled function for all calls: none of these changes the array, so a call can be begun again."""
    return function(x)


@program(
    [
        (arr("f8", 3, 3),),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]),),
        (np.array([[2.0, 1.0], [1.0, 2.0]]),),
    ],
    opaque=None,
    regrouped=256,
)
def values_and_vectors_with_names(a):
    """The result is a named tuple, of real or complex arrays."""
    pair = np.linalg.eig(a)
    values, vectors = pair
    return pair, a @ vectors - vectors * values, pair.eigenvalues.sum()


@program([(arr("f8", 3), k) for k in (1, 2, 3)], mutates=(0,), opaque=None)
def texts_of_a_call_that_stores(a, k):
    a[0] = k
    texts = "%d %s" % (k, a[0]), "{} {:.2f}".format(k, a[0])  # noqa: UP031, UP032
    return texts, repr(k), hex(k), format(k, "03d"), np.array2string(a)


class _Box:
    """An object with all operations: what they give is of every kind."""

    def __init__(self, held):
        self.held = held
        self.text = b"bytes"

    pair = property(lambda self: (self.held.sum(), 2))
    nothing = property(lambda self: None)

    def __add__(self, other):
        return self.held + other

    def __imul__(self, other):
        self.held *= other
        return self

    def __getitem__(self, key):
        return self.held[key]

    def __setitem__(self, key, value):
        self.held[key] = value

    def __neg__(self):
        return float(self.held[0])

    def __lt__(self, other):
        return self.held < other

    def __contains__(self, key):
        return key in self.held

    def __bool__(self):
        return bool(self.held[0] > 0)


@program(
    [lambda: (_Box(arr("f8", 4).make()), 2), lambda: (_Box(arr("i4", 4).make()), 2)],
    opaque=None,
)
def every_operation_of_an_object(box, k):
    box[1] = k
    box *= 2
    sign = 1 if box else -1
    return box + k, box[k], -box, box < k, k in box, box.pair, box.text, box.nothing, box, sign


@program([(arr("f8", 6), k) for k in (1, 1, 2, 1)], opaque=2)
def functions_of_numpy_that_ask_python(a, k):
    """A function of NumPy's, written in Python, is one call of Python's, whatever it calls."""
    return np.polynomial.polynomial.polyfromroots(a) * k, np.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2), 2) * k


@program([(arr("f8", n, 2),) for n in (3, 4, 0)], opaque=None, mutates=(0,), regrouped=8)
def rows_in_tuples(a):
    """As many as the argument has: of another length in the next call, also after a store."""
    a[:1] = 7
    return tuple(a), a.sum(0)


@program([(arr("f8", n, 2),) for n in (3, 4, 0)], regrouped=8)
def rows_of_a_list(a):
    total = np.zeros(2)
    for row in list(a):
        total += row
    return total, len(list(a)), np.array(list(a))


@program([(arr("f8", 4), k) for k in (2, -1, -1, -1, -1, -1, -1, 3)], opaque=None)
def powers_that_python_does_again_and_again(a, k):
    """Calls that compiled code gives up each time, and between them others."""
    return a * 2**k, 3**k, np.zeros((0, 3)).copy().strides


class Counted:
    """An object that changes when it is asked."""

    def __init__(self):
        self.asked = 0
        self.last = np.zeros(1)

    def __len__(self):
        self.last = self.last + 1
        return 3

    def __abs__(self):
        self.asked += 10
        return 2.5


@program([Case(lambda: (Counted(),)), Case(lambda: (Counted(),))], opaque=None)
def objects_that_change_when_they_are_asked(counted):
    before = counted.asked, counted.last[0]
    size = abs(counted) + len(counted)
    return before, size, counted.asked, counted.last[0]


def _shown(one, other):
    return f"{one} {other}"


@program([(arr("f8", 3), 1), (arr("i8", 2), 2)], opaque=None, mutates=(0,))
def texts_of_arrays_that_change(x, k):
    """What a string shows is what was there when it was made."""

    def change():
        x[0] += k
        return k

    before = f"{x}"
    among = f"{x} {change()} {x} {k:3d}"
    x[0] = 7
    parts = f"{x}" + str(change()) + str(x)
    return before + "!", among, parts + f"{x}", _shown(f"{x}", change())


@program([(3,), (4,), (16,), (5,)], opaque=None, fell_back=None)
def stored_into_what_python_has_made(n):
    """Nothing has been stored yet when the array turns out to hold objects."""
    a = np.empty((n, n), dtype=object if n > 14 else np.int64)
    for i in range(n):
        for j in range(n):
            a[i, j] = i + j
    return a.tolist()


class Reshaper:
    """Sets what compiled code takes an array to be."""

    def two_rows(self, a):
        a.shape = (2, -1)

    def as_integers(self, a):
        a.dtype = np.int64

    def read_only(self, a):
        a.flags.writeable = False


_reshaper = Reshaper()
_of_name = functools.partial(getattr, _reshaper)


@program([(arr("f8", 4),)], opaque=None, fell_back=None, mutates=(0,), regrouped=4)
def shape_set_by_python(a):
    total = a.sum()
    _of_name("two_rows")(a)
    return total, a.shape, a[0].sum(), a * 2


@program([(arr("f8", 4),)], opaque=None, fell_back=None, mutates=(0,))
def dtype_set_by_python(a):
    _of_name("as_integers")(a)
    total = a[0]
    for i in range(len(a)):
        total = total + a[i]
    return total, a + 1


@program([(4,)], opaque=None, fell_back=None)
def shape_of_its_own_array_set_by_python(n):
    a = np.arange(float(n))
    _of_name("two_rows")(a)
    return a.shape, a[1] * 2, a


@program([raising(ValueError, 4)], opaque=None, fell_back=None, message=True)
def its_own_array_made_read_only_by_python(n):
    a = np.arange(float(n))
    _of_name("read_only")(a)
    a[0] = 1.0
    return a
