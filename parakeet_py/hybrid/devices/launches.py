"""Launches of a CUDA device: gathered until a thread waits, and replayed as graphs where they repeat.

Launching a kernel takes the host microseconds, a small kernel the device no more. What is launched between two moments
at which something else is asked of the stream is kept and then given to the driver at once. A sequence that comes
again with the same arguments (a call repeated on the same arrays, a loop between two buffers) is captured as a graph,
and from then on launched as one. Memory that is freed meanwhile is given back after what was launched before.

Launches are calls of the driver, which machine code makes one after the other (`llvm/runtime/call_queues`); where the
driver is asked by way of cuda-core alone, `Launch`es. Those that a loop repeats are made once, as a `Group`: the driver
calls that they are, or a graph.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.debug_log import log
from parakeet_py.hybrid.devices.staging import driver_call
from parakeet_py.llvm.runtime import call_queues

LEAST = 3  # launches that are worth a graph
MOST = 32  # launches that are kept
GRAPHS = 64  # sequences that are remembered
PARAMETERS = 2048  # of launches that are given to the driver together; one has at most 512


class Launch(NamedTuple):
    """A launch as cuda-core takes it."""

    key: tuple[Any, ...]
    config: Any
    kernel: Any
    arguments: tuple[Any, ...]


class Call(NamedTuple):
    """A launch as the driver takes it.

    Attributes
    ----------
    key : what `cuLaunchKernel` is given before the parameters, and these, each in eight bytes
    kernel : has to stay alive
    """

    key: tuple[int, int, int, int, int, int, int, int, int, bytes]
    kernel: Any


class _Sequence(NamedTuple):
    """Launches that have been seen: their graph, None if once, and themselves: nothing else may get their numbers, or
    their kernels' (`id`), as long as the sequence is known by them."""

    graph: Any
    launches: tuple[Launch | Call, ...]


def call_of(
    kernel: Any, handle: int, blocks: int, threads: int, shared: int, stream: int, codes: str, values: Sequence[Any]
) -> Call:
    """A launch; `codes` and `values` are as `Device.launch` is given them."""
    pack = _packer(codes)
    try:
        data = pack(*values)
    except (struct.error, TypeError):  # numbers of NumPy's
        data = pack(*[value.item() if isinstance(value, np.generic) else value for value in values])
    return Call((handle, blocks, 1, 1, threads, 1, 1, shared, stream, data), kernel)


@lru_cache(maxsize=1024)
def _packer(codes: str) -> Callable[..., bytes]:
    """What makes bytes of parameters, eight of each."""
    parts = [f"{code.replace('P', 'Q')}{8 - struct.calcsize('<' + code.replace('P', 'Q'))}x" for code in codes]
    return struct.Struct("<" + "".join(parts)).pack


def launch_of(kernel: Any, blocks: int, threads: int, arguments: list[Any]) -> Launch:
    """A launch; `arguments` are numbers of ctypes."""
    from cuda.core import LaunchConfig

    key = id(kernel), blocks, threads, *map(bytes, arguments)  # bits: zeros of both signs are not the same
    return Launch(key, LaunchConfig(grid=blocks, block=threads), kernel, tuple(arguments))


class Group:
    """Launches that come again and again, one after the other.

    Parameters
    ----------
    calls : the words of the driver calls that they are
    first : those of the call that makes the context current
    keeps : what the words point to
    """

    def __init__(self, launches: Sequence[Call], calls: list[bytes], first: bytes, keeps: Any) -> None:
        self.launches, self.first, self.times = launches, first, 0
        self._keeps: Any = keeps
        self._given_as(calls)

    def _given_as(self, calls: list[bytes]) -> None:
        words = array("q", b"".join([self.first, *calls]))
        self._count = len(calls) + 1
        self._table = array("q", (0, 0, words.buffer_info()[0], self._count, 0))
        self._words, self._start = words, self._table.buffer_info()[0]
        self._run = call_queues.one_after_the_other()

    def is_graph(self, graph: Any, stream: Any) -> None:
        """From now on it is launched as a graph."""
        self._keeps = graph
        self._given_as([call_queues.words(driver_call("cuGraphLaunch"), int(graph.handle), int(stream.handle))])

    def make(self) -> None:
        if self._run(self._start, 0) != self._count:
            raise RuntimeError(_text_of(self._table[4]))


def _text_of(status: int) -> str:
    from cuda.bindings import driver

    _, text = driver.cuGetErrorString(driver.CUresult(status))
    return text.decode() if text else f"status {status} of the driver"


_CALL = struct.Struct(f"<{call_queues.WORDS}Q")


def _address_of(memory: bytearray) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


