"""Fixtures that several unit tests use."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def devices_are_tried_again() -> Iterator[None]:
    """A device that a test has lost is left out for half a minute, in which calls are done from no schedule."""
    yield
    losses = sys.modules.get("parakeet_py.hybrid.execute.device_loss")
    if losses is not None:
        losses.forget_losses()


@pytest.fixture
def loops_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are compiled, however little they do besides what is handed back."""
    monkeypatch.setattr("parakeet_py.typed_ir.specialize.specializer.light_site", lambda function, seldom: None)
