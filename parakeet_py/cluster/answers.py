"""Results of calls that tasks may give up: each waits for what Python says then."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from dask._task_spec import TaskRef

from parakeet_py.cluster.arrays import Chunks
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.worker import given_up

Wanted = tuple[dict[Any, Hashable], Chunks, "np.dtype[Any]"]


def with_answers(graph: Graph, wanted: Sequence[Wanted], python: given_up.Python | None) -> None:
    """Let chunks of results that tasks may give up be those of Python then; without it, raise the reason."""
    doubtful = [
        (number, place, key)
        for number, (keys, _, _) in enumerate(wanted)
        for place, key in keys.items()
        if key in graph.doubtful
    ]
    if not doubtful:
        return
    prefix = graph.prefix("given-up")
    if python is None:
        for number, place, key in doubtful:
            keys = wanted[number][0]
            keys[place] = graph.add_plain((f"{prefix}-{number}", *place), given_up.shown, TaskRef(key))
        return
    promised = tuple(given_up.Promised(_known(chunks), dtype.str) for _, chunks, dtype in wanted)
    flags = [
        graph.add_plain((f"{prefix}-{number}", *place), given_up.reason, TaskRef(key))
        for number, place, key in doubtful
    ]
    answer = graph.add_plain((f"{prefix}-python",), given_up.by_python, python, promised, *map(TaskRef, flags))
    for number, place, key in doubtful:
        keys, chunks, _ = wanted[number]
        box: given_up.Box | int = place[0] if place else ()
        if _known(chunks) is not None:
            bounds = [[0, *itertools.accumulate(along)] for along in chunks]
            box = tuple((along[at], along[at + 1]) for along, at in zip(bounds, place, strict=True))
        keys[place] = graph.add_plain(
            (f"{prefix}-chosen-{number}", *place), given_up.chosen, number, box, TaskRef(key), TaskRef(answer)
        )


def reasons(graph: Graph) -> list[Hashable]:
    """Tasks that say of those that may give up why they have, if they have."""
    prefix = graph.prefix("reason")
    return [
        graph.add_plain((prefix, number), given_up.reason, TaskRef(key))
        for number, key in enumerate(key for key in graph.sources if key in graph.tasks)
    ]


def _known(chunks: Chunks) -> tuple[int, ...] | None:
    """The extents of an array; None if only tasks know them."""
    extents = [sum(along) for along in chunks]
    return None if any(extent != extent for extent in extents) else tuple(extents)


Answer = Callable[[Sequence[tuple[int | None, Any]]], given_up.Python]
"""Makes what lets Python do a call, given what is wanted of it: leaves of its result by number, or arguments as they
are afterwards."""