class _Room:
    """Where the words of driver calls lie while they are made, the parameters that they point to behind each other."""

    def __init__(self) -> None:
        self.calls, self.parameters = bytearray(8 * call_queues.WORDS * MOST), bytearray(8 * PARAMETERS)
        start, calls = _address_of(self.parameters), _address_of(self.calls)
        pointers = self._keeps = array("Q", range(start, start + 8 * PARAMETERS, 8))
        self._pointers, _ = pointers.buffer_info()
        self.table = array("q", (0, 0, calls, 0, 0))
        self._address, _ = self.table.buffer_info()
        self._function = driver_call("cuLaunchKernel")
        self._run = call_queues.one_after_the_other()

    def make(self, launches: Sequence[Any]) -> None:
        """Let the driver make launches: `Call`s."""
        used = count = 0
        for *shape, data in [one.key for one in launches]:
            if used + len(data) > 8 * PARAMETERS:
                self._give(count)
                used = count = 0
            end = used + len(data)
            self.parameters[used:end] = data
            _CALL.pack_into(self.calls, _CALL.size * count, self._function, *shape, self._pointers + used, 0)
            used, count = end, count + 1
        self._give(count)

    def _give(self, count: int) -> None:
        self.table[3] = count
        if self._run(self._address, 0) != count:
            raise RuntimeError(_text_of(self.table[4]))


class Launches:
    """What one device has been asked to run and has not been given yet.

    Attributes
    ----------
    lock : held while something is given to the stream
    """

    def __init__(self, stream: Any) -> None:
        self.lock = threading.RLock()
        self._stream = stream
        self._room: _Room | None = None
        self._kept: list[Launch | Call] = []
        self._afterwards: list[Callable[[], None]] = []
        self._flushing = False
        self._graphs: OrderedDict[tuple[Any, ...], _Sequence] = OrderedDict()
        self._capturing = True  # as long as that works

    @property
    def waiting(self) -> bool:
        """Whether something has not been given to the driver yet."""
        return bool(self._kept)

    @property
    def busy(self) -> bool:
        """Whether something is being given to the driver at this moment."""
        return self._flushing

    def add(self, launch: Launch | Call) -> None:
        """Launch a kernel."""
        with self.lock:
            self._kept.append(launch)
            if len(self._kept) >= MOST:
                self.flush()

    def make(self, group: Group, enter: Callable[[], None]) -> None:
        """Launch a group; `enter` comes before anything else is given to the driver."""
        with self.lock:
            if self._kept:
                enter()
                self.flush()
            group.times += 1
            if group.times == 2 and len(group.launches) >= LEAST and self._capturing:
                enter()
                graph = self._captured(group.launches)
                if graph is not None:
                    group.is_graph(graph, self._stream)
            group.make()

    def after(self, work: Callable[[], None]) -> None:
        """Do something in the order of the stream, after everything launched so far."""
        with self.lock:
            if self._kept or self._flushing:
                self._afterwards.append(work)
            else:
                work()

    def flush(self) -> None:
        """Give everything to the driver."""
        with self.lock:
            if self._flushing:  # memory is freed while a sequence is captured
                return
            kept, self._kept = self._kept, []
            self._flushing = True
            try:
                if kept:
                    self._issue(kept)
            finally:
                self._flushing = False
                afterwards, self._afterwards = self._afterwards, []
                for work in afterwards:
                    work()

    def _issue(self, kept: list[Launch | Call]) -> None:
        graph = self._graph(kept) if len(kept) >= LEAST and self._capturing else None
        if graph is not None:
            graph.launch(self._stream)
        else:
            self._give(kept, self._stream)

    def _give(self, launches: Sequence[Launch | Call], where: Any) -> None:
        """Give launches to the driver; `where`: the stream, or what makes a graph of what that is given."""
        if type(launches[0]) is Call:
            if self._room is None:
                self._room = _Room()
            self._room.make(launches)
            return
        from cuda.core import launch

        for one in launches:
            assert isinstance(one, Launch)
            launch(where, one.config, one.kernel, *one.arguments)

    def _graph(self, kept: list[Launch | Call]) -> Any:
        """The graph of a sequence; None if it comes for the first time."""
        key = tuple([one.key for one in kept])
        known = self._graphs.pop(key, None)
        found = None if known is None else known.graph or self._captured(kept)
        self._graphs[key] = _Sequence(found, tuple(kept))
        while len(self._graphs) > GRAPHS:
            self._graphs.popitem(last=False)
        return found

    def _captured(self, kept: Sequence[Launch | Call]) -> Any:
        builder = self._stream.create_graph_builder()
        try:
            builder.begin_building()
            self._give(kept, builder)
            return builder.end_building().complete()
        except Exception as error:  # then kernels are launched one by one
            log.info("no graph of kernels can be made: %s", error)
            self._capturing = False
            return None
        finally:
            builder.close()
