"""docs/numpy.md: what every row of the table was found to be."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.numpy_table import families
from tests.numpy_table.compare import Verdict, verdict
from tests.numpy_table.rows import BOOL, COMPLEX, INTS, SHAPES, TABLE, Case, Row, expanded

HEAD = """# NumPy functions

Written by `make docs` from `tests/numpy_table`, which calls each of these with every dtype and compares with NumPy.

- **native**: compiled, for the dtypes and calls of the row. Dtypes that NumPy itself refuses are left out.
- **in part**: the calls named are handed back to Python, the others are compiled.
- **handed back**: Python does that call; what is around it is compiled.

{count} functions and methods, {native} of them native, {partly} in part.
"""


def first_cases(row: Row, dtype: str) -> Iterator[Case]:
    """Each way to call a function once, on the middle one of its ranks."""
    rank = row.ranks[len(row.ranks) // 2]
    for call in row.calls:
        for one in expanded(call, rank)[-1:]:
            yield Case(row, one, dtype, SHAPES[rank][0])


def found(row: Row) -> tuple[str, str, list[str]]:
    """Status, dtypes and the calls that are not native."""
    native, back = "", []
    for dtype in row.dtypes:
        verdicts = {case.call: verdict(case) for case in first_cases(row, dtype)}
        if all(one is Verdict.ERROR for one in verdicts.values()):
            continue
        left = [call for call, one in verdicts.items() if one in (Verdict.HANDED_BACK, Verdict.REFUSED)]
        if len(left) < sum(one is not Verdict.ERROR for one in verdicts.values()):
            native += dtype
        back += [call for call in left if call not in back]
    status = "native" if not back else "in part" if native else "handed back"
    return status, _named(native), back


def _named(dtypes: str) -> str:
    groups = {"bool": BOOL, "ints": INTS, "float16": "e", "floats": "fd", "complex": COMPLEX}
    names = []
    for name, group in groups.items():
        present = [one for one in group if one in dtypes]
        if len(present) == len(group):
            names.append(name)
        elif present:
            names.append(f"some {name}")
    return ", ".join(names)


def line(row: Row) -> tuple[str, str]:
    """The status of a row, and its line of the page."""
    status, dtypes, back = found(row)
    calls = ", ".join(f"`{call}`" for call in back) if status == "in part" else ""
    notes = "; ".join(part for part in (calls and f"handed back: {calls}", row.note) if part)
    return status, f"| `{row.name}` | {status} | {dtypes} | {notes.replace('|', chr(92) + '|')} |"


def _line_named(name: str) -> tuple[str, str]:
    warnings.simplefilter("ignore")
    return line(TABLE[name])


def written() -> str:
    """The whole page, by a process for each CPU."""
    assert families
    counts = {"native": 0, "in part": 0, "handed back": 0}
    sections: dict[str, list[str]] = {}
    rows = sorted(TABLE.values(), key=lambda row: (row.family, row.name))
    with ProcessPoolExecutor() as processes:
        for row, (status, text) in zip(rows, processes.map(_line_named, [row.name for row in rows]), strict=True):
            counts[status] += 1
            sections.setdefault(row.family, []).append(text)
    parts = [HEAD.format(count=len(TABLE), native=counts["native"], partly=counts["in part"])]
    for family, lines in sections.items():
        parts.append(f"\n## {family.capitalize()}\n\n| function | | dtypes | notes |\n|---|---|---|---|\n")
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)
