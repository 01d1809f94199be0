"""What a library exports: signatures with their leaves named as C and Python see them.

The words of a call are those of compiled code (`signature.leaves`, `result_offsets`). An argument is an array or a
scalar that the caller gives, or one that the library holds (`Argument.baked`): the value that a global variable had
when the function was exported. Tuples and lists are taken apart: their items are arguments by themselves, `pair_0` and
`pair_1`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parakeet_py.base.fast_dataclass import record
from parakeet_py.export.errors import ExportError
from parakeet_py.imp import ir as imp
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.results import Result, ResultLeaf, result_leaves, result_offsets
from parakeet_py.signature.specs import (
    AS_ARRAY,
    ArraySpec,
    FunctionSpec,
    Leaf,
    ObjectSpec,
    ScalarSpec,
    Signature,
    Spec,
    TupleSpec,
    leaves,
    values_at,
    with_any_extents,
)

LARGEST_BAKED = 1 << 20  # bytes of an array that a library holds
_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
asm typeof class new delete template this private public protected operator namespace
unix linux i386 errno stdin stdout stderr NULL memcpy intptr_t int64_t
"""
_C_WORDS = frozenset(re.findall(r"\w+", _WORDS))


@record
class Failure:
    """What a status stands for: an exception's name, a template of its message, the kinds (i, f) of what fills it in;
    if it is `for_python`, compiled code cannot go on with the call."""

    exception: str
    message: str
    formats: str
    for_python: bool


@record(eq=False)
class Specialized:
    """A signature as the compiler has made it, with the values of its hidden arguments."""

    function: imp.Function
    signature: Signature
    result: Result
    failures: tuple[Failure, ...]
    stored: frozenset[int]  # leaves that are stored to
    hidden: tuple[Any, ...]
    text: str  # the types of its arguments, for messages
    asks_writeable: bool  # does the function look whether arrays can be written to?


@record(eq=False)
class Argument:
    """A leaf of the arguments; `number` counts the arrays from 1 on."""

    name: str
    spec: ArraySpec | ScalarSpec
    slot: int
    stored: bool
    number: int
    baked: Any = None


@record
class Out:
    """A leaf of the result."""

    name: str
    leaf: ResultLeaf
    slot: int


@record(eq=False)
class ExportedSignature:
    """A signature of a library, from 1 on."""

    number: int
    made: Specialized
    arguments: tuple[Argument, ...]
    outs: tuple[Out, ...]

    @property
    def given(self) -> tuple[Argument, ...]:
        """The arguments that a caller gives."""
        return tuple(one for one in self.arguments if one.baked is None)

    @property
    def is_for_short_axes(self) -> bool:
        """Is its code for last axes of so many elements only?"""
        return any(isinstance(one.spec, ArraySpec) and one.spec.inner for one in self.given)


def for_other_extents(one: ExportedSignature, signatures: Sequence[ExportedSignature]) -> ExportedSignature | None:
    """The signature that calls take whose last axes are not those that this one is for, if there is one."""
    if not one.is_for_short_axes:
        return None
    params = tuple(map(with_any_extents, one.made.signature.params))
    for other in signatures:
        same = other.outs == one.outs and [a.slot for a in other.given] == [a.slot for a in one.given]
        if (
            same
            and other.made.signature.params == params
            and other.made.signature.disjoint == one.made.signature.disjoint
        ):
            return other
    return None


