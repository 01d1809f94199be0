"""Run parts of the table by hand; write its page."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

from tests.corpus import Difference
from tests.numpy_table import families, page
from tests.numpy_table.compare import Verdict, verdict
from tests.numpy_table.rows import TABLE, Row, cases


def chosen(words: list[str]) -> list[Row]:
    """Rows of these names or families, or whose name has such a part."""
    assert families
    rows = [row for row in TABLE.values() if row.name in words or row.family in words]
    return rows or [row for row in TABLE.values() if not words or any(word in row.name for word in words)]


def report(row: Row, full: bool, native: bool) -> int:
    """Run a row; the number of differences."""
    counts: Counter[Verdict] = Counter()
    wrong: Counter[str] = Counter()
    shown: dict[str, str] = {}
    back: Counter[str] = Counter()
    for case in cases(row, full=full):
        try:
            found = verdict(case, native=native)
        except Difference as difference:
            wrong[case.call] += 1
            shown.setdefault(case.call, str(difference))
        except Exception as error:
            wrong[case.call] += 1
            shown.setdefault(case.call, f"{case!r}: {type(error).__name__}: {error}")
        else:
            counts[found] += 1
            if found in (Verdict.HANDED_BACK, Verdict.REFUSED):
                back[f"{case.call} {found.value}"] += 1
    summary = ", ".join(f"{count} {kind.value}" for kind, count in counts.items())
    sys.stdout.write(f"{row.name}: {summary}{f', {wrong.total()} DIFFER' if wrong else ''}\n")
    for call, count in back.items():
        sys.stdout.write(f"    {call}: {count}\n")
    for call, text in shown.items():
        sys.stdout.write(f"    WRONG {wrong[call]} x {text[:600]}\n")
    sys.stdout.flush()
    return wrong.total()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_table")
    parser.add_argument("names", nargs="*", help="functions, families, or parts of names")
    parser.add_argument("--full", action="store_true", help="the product of all dtypes, shapes, layouts and values")
    parser.add_argument("--native", action="store_true", help="machine code instead of the interpreter")
    parser.add_argument("--page", action="store_true", help="write docs/numpy.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.page:
        Path("docs/numpy.md").write_text(page.written())
        return 0
    return int(sum(report(row, options.full, options.native) for row in chosen(options.names)) > 0)


if __name__ == "__main__":
    sys.exit(main())
