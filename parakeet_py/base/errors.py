"""Every error and warning a user can see, and the one way to show a place in the user's source.

An error names the file and line, shows the source line with a caret underline, says what is not possible and what to
do instead. A stage that finds a problem has a `Pos` and the function it belongs to; `source_excerpt` turns
the two into text, so that frontend, specializer and code generators all point at the source in the same way.

What Python or NumPy would have raised themselves (IndexError, ZeroDivisionError, ...) is raised as exactly that and
has no class here.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from parakeet_py.base.positions import Pos, SourceText


class Refusal(Protocol):
    """An entry of the catalogue of messages."""

    @property
    def code(self) -> str: ...

    @property
    def hint(self) -> str: ...


def _of_no_catalogue(message: str) -> Refusal | None:
    return None


_entry_of: Callable[[str], Refusal | None] = _of_no_catalogue


def look_up_with(entry_of: Callable[[str], Refusal | None]) -> None:
    """Take the hints of errors from a catalogue: `entry_of` finds the entry that a message belongs to."""
    global _entry_of
    _entry_of = entry_of


def name_of_exception(kind: type[BaseException]) -> str | None:
    """How compiled code names an exception that it raises: where it is found again, if it is found there now."""
    name: str = kind.__name__
    if getattr(builtins, name, None) is kind:
        return name
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        return name if exception_named(name) is kind else None
    except (KeyError, AttributeError):
        return None


def exception_named(name: str) -> type[Exception]:
    """The exception of a name."""
    module, _, qualname = name.rpartition(":")
    found: Any = sys.modules[module] if module else builtins
    for part in qualname.split("."):
        found = getattr(found, part)
    kind: type[Exception] = found
    return kind


def exception_with(kind: type[Exception], message: str, values: Sequence[Any]) -> Exception:
    """The exception of a failed check: its message is filled with values; the argument of a KeyError is the key."""
    if not message:
        return kind()
    if message == RANGE_ERROR:
        return kind(*RANGE_ARGS)
    return kind(values[0] if kind is KeyError and message == KEY else message.format(*values))


LONGEST = 1000  # characters of a message
MOST_LINES = 12
WIDEST = 160  # columns of a source line
KEY = "{0}"  # the message of a KeyError about an int
RANGE_ARGS = (34, "Numerical result out of range")  # of the OverflowError of a power: errno, and what it means
RANGE_ERROR = str(RANGE_ARGS)
OTHER_BITS = "a generator over other bits than PCG64's"
NOT_RAISED = "an exception has not been raised"
HOLD_ALWAYS = frozenset({OTHER_BITS, NOT_RAISED})
"""Messages of checks that hold however a function is called: compiled code has them to be safe, and to end blocks."""


class ParakeetError(Exception):
    """Base of all errors this package raises in its own name."""


class NoSourceError(ParakeetError):
    """The source of a function cannot be found, or is not what the function was compiled from."""


class DeoptimizedError(ParakeetError):
    """A value took a path whose result type was not foreseen, after the function had already changed something."""


class UnusualExtentsError(ParakeetError):
    """Code made for the usual extents was entered with others; an interpreter raises it before anything is done."""


class CodegenError(ParakeetError):
    """Generated code was refused by the code generator: a bug of this package, never of the user's program."""


class MemorySafetyError(ParakeetError):
    """Checked machine code (`PARAKEET_CHECK=2`) has found an access outside of an array's memory, memory that was
    changed where nothing is kept or used after it was freed, a pointer to no object, or a reference too many or too
    few: a bug of this package. The text names the operation and the place in the user's source."""


