"""A row of the table: a function and how to call it. Rows become cases: a call on arguments of one dtype, rank, layout.

A call is written as Python. The names in it stand for arguments, made afresh for every run (`made`):

    a, b    arrays of the case's dtype and shape (b in C order)
    r       a row that broadcasts against a
    v, w    vectors of 7 and 3 elements; s a sorted one; t ascending floats
    p       a positive array like a; q a square matrix of float64
    i       positions along the first axis; k positions along the last one, of the shape of a; n small counts
    m, c    a mask of the shape of a; of the length of v
    o       what the call gives without it, filled with ones: for out=

and `{axis}`, `{flag}`, `{order}`... are replaced by each of the choices that make sense for the rank.
"""

from __future__ import annotations

import ast
import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.arrays import arr

BOOL, INTS, FLOATS, COMPLEX = "?", "bhilBHIL", "efd", "FD"
REAL = BOOL + INTS + FLOATS
NUMBERS = REAL + COMPLEX
INEXACT = FLOATS + COMPLEX
LAYOUTS = ("C", "F", "stepped", "reversed", "transposed", "inner", "readonly", "unaligned", "swapped")
SHAPES = {0: [()], 1: [(7,), (0,), (1,)], 2: [(3, 4), (0, 4), (3, 0), (1, 4)], 3: [(2, 3, 4), (2, 0, 4), (2, 1, 4)]}
FUNCTION_RESULT = "o"


@dataclass(frozen=True, slots=True)
class Row:
    """A function of NumPy: its name, its calls, and the arguments they are tried with.

    `sums` and `ulp` are tolerances as in `tests.corpus`; `order` whether strides are compared.
    """

    name: str
    family: str
    calls: tuple[str, ...]
    dtypes: str
    ranks: tuple[int, ...]
    ulp: float
    sums: float
    values: tuple[str, ...]
    order: bool
    note: str


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a row on arguments of a dtype, shape, layout and kind of values."""

    row: Row
    call: str
    dtype: str
    shape: tuple[int, ...]
    layout: str = "C"
    values: str = "normal"

    def __repr__(self) -> str:
        name = np.dtype(self.dtype).name
        return f"{self.call}  [{name}{list(self.shape)} {self.layout} {self.values}]"


TABLE: dict[str, Row] = {}


class Family:
    """Collects the rows of one module of `families/`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def row(
        self,
        name: str,
        calls: str,
        dtypes: str = REAL,
        ranks: str = "123",
        *,
        ulp: float = 4,
        sums: float = 0,
        values: str = "normal",
        order: bool = True,
        note: str = "",
    ) -> None:
        """Add a function. `calls`: argument lists, separated by semicolons; after a = stands a whole expression.

        Names of the form ndarray.x are methods of `a` (attributes, where the argument list is `-`).
        """
        if name in TABLE:
            raise ValueError(f"two rows named {name}")
        spelled = tuple(_spelled(name, call.strip()) for call in calls.split(";"))
        digits = tuple(int(digit) for digit in ranks)
        TABLE[name] = Row(name, self.name, spelled, dtypes, digits, ulp, sums, tuple(values.split()), order, note)


def _spelled(name: str, call: str) -> str:
    if call.startswith("="):
        return call[1:].strip()
    if name.startswith("ndarray."):
        name = "a" + name.removeprefix("ndarray")
    return name if call == "-" else f"{name}({call})"


_CHOICE = re.compile(r"\{(\w+)\}")


def _choices(word: str, rank: int) -> list[str]:
    match word:
        case "axis":
            pairs = ["(0, 1)"] if rank >= 2 else []
            return ["None", *(["0", "-1"] if rank else []), *pairs, *(["(0, 2)"] if rank == 3 else [])]
        case "one":
            return [str(axis) for axis in range(max(rank, 1))]
        case "flag":
            return ["False", "True"]
        case "order":
            return ["'C'", "'F'", "'K'", "'A'"]
        case "side":
            return ["'left'", "'right'"]
        case "mode":
            return ["'full'", "'same'", "'valid'"]
        case "kind":
            return ["'quicksort'", "'heapsort'", "'stable'"]
        case "bounds":
            return ["'raise'", "'wrap'", "'clip'"]
        case "pad":
            modes = "constant edge linear_ramp maximum mean median minimum reflect symmetric wrap empty"
            return [repr(mode) for mode in modes.split()[:-1]]
        case "quantile":
            continuous = (
                "inverted_cdf averaged_inverted_cdf closest_observation interpolated_inverted_cdf hazen weibull"
            )
            return [
                repr(m)
                for m in f"{continuous} linear median_unbiased normal_unbiased lower higher midpoint nearest".split()
            ]
    raise ValueError(f"no choices for {word}")


