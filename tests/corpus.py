"""The harness of the test corpus: how a program is registered, run on a backend, and compared with plain Python.

A program is an ordinary function in `tests/programs/<topic>.py`, decorated with `@program(inputs=..., ...)`, which
registers it and returns it unchanged. What must hold for it on every backend is what plain Python does with the same
function and equal arguments: the Python type, dtype, shape and values of the result, its memory order and the memory
it shares with arguments, the arguments' contents afterwards (and the buffers they are views of), and the exception.

Values are compared exactly, NaN for NaN and with the sign of zero, unless the program states a tolerance:

* `ulp=n`: at most n units in the last place of the expected value. Elementary functions use `ELEMENTARY`: NumPy's own
  vector code is up to 4 ULP from the truth, and so may be the other side's 2.
* `sums=n`: at most n * eps * (sum of |x| over all float arguments + largest |result|): the bound of pairwise
  summation has this form with n = log2(size); the terms of a program are of the order of its arguments.

`overflow=True` marks the one documented difference: where a Python int leaves the range of int64 plain Python goes on
with a bignum. Python runs such a call from its beginning; where it has changed arguments already (`mutates`), it ends
in an OverflowError.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np

from tests.arrays import Array

ELEMENTARY = 4
"""Tolerance, in ULP, for one elementary function (exp, sin, pow, ...)."""


@dataclass(frozen=True)
class Case:
    """One input of a program: recipes or plain values, or a callable that makes fresh arguments.

    `native_only` is too big for the interpreters; `host_only` would launch kernels for every line, thousands of them,
    which takes the emulator minutes.
    """

    args: tuple[Any, ...] | Callable[[], tuple[Any, ...]]
    kwargs: dict[str, Any] = field(default_factory=dict)
    raises: type[BaseException] | None = None
    native_only: bool = False
    setup: Callable[[], object] | None = None
    host_only: bool = False

    def make(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh positional and keyword arguments, after `setup` (which may change a global the program reads)."""
        if self.setup is not None:
            self.setup()
        args = self.args() if callable(self.args) else self.args
        made: dict[int, Any] = {}
        positional = tuple(_made(value, made) for value in args)
        return positional, {name: _made(value, made) for name, value in self.kwargs.items()}

    def __repr__(self) -> str:
        shown = "made" if callable(self.args) else ", ".join(map(repr, self.args))
        return ", ".join([shown, *(f"{k}={v!r}" for k, v in self.kwargs.items())])


def case(*args: Any, **options: Any) -> Case:
    """A `Case` of these arguments; options are the other fields of `Case`."""
    return Case(args, **options)


def large(*args: Any, **options: Any) -> Case:
    """A case big enough for threads to share, too big for the interpreters."""
    return Case(args, native_only=True, **options)


def raising(exception: type[BaseException], *args: Any, **options: Any) -> Case:
    """A case for which plain Python raises exactly this exception."""
    return Case(args, raises=exception, **options)


def each(recipes: Iterable[Any]) -> list[Case]:
    """One case of one argument for every recipe (a `Case` stays as it is)."""
    return [recipe if isinstance(recipe, Case) else Case((recipe,)) for recipe in recipes]


def _made(value: Any, lists: dict[int, Any]) -> Any:
    """A fresh argument; a list that comes twice, in the same `lists`, is one list."""
    match value:
        case Array():
            return value.make()
        case tuple() if type(value) is tuple:
            return tuple(_made(item, lists) for item in value)
        case list():
            if id(value) not in lists:
                lists[id(value)] = [_made(item, lists) for item in value]
            return lists[id(value)]
    return value


@dataclass(frozen=True)
class Program:
    """A registered program and what is claimed of it; see the arguments of `program`."""

    name: str
    function: Callable[..., Any]
    cases: tuple[Case, ...]
    kernels: int | None
    opaque: int | None
    fell_back: bool | None
    ulp: float
    sums: float
    regrouped: float
    mutates: tuple[int, ...]
    message: bool
    overflow: bool
    order: bool

    def __repr__(self) -> str:
        return self.name


