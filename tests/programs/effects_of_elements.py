"""Elements, conditions and keys that change something: how often each is computed, and in which order."""

from tests.arrays import arr
from tests.corpus import program

X = [(arr("i8", 3, values=[3, 1, 2]),), (arr("f8", 3, values=[0.5, 2.5, -1.0]),), (arr("u1", 0),)]


@program(X)
def any_and_all_keep_a_log(x):
    log = []

    def large(v):
        log.append(v)
        return v > 1

    return any(map(large, x)), all(large(v) for v in x), log


@program(X)
def any_and_all_count(x):
    n = 0

    def large(v):
        nonlocal n
        n += 1
        return v > 1

    return any(large(v) for v in x), n, all(large(v) for v in (3, 0, 2)), n


@program(X)
def any_counts_in_a_dict(x):
    found = {"n": 0}

    def large(v):
        found["n"] += 1
        return v > 1

    return any(large(v) for v in x), found


@program([([1, 2, 1, 3],), ([],), ([4, 5, 6, 7, 8],)])
def any_repeated(x):
    seen = set()

    def again(v):
        if v in seen:
            return True
        seen.add(v)
        return False

    return any(again(v) for v in x), len(seen)


class _Counter:
    def __init__(self):
        self.n = 0

    def large(self, v):
        self.n += 1
        return v > 1


@program(X)
def all_by_a_method(x):
    counter = _Counter()
    return all(map(counter.large, x)), counter.n, any(counter.large(v) for v in x), counter.n


@program([*X[:2], (arr("u1", 3, values=[1, 7, 0]),)])
def keys_are_computed_once(x):
    log = []

    def key(v):
        log.append(v)
        return -v * v if v else v

    return max(1, x[0], x[1], key=key), min((x[2], x[0], x[1]), key=key), max([x[1], 2], key=lambda v: (key(v), v)), log