def exported(number: int, made: Specialized, parameters: Sequence[str]) -> ExportedSignature:
    """The signature as a library has it.

    Raises
    ------
    ExportError
        It needs Python: objects, functions, random generators; or a large array that is no argument.
    """
    for name, spec in zip(parameters, made.signature.params, strict=True):
        _refuse_objects(name, spec)
    for hidden in made.signature.hidden:
        if "parakeet_py.signature.random_streams" in hidden.source:
            raise ExportError("it draws random numbers from a generator that is Python's or NumPy's")
        _refuse_objects(".".join(str(part) for part in hidden.source[1:]), hidden.spec)
    values = [None] * len(parameters) + list(made.hidden)
    found: list[Argument] = []
    arrays = 0
    taken: set[str] = set()
    for position, leaf in enumerate(leaves(made.signature)):
        assert not isinstance(leaf.spec, ObjectSpec)
        is_array = isinstance(leaf.spec, ArraySpec)
        arrays += is_array
        is_hidden = leaf.path[0] >= len(parameters)
        baked = values_at([leaf.path], values)[0] if is_hidden else None
        name = _name_of(leaf, parameters, made.signature)
        if baked is not None:
            _check_baked(name, baked, position in made.stored)
        stored = position in made.stored
        found.append(Argument(_distinct(name, taken), leaf.spec, leaf.slot, stored, arrays if is_array else 0, baked))
    return ExportedSignature(number, made, tuple(found), tuple(_outs(made.result, taken)))


def _refuse_objects(name: str, spec: Spec) -> None:
    match spec:
        case ObjectSpec():
            what = describe_spec(spec)
            if spec.type is np.ndarray:
                what = f"an array of {spec.unit}" if spec.unit else "an array of records, objects or foreign bytes"
            raise ExportError(f"{name} is {what}, a Python object that C callers cannot give")
        case FunctionSpec():
            raise ExportError(f"{name} is a function, which C callers cannot give")
        case TupleSpec(items):
            for item in items:
                _refuse_objects(name, item)


def _check_baked(name: str, value: Any, stored: bool) -> None:
    if stored:
        raise ExportError(f"it stores into {name}, which is no argument: a library has no variables of Python's")
    if isinstance(value, np.ndarray) and value.nbytes > LARGEST_BAKED:
        raise ExportError(
            f"{name} is an array of {value.nbytes:,} bytes that is no argument; libraries hold {LARGEST_BAKED:,}: "
            "let it be a parameter"
        )


def _name_of(leaf: Leaf, parameters: Sequence[str], signature: Signature) -> str:
    if leaf.path[0] < len(parameters):
        parts: list[object] = [parameters[leaf.path[0]]]
    else:
        parts = [signature.hidden[leaf.path[0] - len(parameters)].source[-1]]
    return "_".join(map(str, [*parts, *(index for index in leaf.path[1:] if index != AS_ARRAY)]))


def identifier(name: str) -> str:
    """A name as C takes it."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{made}_" if made in _C_WORDS else f"_{made}" if made[:1].isdigit() or not made else made


def _distinct(name: str, taken: set[str]) -> str:
    made = identifier(name)
    while made in taken:
        made += "_"
    taken.add(made)
    return made


def _outs(result: Result, taken: set[str]) -> list[Out]:
    found = result_leaves(result)
    offsets = result_offsets(result)
    for leaf in found:
        if leaf.kind == "object":
            raise ExportError("its result holds Python objects")
    stem = "result" if len(found) == 1 else "result_{}"
    return [Out(_distinct(stem.format(leaf.index), taken), leaf, offsets[leaf.index]) for leaf in found]


FIRST_EXCEPTION = 16
EXCEPTIONS: Mapping[str, int] = {
    name: FIRST_EXCEPTION + place
    for place, name in enumerate(
        (
            *("ValueError", "IndexError", "KeyError", "TypeError", "ZeroDivisionError", "OverflowError"),
            *("FloatingPointError", "ArithmeticError", "AssertionError", "RuntimeError", "RecursionError"),
            *(
                "NotImplementedError",
                "StopIteration",
                "AttributeError",
                "NameError",
                "UnboundLocalError",
                "LookupError",
            ),
            *("MemoryError", "Exception"),
        )
    )
}
FIRST_OTHER = 64


def codes_of(signatures: Sequence[ExportedSignature]) -> dict[str, int]:
    """The codes of all exceptions that a library may report, by the names that compiled code has for them."""
    found = dict(EXCEPTIONS)
    for signature in signatures:
        for failure in signature.made.failures[1:]:
            if not failure.for_python and failure.exception not in found:
                found[failure.exception] = FIRST_OTHER + len(found) - len(EXCEPTIONS)
    return found
