"""What a call on Dask arrays may do: how much it may gather in one place, and what it may store into."""

from __future__ import annotations

import warnings
from typing import Any

from parakeet_py.base.config import Config
from parakeet_py.base.errors import ClusterWarning, GatherLimitError, TooManyRounds, UnsupportedError, advised
from parakeet_py.base.frames.tracebacks import user_level
from parakeet_py.cluster.arrays import Root
from parakeet_py.cluster.graph import Graph

MOST_ROUNDS = 32
SMALL_INPUTS = 1 << 26  # bytes
QUIET = 1 << 20  # bytes that may be put together without a word
LEAST = 1 << 20  # bytes of an array that is put together in one place only if there is no other way


class CallSettings:
    """The settings of one call.

    Attributes
    ----------
    chunk_bytes : of chunks of arrays that the call makes from nothing, or that NumPy arrays are cut into
    gather_limit : bytes of an array that one task may need all of
    """

    def __init__(self, config: Config) -> None:
        self.chunk_bytes, self.gather_limit = config.chunks, config.gather_limit
        self._told: set[Any] = set()

    def check_size(self, name: str, filename: str, line: int, nbytes: int) -> None:
        """One task needs so many bytes of an array that is in several chunks.

        Raises
        ------
        GatherLimitError
            They are more than `gather_limit`.
        """
        if nbytes > self.gather_limit:
            raise GatherLimitError(
                f"line {line} of {name} needs {nbytes} bytes of an array in one place, more than "
                f"gather_limit={self.gather_limit}, as it cannot be cut along its chunks",
                filename,
            )
        if nbytes > QUIET and line not in self._told:
            self._told.add(line)
            text = f"line {line} of {name} cannot be cut along its chunks: {nbytes} bytes are gathered in one place"
            warnings.warn(ClusterWarning(advised(text)), stacklevel=user_level())

    @staticmethod
    def is_large(root: Root) -> bool:
        """Whether an array is in several chunks and had better not be put together in one place."""
        return root.counts is None and len(root.keys) > 1 and root.nbytes > LEAST

    @staticmethod
    def travels(name: str, array: str, nbytes: int) -> None:
        """A large NumPy array, beside Dask arrays, is sent with the graph of a call."""
        text = (
            f"{array} of {name} is a NumPy array of {nbytes} bytes, which travels with the graph of each call: "
            "scatter it once: da.from_array(array).persist()"
        )
        warnings.warn(ClusterWarning(text), stacklevel=user_level())

    def check_rounds(self, name: str, filename: str, graph: Graph) -> None:
        """The client is about to wait for one more number.

        Raises
        ------
        TooManyRounds
            There have been many, and all arguments together are so small that one task computes as well.
        """
        nbytes = sum(array.nbytes for array in graph.inputs.values())
        if graph.rounds >= MOST_ROUNDS and nbytes <= min(SMALL_INPUTS, self.gather_limit):
            raise TooManyRounds(f"{name} asks for over {MOST_ROUNDS} numbers of arrays of {nbytes} bytes", filename)

    def may_store(self, root: Root, name: str, filename: str, line: int) -> None:
        """Something stores into an array.

        Raises
        ------
        UnsupportedError
            There is no way to.
        """
        if root.frozen:
            raise UnsupportedError(f"line {line} of {name}: {root.frozen} are not possible on Dask arrays", filename)
