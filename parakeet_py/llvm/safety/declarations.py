"""The functions of `safety.objects` that the text of a checked gate calls."""

from __future__ import annotations

DECLARATIONS = """
declare i1 @gate.reference(ptr)
declare void @gate.take(ptr)
declare void @gate.give(ptr)
declare void @gate.begin()
declare void @gate.place(i64)
declare i1 @gate.is_owned(ptr)
declare void @gate.count_blocks(ptr, ptr, ptr)
declare ptr @gate.settle(ptr, ptr)
""".strip().splitlines()
