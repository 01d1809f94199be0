"""Gates whose state is a C structure: what they share.

Python fills and changes the structure, low-level Python reads it. A gate finds it through the object that it is entered
with: the record itself where another gate leads here, and the decorated function where this gate is its first, which
keeps the record in a slot. No gate takes calls while an `options` block is open anywhere or the thread is traced or
profiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from parakeet_py.base import config as settings
from parakeet_py.base.frames import tracing
from parakeet_py.llvm.engine.low_level_source import Source
from parakeet_py.llvm.entry.callable_type import FIRST_OFFSET, is_gate
from parakeet_py.llvm.entry.stub_support import LAYOUT, WATCHED
from parakeet_py.llvm.runtime.native_runtime import support_code


class GateRecord(ctypes.Structure):
    """The head of a record, where calls go that are not the gate's own, and how its code is loaded.

    `entry` is the name of the vectorcall function in `code_texts`, which find there `go_on` (to the next gate) and
    `watched_or_open`; `symbols` are addresses that they name, `called` functions of Python's C interface.
    """

    _fields_: ClassVar[tuple[tuple[str, Any], ...]] = (("next_code", ctypes.c_int64), ("next_object", ctypes.c_int64))
    _kept: list[object]
    entry: ClassVar[str]
    called: ClassVar[tuple[str, ...]]

    @classmethod
    def code_texts(cls) -> tuple[Source, ...]:
        raise NotImplementedError

    @classmethod
    def symbols(cls) -> Mapping[str, int]:
        return {}

    @classmethod
    def source_of(cls, text: str, constants: Mapping[str, int | str]) -> Source:
        """A text, with the offsets of the fields among its constants."""
        names = [name for base in (GateRecord, cls) for name, *_ in base._fields_]
        fields = {name.upper(): getattr(cls, name).offset for name in names}
        return Source(text, {**_CONSTANTS, **fields, **constants})

    @property
    def address(self) -> int:
        """Where other gates enter."""
        return _code(type(self))[f"gate.{self.entry}"]

    @property
    def first_address(self) -> int:
        """Where the calls of a decorated function enter."""
        return _code(type(self))[f"gate.{self.entry}_first"]

    def follow(self, target: Any) -> None:
        """Let other calls go on to `target`, another gate or any callable."""
        self._kept.append(target)  # a thread may be running in the former one
        address = target.address if is_gate(target) else None
        # A thread that reads between the two stores would enter one with the other: both are written with the GIL
        # held, as gates read them.
        self.next_object = id(target)
        self.next_code = address or _c_function("PyObject_Vectorcall")

    def leave_to(self, slow: Any) -> None:
        """It gives no call up."""


@cache
def _c_function(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def _code(kind: type[GateRecord]) -> dict[str, int]:
    known = {name: _c_function(name) for name in ("PyObject_Vectorcall", "PyThreadState_Get", *kind.called)}
    known |= {"open_blocks": settings.open_blocks_address(), "tools": tracing.places_address(), **kind.symbols()}
    sources = (WATCHED, kind.source_of(_SHARED.format(entry=kind.entry), {}), *kind.code_texts())
    addresses = {f"gate.{name}": address for name, address in known.items()}
    exports = (f"gate.{kind.entry}", f"gate.{kind.entry}_first")
    return dict(support_code(f"{kind.entry} gates", sources, addresses, exports, prefix="gate.").addresses)


_CONSTANTS = {**LAYOUT, "FIRST": FIRST_OFFSET, "ARGUMENTS": (1 << 63) - 1}  # the flag of vectorcalls is off
_SHARED = """
def PyObject_Vectorcall(function: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr: ...
open_blocks: extern

# Where the calls of a decorated function enter whose first gate this is.
def {entry}_first(self: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    return {entry}(self.FIRST.ptr, arguments, nargsf, names)

# The call is for another gate.
@internal
def go_on(record: ptr, arguments: ptr, nargsf: i64, names: ptr) -> ptr:
    return record.NEXT_CODE.ptr.ptr(record.NEXT_OBJECT.ptr, arguments, nargsf, names)

@internal.alwaysinline
def watched_or_open() -> i64:
    return atomic_load(open_blocks.i64, "monotonic") | watched()
"""
