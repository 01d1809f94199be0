"""datetime64 and timedelta64: arrays and scalars as arguments, NaT, units, what is handed back."""

import itertools

import numpy as np

from tests.corpus import Case, program

DAYS = [3, 1, 4, 1, 5, 9, 2, 6]
# From NumPy 2.5 on these are looked at for whether they fit, and are left to it.
IN_FINER_UNITS = None if np.lib.NumpyVersion(np.__version__) >= "2.5.0" else False


def times(values=DAYS, unit="D", *, kind="M8", step=1, missing=(), writeable=True, shape=None):
    """An array of times."""
    made = np.zeros(len(values) * abs(step), f"{kind}[{unit}]")[::step]
    made[...] = np.array(values, np.int64).astype(made.dtype)
    for place in missing:
        made[place] = "NaT"
    made = made.reshape(shape or made.shape)
    made.flags.writeable = writeable
    return made


def one(**kinds):
    return Case(lambda: (times(**kinds),))


WITH_NAT = one(missing=(0, 5))
EACH = [one(), WITH_NAT, one(unit="ns", step=-2), one(unit="25s"), one(values=[7])]


@program([*EACH, one(values=[]), one(writeable=False), one(shape=(2, 4)), one(kind="m8", missing=(2,))])
def differences(x):
    return x[1:] - x[:-1], np.diff(x), x[::2], x.shape, x.size, x.ndim, x.dtype, x.T, len(x)


@program(EACH)
def the_most(x):
    return x.max(), x.min(), np.sort(x), np.unique(x), x.argmin(), x.argmax(), x[-1], np.isnat(x), x[0] - x[-1]


@program([one(values=[])], raises=ValueError, message=True)
def the_most_of_none(x):
    return x.max()


@program([one(), WITH_NAT, one(shape=(2, 4), missing=(1,))])
def the_most_along_an_axis(x):
    return x.max(axis=-1), np.min(x, axis=0), np.sort(x, axis=0), (x - x.min()).sum(axis=-1)


@program([one(), WITH_NAT, one(unit="h"), one(unit="ns", step=2)], mutates=(0,))
def stored(x):
    x[3] = np.datetime64("NaT")
    x[4] = x[7]
    x += np.timedelta64(1, "D")
    x[x < np.datetime64("1970-01-04")] = np.datetime64("2021-01-01")
    x[5:] = x[:3]
    return x


@program([one(), WITH_NAT])
def the_longest_gap(x):
    gap = np.timedelta64(0, "D")
    at = 0
    for i, (late, early) in enumerate(zip(x[1:], x[:-1], strict=True)):
        if late - early > gap:
            gap = late - early
            at = i
    for t in x:
        gap = max(gap, x[0] - t)
    return gap, at, at if gap == np.timedelta64(4, "D") else -1


@program([one(), WITH_NAT, one(unit="h"), one(unit="m"), one(unit="ns")])
def in_numbers(x):
    since = x - x[1]
    return since / np.timedelta64(1, "h"), since.astype("i8"), x.view("i8"), x.astype(float), (x[2] - x[1]).astype(int)


@program([one(), one(unit="ns")])
def whole_weeks(x):
    return (x - x[1]) // np.timedelta64(7, "D"), (x - x[0]) % np.timedelta64(7, "D")


@program([one(), WITH_NAT, one(unit="ns"), one(unit="25s", step=-1)])
def divided_by_ints(x):
    since = x - x[1]
    halves = since / 2, (x[2] - x[0]) // -2, since // np.arange(-9, len(x) - 9), since / (x.astype("i8") // 99 + 5)
    return halves, since / 3, since / np.int64(-7), since / np.arange(1, len(x) + 1), since[0] / 2, (x[2] - x[0]) / -3


@program([Case(lambda: (times(kind="m8", missing=(2,), unit="ns"), np.linspace(-2, 2, 8), np.float32(0.3)))])
def by_floats(x, v, f):
    with np.errstate(all="ignore"):
        wide = x * 1e300, x / 1e-300, x / 0.0, x * np.nan, x * 1e30
    return wide, x * 0.5, v * x, x / (v + 3), x // 2.5, x * f, x[1] / 0.3, 0.7 * x[0], x * v.astype("f2"), x[3] // f


@program([WITH_NAT])
def divided_by_zero(x):  # of which NumPy warns
    with np.errstate(all="ignore"):
        return (x - x[1]) / 0, (x - x[1]) // np.arange(-2, len(x) - 2), (x[1] - x[2]) / (x[1] - x[1]).astype("i8")


@program([WITH_NAT])
def whole_weeks_of_nat(x):  # of which NumPy warns
    with np.errstate(all="ignore"):
        return (x - x[1]) // np.timedelta64(7, "D")


