"""Arrays of records (structured dtypes): fields, rows and slices, packed and aligned, read-only and overlapping."""

from dataclasses import replace

import numpy as np

from tests.arrays import arr
from tests.corpus import Case, program, raising

PACKED = [("a", "f8"), ("b", "i4"), ("v", "f8", (3,))]
UNION = {"names": ["whole", "low", "high"], "formats": ["f8", "f4", "f4"], "offsets": [0, 0, 4]}


def records(n, dtype=PACKED, *, align=False, step=1, shape=None, kind=np.ndarray, writeable=True):
    """A case of one array of records."""

    def make():
        made = np.zeros(n * abs(step), np.dtype(dtype, align=align))[::step]
        for place, name in enumerate(made.dtype.names):
            made[name] = (np.arange(n) * (place + 3) % 7).reshape(-1, *(1,) * made.dtype[name].ndim)
        made = made.reshape(shape or (n,)).view(kind)
        made.flags.writeable = writeable
        return (made,)

    return Case(make)


EACH = [records(6), records(6, align=True), records(1), records(0), records(5, step=-2)]


@program([*EACH, records(6, shape=(2, 3)), records(6, writeable=False), records(6, UNION | {"names": ["a", "b", "v"]})])
def fields_together(p):
    return (p["a"] * 2 + p["b"]).sum(), p["v"], p["a"][1:], p.shape, p.size, p.ndim


@program(EACH, mutates=(0,))
def a_row_at_a_time(p):
    total, most = 0.0, 0.0
    for i in range(len(p)):
        total += p[i]["a"] * p[i]["v"][1]
    for i, r in enumerate(p):
        if r["b"] > most:
            most = r["b"]
        r["a"] = most + i
        p[i]["v"] = r["v"] * 2
    return total


@program([records(6), records(5, step=-2), records(1, align=True)])
def the_best_row(p):
    best = p[0]
    for r in p:
        if r["b"] > best["b"]:
            best = r
    return best["a"], p[-1]["a"], p[1:]["v"].sum()


@program([*EACH, records(6, UNION | {"names": ["a", "v", "b"]})], mutates=(0,))
def fields_stored(p):
    p["a"] += 1
    p["b"] = p["a"]
    p["a"][::2] = 0
    for i in range(p.shape[0]):
        p["a"][i] = p["a"][i] * 2 + p["b"][i]
    return p


@program([records(4, UNION)], mutates=(0,))
def fields_that_overlap(p):
    p["low"] = 1
    for r in p:
        r["high"] = r["whole"] + r["low"]
    return p["whole"].sum()


@program(
    [Case(lambda: (*records(5).make()[0], *records(4).make()[0])), Case(lambda: records(5).make()[0] * 2)],
    mutates=(0, 1),
)
def two_arrays_of_records(p, q):
    for r, other in zip(p, q, strict=False):
        r["a"] = other["a"] + 1
        other["b"] = r["b"] * 2


@program([records(6, kind=np.recarray), records(1, kind=np.recarray)], mutates=(0,))
def fields_as_attributes(r):
    r.a = r.b * 2
    total = 0.0
    for row in r:
        total += row.a
        row.b = 1
    return total, r.v.sum(), r.b


@program([replace(records(6), raises=IndexError)])
def a_row_that_is_not_there(p):
    return p[6]["a"]


@program([replace(records(6, writeable=False), raises=ValueError)])
def fields_of_what_is_read_only(p):
    p["a"] += 1


@program([records(6)], fell_back=None, opaque=None)
def what_else_records_do(p):
    chosen = p[p["b"] > 1]
    return chosen["a"].sum(), p[["a", "b"]], p.dtype.names, np.sort(p, order="b")


@program([Case(lambda: (np.frombuffer(bytes(range(200)), ">f8,<f4", 3, 4),)), records(3, ">f8,f4")], fell_back=None)
def fields_in_another_byte_order(p):
    return p["f0"].sum(), p["f1"].sum()


@program([*EACH[:1], *EACH[3:], records(6, align=True, writeable=False)])
def selections(p):
    some, ordered = p[p["b"] > 2], p[np.argsort(p["b"], kind="stable")]
    made = some["a"] * 2, some["v"].sum(axis=0), ordered["a"] + ordered["b"], p[p["b"] > 9]["a"].size
    means = [p[p["b"] > k]["a"].sum() for k in range(2)]
    total = 0.0
    for k in range(3):
        kept = p[p["a"] >= k]
        total += kept["a"].sum() * len(kept["b"])
    return made, means, total, len(some), some.shape, len(p[1:4]), p[::-2].size, p[p["b"] > 1].ndim


