"""Dicts that are arguments: parameters of models, settings, states; read, gone through and changed."""

from collections import namedtuple

import numpy as np

from tests.arrays import arr
from tests.corpus import ELEMENTARY, Case, case, program


def _layers(scale=1.0):
    return {"W": np.arange(6.0).reshape(2, 3) * scale, "b": np.full(3, 0.5), "V": np.ones((3, 1)) * scale}


@program([lambda: (np.ones((4, 2)), _layers()), lambda: (np.zeros((1, 2)), _layers(2.0))])
def predicted(x, params):
    hidden = np.tanh(x @ params["W"] + params["b"])
    return hidden @ params["V"]


@program([lambda: (_layers(), _layers(2.0), 0.1)], mutates=(0,))
def descended(params, gradients, rate):
    for name in params:
        params[name] = params[name] - rate * gradients[name]
    return params


@program([lambda: (_layers(), _layers(2.0), 0.1)], mutates=(0,))
def descended_in_place(params, gradients, rate):
    for name, gradient in gradients.items():
        params[name] -= rate * gradient


def _twice():
    one = {"x": 1.0, "n": 2}
    return one, one


@program([lambda: ({"x": 1.0, "n": 2}, {"x": 5.0, "n": 3})], mutates=(0, 1))
def exchanged(a, b):
    a["x"], b["x"] = b["x"], a["x"]
    a["n"] += b["n"]
    return a["x"] + b["x"], a["n"]


@program([_twice], mutates=(0, 1), fell_back=True)
def exchanged_with_itself(a, b):
    a["x"] += 1.0
    b["x"] *= 2.0
    return a["x"]


@program(
    [lambda: ({"t": 0.0, "n": 0, "u": np.zeros(4)}, 3), lambda: ({"t": 0.0, "n": 0, "u": np.zeros(4)}, 0)], mutates=(0,)
)
def stepped(state, k):
    for i in range(k):
        state["t"] += 0.5
        state["n"] += 1
        state["u"][i] = state["t"]
        if state["t"] > 0.8:
            break
    return state["n"], state


@program([lambda: ({"t": 0.0, "n": 0},), lambda: ({"t": 1, "n": 9},)], mutates=(0,))
def counted_up(state):
    while state["n"] < 5:
        state["n"] += 2
    else:
        state["t"] += 0.5
    return [state[k] for k in sorted(state)]


@program([lambda: ({"n": 1},), Case(lambda: ({"n": 5},), raises=ValueError)], mutates=(0,), message=True)
def refused_after_a_change(state):
    state["n"] *= 2
    if state["n"] > 3:
        raise ValueError(f"too many: {state['n']}")
    state["n"] += 1
    return state["n"]


@program([lambda: ({"grid": {"nx": 5, "dx": 0.5}, "steps": 3, "mode": "up"},)], mutates=())
def nested_settings(settings):
    u = np.zeros(settings["grid"]["nx"])
    for i in range(settings["steps"]):
        u[1:-1] += settings["grid"]["dx"] * (i + 1)
    return u if settings["mode"] == "up" else -u


@program([lambda: ({"a": {"x": 1}, "b": {"x": 2}},)], mutates=(0,))
def inner_dict_changed(d):
    d["a"]["x"] += 10
    return d["b"]["x"], d["a"]["x"]


@program([({"a": 1, "b": 2.5},), ({"b": 2.5, "a": 1},), ({},), ({3: 1.0, "a": 2},)])
def everything_asked(d):
    pairs = [(k, v * 2) for k, v in d.items()]
    return pairs, list(d), list(d.values()), len(d), "a" in d, 3 not in d, d.get("b", -1), bool(d), sum(d.values())


@program([({"a": 1, "b": 2.5},), ({},)])
def made_anew(d):
    one = {**d, "z": 1, **{"a": 7}}
    return one, dict(d), d.copy(), {k: v + 1 for k, v in d.items()}, dict(d, q=3), {"a": 1, "a": 2}  # noqa: F601


@program([lambda: ({"a": 1, "b": 2.5},)], mutates=(0,))
def seen_while_it_changes(d):
    total = 0
    for value in d.values():
        d["b"] = 100
        total += value
    return total


@program([lambda: ({"a": 1, "b": 2.5},)], mutates=(0,), opaque=None)
def new_keys(d):
    """What adds and removes keys is done by Python, and so is all else with that dict."""
    d["c"] = d["a"] + 1
    d["a"] = 7
    return d.pop("b"), d["c"]


@program([({"a": 1}, "a"), ({"a": 1}, "b")])
def caught_key(d, key):
    try:
        return d[key] + 1
    except KeyError:
        return -1


@program([({"a": 1.0},), ({"a": 2},), ({"a": np.float32(2)},), ({"a": "x"},), ({"a": None},), ({"a": (1, 2)},)])
def as_it_is(d):
    return d["a"]


@program([(np.arange(3.0), {"b": 1}), (2.0, {"c": 1.0, "b": 3})])
def as_keywords(x, d):
    def line(a, b=2, c=3):
        return a * b + c

    return line(x, **d), isinstance(d, dict), type(d) is dict


