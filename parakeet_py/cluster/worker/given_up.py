"""Tasks that find that only Python can go on with a call: what they give instead, and what becomes of results then.

Compiled code stands for what it was typed for. Where a task finds a value that is not so (a NaN among floats that are
sorted, a number that does not fit the integers that it is stored with), it gives a `GivenUp`, and so do all tasks that
read what it gives. A result whose chunks may be such waits for one more task: that asks all of them, and if one has
given up, lets Python do the call on arrays that it computes, and takes the result from there.

As all chunks wait for that task anyway, such tasks give exceptions of the program in the same way: Python raises what
comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from parakeet_py.base.errors import DeoptimizedError, ParakeetError, UnusualExtentsError
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.semantics import OVERFLOW

Box = tuple[tuple[int, int], ...]


class GivenUp:
    """What stands for the result of a task that only Python can go on from, with the reason."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        traceback = self.error.__traceback__
        try:
            from tblib import Traceback  # which comes with distributed

            frames = None if traceback is None else Traceback(traceback).to_dict()
        except ImportError:
            frames = None
        return _arrived, (self.error, frames)


def _arrived(error: Exception, frames: dict[str, Any] | None) -> GivenUp:
    if frames is not None:
        from tblib import Traceback

        error.__traceback__ = Traceback.from_dict(frames).as_traceback()
    return GivenUp(error)


def is_reason(error: BaseException) -> bool:
    """Whether compiled code leaves a call to Python by this exception, which is none of the program's."""
    if isinstance(error, OverflowError):
        return str(error) == OVERFLOW
    return isinstance(error, DeoptimizedError | UnusualExtentsError)


def is_of_program(error: BaseException) -> bool:
    """Whether an exception is one that Python would raise as well."""
    return not (is_reason(error) or isinstance(error, ParakeetError | MemoryError))


def is_failure_for_python(failure: ir.Failure) -> bool:
    """Whether a check that fails leaves the call to Python."""
    return failure.exception in ("Deoptimize", GENERAL.exception) or failure.message == OVERFLOW


def may_give_up(function: ir.Function) -> bool:
    """Whether a function may find that only Python can go on."""
    for let in ir.walk(function.body):
        if isinstance(let.op, ir.Check) and is_failure_for_python(let.op.failure):
            return True
        if isinstance(let.op, ir.Prim) and let.op.name.endswith("_checked"):
            return True
    return False


# ---- tasks -----------------------------------------------------------------------------------------------------------


def tried(function: Callable[..., Any], *args: Any) -> Any:
    """What a task gives that may find that only Python can go on, or raise what the program raises."""
    try:
        return passed_on(function, *args)
    except Exception as error:
        if not (is_reason(error) or is_of_program(error)):
            raise
        return GivenUp(error)


def passed_on(function: Callable[..., Any], *args: Any) -> Any:
    """What a task gives unless one that it reads from has given up."""
    for arg in args:
        if type(arg) is GivenUp:
            return arg
    return function(*args)


def reason(value: Any) -> Exception | None:
    """Why a task has given up, if it has."""
    return value.error if type(value) is GivenUp else None


def shown(value: Any) -> Any:
    """A value where Python cannot do the call instead: what it has been given up for is raised."""
    if type(value) is GivenUp:
        raise value.error
    return value


Python = Callable[[], Sequence[Any]]


class Promised(NamedTuple):
    """What was said of a result when the graph was made; extents may have been unknown."""

    shape: tuple[int, ...] | None
    dtype: str


def by_python(python: Python, promised: tuple[Promised, ...], *reasons: Exception | None) -> list[Any] | None:
    """The results as Python gives them, if a task has given up; `python` lets it do the call.

    Raises
    ------
    DeoptimizedError, OverflowError
        What Python gives has another type than was said.
    Exception
        What Python raises; the first that a task has raised where the arguments are too large for Python.
    """
    error = next((one for one in reasons if one is not None), None)
    if error is None:
        return None
    try:
        found = [None if value is None else np.asarray(value) for value in python()]
    except DeoptimizedError:
        failed = next((one for one in reasons if one is not None and is_of_program(one)), None)
        if failed is None:
            raise
        raise failed from None
    for value, (shape, dtype) in zip(found, promised, strict=True):
        if value is None or (shape is not None and value.shape != shape) or value.dtype != dtype:
            if isinstance(error, OverflowError):
                raise error
            given = "no array" if value is None else f"{value.dtype} of shape {value.shape}"
            raise DeoptimizedError(f"{error}: Python gives {given}, where {dtype} of shape {shape} was promised")
    return found


def chosen(number: int, box: Box | int, chunk: Any, answer: Sequence[Any] | None) -> Any:
    """A chunk of a result: that of the tasks, or of Python's; where extents are not known, the first chunk (0) has all
    elements."""
    if answer is None:
        return chunk
    if isinstance(box, int):
        return answer[number] if box == 0 else answer[number][:0]
    return answer[number][tuple(slice(lo, hi) for lo, hi in box)]