@program([records(6), records(5, step=-2)], mutates=(0,))
def selected_before_a_store(p):
    some = p[p["b"] > 2]["a"]
    p["a"] += 10
    return some + 0, p[p["b"] > 2]["a"] * 1


@program([records(6)], mutates=(0,), fell_back=None, opaque=None)
def selections_that_are_copies(p):
    some = p[p["b"] > 2]
    p["a"] += 10
    some["b"] = 0
    return some["a"] + some["b"]


@program([records(6)], mutates=(0,), fell_back=None, opaque=None)
def selected_before_a_loop(p):
    some, total = p[p["b"] > 2], 0.0
    for i in range(3):
        total += some["a"][i]
        p["a"][i] = 100
    return total


@program([*EACH[:3], *EACH[4:]], mutates=(0,))
def gone_through(p):
    total = 0.0
    for row in p[p["b"] > 2]:
        total += row["a"] * row["b"] + row["v"][1]
    for place, row in enumerate(p[::-2]):
        row["a"] = row["b"] + place
        row["v"][2] = total
    for one, other in zip(p[1:], p[p["a"] < 100], strict=False):
        total += one["a"] - other["b"]
    return total


@program([records(6)], mutates=(0,), opaque=None)
def gone_through_and_stored(p):
    total = 0.0
    for row in p[p["b"] > 2]:
        total += row["a"]
        p["a"] += 1
    for i, other in enumerate(p[p["b"] < 5]):
        other["a"] += i
        total += other["a"]
        p["a"][i] = total
    return total, row["b"]


@program([raising(IndexError, *records(6).make()[0], [1, 7]), raising(IndexError, *records(6).make()[0], [0, 1, -7])])
def selections_out_of_range(p, places):
    some = p[np.array(places)]
    return p["a"][0] if len(places) else some


@program([records(6), records(6, align=True)])
def selected_by_lists(p):
    return p[[0, 2]]["a"] * 2, p[[True, False] * 3]["b"] + 0, p[[len(p) - 1, -2]]["v"].sum()


@program([records(3)], fell_back=None, opaque=None)
def several_fields(p):
    q = p[["a", "b"]]
    return q["a"] + q["b"]


SCALARS = [("a", "f8"), ("b", "i4"), ("c", "?"), ("d", "c8")]
OF_SCALARS = [records(6, SCALARS), records(6, SCALARS, align=True), records(0, SCALARS), records(5, SCALARS, step=-2)]


@program([*OF_SCALARS, records(6)])
def rows_unpacked(p):
    total, some = 0.0, []
    for a, b, *_ in p:
        total += a * b
    for i in range(len(p)):
        a, b, *_ = p[i]
        some.append(b + a)
    return total, some


@program(EACH)
def rows_with_arrays_unpacked(p):
    total = 0.0
    for place, (a, b, v) in enumerate(p[::-1]):
        total += a * b + v[place % 3]
    return total