def expanded(call: str, rank: int) -> list[str]:
    """The call with every choice made in every way."""
    words = list(dict.fromkeys(_CHOICE.findall(call)))
    made = []
    for chosen in itertools.product(*(_choices(word, rank) for word in words)):
        one = call
        for word, text in zip(words, chosen, strict=True):
            one = one.replace(f"{{{word}}}", text)
        made.append(one)
    return made


def cases(row: Row, *, full: bool = False) -> Iterator[Case]:
    """The cases of a row. Full: the product of everything; else each dtype, rank and layout on its own."""
    for rank in row.ranks:
        main = SHAPES[rank][0]
        for template in row.calls:
            for call in expanded(template, rank):
                plain = Case(row, call, "d" if "d" in row.dtypes else row.dtypes[-1], main)
                if full:
                    yield from (
                        Case(row, call, dtype, shape, layout, values)
                        for dtype in row.dtypes
                        for shape in SHAPES[rank]
                        for layout in (LAYOUTS if rank else LAYOUTS[:1])
                        for values in row.values
                    )
                    continue
                yield from (replace(plain, dtype=dtype) for dtype in row.dtypes)
                yield from (replace(plain, shape=shape) for shape in SHAPES[rank][1:])
                turn = zlib.crc32(call.encode()) + rank  # not the same dtypes with the same layouts in every row
                for number, layout in enumerate(LAYOUTS[1:] if rank else ()):
                    yield replace(plain, layout=layout, dtype=row.dtypes[(turn + number) % len(row.dtypes)])
                yield from (replace(plain, values=values) for values in row.values[1:])


def source(case: Case) -> tuple[str, tuple[str, ...]]:
    """The text of a function that makes the call, and the names of its arguments."""
    names = sorted({node.id for node in ast.walk(ast.parse(case.call)) if isinstance(node, ast.Name)} & _MAKERS.keys())
    parameters = ", ".join(names)
    lines = case.call.split(" && ")
    body = "".join(f"    {line}\n" for line in lines[:-1]) + f"    return {lines[-1]}\n"
    return f"def f({parameters}):\n{body}", tuple(names)


def _like(case: Case, **changes: Any) -> Any:
    fields = {"shape": case.shape, "layout": "C", "values": case.values, "seed": 0, **changes}
    return arr(case.dtype, *fields.pop("shape"), **fields).make()


def _extent(case: Case, axis: int) -> int:
    return case.shape[axis] if case.shape else 1


def _positions(case: Case, axis: int, shape: tuple[int, ...]) -> Any:
    extent = max(_extent(case, axis), 1)
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) * 5 + 1) % (2 * extent) - extent


_MAKERS: dict[str, Any] = {
    "a": lambda case: _like(case, layout=case.layout),
    "b": lambda case: _like(case, seed=1),
    "r": lambda case: _like(case, shape=case.shape[-1:], seed=2),
    "v": lambda case: _like(case, shape=(7,), layout=case.layout),
    "w": lambda case: _like(case, shape=(3,), seed=1),
    "s": lambda case: np.sort(_like(case, shape=(7,), seed=3)),
    "t": lambda case: np.array([0.0, 0.5, 1.5, 2.0, 2.25, 3.0, 4.5]),
    "p": lambda case: _like(case, values="positive", layout=case.layout),
    "q": lambda case: arr("f8", 3, 3).make() + 3 * np.eye(3),
    "i": lambda case: _positions(case, 0, (4,)),
    "k": lambda case: _positions(case, -1, case.shape),
    "n": lambda case: np.array([1, 2, 2, 5, 0, 1, 3]),
    "m": lambda case: arr("?", *case.shape, seed=4).make(),
    "c": lambda case: np.array([True, False, True, True, False, False, True]),
}
_MAKERS[FUNCTION_RESULT] = lambda case: _result_of(case)


def _result_of(case: Case) -> Any:
    """An array for out=, of what NumPy gives without it."""
    without = re.sub(r"(, )?(out=)?\bo\b(?!=)", "", case.call.replace(", where=m", ""))
    scope = {name: make(case) for name, make in _MAKERS.items() if name != FUNCTION_RESULT}
    try:
        with np.errstate(all="ignore"):
            made = eval(without, {"np": np, **scope})
    except Exception:
        made = scope["a"]
    return np.ones_like(made[0] if isinstance(made, tuple) else made)


def arguments(case: Case, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Fresh arguments of a case."""
    return tuple(_MAKERS[name](case) for name in names)
