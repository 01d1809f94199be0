"""The catalogue as text: for a terminal, and as the page docs/troubleshooting.md.

The messages that the page shows are those that the examples give when they run here.
"""

from __future__ import annotations

import linecache
import warnings
from typing import Any

from parakeet_py.base.errors import FallbackWarning
from parakeet_py.call.accelerate import accelerate
from parakeet_py.messages.catalogue import CATALOGUE
from parakeet_py.messages.entry import Entry

_HEAD = """# Troubleshooting

Made by `make docs` from the catalogue of messages (`parakeet_py/messages`); `parakeet messages` prints it.

- **compiled**: it runs as machine code.
- **handed back**: one operation or call of a compiled function is done by Python. `f.opaque_calls` and
  `f.explain(*args)` tell which and why; everything around them stays compiled.
- **fell back**: a function runs in Python as a whole for arguments like these. A `FallbackWarning` says why, once for a
  function; `f.fell_back` keeps the text. With `strict=True` it is an `UnsupportedError`.

Results are those of Python in any case. With `logging.basicConfig(level="INFO")` the logger `parakeet_py` reports each
time a function is compiled or falls back, in one line.

"""


def called(source: str, args: str, name: str) -> tuple[Any, Any, list[str]]:
    """The accelerated `f` of a source, what it gives for arguments, and the warnings of that."""
    import numpy as np

    text = source.lstrip("\n")
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"np": np, "__name__": name.removesuffix(".py")}
    exec(compile(text, name, "exec"), scope)  # a source of the catalogue
    f = accelerate(when="now")(scope["f"])
    result = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            result = f(*eval(f"({args},)", dict(scope)))
    return f, result, [str(one.message) for one in caught if issubclass(one.category, FallbackWarning)]


def message_of(entry: Entry) -> str:
    """What the example of an entry says when it falls back; empty if there is none."""
    if not entry.example:
        return ""
    _, _, said = called(entry.example, entry.args, "example.py")
    return said[0] if said else ""


def as_text(entry: Entry) -> str:
    """An entry for a terminal, on one screen."""
    parts = [f"{entry.code}: {entry.title}", "", f"  {entry.hint}"]
    for title, source, args in _sources(entry):
        parts += ["", f"  {title} f({args}):", "", *(f"    {line}".rstrip() for line in source.strip().splitlines())]
    return "\n".join(parts)


def as_list() -> str:
    """The codes with their titles, one line each."""
    width = max(len(entry.code) for entry in CATALOGUE)
    return "\n".join(f"{entry.code:{width}}  {entry.title}" for entry in CATALOGUE)


def page() -> str:
    """docs/troubleshooting.md."""
    return _HEAD + "\n".join(map(_section, CATALOGUE))


def _section(entry: Entry) -> str:
    text = f"## {entry.code}\n\n{entry.title}. Instead: {entry.hint}.\n"
    message = message_of(entry)
    for title, source, args in _sources(entry):
        text += f"\n{title}, called as `f({args})`:\n\n```python\n{source.strip()}\n```\n"
        if message:
            text += f"\n```text\n{message}\n```\n"
            message = ""
    return text


def _sources(entry: Entry) -> list[tuple[str, str, str]]:
    found = [("falls back", entry.example, entry.args), ("is compiled", entry.works, entry.works_args or entry.args)]
    return [one for one in found if one[1]]
