"""Arrays that programs of the typed IR take."""

from __future__ import annotations

import pytest

from parakeet_py.typed_ir.ir import (
    Var,
)
from tests.helpers.typed_ir_programs import array


@pytest.fixture
def x() -> Var:
    return array("x")


@pytest.fixture
def y() -> Var:
    return array("y")