@program([one(), WITH_NAT, one(unit="s")], fell_back=IN_FINER_UNITS)
def in_other_units(x):
    finer, coarser = x.astype("M8[ms]"), (x - np.timedelta64(5, "D")).astype("M8[W]")
    return (
        finer,
        coarser,
        finer - x,
        x[0] - coarser[1],
        finer[2] > x[0],
        x[2].astype("M8[12h]"),
        (x - x[1]).astype("m8[h]"),
    )


@program([one(), WITH_NAT, one(kind="m8")])
def moved(x):
    later = np.where(x > x[1], x, x[1])
    return later, np.concatenate((x, x[:2])), x.reshape(2, -1), x.copy(), x[np.arange(3)], np.roll(x, 1), x.ravel()


@program([one(kind="m8"), one(kind="m8", missing=(3,), unit="us")])
def of_durations(x):
    lengths = -x, abs(x[0] - x), x * 2, 3 * x, x.sum(), x + np.arange(len(x)), np.maximum(x, x[::-1]), abs(x[0])
    return lengths, x - 5, x == x[1], x != x[::-1], (x <= x[0]) | (x > x[2]), np.fmin(x, x[::-1]), +x


@program([Case(lambda: (times(), np.datetime64("1970-01-03"), np.timedelta64(2, "D")))])
def scalars(x, start, length):
    inside = x[(x >= start) & (x < start + length)]
    return inside, start + length, start, start + 1, (start - x[0]).astype("i8"), length / np.timedelta64(1, "h")


@program([Case(lambda: (times(missing=(2,)), times(unit="ns"), np.arange(8.0)))], fell_back=IN_FINER_UNITS)
def beside_numbers(x, y, v):
    total = 0.0
    for i in range(len(x)):
        if x[i] > y[0]:
            total += v[i]
    return total, v[x > np.datetime64("1970-01-03")].sum(), x - y


@program([one(), WITH_NAT])
def made_here(x):
    out = np.empty(len(x), "m8[D]")
    for i in range(len(x)):
        out[i] = x[i] - x[0]
    return out, np.zeros(2, dtype="M8[h]"), np.datetime64("2020-02-03") - x[0], np.timedelta64(len(x), "D")


@program([one(), WITH_NAT], opaque=None)
def by_python(x):
    order = np.argsort(x, kind="stable")
    return order * 2, str(x[0]), x[order[0]]


@program([one(), WITH_NAT], mutates=(0,))
def sorted_in_place(x):
    first = x[0]
    x.sort()
    y = x[::-1].copy()
    y[0] = x[1]
    y.sort()
    y[-1] = "NaT"
    return first, x[0], x[1:] - x[:-1], y


@program([one()], mutates=(0,), opaque=None)
def changed_by_python(x):
    first = x[0]
    x.partition(3)
    return first, x[3], x[3] - x[:3].max()


@program([one(), one(unit="ns")], opaque=None)
def given_by_python(x):  # times that operations handed back give are compiled as others are
    middle = x.min() + (x - x.min()).mean()
    months = x.astype("M8[M]")
    late, early = np.clip(x, x[1], x[0]), divmod(x[2] - x[0], np.timedelta64(2, "D"))
    return (x - middle) / 2, months[1:] - months[:-1], late - x[0], early, np.cumsum(x - x[0])[-1] * 2


@program([one(), WITH_NAT, one(unit="ns", step=-2)], opaque=None)
def the_latest_or_none(x):
    latest, gap = None, None
    for t in x:
        if latest is None or t > latest:
            gap = None if latest is None else t - latest
            latest = t
    found = x[0] if len(x) > 100 else None
    return latest, gap, found, -1 if gap is None else gap / np.timedelta64(1, "h")


@program([one(), WITH_NAT, one(unit="ns", step=-2)], opaque=None)
def in_lists(x):
    gaps = [x[i] - x[i - 1] for i in range(1, len(x))]
    long, latest = [], [x[0]]
    for t in x:
        if t > x[1]:
            long.append(t - x[1])
            latest.append(t)
    latest[-1] = x[2]
    gaps += [b - a for a, b in itertools.pairwise(x)]
    ends = [x[0], x[-1]], {"first": x[0], "gap": x[1] - x[0]}
    return gaps, long, latest[-1] - latest[0], len(long), latest, ends, [(t, i) for i, t in enumerate(x)]


@program([Case(lambda: ((np.datetime64("2020-01-05"), np.datetime64("2020-03-01")),))], opaque=None)
def in_a_tuple(ends):
    length = ends[1] - ends[0]
    return ends[0] + length // 2, length / np.timedelta64(1, "D"), ends[0] < ends[1]


@program([Case(lambda: (lambda x: (x, x))(times())), Case(lambda: (lambda x: (x, x[::-1]))(times()))], mutates=(0, 1))
def overlapping(x, y):
    for i in range(len(x)):
        x[i] = y[i] + np.timedelta64(1, "D")
    y -= x - x[0]


@program([one(), Case(lambda: (np.arange(5.0),)), Case(lambda: (np.arange(5),)), one(unit="ns"), one(kind="m8")])
def of_any_type(x):
    return x[1:] - x[:-1], x[0]
