"""The benchmark over splits, its plot, and timelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.bench.programs import select
from parakeet_py.bench.split import curve, parse_splits
from parakeet_py.bench.split_plot import Curve, write_curves


def test_bench_over_splits(tmp_path: Path) -> None:
    (program,) = select(["black_scholes"])
    points = curve(program, "cpu,emulated*2", parse_splits("0, 50,100"), "XS")
    assert [point.split for point in points] == [0.0, 0.5, 1.0, None]
    assert not any(point.wrong for point in points)
    assert points[0].moved == 0 and points[0].shares == "cpu 100 %"
    assert points[1].moved > 0 and "emulated:1 25 %" in points[1].shares
    assert [round(point.share, 2) for point in points[:3]] == [0.0, 0.5, 1.0] and points[1].moved < points[2].moved
    curves = [Curve("black_scholes", "cpu,emulated*2", points)]
    for name in ("split.html", "split.png"):
        write_curves(tmp_path / name, curves)
    drawn = (tmp_path / "split.html").read_text()
    ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
    assert drawn.count("<circle") == 3 and drawn.count(f"chosen, {100 * points[3].share:.0f} %") == 1
    assert (tmp_path / "split.png").read_bytes()[1:4] == b"PNG"
    with pytest.raises(ValueError, match=r"a plot is \.png or \.html"):
        write_curves(tmp_path / "split.pdf", curves)
    for text in ("fifty", "0,101"):
        with pytest.raises(ValueError):
            parse_splits(text)


def test_timeline(tmp_path: Path) -> None:
    @accelerate
    def both(x: Any) -> Any:
        y = np.cumsum(x * 2.0, axis=1)
        return y, y.sum()

    first = both._dispatcher.function.__code__.co_firstlineno
    x = np.random.default_rng(1).random((40, 6))
    for devices, whole in (("cpu,emulated*2", False), ("emulated", True)):
        split = None if whole else 0.5
        with options(devices=devices, split=split):
            both(x)
            assert both.explain(x).timeline is None
        with options(devices=devices, split=split, timeline=True):
            both(x)
            found = both.explain(x).timeline
        assert found is not None
        copies = [event.amount for event in found.events if event.kind == "copies in" and not event.name]
        assert copies and (sum(copies) >= x.nbytes // (1 if whole else 2))
        kinds = {(event.device, event.kind) for event in found.events}
        assert kinds >= {("emulated:0", "kernels"), ("emulated:0", "copies in"), ("emulated:0", "copies out")}
        assert whole or kinds >= {("cpu", "parts"), ("emulated:1", "kernels")}
        named = [event for event in found.events if event.name]
        assert all(set(event.lines) <= {first + 2, first + 3} and event.lines for event in named)
        assert found.seconds >= max(event.start + event.seconds for event in found.events) > 0
        assert all(event.start >= 0 and event.seconds >= 0 for event in found.events)
        found.save(tmp_path / "calls.json")
        events = json.loads((tmp_path / "calls.json").read_text())["traceEvents"]
        assert sum(event["ph"] == "X" for event in events) == len(found.events)
        named_devices = [event["args"]["name"] for event in events if event["name"] == "process_name"]
        assert sorted(named_devices) == sorted({event.device for event in found.events})
