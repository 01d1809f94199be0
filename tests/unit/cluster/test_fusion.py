"""Lines of tasks become one: what is fused, what stays apart, and what is left of the twelve programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
from dask._task_spec import Task, TaskRef, convert_legacy_graph, execute_graph  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.bench.on_dask import functions  # noqa: E402
from parakeet_py.bench.on_dask.compare import arguments  # noqa: E402
from parakeet_py.cluster.fusion import fused  # noqa: E402
from parakeet_py.cluster.worker import given_up, tasks  # noqa: E402


def plus(*values: Any) -> int:
    return sum(values)


def graph_of(*made: tuple[Any, ...]) -> dict[Any, Any]:
    """Tasks (key, function, args); args that are keys are read."""
    keys = {key for key, *_ in made}
    return {key: Task(key, f, *(TaskRef(arg) if arg in keys else arg for arg in args)) for key, f, *args in made}


def same(before: dict[Any, Any], after: dict[Any, Any], key: str) -> bool:
    value = execute_graph(convert_legacy_graph(after), keys=[key])[key]
    return bool(value == execute_graph(convert_legacy_graph(before), keys=[key])[key])


def test_what_is_read_twice_by_one_line() -> None:
    graph = graph_of(("a", plus, 1, 2), ("b", plus, "a", 10), ("c", plus, "b", 5), ("d", plus, "b", "c"))
    found = fused(graph, {"d"}, ())
    assert set(found) == {"d"} and same(graph, found, "d")


def test_what_runs_side_by_side_stays() -> None:
    graph = graph_of(("a", plus, 1), ("b", plus, 2), ("c", plus, "a", "b"), ("d", tasks.combined, "a", "b"))
    assert set(fused(graph, {"c", "d"}, ())) == set("abcd")
    graph = {key: graph[key] for key in "abc"}
    found = fused(graph, {"c"}, ())
    assert len(found) == 2 and same(graph, found, "c")
    graph = graph_of(("a", plus, 1), ("b", plus, 2), ("d", tasks.added, "a", "b"), ("e", plus, "a", "d"))
    found = fused(graph, {"e"}, ())
    assert set(found) == {"a", "b", "e"} and same(graph, found, "e")


def test_what_is_shown_or_better_apart_stays() -> None:
    graph = graph_of(("a", plus, 1), ("b", plus, "a", 1), ("c", plus, "b", 1))
    assert set(fused(graph, {"b", "c"}, ())) == {"b", "c"}
    assert set(fused(graph, {"c"}, {"b"})) == {"b", "c"}


def test_items_of_a_tuple_are_parts() -> None:
    graph = graph_of(
        ("a", tuple, (3, 4, 5)), ("b", tasks.take, "a", 0), ("c", tasks.take, "a", 1), ("d", plus, "a[2]", "b", "c")
    )
    graph["d"] = Task("d", plus, TaskRef("b"), TaskRef("c"))
    found = fused(graph, {"d"}, ())
    assert set(found) == {"d"} and same(graph, found, "d")


def test_small_values_of_one_task_are_made_together() -> None:
    graph: dict[Any, Any] = {}
    for at in "01":  # labels of points, sums and counts that belong to them
        p, labels, s, c = (name + at for name in "plsc")
        graph |= {p: Task(p, plus, 3), labels: Task(labels, plus, TaskRef(p))}
        graph |= {s: Task(s, plus, TaskRef(labels), TaskRef(p)), c: Task(c, plus, TaskRef(labels), 7)}
    for t, name in zip("tu", "sc", strict=True):
        graph[t] = Task(t, tasks.added, TaskRef(f"{name}0"), TaskRef(f"{name}1"))
    graph["v"] = Task("v", plus, TaskRef("t"), TaskRef("u"))
    shown = {"p0", "p1", "v"}
    assert len(fused(graph, shown, ())) == 10
    found = fused(graph, shown, (), {"s0", "s1", "c0", "c1", "t", "u"})
    assert len(found) == 5 and same(graph, found, "v")
    found = fused(graph, {"s0", "c0"}, (), {"s0", "c0"})
    assert same(graph, found, "s0") and same(graph, found, "c0")


@pytest.mark.parametrize("seed", range(40))
def test_graphs_drawn_at_random(seed: int) -> None:
    random = np.random.default_rng(seed)
    graph: dict[Any, Any] = {}
    for number in range(24):
        known = list(graph)
        read = random.choice(known, min(int(random.integers(0, 4)), len(known)), replace=False) if known else ()
        how = (plus, tasks.added)[int(random.integers(2))] if len(read) > 1 else plus
        graph[f"{number}"] = Task(
            f"{number}", how, *(TaskRef(str(key)) for key in read), *([number] if how is plus else [])
        )
    shown = {str(key) for key in random.choice(list(graph), 5, replace=False)}
    small = {key for key in graph if random.integers(3)}
    trivial = {key for key in small if random.integers(2)}
    found = fused(graph, shown, {key for key in graph if not random.integers(8)}, small, trivial)
    for key in shown:
        assert same(graph, found, key)


def test_what_is_given_up_goes_through() -> None:
    def fails() -> None:
        raise OverflowError(given_up.OVERFLOW)

    graph = {"a": Task("a", given_up.tried, fails), "b": Task("b", given_up.passed_on, plus, TaskRef("a"))}
    found = fused(graph, {"b"}, ())
    assert set(found) == {"b"} and type(execute_graph(found, keys=["b"])["b"]) is given_up.GivenUp


@pytest.mark.parametrize(("name", "most"), [("softmax", 5), ("nbody", 5), ("heat_3d", 290)])
def test_tasks_of_programs(name: str, most: int) -> None:
    lazy = accelerate(when="now", strict=True)(getattr(functions, name))(*arguments(name, 0.002))
    graph = lazy.__dask_optimize__(lazy.dask, lazy.__dask_keys__())
    assert sum(not str(key).startswith(("('array-", "array-")) for key in graph) <= most
    given = [np.asarray(one) for one in arguments(name, 0.002)]
    given = [one if one.ndim else int(one) for one in given]
    np.testing.assert_allclose(lazy.compute(scheduler="sync"), getattr(functions, name)(*given), rtol=1e-9)
