"""Halos that are computed again: several steps of a stencil are one task of each chunk, with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate  # noqa: E402
from parakeet_py.cluster import again, graph  # noqa: E402


def heat(x: Any, times: int) -> Any:
    u, v = x.copy(), x.copy()
    for _ in range(times):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = v, u
    return u


def shrinking(x: Any, times: int) -> Any:
    for _ in range(times):
        x = x[2:, 1:] - 0.5 * x[:-2, :-1] + x[1:-1, 1:]
    return x


def waves(x: Any, times: int) -> tuple[Any, Any]:
    now, before = x.copy(), 0.5 * x
    for _ in range(times):
        after = now.copy()
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + 0.1 * (now[:-2] - 2 * now[1:-1] + now[2:])
        before, now = now, after
    return now, before


def fields(x: Any, times: int) -> tuple[Any, Any]:
    e, h = x.copy(), x[1:] * 0.5
    for _ in range(times):
        h = h + 0.3 * (e[1:] - e[:-1])
        e = e.copy()
        e[1:-1] += 0.3 * (h[1:] - h[:-1])
    return e, h


def settling(x: Any, times: int) -> Any:
    change = 0.0
    for _ in range(times):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        change = np.abs(y - x).max()
        x = y
    return x, change


def columns_in_place(x: Any, times: int) -> Any:
    b = x.copy()
    for k in range(1, times):
        b[1:, k] = b[:-1, k - 1] + b[1:, k]
    for k in range(times):
        b[:, 1] = b[:, k] + 1.0
    return b


@pytest.mark.parametrize("program", [heat, shrinking, waves, fields, settling, columns_in_place])
def test_bits_are_those_of_one_process(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(5).random((40, 23))
    want = program(x, 5)
    compiled = accelerate(when="now", strict=True)(program)
    monkeypatch.setattr(again, "DEPTH", 3)
    cases = [(0, (10, -1), 0.0), (0, (10, -1), 100.0), (0, ((13, 1, 19, 7), (8, 15)), 100.0), (1 << 17, (5, 6), 100.0)]
    counts = []
    with dask.config.set(scheduler="sync"):
        for small, chunks, share in cases:
            monkeypatch.setattr(graph, "SMALL", small)
            monkeypatch.setattr(again, "LEAST", small)
            monkeypatch.setattr(again, "AGAIN", share)
            got = compiled(da.from_array(x, chunks=chunks), 5)
            several = got if isinstance(got, tuple) else (got,)
            counts.append(len(several[0].dask))
            for one, other in zip(dask.compute(*several), want if isinstance(want, tuple) else (want,), strict=True):
                assert np.array_equal(one, other)
    if program in (heat, shrinking):
        assert 2 * counts[1] <= counts[0] + 20


def test_halos_are_as_wide_as_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "LEAST", 0)
    x = da.zeros((400, 300), chunks=(100, 300))
    compiled = accelerate(when="now", strict=True)(heat)
    report = compiled.explain(x, 8).device
    borders = 2 * 3 * 300 * 8  # a row in each direction
    assert 8 * borders * 0.9 <= report.moved <= 12 * borders  # and what borders keep, once
    lazy = compiled(x, 8)
    blocks = [key for key in lazy.dask.to_dict() if "-map-" in str(key) or "result" in str(key)]
    assert len(blocks) == 16  # two steps each


def test_copies_are_no_tasks_and_no_aliases() -> None:
    def copies(x: Any) -> tuple[Any, Any, Any]:
        y = x.copy()
        z = y + 1
        return y, z, z.copy()

    x = np.arange(12.0)
    with dask.config.set(scheduler="sync"):
        y, z, same = dask.compute(*accelerate(when="now", strict=True)(copies)(da.from_array(x, chunks=-1)))
    y[0], z[0] = 100, 200
    assert x[0] == 0 and same[0] == 1
