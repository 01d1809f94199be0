"""The specializer's side of `library/intrinsics.py`: the table of its words, filled by the modules imported here."""

from __future__ import annotations

from parakeet_py.typed_ir import intrinsic_operators, intrinsic_queries, intrinsic_views
from parakeet_py.typed_ir.intrinsic_table import HANDLERS

__all__ = ["HANDLERS", "intrinsic_operators", "intrinsic_queries", "intrinsic_views"]