class UnsupportedError(ParakeetError):
    """Something in a function that cannot be accelerated.

    Parameters
    ----------
    message : str
        What is not possible, as a phrase without a full stop.
    filename : str
        The file the function was read from.
    pos : Pos, optional
        The place in that file.
    lines : sequence of str
        The function's source lines, the first of which is line `first_line` of the file.
    hint : str
        What to do instead.
    first_line : int
        Line number of ``lines[0]``.
    """

    def __init__(
        self,
        message: str,
        filename: str = "",
        pos: Pos | None = None,
        lines: Sequence[str] = (),
        hint: str = "",
        *,
        first_line: int = 1,
    ) -> None:
        self.message = message
        self.filename = filename
        self.pos = pos
        self.lines = tuple(lines)
        self.hint = hint
        self.first_line = first_line
        super().__init__(message)

    def __str__(self) -> str:
        where = f"{self.filename}:{self.pos.line}" if self.pos is not None else self.filename
        text = cut(f"{where}: {self.message}" if where else self.message)
        if self.pos is not None:
            text += underlined(self.lines, self.first_line, self.pos)
        if self.advice:
            text += f"\n  instead: {cut(self.advice)}"
        if self.code:
            text += f"\n  more: parakeet messages {self.code}"
        return text

    @property
    def code(self) -> str:
        """The name of the kind of refusal in the catalogue of messages; empty if it is of none."""
        entry = _entry_of(self.message)
        return "" if entry is None else entry.code

    @property
    def advice(self) -> str:
        """What to do instead: the hint, or else what the catalogue says."""
        entry = _entry_of(self.message)
        return self.hint or ("" if entry is None else entry.hint)

    @classmethod
    def at(cls, function: SourceText, pos: Pos, message: str, hint: str = "") -> UnsupportedError:
        """The error for the place `pos` of a function."""
        return cls(message, function.filename, pos, function.lines, hint, first_line=function.first_line)


class GatherLimitError(UnsupportedError):
    """A call on Dask arrays needs more of one in one place than `gather_limit` allows."""


class TooManyRounds(UnsupportedError):
    """A call on small Dask arrays would compute numbers one by one."""


class MissingValue(UnsupportedError):
    """A hidden argument is not there (any more): Python will say so if the call gets that far."""


class NotObservedError(UnsupportedError):
    """A function cannot be compiled before it has been called, since something is handed back to Python in it."""

    @classmethod
    def of(cls, error: UnsupportedError, hint: str) -> NotObservedError:
        """The same problem, with a hint."""
        return cls(error.message, error.filename, error.pos, error.lines, hint, first_line=error.first_line)


class FallbackWarning(UserWarning):
    """A function fell back: its calls with such arguments run in Python; the text says why and what to do."""


class ClusterWarning(UserWarning):
    """A call on Dask arrays puts chunks together in one place."""


class DeviceWarning(UserWarning):
    """Calls run on the CPU, because devices that were asked for are not there or have failed."""


def advised(message: str) -> str:
    """The text of a warning or an error that is about no place in a function, with what the catalogue says of it."""
    entry = _entry_of(message)
    return (
        cut(message)
        if entry is None
        else f"{cut(message)}\n  instead: {entry.hint}\n  more: parakeet messages {entry.code}"
    )


def cut(text: str) -> str:
    """A text that may show a value of the user's, on less than a screen: of one that is too long, beginning and end."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        text = "\n".join([*lines[:half], f"... ({len(lines) - 2 * half:,} lines) ...", *lines[-half:]])
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} ... ({len(text) - 2 * half:,} characters) ... {text[-half:]}"


def underlined(lines: Sequence[str], first_line: int, pos: Pos) -> str:
    """The source line at `pos` and a caret underline, each after a newline; empty where there is no source."""
    index = pos.line - first_line
    if not 0 <= index < len(lines):
        return ""
    raw = lines[index].rstrip("\r\n").encode()  # columns count UTF-8 bytes
    start = min(pos.column, len(raw))
    end = pos.end_column if pos.end_line == pos.line else len(raw.rstrip())
    end = max(min(end, len(raw)), start + 1)
    before = raw[:start].decode(errors="replace")
    marked = raw[start:end].decode(errors="replace")
    text = raw.decode(errors="replace")
    margin = len(text) - len(text.lstrip())
    if len(before) < margin:
        before = text[:margin]
    # Tabs stay tabs, so that the caret stands under its text whatever their width.
    padding = "".join("\t" if character == "\t" else " " for character in before[margin:])
    shown, carets = text.strip(), padding + "^" * max(len(marked), 1)
    if len(shown) > WIDEST:  # the part around the caret
        first = max(min(len(padding) - WIDEST // 4, len(shown) - WIDEST), 0)
        shown, carets = shown[first : first + WIDEST], carets[first : first + WIDEST]
    return f"\n    {shown}\n    {carets}"


def source_excerpt(function: SourceText, pos: Pos) -> str:
    """``file:line`` of a place, then its source line with a caret underline."""
    return f"{function.filename}:{pos.line}" + underlined(function.lines, function.first_line, pos)
