"""Random generators: objects of `np.random.Generator` whose methods compiled code runs.

The object stays Python's. Beside it go two arrays over its state (`random_states`), which the library's methods read
and store to (`library/random/generators`). For generators that are arguments, or held by arguments and variables, they
are hidden arguments; for those that Python has made during the call, it is asked for them where it gives the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from parakeet_py.library import registry
from parakeet_py.signature.attribute_sources import RANDOM_STATE
from parakeet_py.signature.random_states import given_left, given_words
from parakeet_py.signature.specs import ArraySpec, ObjectSpec, Spec
from parakeet_py.typed_ir.specialize.compile_time_values import known_object
from parakeet_py.typed_ir.specialize.values import ObjectV, TupleV, Value

if TYPE_CHECKING:
    from parakeet_py.typed_ir.specialize.context import Context

_PARTS = ((given_words, "uint64"), (given_left, "uint32"))


def is_generator(spec: Spec | None) -> bool:
    """Is this the spec of a random generator?"""
    return isinstance(spec, ObjectSpec) and spec.type is np.random.Generator


def made_by_python(s: Context, value: Value) -> None:
    """Note the state of a generator that an operation of Python's has given."""
    if not isinstance(value, ObjectV) or s.elements.in_body:
        return
    parts: list[Value] = []
    for function, dtype in _PARTS:
        spec = ArraySpec(dtype, 1, "C", (False,))
        parts.append(s.called_by_python(function, [value], "the state of a generator", spec))
    s.python.random_states[value.var] = TupleV(tuple(parts))


def has_method(s: Context, value: ObjectV, name: str) -> bool:
    """Is this a random generator with a method of this name that is compiled?"""
    return registry.method_for(f"generator.{name}") is not None and state_of(s, value) is not None


def state_of(s: Context, value: ObjectV) -> TupleV | None:
    """The arrays that a generator draws from, if it is known as one."""
    if value.var in s.python.random_states:
        return s.python.random_states[value.var]
    known = known_object(s, value)
    if known is None or known[0] is not np.random.Generator:
        return None
    source = (*known[1], RANDOM_STATE)
    itself = source[0] == "field" and len(source) == 3  # an argument, which stays what it is
    state = s.taken(source) if itself else s.hidden_value(source)
    return state if isinstance(state, TupleV) else None


def call_method(s: Context, value: ObjectV, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """generator.name(*args, **kwargs); None if this is no generator, or the method is Python's."""
    body = registry.method_for(f"generator.{name}")
    state = state_of(s, value) if body is not None else None
    return None if body is None or state is None else s.call_python(body, [state, *args], kwargs, trusted=True)
