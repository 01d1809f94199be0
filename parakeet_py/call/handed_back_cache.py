"""Specializations that hand operations back to Python, on disk.

Such code depends on what the operations gave when they were observed, which a fresh process has not seen. So there are
two entries besides the knowledge of the function. The first, under the function's code and the signature, holds what
the specializer asked of the observations and was told, misses too. A process whose own observations do not contradict
it takes it over. The second, under all that *and* those observations, holds the object code with its sites: what to
call, how operands are put together, which type each result must have. Every result is compared with that type at run
time as ever; if it does not fit, the call goes on in the evaluator, and the next compilation replaces both entries.

Functions, modules and classes in the sites are written by name. So that the name means now what it meant then, the
second entry also holds what Python functions and classes are made of, and is no entry if that has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from parakeet_py.base.frames.tracebacks import TraceEntry
from parakeet_py.base.types import Array, Object, Scalar
from parakeet_py.call import specialization_cache
from parakeet_py.call.handed_back import HandedBack
from parakeet_py.call.load import Knowledge
from parakeet_py.call.specialization_cache import Native
from parakeet_py.frontend.evaluate.observed_values import CHANGED, Key
from parakeet_py.frontend.ssa import InHandler, Pos
from parakeet_py.llvm.engine.disk_cache import digest, load_entry, put
from parakeet_py.signature.serialization import (
    Json,
    NotPortable,
    from_json,
    objects_in,
    register,
    to_json,
    value_to_json,
)
from parakeet_py.signature.serialization import value_from_json as decoded
from parakeet_py.signature.specs import Signature
from parakeet_py.typed_ir.specialize.observed import agree
from parakeet_py.typed_ir.specialize.opaque.sites import FrameState, OpaqueSite

register(Pos, InHandler, TraceEntry, OpaqueSite, FrameState, Array, Scalar, Object, HandedBack)
_MALFORMED = (NotPortable, KeyError, TypeError, ValueError, AttributeError)


def load(
    function: FunctionType, signature: Signature, flags: Sequence[object], knowledge: Knowledge
) -> tuple[Native, HandedBack] | None:
    """The specialization of a signature, if an earlier process has left it and this one has seen nothing else.

    `knowledge` takes over what was observed then.
    """
    try:
        entry = load_entry(specialization_cache.object_key(function, signature, flags, "observed"))
        if entry is None:
            return None
        written = entry.metadata["asked"]
        asked = _observations_from(written)
        observed = knowledge.observed.setdefault(signature.params, {})
        if not agree(asked, observed):
            return None
        observed.update((key, told) for key, told in asked.items() if told is not None)
        found = load_entry(specialization_cache.object_key(function, signature, flags, _told(written)))
        if found is None:
            return None
        handed_back = from_json(found.metadata["handed_back"])
        if not isinstance(handed_back, HandedBack) or found.metadata["made_of"] != _made_of(found.metadata):
            return None
        return specialization_cache.native_of(found, signature), handed_back
    except _MALFORMED:
        return None


def store(
    function: FunctionType,
    signature: Signature,
    flags: Sequence[object],
    native: Native,
    handed_back: HandedBack,
    asked: dict[Key, Any],
) -> None:
    """Keep a specialization for other processes, with the observations that it depends on."""
    try:
        written = [[value_to_json(key), _told_to_json(told)] for key, told in asked.items()]
        metadata = specialization_cache.metadata_of(native) | {"handed_back": to_json(handed_back)}
        metadata["made_of"] = _made_of(metadata)
        key = specialization_cache.object_key(function, signature, flags, _told(written))
        observed_key = specialization_cache.object_key(function, signature, flags, "observed")
    except NotPortable:
        return
    title = specialization_cache.title_of(function, signature)
    put(key, native.object_bytes, metadata, title)
    put(observed_key, b"", {"asked": written}, f"{title}: what Python gave")


def _told_to_json(told: Any) -> Json:
    return "changed" if told is CHANGED else None if told is None else to_json(told)


def _observations_from(written: Json) -> dict[Key, Any]:
    return {decoded(key): CHANGED if told == "changed" else decoded(told) for key, told in written}


def _told(written: Json) -> str:
    """What stands for the observations in a key."""
    return digest("told", repr(written))


def _made_of(metadata: Json) -> str:
    """What stands for the Python functions and classes that an entry names."""
    return digest(
        "made of", tuple(specialization_cache.value_parts(one, ()) for one in objects_in(metadata["handed_back"]))
    )
