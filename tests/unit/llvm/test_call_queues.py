"""Queues of calls that threads make side by side: order, flags, failures, whatever the number of threads."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from parakeet_py import options
from parakeet_py.llvm.runtime import call_queues
from parakeet_py.llvm.runtime.call_queues import AWAIT, SIGNAL, WORDS, Queues

FAILS = 7


@pytest.mark.parametrize("seed", range(20))
def test_random_queues(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_queues, "CPUS_EACH", 1)
    rng = np.random.default_rng(seed)
    made: list[tuple[int, int]] = []
    at: dict[int, int] = {}
    failing: list[tuple[int, int]] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    def call(queue: int, number: int) -> int:
        made.append((queue, number) if at[threading.get_ident()] == queue else (-1, number))
        return FAILS if (queue, number) in failing else 0

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)
    def begin(queue: int) -> int:
        at[threading.get_ident()] = queue
        return 0

    address, begins = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in (call, begin))
    count, length = int(rng.integers(1, 6)), int(rng.integers(0, 60))
    queues: list[list[list[int]]] = [[] for _ in range(count)]
    last: dict[int, tuple[int, int]] = {}
    before, flags = [], 0
    for number in range(length):
        queue = int(rng.integers(count))
        if last and rng.random() < 0.5:
            other = int(rng.choice([*last]))
            if other != queue:
                queues[other].append([SIGNAL, flags])
                queues[queue].append([AWAIT, flags])
                before.append((last[other], (queue, number)))
                flags += 1
        queues[queue].append([address, queue, number])
        last[queue] = queue, number
    words = (ctypes.c_int64 * (WORDS * max(sum(map(len, queues)), 1)))()
    starts, place = [], 0
    for calls in queues:
        starts.append(ctypes.addressof(words) + 8 * place)
        for one in calls:
            words[place : place + len(one)] = one
            place += WORDS
    together = Queues(starts, [len(calls) for calls in queues], flags, begins, range(count))
    for threads in (1, 2, 3):
        with options(threads=threads):
            made.clear()
            failing.clear()
            assert together.run() is None and len(made) == length
            places = {one: place for place, one in enumerate(made)}
            assert all(places[first] < places[second] for first, second in before)
            for queue in range(count):
                assert [own for other, own in made if other == queue] == sorted(own for o, own in made if o == queue)
            if length:
                failing.append(made[int(rng.integers(length))])
                found = together.run()
                assert found is not None and found[0] == failing[0][0] and found[2] == FAILS
                assert queues[found[0]][found[1]][2] == failing[0][1]
