"""Where bytes are, of arrays on teams: sets of bytes, and what moves between memories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parakeet_py.hybrid.devices.emulated import EmulatedDevice
from parakeet_py.hybrid.residency.blocks import HOST, Memories, of_arguments, of_host
from parakeet_py.hybrid.residency.byte_ranges import (
    bytes_of_box,
    difference,
    intersection,
    rows_of,
    size_of,
    span,
    union,
)
from tests.helpers.team_programs import DEVICES


@pytest.mark.parametrize("seed", range(20))
def test_sets_of_bytes(seed: int) -> None:
    source = np.random.default_rng(seed)

    def some() -> tuple[set[int], Any]:
        bytes_: set[int] = set()
        spans = span(0, 0)
        for _ in range(source.integers(0, 5)):
            start = int(source.integers(0, 30))
            stop = start + int(source.integers(0, 6))
            bytes_ |= set(range(start, stop))
            spans = union(spans, span(start, stop))
        return bytes_, spans

    def members(spans: Any) -> set[int]:
        assert (np.diff(spans) > 0).all()
        return {byte for start, stop in zip(spans[::2], spans[1::2], strict=True) for byte in range(start, stop)}

    (left, left_spans), (right, right_spans) = some(), some()
    assert members(left_spans) == left and size_of(left_spans) == len(left)
    assert members(union(left_spans, right_spans)) == left | right
    assert members(intersection(left_spans, right_spans)) == left & right
    assert members(difference(left_spans, right_spans)) == left - right


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 5)), np.zeros((4, 5)).T, np.zeros((6, 5))[::-2], np.zeros((4, 10))[:, ::3], np.zeros(7)[:, None],
     np.broadcast_to(np.zeros(5), (4, 5)), np.lib.stride_tricks.as_strided(np.zeros(9), (4, 3), (8, 16))],
)  # fmt: skip
def test_bytes_of_boxes(array: np.ndarray[Any, Any]) -> None:
    low = np.lib.array_utils.byte_bounds(array)[0]
    start = array.__array_interface__["data"][0] - low
    for box in (((0, 4), (0, 5)), ((1, 3), (0, 2)), ((1, 2), (1, 2)), ((2, 2), (0, 5))):
        inside = tuple((min(lo, n), min(hi, n)) for (lo, hi), n in zip(box, array.shape, strict=True))
        wanted = {
            start + i * array.strides[0] + j * array.strides[1] + byte
            for i in range(*inside[0])
            for j in range(*inside[1])
            for byte in range(8)
        }
        spans = bytes_of_box(array, low, inside, True)
        got = {byte for a, b in zip(spans[::2], spans[1::2], strict=True) for byte in range(a, b)}
        assert got == wanted


def test_only_what_is_missing_moves() -> None:
    memories = Memories(DEVICES[:2])
    array = of_host(memories, np.arange(10.0))
    rows = array.spans(((2, 6),))
    array.root.bring(1, rows)
    array.root.bring(1, array.spans(((3, 8),)))
    assert memories.moved == {(0, 1): 6 * 8}
    array.root.wrote(1, rows)  # Modified there, Invalid on the host
    array.root.bring(2, array.spans(((5, 7),)))  # one element from the device, one from the host, which has it
    assert memories.moved == {(0, 1): 6 * 8, (1, 2): 8, (0, 2): 8}
    array.root.bring(HOST, array.spans())
    assert memories.moved[1, 0] == 4 * 8
    array.root.bring(2, rows)
    assert memories.moved[0, 2] == 8 + 3 * 8


def test_columns_are_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    for name in ("copy_in", "copy_out", "copy_over"):
        kept = getattr(EmulatedDevice, name)
        monkeypatch.setattr(EmulatedDevice, name, lambda *args, kept=kept: (asked.append(1), kept(*args))[1])
    memories = Memories(DEVICES[:2])
    x = np.arange(600.0).reshape(30, 20)
    array = of_host(memories, x.copy())
    for memory, columns in ((1, (3, 9)), (2, (5, 12)), (1, (0, 20))):
        array.root.bring(memory, array.spans(((0, 30), columns)))
    assert len(asked) == 3 + 2 and sum(memories.moved.values()) == (6 + 7 + 14) * 30 * 8
    array.root.wrote(1, array.spans(((2, 30), (1, 4))))
    array.host[2:, 1:4] = 0.0
    array.root.bring(HOST, array.spans())
    assert np.array_equal(array.host, x) and len(asked) == 6


def test_groups_of_spans_that_lie_regularly() -> None:
    source = np.random.default_rng(1)
    for _ in range(300):
        bounds = np.cumsum(source.integers(1, 4, 2 * source.integers(1, 9)))
        groups = [*rows_of(bounds)]
        spans = [
            (one.start + k * one.pitch, one.start + k * one.pitch + one.width)
            for one in groups
            for k in range(one.height)
        ]
        assert spans == [*zip(bounds[::2].tolist(), bounds[1::2].tolist(), strict=True)]


def test_arguments_that_overlap_share_their_memory() -> None:
    base = np.arange(10.0)
    arrays = of_arguments(Memories(DEVICES[:1]), [base[5:], base[:6], np.ones(3), base[:0]])
    assert arrays[0].root is arrays[1].root
    assert len({id(array.root) for array in arrays}) == 3
