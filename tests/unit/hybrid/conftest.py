"""What tests of the libraries of GPUs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parakeet_py import options
from parakeet_py.call.devices import recorded_calls


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The second call of a kind is recorded, also on devices that would wait for each kernel where all is checked."""
    monkeypatch.setattr(recorded_calls, "AFTER", 1)
    with options(check=False):
        yield
