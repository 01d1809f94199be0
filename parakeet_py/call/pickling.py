"""Accelerated functions in pickles: by name where it leads back to the very object, else by what they are made of.

pickle keeps functions as module and name, and so are accelerated ones that are found again there. The others are kept
as what `accelerate` was given and its options; compiled code is never part of a pickle. What was given may be found by
its own name (`fast = accelerate(slow)`); what is not, as lambdas and nested functions, takes cloudpickle. cloudpickle
also keeps what is found in `__main__` by value, for processes with another `__main__`; joblib, Dask and Ray pickle
with it. A reducer is not given the pickler that asks: the calling frame shows it, as `CloudPickler.dump` is in Python.
To pickle itself, what takes cloudpickle is given as the bytes that cloudpickle makes.

The object is in the pickler's memo before its parts are, so that recursive functions come back as they were.
"""

from __future__ import annotations

import copyreg
import pickle
import sys
from types import FrameType
from typing import Any, Final

from parakeet_py.llvm.entry.callable_type import AcceleratedFunction

_ANEW: Final = ("__wrapped__",)  # attributes that are made again


def reduce(instance: AcceleratedFunction, frame: FrameType) -> str | tuple[Any, ...]:
    """What a pickler keeps of an accelerated function; `frame` is that of its caller."""
    cloud = _cloudpickle_of(frame)
    if _leads_to(instance, instance) and not (cloud is not None and _is_kept_by_value(instance, cloud)):
        return str(getattr(instance, "__qualname__", ""))
    dispatcher = getattr(instance, "_dispatcher", None)
    if dispatcher is None:
        raise pickle.PicklingError(f"cannot pickle {instance!r}, which `accelerate` has not made")
    given = dispatcher.given
    if cloud is None and not _leads_to(given, given):
        return _by_cloudpickle(instance)
    function = instance.__wrapped__
    own = {name: value for name, value in vars(instance).items() if name not in _ANEW}
    changed = {name: value for name, value in own.items() if value is not getattr(function, name, None)}
    # which has an opcode of its own, unlike a function of this module
    kept = given, dispatcher.options, changed
    return copyreg.__newobj__, (type(instance),), kept, None, None, _restore  # type: ignore[attr-defined]


def _leads_to(value: Any, target: object) -> bool:
    """Does the name of `value` lead to `target`?"""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or not isinstance(name, str):
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is target


def _cloudpickle_of(frame: FrameType | None) -> dict[str, Any] | None:
    """The globals of the cloudpickle that is pickling (there are copies of it in other packages), if one is."""
    while frame is not None and frame.f_globals.get("__name__") in ("pickle", "copyreg"):
        frame = frame.f_back
    if frame is None or "cloudpickle" not in str(frame.f_globals.get("__name__")).split("."):
        return None
    return frame.f_globals


def _is_kept_by_value(instance: AcceleratedFunction, cloud: dict[str, Any]) -> bool:
    """Does cloudpickle keep what is in the function's module by value?"""
    module = str(instance.__module__)
    registered = cloud.get("_is_registered_pickle_by_value")
    return module == "__main__" or (registered is not None and bool(registered(sys.modules[module])))


def _by_cloudpickle(instance: AcceleratedFunction) -> tuple[Any, ...]:
    """What pickle itself keeps of a function that it cannot find by name."""
    try:
        import cloudpickle
    except ImportError:
        raise pickle.PicklingError(
            f"cannot pickle {instance!r}: {instance.__module__}.{instance.__qualname__} is not that object; functions "
            "that are not found by their name are pickled by value if the package cloudpickle is installed"
        ) from None
    return pickle.loads, (cloudpickle.dumps(instance),)


def _restore(instance: AcceleratedFunction, state: tuple[Any, dict[str, Any], dict[str, Any]]) -> None:
    """Make of a blank function what it was."""
    from parakeet_py.call.accelerate import equip

    given, options, changed = state
    equip(instance, given, options)
    instance.__dict__.update(changed)
