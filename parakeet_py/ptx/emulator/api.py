"""The emulator as a driver offers a device: memory, modules, launches; and `run` for one kernel at once.

A `Device` has its own memory, whose addresses no host pointer or other device shares. A `Module` is PTX loaded on a
device: its variables are allocated there and keep their values between launches. A launch runs to its end before it
returns; a fault raises, and leaves the device usable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parakeet_py.ptx.emulator.checks.errors import EmulatorError, LaunchError, PtxSyntaxError
from parakeet_py.ptx.emulator.checks.options import Checks
from parakeet_py.ptx.emulator.execute.arguments import MAX_BLOCK, MAX_GRID, Dimensions, dimensions, pack_argument
from parakeet_py.ptx.emulator.execute.counters import Counters
from parakeet_py.ptx.emulator.execute.machine import Machine
from parakeet_py.ptx.emulator.front.ir import Initialiser, Variable
from parakeet_py.ptx.emulator.front.kinds import Array
from parakeet_py.ptx.emulator.memory.device_memory import CODE, Allocation, Memory
from parakeet_py.ptx.emulator.translate.program import Program, load_program

_MAX_THREADS = 1024
_MAX_STATIC_SHARED = 48 * 1024


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What a launch did: its counts, and what the kernel printed."""

    counters: Counters
    output: str


