"""What messages call values: in the words of Python and NumPy, not in those of this compiler."""

from __future__ import annotations

import numpy as np

from parakeet_py.signature.describe import counted_axes
from parakeet_py.typed_ir.specialize.forms import form_of
from parakeet_py.typed_ir.specialize.values import (
    ArrayV,
    IteratorV,
    MapV,
    ObjectV,
    ScalarV,
    Static,
    TaggedScalar,
    TimeV,
    TupleV,
    Value,
)


def with_article(noun: str) -> str:
    """The noun behind "a" or "an", by its first letter: names of dtypes that begin with u are said as "you"."""
    return f"an {noun}" if noun[0].lower() in "aeio" else f"a {noun}"


def described(value: Value, cls: type | None = None) -> str:
    """A value, for messages; `cls` is the class of an object, if it is known."""
    match value:
        case TaggedScalar(kinds):
            return " or ".join(with_article(str(kind).removeprefix("py")) for kind in kinds)
        case ObjectV() if cls is not None:
            return with_article(cls.__name__)
        case ScalarV():
            return with_article(str(value.type).removeprefix("py"))  # as Python calls it
        case ArrayV():
            return f"an array of {counted_axes(value.rank)} of {value.dtype}"
        case TimeV(numbers, unit):
            name = np.dtype(unit).name
            return f"an array of {name}" if isinstance(numbers, ArrayV) else with_article(name)
        case TupleV(kind=kind) | IteratorV(kind=kind):
            return with_article(kind)
        case MapV(kind=kind):
            return with_article("set" if kind == "reordered" else kind)
        case Static(obj):
            return repr(obj)
        case _:
            return with_article(form_of(value).noun)
