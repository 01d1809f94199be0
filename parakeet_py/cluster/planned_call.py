"""What regions need of the call that they are in: a protocol that `host_walk.HostWalk` fulfils."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from dask._task_spec import TaskRef

from parakeet_py.base.errors import UnsupportedError
from parakeet_py.base.types import Scalar
from parakeet_py.cluster.arrays import LazyArray, LazyScalar, Root
from parakeet_py.cluster.graph import Graph
from parakeet_py.cluster.report import RegionReport
from parakeet_py.cluster.worker.kernel import Kernel
from parakeet_py.hybrid.partition.block_parts import BlockPart
from parakeet_py.hybrid.partition.regions import Region
from parakeet_py.typed_ir.ir import Function


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

    def kernel(self, function: Function, apart: bool) -> tuple[Kernel, Hashable]:
        """A part with its machine code, and its key; `apart`: what it stores into overlaps nothing else."""

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


def given(value: Any) -> Any:
    """A value for a task: what is known is no key any more."""
    if not isinstance(value, LazyScalar):
        return value
    return value.value if value.known else TaskRef(value.key)
