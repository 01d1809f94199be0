"""The specializer's side of `library/intrinsics.py`: the table of its words, filled by the modules imported here."""

from __future__ import annotations

from parakeet_py.typed_ir.specialize.intrinsics import operators, queries, views
from parakeet_py.typed_ir.specialize.intrinsics.table import HANDLERS

HANDLERS.of_any = (operators, queries, views)

__all__ = ["HANDLERS", "operators", "queries", "views"]
