"""Entries written by hand, for tests of the gates around them: no compiler is involved.

`probe` copies its argument slots to where Python can read them and fills its results from a prepared buffer. `blocks`
makes blocks of memory and hands back arrays in them.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.entry.callable_type import AcceleratedFunction, install
from parakeet_py.llvm.entry.entry_stub import GateHandle, load_gate
from parakeet_py.llvm.entry.stub_text import RELEASE_ELEMENTS, gate_ir
from parakeet_py.signature.results import Result, ResultStatic, result_offsets
from parakeet_py.signature.specs import Signature, argument_slots, signature_of


def make_gate(
    entry_ir: str,
    signature: Signature,
    result: Result,
    function: object,
    *,
    raise_failure: Callable[..., Any],
    following: GateHandle | Callable[..., Any],
    entry_symbol: str = "entry",
    gate_symbol: str = "gate",
    external: Mapping[str, int] | None = None,
    state: object = None,
    release_elements: int = RELEASE_ELEMENTS,
    always_release: bool = False,
    checked: bool = False,
) -> GateHandle:
    """Compile `entry_ir` (LLVM text that defines the entry, or "" if `external` has it) with a gate, and load both."""
    text = gate_ir(
        signature,
        result,
        entry_symbol,
        gate_symbol,
        release_elements=release_elements,
        always_release=always_release,
        has_state=state is not None,
        declare_entry=not entry_ir,
        checked=checked,
    )
    return load_gate(
        compiler.compile_ir(entry_ir + "\n" + text),
        signature,
        result,
        function,
        raise_failure=raise_failure,
        following=following,
        gate_symbol=gate_symbol,
        external=external,
        state=state,
        checked=checked,
    )


COPY = """
@probe.arguments = external global i8
@probe.results = external global i8
@probe.status = external global i64
@probe.context = external global i8
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @entry(ptr %ctx, ptr %args, ptr %results) noinline {
  call void @llvm.memcpy.p0.p0.i64(ptr @probe.arguments, ptr %args, i64 $IN$, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %results, ptr @probe.results, i64 $OUT$, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr @probe.context, ptr %ctx, i64 128, i1 false)
  %status = load i64, ptr @probe.status
  store i64 %status, ptr %ctx
  %a = getelementptr i64, ptr %ctx, i64 2
  store i64 11, ptr %a
  %b = getelementptr i64, ptr %ctx, i64 7
  store i64 -16, ptr %b
  %s = trunc i64 %status to i32
  ret i32 %s
}
"""


class Failure(Exception):
    """What `fail` raises."""


def fail(*words: Any) -> None:
    raise Failure(*words)


class Slow:
    """The next callable of a chain: remembers what reached it."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        self.calls.append((args, kwargs))
        return "slow"


class Probe:
    """A gate around an entry that copies; `f` is the callable, `slots` what the entry saw."""

    def __init__(
        self,
        signature: Signature,
        result: Result | None = None,
        results: bytes = b"",
        *,
        function: Any = None,
        status: int = 0,
        **options: Any,
    ) -> None:
        tree = ResultStatic(None) if result is None else result
        n_in, n_out = argument_slots(signature), result_offsets(tree)[-1]
        assert len(results) <= 8 * n_out
        self.arguments = (ctypes.c_int64 * (n_in + 1))()
        self.results = ctypes.create_string_buffer(results, 8 * n_out + 8)
        self.context = ctypes.create_string_buffer(128)
        self.status = ctypes.c_int64(status)
        self.slow = Slow()
        names = {
            "probe.arguments": ctypes.addressof(self.arguments),
            "probe.results": ctypes.addressof(self.results),
            "probe.status": ctypes.addressof(self.status),
            "probe.context": ctypes.addressof(self.context),
        }
        text = COPY.replace("$IN$", str(8 * n_in)).replace("$OUT$", str(8 * n_out))
        self.function = function or (lambda *args: None)
        self.handle: GateHandle = make_gate(
            text,
            signature,
            tree,
            self.function,
            raise_failure=fail,
            following=self.slow,
            external=names,
            **options,
        )
        self.f = AcceleratedFunction(self.function, self.slow)
        install(self.f, [self.handle])

    def slots(self, *args: Any) -> list[int]:
        """The argument slots of a call the gate takes."""
        before = len(self.slow.calls)
        self.f(*args)
        assert len(self.slow.calls) == before, f"the gate did not take {args}"
        return list(self.arguments)[:-1]

    def takes(self, *args: Any, **kwargs: Any) -> bool:
        return bool(self.f(*args, **kwargs) != "slow")


def probe_of(*args: Any, **options: Any) -> Probe:
    return Probe(signature_of(args), **options)


def blocks_entry(sizes: Sequence[int], arrays: Sequence[tuple[int, int, Sequence[int], Sequence[int]]]) -> str:
    """An entry that makes blocks holding 0.0, 1.0, 2.0... and returns arrays (block, offset, dims, strides) in them."""
    lines = ["declare ptr @pk_block_new(ptr, i64)", "declare void @pk_retain(ptr)"]
    lines += ["define i32 @entry(ptr %ctx, ptr %args, ptr %results) {", "start:"]
    label = "start"
    for number, size in enumerate(sizes):
        lines += [
            f"  %block{number} = call ptr @pk_block_new(ptr %ctx, i64 {size})",
            f"  %payload{number} = getelementptr i8, ptr %block{number}, i64 64",
            f"  br label %loop{number}",
            f"loop{number}:",
            f"  %i{number} = phi i64 [0, %{label}], [%n{number}, %body{number}]",
            f"  %c{number} = icmp slt i64 %i{number}, {size // 8}",
            f"  br i1 %c{number}, label %body{number}, label %end{number}",
            f"body{number}:",
            f"  %x{number} = sitofp i64 %i{number} to double",
            f"  %p{number} = getelementptr double, ptr %payload{number}, i64 %i{number}",
            f"  store double %x{number}, ptr %p{number}",
            f"  %n{number} = add i64 %i{number}, 1",
            f"  br label %loop{number}",
            f"end{number}:",
        ]
        label = f"end{number}"
    slot = 0
    seen: set[int] = set()

    def put(type_: str, value: object) -> None:
        nonlocal slot
        lines.append(f"  %s{slot} = getelementptr i64, ptr %results, i64 {slot}")
        lines.append(f"  store {type_} {value}, ptr %s{slot}")
        slot += 1

    for number, (block, offset, dims, strides) in enumerate(arrays):
        if block in seen:
            lines.append(f"  call void @pk_retain(ptr %block{block})")
        seen.add(block)
        lines.append(f"  %data{number} = getelementptr i8, ptr %payload{block}, i64 {offset}")
        for type_, value in (("i64", 0), ("i64", 0), ("ptr", f"%block{block}"), ("ptr", f"%data{number}")):
            put(type_, value)
        for value in (*dims, *strides):
            put("i64", value)
    lines += ["  ret i32 0", "}"]
    return "\n".join(lines)


def function_of(entry: str, signature: Signature, result: Result, **options: Any) -> Callable[..., Any]:
    """The callable around an entry; calls it does not take give "slow"."""
    slow = Slow()
    function = AcceleratedFunction(lambda *args: None, slow)
    handle = make_gate(entry, signature, result, function.__wrapped__, raise_failure=fail, following=slow, **options)
    install(function, [handle])
    return function


def bits(value: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])
