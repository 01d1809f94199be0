"""The tour is a program: its blocks of code run in order, in one namespace."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str) -> list[tuple[int, str]]:
    """(first line, source) of each block of Python code on a page."""
    text = (DOCS / page).read_text()
    return [
        (text[: match.start(1)].count("\n") + 1, match[1]) for match in re.finditer(r"```python\n(.*?)```", text, re.S)
    ]


def test_the_tour_runs() -> None:
    found = blocks("tour.md")
    assert len(found) >= 10
    namespace: dict[str, object] = {"__name__": "tour"}
    for first, source in found:
        # Padded, so that lines are those of the page; in linecache, so that functions have their source.
        padded = "\n" * (first - 1) + source
        name = f"{DOCS / 'tour.md'}#{first}"
        linecache.cache[name] = (len(padded), None, padded.splitlines(keepends=True), name)
        exec(compile(padded, name, "exec"), namespace)


def test_links_lead_somewhere() -> None:
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+\.md)(?:#[\w-]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