@program(
    [*OF_SCALARS, raising(ValueError, *records(3, SCALARS, writeable=False).make()[0])], mutates=(0,), message=True
)
def rows_assigned(p):
    n = len(p)
    for i in range(1, n):
        p[i] = p[i - 1]
    for i in range(n // 2):
        p[i] = (i * 1.5, i, i > 1, 2j * i)
        row = p[i]
        p[n - 1 - i] = row
        p[i]["a"] = 9.0
        row["b"] = 5
    for i in range(n // 2):
        p[i], p[-1 - i] = p[-1 - i], p[i]
    if n:
        p[0] = (1, 2.75, 3, 4)


@program([records(6, SCALARS)], fell_back=None, opaque=None)
def rows_of_another_length(p):
    try:
        a, _b, _c = p[2]
    except ValueError as error:
        return str(error)
    return a


@program([records(6), records(6, UNION)], mutates=(0,), fell_back=None, opaque=None)
def rows_with_arrays_assigned(p):
    for i in range(1, len(p)):
        p[i] = p[i - 1]


def beside(dtype):
    return lambda: tuple(records(6, one).make()[0][0] for one in (SCALARS, dtype))


@program([beside([("b", "f4"), ("a", "i8"), ("c", "?"), ("d", "c8")]), beside([(name, "f4") for name in "abcd"])],
         mutates=(0,), fell_back=None, opaque=None)  # fmt: skip
def rows_of_another_array(p, q):
    for i in range(len(p)):
        p[i] = q[-1 - i]


SMALL = [("a", "i1"), ("b", "u1")]


@program([records(6, SCALARS), Case(lambda: records(2, SMALL).make()[0], raises=OverflowError)],
         mutates=(0,), fell_back=None, opaque=None)  # fmt: skip
def rows_that_do_not_fit(p):
    for i in range(len(p)):
        if len(p) == 2:
            p[i] = (3, 300)
        else:
            p[i] = (True, -1, 0, 1)


# ---- arrays of records that NumPy makes during the call ------------------------------------------------------------


@program([(4,), (1,), (0,)], opaque=2)
def made_and_filled(n):
    p, q = np.zeros(n, dtype=PACKED), np.ones((n, 2), dtype=SCALARS)
    q["a"], q["b"] = 1, 2
    for i in range(n):
        p["a"][i] = i * 0.5
        p[i]["b"] = i * i
        p[i]["v"][1] = p["a"][i] + p[i]["b"]
        q[i, 1] = (i, 7, True, 1j)
    return p, q, p["v"].sum(), len(q), q.shape, q[:, 1]["a"]


@program([records(6), records(5, step=-2), records(6, align=True)], mutates=(0,), opaque=3)
def copies_that_change(p):
    q, r, some = p.copy(), np.zeros_like(p), p[p["b"] > 2]
    for i in range(1, len(q)):
        q["a"][i] += q["a"][i - 1]
        r[i]["v"] = p[i]["v"] * 2
        p["b"][i] = i
    for i in range(len(some)):
        some["a"][i] *= some["b"][i]
    return q, r, some, some["a"].sum(), [one["b"] for one in some]


@program([records(6), records(0)], mutates=(0,), opaque=None)
def stored_to_selections(p):
    total = 0.0
    for i in range(len(p)):
        total += p["a"][i] * i
    p[p["b"] > 2]["a"] = 100.0
    p[p["b"] > 3]["b"] = 5 if len(p) else 6
    p[:2]["a"] += 1
    return total, p["a"].sum()


@program(
    [records(6), replace(records(6, writeable=False), raises=ValueError)], mutates=(0,), opaque=None, fell_back=None
)
def views_by_several_fields(p):
    q = p[["b", "a"]]
    for i in range(len(q)):
        q["a"][i] = q["b"][i] + p["a"][i]
    return q, p["a"].sum()


@program([records(6, SCALARS)], mutates=(0,), opaque=None)
def given_to_python_and_changed(p):
    q = p.copy()
    before = q["a"].sum() + p["a"].sum()
    q["a"] += 1
    np.copyto(p, q)
    q.fill(3)
    return before, q["a"].sum(), p["a"].sum(), p == q


@program([records(6), records(0)], opaque=1)
def copies_changed_as_wholes(p):
    q = p.copy()
    q["a"] += 2
    q["a"], q["b"] = q["b"], q["a"]
    q[1:]["a"] *= 3
    for row in q:
        row["v"] += row["a"]
    return q, q["a"].sum()


@program([(arr("f8", 5), arr("i8", 5))], opaque=None)
def made_by_columns(x, y):
    r = np.rec.fromarrays([x, y], names="a,b")
    total = 0.0
    for i in range(len(r)):
        total += r.a[i] * r.b[i] + r[i].a
        r.a[i] = total
    return total, r


@program([records(6), records(6, kind=np.recarray)], opaque=None)
def one_of_two(p):
    q = p.copy()
    r = q if q["a"][0] > 100 else p[::2].copy()
    r["b"] = 9
    total = 0.0
    for _ in range(3):
        total += q["a"].sum() + r["b"].sum()
    return total, r


@program([records(6, [("a", "f8"), ("text", "U3")]), records(6, ">f8,i4")], opaque=None, fell_back=None)
def copies_of_other_fields(p):
    q = p.copy()
    return q, q[p.dtype.names[0]][1:]


@program([records(4, SCALARS)], opaque=None)
def row_as_an_object(p):
    row = p[1]
    total = 0.0
    for i in range(len(p)):
        total += p["a"][i] * i
    return total, row


@program([(2,), (0,), (5,)], opaque=None, fell_back=None)
def rows_that_leave_the_branch_of_their_array(n):
    if n > 3:
        return None
    p = np.zeros(n + 1, dtype=[("x", "f8"), ("y", "f4", (2,))])
    p["y"] = n
    made = p.copy()
    for row in made:
        row["x"] = row["y"][1] + 1
    return made, row, p["x"].sum() - made["x"].sum()


@program([records(3, [("a", "f8"), ("b", "O")])], opaque=None, fell_back=True)
def rows_with_a_field_of_objects(p):
    total = 0.0
    for row in p:
        total += row["a"]
    return total