class Device:
    """An emulated device.

    Parameters
    ----------
    memory_bytes : int
        How much can be allocated at a time.
    checks : Checks, optional
        What launches look for; a launch may be given its own.
    profile : bool
        Whether to count memory sectors per warp access (slower).
    shared_bytes : int
        The largest shared memory of a block.
    processors : int
        What `%nsmid` says.

    Attributes
    ----------
    counters : Counters
        The sums over all launches.
    """

    def __init__(
        self,
        memory_bytes: int = 1 << 30,
        *,
        checks: Checks | None = None,
        profile: bool = False,
        shared_bytes: int = 227 * 1024,
        processors: int = 16,
    ) -> None:
        self.memory = Memory(memory_bytes)
        self.checks = checks if checks is not None else Checks()
        self.profile = profile
        self.shared_bytes = shared_bytes
        self.processors = processors
        self.counters = Counters(profile)
        self.launches = 0

    @property
    def free_bytes(self) -> int:
        """How much can still be allocated."""
        return self.memory.limit - self.memory.used

    def alloc(self, size: int, label: str = "allocation") -> int:
        """Reserve memory and give its address.

        Raises
        ------
        DeviceOutOfMemory
            If there is not so much left.
        """
        block = self.memory.alloc(size, label)
        if self.checks.uninitialised_global:
            block.written = np.zeros(size, dtype=np.bool_)
        return block.start

    def free(self, address: int) -> None:
        """Give an allocation back."""
        self.memory.free(address)

    def copy_in(self, address: int, data: Array | bytes) -> None:
        """Copy bytes of the host to the device."""
        source = np.frombuffer(data, dtype=np.uint8) if isinstance(data, bytes) else _bytes_of(data)
        self.memory.range(address, source.shape[0])[:] = source
        self._mark_written(address, source.shape[0])

    def copy_out(self, address: int, target: Array | int) -> Array:
        """Copy bytes of the device into an array of the host (or, given a count, into new memory).

        Returns
        -------
        array
            The target, or the new bytes.
        """
        if isinstance(target, int):
            return self.memory.range(address, target).copy()
        if target.flags.c_contiguous:
            flat = target.reshape(-1).view(np.uint8)
            flat[:] = self.memory.range(address, flat.shape[0])
        else:
            raw = self.memory.range(address, target.size * target.itemsize).copy()
            target[...] = raw.view(target.dtype).reshape(target.shape)
        return target

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy bytes within the device."""
        self.memory.range(target, size)[:] = self.memory.range(source, size).copy()
        self._mark_written(target, size)

    def fill(self, address: int, value: int, size: int) -> None:
        """Set bytes to a value."""
        self.memory.range(address, size)[:] = value
        self._mark_written(address, size)

    def _mark_written(self, address: int, size: int) -> None:
        block = self.memory.find(address)
        if block is not None and block.written is not None:
            block.written[address - block.start : address - block.start + size] = True

    def load(self, ptx: str) -> Module:
        """Load a module on this device."""
        return Module(ptx, self)


def _bytes_of(data: Array) -> Array:
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


class Module:
    """PTX loaded on a device.

    Parameters
    ----------
    ptx : str
        The text.
    device : Device, optional
        Where; a new one by default.

    Raises
    ------
    PtxSyntaxError, UnsupportedPtx
        With the line, if the text cannot be executed.
    """

    def __init__(self, ptx: str, device: Device | None = None) -> None:
        self.device = device if device is not None else Device()
        self.program: Program = load_program(ptx)
        self._allocations: dict[str, Allocation] = {}
        self._symbols: dict[str, int] = {}
        self._load_variables()

    def _load_variables(self) -> None:
        text = self.program.text
        variables = [*text.variables.values()]
        for function in text.functions.values():
            variables.extend(function.variables.values())
        memory = self.device.memory
        for variable in variables:
            if variable.space in ("global", "const") and variable.size is not None:
                label = f"variable {variable.name}"
                block = memory.alloc(variable.size, label, constant=variable.space == "const")
                if variable.data is not None:
                    block.data[:] = np.frombuffer(variable.data, dtype=np.uint8)
                self._allocations[variable.name] = block
                self._symbols[variable.name] = block.start
        for function in text.functions.values():
            if function.defined and not function.entry:
                self._symbols[function.name] = CODE + self.program.function_number(function.name)
        for variable in variables:
            for word in variable.relocations:
                self._relocate(variable, word)

    def _relocate(self, variable: Variable, word: Initialiser) -> None:
        target = self.program.text.variables.get(word.symbol)
        if target is not None and target.space == "shared":
            raise PtxSyntaxError(f"{variable.name} is initialised with the address of shared memory")
        address = self._symbols.get(word.symbol)
        if address is None:
            raise PtxSyntaxError(f"{variable.name} is initialised with the address of unknown {word.symbol}")
        value = ((address + word.addend) >> word.shift) & ((1 << (8 * word.size)) - 1)
        block = self._allocations[variable.name]
        block.data[word.offset : word.offset + word.size] = np.frombuffer(
            value.to_bytes(word.size, "little"), dtype=np.uint8
        )

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return self.program.kernels

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size of a variable of the module."""
        block = self._allocations[name]
        return block.start, block.size

    def unload(self) -> None:
        """Free the module's variables."""
        for block in self._allocations.values():
            self.device.memory.free(block.start)
        self._allocations.clear()

    def launch(
        self,
        kernel: str,
        grid: Dimensions,
        block: Dimensions,
        args: Sequence[Any],
        shared: int = 0,
        *,
        checks: Checks | None = None,
    ) -> LaunchResult:
        """Run a kernel.

        Parameters
        ----------
        kernel : str
            Its name.
        grid, block : int or sequence of up to three ints
            Blocks of the grid, threads of a block.
        args : sequence
            One value for each parameter: an int (also an address) or float, a NumPy scalar, or the bytes (or array) of
            an aggregate.
        shared : int
            Bytes of dynamic shared memory.

        Raises
        ------
        LaunchError
            If no device would start this.
        KernelFault
            If the kernel does something wrong.
        """
        device = self.device
        chosen = checks if checks is not None else device.checks
        grid3, block3 = dimensions(grid, "grid", MAX_GRID), dimensions(block, "block", MAX_BLOCK)
        self._check_launch(kernel, block3, shared)
        parameters = self._pack(kernel, args)
        symbols = self._launch_symbols(kernel)
        machine = Machine(
            self.program,
            kernel,
            device,
            grid3,
            block3,
            parameters,
            symbols,
            shared,
            chosen,
            device.profile,
        )
        device.launches += 1
        try:
            with np.errstate(all="ignore"):
                machine.run_all()
        finally:
            device.counters.add(machine.counters)
        return LaunchResult(machine.counters, "".join(machine.output))

    def _check_launch(self, kernel: str, block: tuple[int, int, int], shared: int) -> None:
        function = self.program.kernel(kernel)
        threads = block[0] * block[1] * block[2]
        if threads > _MAX_THREADS:
            raise LaunchError(f"a block of {threads} threads; {_MAX_THREADS} are the most")
        limit = function.directives.get("maxntid")
        if limit is not None and threads > int(np.prod(limit)):
            raise LaunchError(f"a block of {threads} threads for {kernel}, which is made for {int(np.prod(limit))}")
        exact = function.directives.get("reqntid")
        if exact is not None and (*exact, 1, 1)[:3] != block:
            raise LaunchError(f"a block of {block} threads for {kernel}, which needs {(*exact, 1, 1)[:3]}")
        layout = self.program.shared_layout(kernel)
        if layout.static > _MAX_STATIC_SHARED:
            raise LaunchError(f"{layout.static} bytes of static shared memory; {_MAX_STATIC_SHARED} are the most")
        if shared < 0 or layout.size_with(shared) > self.device.shared_bytes:
            raise LaunchError(
                f"{layout.size_with(shared)} bytes of shared memory; the device has {self.device.shared_bytes}"
            )

    def _launch_symbols(self, kernel: str) -> dict[str, Array]:
        addresses = dict(self._symbols)
        addresses.update(self.program.shared_layout(kernel).offsets)
        for offset, parameter in self.program.parameter_layout(kernel):
            addresses[parameter.name] = offset
        return {name: np.array([address], dtype=np.uint64) for name, address in addresses.items()}

    def _pack(self, kernel: str, args: Sequence[Any]) -> bytes:
        layout = self.program.parameter_layout(kernel)
        if len(layout) != len(args):
            raise LaunchError(f"{kernel} has {len(layout)} parameters, and {len(args)} arguments were given")
        packed = bytearray()
        for number, ((offset, parameter), value) in enumerate(zip(layout, args, strict=True)):
            packed.extend(bytes(offset - len(packed)))
            packed.extend(pack_argument(number, parameter, value))
        return bytes(packed)