PROGRAMS: dict[str, Program] = {}


def program(
    inputs: Sequence[Any],
    *,
    kernels: int | None = None,
    opaque: int | None = 0,
    fell_back: bool | None = False,
    raises: type[BaseException] | None = None,
    message: bool = False,
    ulp: float = 0,
    sums: float = 0,
    regrouped: float = 0,
    mutates: tuple[int, ...] = (),
    overflow: bool = False,
    order: bool = True,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Register the decorated function as a program of the corpus and return it unchanged.

    Parameters
    ----------
    inputs
        Tuples of arguments (`Array` recipes and plain values), callables that make such a tuple, or `Case`s.
    kernels
        How many kernels are left after fusion, where that is settled by the design.
    opaque
        How many calls are handed back to Python; None where either is right.
    fell_back
        Whether the whole function is run by plain Python; None where either is right.
    raises, message
        The exception type every input raises; whether its text is compared too.
    ulp, sums
        Tolerances, see the top of this file.
    regrouped
        `sums` on GPUs, whose threads sum in another grouping than NumPy, also what is short.
    mutates
        Positions of arguments that at least one input changes.
    overflow
        A Python int leaves int64: Python runs the call, or it ends in an OverflowError if it has changed arguments.
    order
        Whether the memory order (C or F) of new arrays is compared.
    """

    # Some programs are no functions of their module: ufuncs, builtins, methods.
    topic = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        key = f"{topic}.{name or function.__name__}"
        if key in PROGRAMS:
            raise ValueError(f"two programs named {key}")
        cases = tuple(entry if isinstance(entry, Case) else Case(entry) for entry in inputs)
        if raises is not None:
            cases = tuple(Case(c.args, c.kwargs, raises, c.native_only, c.setup, c.host_only) for c in cases)
        PROGRAMS[key] = Program(
            key,
            function,
            cases,
            kernels,
            opaque,
            fell_back,
            ulp,
            sums,
            regrouped,
            mutates,
            message,
            overflow,
            order,
        )
        return function

    return register


@functools.cache
def all_programs() -> tuple[Program, ...]:
    """Import every module of tests/programs and return what they registered."""
    from tests import programs

    for module in pkgutil.iter_modules(programs.__path__):
        importlib.import_module(f"{programs.__name__}.{module.name}")
    return tuple(PROGRAMS.values())


def lot(program: Program, of: int) -> int:
    """A number below `of`, drawn by the program's name: which programs a test samples does not depend on the others."""
    return zlib.crc32(program.name.encode()) % of


@dataclass
class Outcome:
    """What a call did: its result or exception, and its arguments afterwards."""

    args: tuple[Any, ...]
    result: Any = None
    exception: BaseException | None = None
    warned: list[warnings.WarningMessage] = field(default_factory=list)
    containers: list[tuple[str, str]] | None = None  # where these are, and which of them are one object


def outcome(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Outcome:
    """Call with floating-point warnings off and record what happened."""
    kwargs = kwargs or {}
    seen = Outcome((*args, *kwargs.values()))
    with np.errstate(all="ignore"), warnings.catch_warnings(record=True) as seen.warned:
        warnings.simplefilter("always")
        try:
            seen.result = call(*args, **kwargs)
        except Exception as exception:
            seen.exception = exception
    seen.containers = containers_of(seen)  # now: the next call may change what is kept somewhere
    return seen


_FLOAT = re.compile(r"\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+")
"""A floating-point number as `repr` writes it, without its sign."""


class Difference(AssertionError):
    """The compiled function did something else than plain Python."""


def assert_same(
    expected: Outcome,
    actual: Outcome,
    *,
    ulp: float = 0,
    sums: float = 0,
    message: bool = False,
    order: bool = True,
    identity: bool = True,
    attributes: bool = True,
) -> None:
    """Raise `Difference` unless two outcomes of calls with equal arguments agree in all that a caller can see.

    Without `identity` a new array and a view of all of it count as one object; without `attributes` only those of
    dataclasses are looked at.
    """
    _same_exception(expected.exception, actual.exception, message)
    scale = _scale(expected) if sums else 0.0
    compare = Comparison(ulp, sums * scale, order, attributes)
    # After an exception arithmetic is half done: what was done has the same tolerances.
    for position, (want, got) in enumerate(zip(expected.args, actual.args, strict=True)):
        compare.value(want, got, f"argument {position}")
        for want_base, got_base in zip(_bases(want), _bases(got), strict=True):
            compare.value(want_base, got_base, f"the buffer of argument {position}")
    if expected.exception is None:
        compare.value(expected.result, actual.result, "the result")
        _same_sharing(expected, actual, identity)
        _same_containers(expected, actual)


def _same_exception(want: BaseException | None, got: BaseException | None, message: bool) -> None:
    if want is None and got is not None:
        raise Difference(f"raised {type(got).__name__}: {got}") from got
    if want is not None and got is None:
        raise Difference(f"did not raise {type(want).__name__}: {want}")
    if type(want) is not type(got):
        raise Difference(f"raised {type(got).__name__}: {got}, not {type(want).__name__}: {want}") from got
    if message and str(want) != str(got):
        raise Difference(f"message is {str(got)!r}, not {str(want)!r}") from got


@dataclass(frozen=True)
class Comparison:
    """Compares values within tolerances: `ulp` relative to each value, `slack` in units of the dtype's eps."""

    ulp: float
    slack: float
    order: bool
    attributes: bool = True  # also those of instances of ordinary classes

    def value(self, want: Any, got: Any, where: str) -> None:
        """Compare any two values, descending into tuples, lists and dicts."""
        if type(want) is not type(got):
            raise Difference(f"{where} is a {_type(got)}, not a {_type(want)}")
        match want:
            case np.ndarray():
                self.array(want, got, where)
            case tuple() | list():
                if len(want) != len(got):
                    raise Difference(f"{where} has {len(got)} items, not {len(want)}")
                for i, (one, other) in enumerate(zip(want, got, strict=True)):
                    self.value(one, other, f"{where}[{i}]")
            case dict():
                self.value(list(want.items()), list(got.items()), f"items of {where}")
            case _ if is_dataclass(want) or (self.attributes and _is_of_programs(type(want))):
                self.value(_attributes(want), _attributes(got), f"attributes of {where}")
            case np.generic() | float() | complex():
                self.numbers(np.asarray(want), np.asarray(got), where)
            case str() if self.ulp and want != got:
                self.text(want, got, where)
            case bool() | int() | str() | set() | None:
                if want != got:
                    raise Difference(f"{where} is {got!r}, not {want!r}")

    def text(self, want: str, got: str, where: str) -> None:
        """Compare texts: floating-point numbers in them have the tolerances of numbers, all else is equal."""
        if _FLOAT.sub("0.0", want) != _FLOAT.sub("0.0", got):
            raise Difference(f"{where} is {got!r}, not {want!r}")
        for one, other in zip(_FLOAT.findall(want), _FLOAT.findall(got), strict=True):
            self.numbers(np.asarray(float(one)), np.asarray(float(other)), f"a number in {where}")

    def array(self, want: np.ndarray, got: np.ndarray, where: str) -> None:
        if want.dtype != got.dtype:
            raise Difference(f"{where} has dtype {got.dtype}, not {want.dtype}")
        if want.shape != got.shape:
            raise Difference(f"{where} has shape {got.shape}, not {want.shape}")
        if want.flags.writeable != got.flags.writeable:
            raise Difference(f"{where} is {'' if got.flags.writeable else 'not '}writeable")
        self.numbers(want, got, where)
        if self.order and want.size and _axis_order(want) != _axis_order(got):
            raise Difference(f"{where} has strides {got.strides}, not ordered as {want.strides}")
        for flag in ("C_CONTIGUOUS", "F_CONTIGUOUS"):
            if self.order and want.flags[flag] and not got.flags[flag]:
                raise Difference(f"{where} is not {flag}: its strides are {got.strides}, not {want.strides}")

    def numbers(self, want: np.ndarray, got: np.ndarray, where: str) -> None:
        if want.dtype.kind == "c":
            # A complex number is as accurate as its size: the tolerance is taken from the modulus.
            with np.errstate(all="ignore"):
                size = np.maximum(np.abs(want.real), np.abs(want.imag))
            self.reals(want.real, got.real, size, f"the real part of {where}")
            self.reals(want.imag, got.imag, size, f"the imaginary part of {where}")
        elif want.dtype.kind == "f":
            self.reals(want, got, np.abs(want), where)
        elif want.dtype.kind in "mM":  # whose NaT differs from itself
            self.report(np.asarray(want.view("i8") != got.view("i8")), want, got, where)
        elif want.dtype.kind == "O":
            self.value(want.tolist(), got.tolist(), where)
        else:
            self.report(np.asarray(want != got), want, got, where)

    def reals(self, want: np.ndarray, got: np.ndarray, size: np.ndarray, where: str) -> None:
        with np.errstate(all="ignore"):
            nan = np.isnan(want)
            wrong = nan != np.isnan(got)
            allowed = self.ulp * np.spacing(size) + self.slack * float(np.finfo(want.dtype).eps)
            near = np.abs(want.astype("f8") - got.astype("f8")) <= np.where(np.isfinite(allowed), allowed, 0)
            wrong |= ~nan & ~((want == got) | near)
            if self.slack == 0:
                wrong |= ~nan & (want == 0) & (got == 0) & (np.signbit(want) != np.signbit(got))
        self.report(wrong, want, got, where)

    def report(self, wrong: np.ndarray, want: np.ndarray, got: np.ndarray, where: str) -> None:
        if not wrong.any():
            return
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"{where}[{', '.join(map(str, at))}]" if at else where
        raise Difference(
            f"{place} is {got[at]!r}, not {want[at]!r} ({int(wrong.sum())} of {wrong.size} differ)\n"
            f"got  {np.array_repr(got)[:400]}\nwant {np.array_repr(want)[:400]}"
        )


def _is_of_programs(cls: type) -> bool:
    return cls.__module__.startswith("tests.programs.") and not issubclass(cls, type | BaseException)


def _attributes(value: Any) -> dict[str, Any]:
    """What an instance holds, itself and in slots."""
    slots = [name for cls in type(value).__mro__ for name in vars(cls).get("__slots__", ())]
    return {**getattr(value, "__dict__", {}), **{name: getattr(value, name) for name in slots if hasattr(value, name)}}


def _type(value: Any) -> str:
    return f"{type(value).__name__} ({value!r:.80})"


def _axis_order(array: np.ndarray) -> tuple[int, ...]:
    """Axes from the slowest to the fastest; axes of extent 1 and of stride 0 have no place in it."""
    axes = [i for i, n in enumerate(array.shape) if n > 1 and array.strides[i]]
    return tuple(sorted(axes, key=lambda i: -abs(array.strides[i])))


def leaves_of(value: Any) -> Iterator[np.ndarray]:
    match value:
        case np.ndarray():
            yield value
        case tuple() | list():
            for item in value:
                yield from leaves_of(item)
        case dict():
            yield from leaves_of(tuple(value.values()))
        case _ if is_dataclass(value) and hasattr(value, "__dict__"):
            yield from leaves_of(tuple(vars(value).values()))


def _bases(value: Any) -> Iterator[np.ndarray]:
    """The arrays that own the memory of the arrays in `value`, where they are others."""
    for array in leaves_of(value):
        root, under = array, array.base
        while under is not None:  # `as_strided` puts an object between a view and its array
            root = under if isinstance(under, np.ndarray) else root
            under = getattr(under, "base", None)
        if root is not array:
            yield root


def _scale(expected: Outcome) -> float:
    arrays = [*leaves_of(expected.args), *leaves_of(expected.result)]
    numbers = [a for a in (*expected.args, *_items(expected.result)) if isinstance(a, float | complex | np.inexact)]
    with np.errstate(all="ignore"):
        sizes = [float(np.sum(np.abs(1.0 * a[np.isfinite(a)]), dtype="f8")) for a in arrays if a.dtype.kind in "fciu"]
        sizes += [float(abs(n)) for n in numbers if np.isfinite(n)]
    return sum(sizes) + 1.0


def _items(value: object) -> Iterator[object]:
    """A value, or those in a tuple or list, however deep."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _items(item)
    else:
        yield value


def _same_sharing(expected: Outcome, actual: Outcome, identity: bool) -> None:
    """Results must be the same objects, or views of the same memory, as in plain Python."""
    want_all, got_all = ([*leaves_of(o.args), *leaves_of(o.result)] for o in (expected, actual))
    arguments = len([*leaves_of(expected.args)])
    for i in range(arguments, len(want_all)):
        for j in range(i):
            # Two views of one argument may be one object, and two empty arrays: one is not written without the other.
            views = j >= arguments and (
                want_all[i].size == 0 or any(np.may_share_memory(want_all[i], x) for x in want_all[:arguments])
            )
            want, got = (
                _relation(arrays[i], arrays[j], not views and (identity or j < arguments))
                for arrays in (want_all, got_all)
            )
            if not identity and j >= arguments:  # what no program sees of new arrays may be compact
                want, got = (text.partition("(")[0] for text in (want, got))
            if want != got:
                other = f"argument array {j}" if j < arguments else f"result array {j - arguments}"
                raise Difference(f"result array {i - arguments} is {got} {other}; it should be {want} it")


def _same_containers(expected: Outcome, actual: Outcome) -> None:
    """Lists, dicts and sets that are one object in plain Python are one."""
    want_all, got_all = (o.containers or containers_of(o) for o in (expected, actual))
    for (path, want), (_, got) in zip(want_all, got_all, strict=True):
        if want != got:
            found = f"the object at {got}" if got else "an object of its own"
            raise Difference(f"{path} is {found}, not {want or 'one'}")


def containers_of(seen: Outcome) -> list[tuple[str, str]]:
    return [*_containers((*seen.args, seen.result), "", {})]


def _containers(value: object, path: str, seen: dict[int, tuple[str, object]]) -> Iterator[tuple[str, str]]:
    """Where the containers in a value are, and where each has been met before."""
    if isinstance(value, list | dict | set):
        before = seen.get(id(value))
        yield path, before[0] if before else ""
        if before:
            return
        seen[id(value)] = path, value
    held = list(value.values()) if isinstance(value, dict) else value
    for number, item in enumerate(held if isinstance(held, tuple | list) else ()):
        yield from _containers(item, f"{path}[{number}]", seen)


def _common_elements(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.shares_memory(one, other, max_work=10_000)
    except np.exceptions.TooHardError:
        return np.may_share_memory(one, other)


def _relation(one: np.ndarray, other: np.ndarray, identity: bool) -> str:
    if one is other and identity and one.ndim > 0:
        return "the same object as"
    if not _common_elements(one, other):
        return "separate from"
    offset = one.__array_interface__["data"][0] - other.__array_interface__["data"][0]
    steps = [s for s, n in zip(one.strides, one.shape, strict=True) if n > 1]
    return f"a view ({offset} bytes on, strides {steps}) sharing memory with"