class Model:
    def __init__(self):
        self.state = {"k": 1.0, "w": np.ones(2)}


@program([lambda: (Model(), 2.0)], mutates=())
def dict_of_an_object(model, x):
    model.state["k"] += x
    model.state["w"] = model.state["w"] * 2
    return model.state["k"], model.state["w"]


@program([lambda: ([1, 2, 3], [9]), lambda: ([1, 2, 3], [])], mutates=(0,), opaque=None)
def slice_of_a_list_assigned(items, new):
    items[1:2] = [*new, 7]
    return len(items)


SETTINGS = {"rate": 0.5, "sizes": [2, 3], "inner": {"w": np.arange(4.0)}, 5: "five"}
ACTIVATIONS = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "halved": lambda v: v * SETTINGS["rate"]}


class _Plan:
    steps = 3

    def __init__(self):
        self.scale = 2.0


PLAN = _Plan()


def _set(**changes):
    def setup():
        SETTINGS.clear()
        SETTINGS.update({"rate": 0.5, "sizes": [2, 3], "inner": {"w": np.arange(4.0)}, 5: "five"} | changes)
        PLAN.__dict__.update(scale=changes.get("rate", 2.0))

    return setup


@program(
    [
        case(arr("f8", 4), setup=_set()),
        case(arr("f8", 4), setup=_set(rate=3)),
        case(arr("f8", 4), setup=_set(rate=np.ones(4), more=1)),
        case(arr("f8", 4), setup=_set(inner={"w": np.ones(4, "f4"), "b": 1})),
        case(arr("f8", 4), setup=_set()),
    ]
)
def dicts_and_objects_of_variables(x):
    """What a global dict or object holds is read at every call."""
    total = sum(value for key, value in SETTINGS["inner"].items())
    known = "more" in SETTINGS, len(SETTINGS), SETTINGS[5], SETTINGS.get("none", 7), SETTINGS["sizes"][1]
    return x * SETTINGS["rate"] + PLAN.scale * PLAN.steps, total, known


@program([("relu", arr("f8", 3)), ("tanh", arr("f8", 3)), ("halved", arr("f8", 3))], ulp=ELEMENTARY)
def function_of_a_global_table(name, x):
    return ACTIVATIONS[name](x)


@program([("none", arr("f8", 3))], raises=KeyError, message=True, opaque=None, fell_back=None)
def function_that_no_global_table_has(name, x):
    return ACTIVATIONS[name](x)


@program([case(arr("f8", 3), setup=_set())], opaque=None, fell_back=None)
def global_dict_that_is_changed(x):
    SETTINGS["rate"] += 1.0
    PLAN.scale = 4.0
    seen = SETTINGS["rate"] * PLAN.scale
    SETTINGS["new"] = x
    return SETTINGS["rate"] + x, seen, "new" in SETTINGS


@program([case(SETTINGS, setup=_set())], opaque=None, fell_back=None)
def global_dict_that_is_an_argument_too(settings):
    settings["rate"] = 7.0
    return SETTINGS["rate"], settings["rate"]


def _with_settings(settings):
    def with_settings(x):
        return x * settings["k"] + len(settings)

    return with_settings


with_settings = program([(arr("f8", 3),)])(_with_settings({"k": 2.5}))


@program([lambda: (1.5, {"a": 2.0}, {"b": 3}), lambda: (1.5, {}, {"b": 3})])
def merged_as_keywords(x, first, second):
    return dict(c=x, **first, **second)


@program(
    [lambda: (1.5, {"a": 2.0}, {"a": 3}), lambda: (1.5, {"c": 2.0}, {})],
    raises=TypeError,
    message=True,
    fell_back=None,
)
def merged_with_a_key_twice(x, first, second):
    return dict(c=x, **first, **second)


def _weighed(a=1, b=2):
    return a + 10 * b


@program([lambda: ({"a": 1}, ([1], 1)), lambda: ({"a": 1}, ([1], 1, 2))], opaque=None, fell_back=None)
def pairs_without_a_hash_among_items(d, pair):
    try:
        return pair in d.items()
    except TypeError as error:
        return str(error)


_Pair = namedtuple("_Pair", "first second")


@program(
    [lambda: ({}, _Pair([1], 1)), lambda: ({1: 2}, _Pair(1, 2)), lambda: ({}, _Pair(1, 2))], opaque=None, fell_back=None
)
def named_pairs_among_items(d, pair):
    try:
        return pair in d.items()
    except TypeError as error:
        return str(error)


@program(
    [lambda: ({}, [1], True), lambda: ({1: 2}, [1], False), lambda: ({1: 2}, [1], True)], opaque=None, fell_back=None
)
def one_of_two_pairs_among_items(d, key, listed):
    pair = (key, 2) if listed else (1, 2)
    try:
        return pair in d.items()
    except TypeError as error:
        return str(error)


@program([lambda: (1.5, {"a": 2.0})], raises=TypeError, message=True, fell_back=None)
def keyword_twice(x, named):
    return _weighed(a=x, **named)


@program([lambda: (1.5, {1: 2.0})], raises=TypeError, message=True, fell_back=None)
def keyword_that_is_no_string(x, named):
    return dict(c=x, **named)
