"""Random functions of whole arrays, called with NumPy and Dask arrays beside each other, in chunks of random extents.

Other than the programs of the corpus and of the fuzzer, whose arguments are all cut alike, every argument and axis has
chunks of its own here, empty ones too, some arguments are NumPy arrays, dtypes are mixed, arguments are stored into,
results are tuples, lists and dicts, and some functions raise.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "float32", "float64", "complex128", "bool")
LINES = (
    "{o} = {v} + {w}",
    "{o} = {v} * {w} - {v}",
    "{o} = np.where({v} == {w}, {v}, {w})",
    "{o} = np.cumsum({v})",
    "{o} = {v}[::-1].copy()",
    "{o} = {v}.astype(np.{d})",
    "{o} = np.roll({v}, 1)",
    "{o} = {m}.sum(axis=1)",
    "{o} = {m}[:, 0] * 2",
    "{o} = {m}.T[1].copy()",
    "{o} = abs({v}) + len({w})",
    "{o} = {v}.copy()\n{o}[1:-1] = {w}[:-2] + {w}[2:]",
    "{o} = {v}.copy()\n{o}[::2] = {w}[::2]",
    "{o} = {v} + {s}",
    "{o} = {v}[{i}]",
    "{o} = np.zeros(len({v}), {v}.dtype)\nnp.add.at({o}, {i}, {v})",
    "{o} = {m} @ {m}[0]",
    "{o} = {v} - {m}.max(axis=1).real",
)
TABLES = (
    "{o} = {m} * {v}[:, None]",
    "{o} = {m} - {m}.mean(axis=0)",
    "{o} = {m} + {k}",
    "{o} = {m}.copy()\n{o}[1:] = {m}[:-1]",
    "{o} = {m}[:, ::-1] + {k}",
    "{o} = np.exp(-abs({m})) + {m}",
    "{o} = {m} / ({k}.sum(axis=1)[:, None] + 9)",
)
SCALARS = (
    "{o} = {v}.sum()",
    "{o} = {m}.real.max()",
    "{o} = float({v}.real.mean())",
    "{o} = len({v}) + {m}.shape[1]",
    "{o} = {v}.real.argmax()",
    "{o} = {v}[0].real",
)
STORES = (
    "{v}[2:5] = 1",
    "{v}[:] = {w}.real > 0",
    "{v} += 1",
    "{v}[{v} == 0] = 3",
    "{m}[:, 1] = 2",
    "{m}[1:3, :2] = {m}[2:4, 1:3].copy()",
    "{m} *= 2",
    "np.add.at({v}, {i}, 1)",
)
ENDS = (
    "if {s} > 1e3:\n    raise ValueError('too large')",
    "if {m}.shape[1] > 3:\n    raise KeyError('columns')",
    "{o} = {v}[{i}[0] + 10 ** 4]",
    "{o} = {v} + {v}[1:]",
    "{o} = 1 // ({m}.shape[1] - {m}.shape[1])",
)
RESULTS = (
    "{v}[{v} == {w}]",
    "{v}[3:9:2]",
    "{m}[1:, :2]",
    "{m}.T",
    "{m}.reshape(-1)",
    "np.concatenate(({v}, {w}))",
    "np.diff({v}.real)",
    "np.sort({v}.real)",
    "{m}.any(axis=0)",
    "{m}[{m}.real > 1.1]",
    "{v}",
    "{m}",
    "{s}",
)
FORMS = ("return {0}", "return {0}, {1}", "return [{0}, {1}, ({2},)]", "return {{'a': {0}, 'b': ({1}, {2})}}")


class RandomCall:
    """A function of two lines, two tables, a line of places and a number, and arguments for it.

    Attributes
    ----------
    source, function : the function
    arrays : the arguments as NumPy arrays
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines, self.tables, self.scalars = ["a", "b"], ["c", "d"], ["x"]
        body: list[str] = []
        for number in range(self.random.randint(2, 6)):
            group, names = self.random.choice(
                (
                    (LINES, self.lines),
                    (LINES, self.lines),
                    (TABLES, self.tables),
                    (SCALARS, self.scalars),
                    (STORES, None),
                )
            )
            body += self._filled(self.random.choice(group), f"t{number}").split("\n")
            if names is not None:
                names.append(f"t{number}")
        if self.random.random() < 0.15:
            body += self._filled(self.random.choice(ENDS), "e").split("\n")
        results = [self._filled(self.random.choice(RESULTS), "r") for _ in range(3)]
        body.append(self.random.choice(FORMS).format(*results))
        self.source = "def f(a, b, c, d, i, x):\n" + "\n".join("    " + line for line in body) + "\n"
        scope: dict[str, Any] = {"np": np}
        exec(compile(self.source, f"<random call {seed}>", "exec"), scope)
        self.function: Callable[..., Any] = scope["f"]
        self.arrays = self._arguments(np.random.default_rng(seed))

    def _filled(self, text: str, out: str) -> str:
        pick = self.random.choice
        return text.format(
            o=out,
            v=pick(self.lines),
            w=pick(self.lines),
            m=pick(self.tables),
            k=pick(self.tables),
            s=pick(self.scalars),
            i="i",
            d=pick(DTYPES[2:7]),
        )

    def _arguments(self, values: np.random.Generator) -> tuple[Any, ...]:
        n, k = self.random.choice((1, 4, 7, 13, 24)), self.random.choice((3, 4))
        made = [self._array(values, shape) for shape in ((n,), (n,), (n, k), (n, k))]
        return (*made, values.integers(-n, n, n), self.random.choice((2, 1.5)))

    def _array(self, values: np.random.Generator, shape: tuple[int, ...]) -> Any:
        dtype = np.dtype(self.random.choice(DTYPES))
        found = values.integers(-4, 5, shape)
        if dtype.kind in "fc":
            return (found + values.integers(0, 4, shape) / 4).astype(dtype)
        return (abs(found) if dtype.kind in "ub" else found).astype(dtype)

    def given(self) -> tuple[Any, ...]:
        """The arguments, most of them as Dask arrays."""
        return tuple(
            da.from_array(one.copy(), chunks=tuple(map(self._chunks, one.shape)))
            if isinstance(one, np.ndarray) and self.random.random() < 0.8
            else one.copy()
            if isinstance(one, np.ndarray)
            else one
            for one in self.arrays
        )

    def of_unknown_sizes(self) -> tuple[Any, ...]:
        """The arguments; chunks of most Dask arrays have sizes that only their tasks know, as selections give."""
        return tuple(
            _of_unknown_size(one) if isinstance(one, da.Array) and self.random.random() < 0.7 else one
            for one in self.given()
        )

    def _chunks(self, extent: int) -> tuple[int, ...]:
        found: list[int] = []
        while sum(found) < extent:
            found.append(min(self.random.choice((0, 1, 2, 3, 5, 30)), extent - sum(found)))
        return (*found, *([0] if self.random.random() < 0.2 else []))


def _of_unknown_size(array: Any) -> Any:
    made = array.map_blocks(np.copy, dtype=array.dtype)
    made._chunks = (np.nan,) * len(array.chunks[0]), *array.chunks[1:]
    return made