def run(
    ptx: str,
    kernel: str,
    grid: Dimensions,
    block: Dimensions,
    args: Sequence[Any],
    shared: int = 0,
    *,
    checks: Checks | None = None,
    profile: bool = False,
    memory_bytes: int = 1 << 32,
) -> LaunchResult:
    """Run one kernel of a PTX text on arrays of the host.

    Parameters
    ----------
    ptx : str
        The text of the module.
    kernel : str
        Name of the entry function.
    grid, block : int or sequence of up to three ints
        Blocks of the grid, threads of a block.
    args : sequence
        One value for each parameter. A NumPy array for a pointer parameter is copied to the device before and back
        after the launch (back only if it is writeable); other values go as they are.
    shared : int
        Bytes of dynamic shared memory.

    Returns
    -------
    LaunchResult
        Counters, and the text printed.

    Raises
    ------
    EmulatorError
        See the classes in `errors`.

    Examples
    --------
    >>> x = np.arange(4, dtype=np.float32)
    >>> run(ptx, "twice", grid=1, block=32, args=[x, 4])  # doctest: +SKIP
    >>> x  # doctest: +SKIP
    array([0., 2., 4., 6.], dtype=float32)
    """
    device = Device(memory_bytes, checks=checks, profile=profile)
    module = device.load(ptx)
    layout = module.program.parameter_layout(kernel)
    passed: list[Any] = []
    arrays: list[tuple[int, Array]] = []
    for number, value in enumerate(args):
        pointer = number < len(layout) and not layout[number][1].array and layout[number][1].size == 8
        if isinstance(value, np.ndarray) and pointer:
            if value.dtype.hasobject:
                raise EmulatorError(f"argument {number} is an array of objects")
            address = device.alloc(value.nbytes, f"argument {number}")
            device.copy_in(address, value)
            passed.append(address)
            if value.flags.writeable:
                arrays.append((address, value))
        else:
            passed.append(value)
    result = module.launch(kernel, grid, block, passed, shared)
    for address, value in arrays:
        device.copy_out(address, value)
    return result
