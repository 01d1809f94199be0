"""Parts of operators on the CPU: typed functions as machine code, called with NumPy arrays.

A part is lowered and compiled like any function, so its parallel regions run on the thread pool; it has no gate, as
only the executor calls it. What it makes itself is copied out of its memory, or taken over with the memory: parts that
make much are given the arrays to fill.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.config import Config
from parakeet_py.base.types import Array, Scalar, Type
from parakeet_py.hybrid.plan.failures import exception_of
from parakeet_py.hybrid.plan.host_memory import Payload, array_in, kept_block
from parakeet_py.imp.lower.function import lower
from parakeet_py.llvm.codegen.module import generate, slots_in, slots_out
from parakeet_py.llvm.engine import compiler
from parakeet_py.llvm.runtime import blas
from parakeet_py.llvm.runtime.call_context import OUT_OF_MEMORY, Context
from parakeet_py.llvm.runtime.native_runtime import runtime
from parakeet_py.typed_ir import ir as typed
from parakeet_py.typed_ir.semantics import scalar

_COPIED = 1 << 14  # bytes: less is copied
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)  # lets go of the GIL


class MachineCode(NamedTuple):
    """A part as an object of this kind of machine, its entry, and the symbols that it refers to."""

    object_bytes: bytes
    entry: str
    symbols: tuple[str, ...]


class HostPart:
    """A typed function as machine code of this machine.

    Parameters
    ----------
    made : the machine code, where a process on such a machine has made it already
    """

    def __init__(self, function: typed.Function, config: Config, made: MachineCode | None = None) -> None:
        self.function = lower(function, config)
        if config.check:
            from parakeet_py.imp.check import check_function

            check_function(self.function)
        if made is None:
            code = generate(self.function, compiler.host(), contract=config.contract, fastmath=config.fastmath)
            made = MachineCode(compiler.compile_ir(code.text), code.entry, tuple(code.symbols))
        self.code = made
        native = runtime()
        symbols = native.symbols
        found = {name: blas.resolve(name) for name in made.symbols if name not in symbols}
        external = {name: address for name, address in found.items() if address is not None}
        self._loaded = native.load(made.object_bytes, [made.entry], external)
        self._entry = _ENTRY(self._loaded[made.entry])
        self._free_all = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(symbols["pk_free_all"])
        self._slots = 1 + sum(slots_in(param.type) for param in self.function.params)
        self._out_slots = 1 + sum(slots_out(result.type) for result in self.function.results)

    def __call__(self, args: Sequence[Any], threads: int, taken_over: bool = False) -> list[Any]:
        """The results; large arrays are `taken_over`, or copied. Raises what a failed check stands for."""
        return PreparedCall(self, args, threads)(taken_over)

    def _read(self, slots: np.ndarray[Any, Any], kind: Type, context: int, blocks: dict[int, Payload] | None) -> Any:
        """A result: an array, a scalar as host code keeps it."""
        if not isinstance(kind, Array):
            assert isinstance(kind, Scalar)
            return kept(np.frombuffer(slots.tobytes(), kind.dtype, 1)[0], kind.dtype)
        block, data = int(slots[2]), int(slots[3])
        shape, strides = tuple(slots[4 : 4 + kind.rank].tolist()), slots[4 + kind.rank :].tolist()
        if 0 in shape:
            return np.empty(shape, kind.dtype)
        size = np.dtype(kind.dtype).itemsize
        low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + size
        packed = high - low == size * math.prod(shape)  # nothing else lies between its elements
        memory: Any
        if blocks is not None and block and packed and high - low >= _COPIED:
            if block not in blocks:
                blocks[block] = kept_block(block, context)
            memory = array_in(blocks[block], data + low, high - low)
            return np.ndarray(shape, kind.dtype, memory, -low, tuple(strides))
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(data + low))
        return np.ndarray(shape, kind.dtype, memory, -low, tuple(strides)).copy()

    def _failure(self, status: int, words: np.ndarray[Any, Any]) -> Exception:
        if status == OUT_OF_MEMORY:
            return MemoryError("out of memory in compiled code")
        return exception_of(self.function, [self.function.body], status, words)


class PreparedCall:
    """A call of a part that can be made again with some of its arguments moved.

    Attributes
    ----------
    slots : the arguments as machine code gets them
    places : where the slots of each argument begin
    """

    def __init__(self, part: HostPart, args: Sequence[Any], threads: int) -> None:
        self.part, self.args = part, args
        self.slots = np.zeros(part._slots, np.int64)
        self.places: list[int] = []
        slot = 0
        for param, arg in zip(part.function.params, args, strict=True):
            end = slot + slots_in(param.type)
            _fill(self.slots[slot:end], param.type, arg)
            self.places.append(slot)
            slot = end
        self._words = self.slots.data  # which takes numbers faster
        self._taken = np.zeros(part._out_slots, np.int64)
        memory = np.zeros(Context.SIZE + 64, np.uint8)
        start = -memory.ctypes.data % 64
        self._context = memory[start : start + Context.SIZE]
        self._blank = np.zeros(Context.SIZE, np.uint8)
        self._blank[Context.MAX_THREADS : Context.MAX_THREADS + 4].view(np.int32)[0] = threads
        self._blocks = self._context[Context.BLOCKS : Context.BLOCKS + 8].view(np.int64).data
        self._addresses = self._context.ctypes.data, self.slots.ctypes.data, self._taken.ctypes.data

    def set_array(self, param: int, address: int, rows: int) -> None:
        """Move an array argument, and give it another extent along its first axis."""
        slot = self.places[param]
        self._words[slot + 1] = address
        self._words[slot + 2] = rows

    def set_int(self, param: int, value: int) -> None:
        """Change an argument that is an int."""
        self._words[self.places[param]] = value

    def move(self, param: int, address: int) -> None:
        """Move an array argument."""
        self._words[self.places[param] + 1] = address

    def __call__(self, taken_over: bool = False, into: Sequence[np.ndarray[Any, Any]] = ()) -> list[Any]:
        """See `HostPart`; results, all of them arrays, are copied `into` others if there are some."""
        part = self.part
        self._context[:] = self._blank
        context = self._addresses[0]
        status = part._entry(*self._addresses)
        try:
            if status:
                raise part._failure(status, self._context[Context.ARGUMENTS :].view(np.int64)[:6])
            results: list[Any] = []
            blocks: dict[int, Payload] | None = {} if taken_over else None
            slot = 0
            for result, target in zip_longest(part.function.results, into):
                end = slot + slots_out(result.type)
                if target is None:
                    results.append(part._read(self._taken[slot:end], result.type, context, blocks))
                else:
                    target[...] = _in_memory(self._taken[slot:end], result.type)
                slot = end
            return results
        finally:
            if self._blocks[0]:
                part._free_all(context)


def _in_memory(slots: np.ndarray[Any, Any], kind: Type) -> np.ndarray[Any, Any]:
    """A result that is an array, where machine code has it: it is gone with the call."""
    assert isinstance(kind, Array)
    data, rank = int(slots[3]), kind.rank
    numbers = slots[4:].tolist()
    shape, strides = tuple(numbers[:rank]), tuple(numbers[rank:])
    if 0 in shape:
        return np.empty(shape, kind.dtype)
    return np.asarray(_Memory(data, shape, strides, np.dtype(kind.dtype).str))


class _Memory:
    """An array by its address."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], typestr: str) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }


def _fill(slots: np.ndarray[Any, Any], kind: Type, value: Any) -> None:
    if isinstance(kind, Array):
        slots[0] = id(value)
        slots[1] = value.__array_interface__["data"][0]
        slots[2:] = [*value.shape, *value.strides]
        return
    assert isinstance(kind, Scalar)
    item = np.array([value], kind.dtype)
    slots.view(np.uint8)[: item.nbytes] = item.view(np.uint8)


def kept(value: Any, dtype: str) -> Any:
    """A scalar as host code keeps it: Python's own int or bool, else NumPy's."""
    made = scalar(value, dtype)
    return made.item() if dtype in ("int64", "bool") else made
