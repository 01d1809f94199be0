"""Fixtures that several unit tests use."""

from __future__ import annotations

import pytest


@pytest.fixture
def loops_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops are compiled, however little they do besides what is handed back."""
    monkeypatch.setattr("parakeet_py.typed_ir.specialize.specializer.light_site", lambda function, seldom: None)
