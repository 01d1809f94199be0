"""What regions need of the call that they are in, a protocol that `host_walk.HostWalk` fulfils; and what is known of a
region while its tasks are made, one that `region_tasks.RegionTasks` fulfils."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from dask._task_spec import TaskRef

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import Scalar
from parakeet_py.cluster.arrays import Block, LazyArray, LazyScalar, Root
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.grid import Space
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.windows import Windows
from parakeet_py.cluster.worker.buffers import Box
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.hybrid.partition.access import Access
from parakeet_py.hybrid.partition.block_parts import BlockPart
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir.ir import Function, Var


class PlannedCall(Protocol):
    """A call whose graph is being made.

    Attributes
    ----------
    hints : where axes of so many elements are cut, of what reads no chunks
    chunk_bytes : the size of chunks of such
    layouts : of the windows of regions that have run, for when they run again on arrays that are cut alike
    may_raise : keys of tasks that may raise, which are to run whatever else needs them
    """

    graph: Graph
    hints: Mapping[int, Sequence[int]]
    chunk_bytes: int
    layouts: dict[str, dict[Any, Any]]
    may_raise: list[Hashable]

    def number(self, value: Any) -> int:
        """An int that may have to be computed first."""

    def ready(self, array: LazyArray) -> LazyArray:
        """An array whose extents are known, and whose chunks are those of now."""

    def part(self, region: Region, cut: tuple[int, ...], private: bool) -> BlockPart:
        """The part of a region over blocks that are cut along some axes."""

    def kernel(
        self, function: Function, apart: bool, extents: tuple[tuple[int, int, int], ...] = ()
    ) -> tuple[Kernel, Hashable]:
        """A part with its machine code, and its key; `apart`: what it stores into overlaps nothing else; `extents`: of
        arrays, known (the number of the parameter, the axis, the extent)."""

    def check_size(self, line: int, nbytes: int) -> None:
        """A task needs all of an array that is in several chunks.

        Raises
        ------
        UnsupportedError
            It is larger than the settings allow.
        """

    def is_large(self, root: Root) -> bool:
        """Whether an array is in several chunks and had better not be put together in one place."""

    def may_store(self, root: Root, line: int) -> None:
        """A region stores into a root.

        Raises
        ------
        UnsupportedError
            It is an argument that is a Dask array.
        """

    def lazy(self, kind: Scalar, name: str, function: Any, *args: Any) -> LazyScalar:
        """A scalar that a task gives."""

    def unsupported(self, text: str) -> UnsupportedError:
        """An error about the function, whose name begins the text."""

    def told(self, report: RegionReport) -> None:
        """What has become of a region."""


class RegionRun(Protocol):
    """A region in one call.

    Attributes
    ----------
    values, arrays : what it takes from outside; those of them that are arrays
    space, extents : its index space
    reads, writes : what it reads and writes of which arrays
    axes : where each axis of the index space is cut, ends included
    cut : the axes that are
    private : blocks have copies of what they scatter into
    unused : the numbers of results that nothing uses
    """

    call: PlannedCall
    region: Region
    graph: Graph
    windows: Windows
    values: dict[Var, Any]
    arrays: dict[Var, LazyArray]
    space: Space
    extents: tuple[int, ...]
    reads: list[tuple[Access, LazyArray]]
    writes: list[tuple[Access, LazyArray]]
    axes: list[list[int]]
    cut: tuple[int, ...]
    private: bool
    unused: frozenset[int]

    @property
    def takes_tuples(self) -> bool:
        """Whether results of a block stay together under one key."""

    def span(self, access: Access, position: int, place: Block) -> tuple[int, int] | None:
        """The range of an access along an axis of its array in a block; None if it is not made."""

    def depends_on(self, access: Access, position: int) -> tuple[int, ...]:
        """The axes of the index space that an access along an axis of its array depends on."""

    def boxes(self, accesses: Sequence[tuple[Access, LazyArray]], root: Root, place: Block) -> list[Box]:
        """The boxes of a root that accesses touch in a block."""

    def ends(self, axis: int, at: int | tuple[int, int]) -> tuple[int, int]:
        """The bounds of a block along an axis."""


def given(value: Any) -> Any:
    """A value for a task: what is known is no key any more."""
    if not isinstance(value, LazyScalar):
        return value
    return value.value if value.known else TaskRef(value.key)
