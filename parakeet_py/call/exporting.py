"""Exporting a function: its signatures are compiled to run without Python, and handed to `export`.

What Python may have to go on with in a call of this process ends an exported one in an error. So code is made for all
extents, and checks that fail leave it. Where it is made for a short last axis (`ArraySpec.inner`), code for any other
follows behind the code of all calls.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from parakeet_py.base import config as settings
from parakeet_py.base.errors import UnsupportedError, underlined
from parakeet_py.base.foreign_code.numpy_loops import own_sorts
from parakeet_py.call.compile import compile_alone, failures_of
from parakeet_py.call.compiled import Compiled
from parakeet_py.call.load import Knowledge, read_source
from parakeet_py.export.errors import ExportError
from parakeet_py.export.interface import Failure, Specialized
from parakeet_py.export.library import Exported, Settings, check_settings, write_library
from parakeet_py.export.targets import check_platform, targets
from parakeet_py.signature.describe import describe_spec
from parakeet_py.signature.specs import with_any_extents
from parakeet_py.typed_ir.passes.checks.equal_extents import GENERAL
from parakeet_py.typed_ir.specialize.restarts import NeedObservation

_OF_PYTHON = ("Deoptimize", GENERAL.exception)


def export(
    function: types.FunctionType,
    calls: Sequence[tuple[Any, ...]],
    folder: str | Path,
    config: settings.Config,
    version: str,
    *,
    name: str | None = None,
    target: str | None = None,
    threads: str = "serial",
    blas: str = "none",
    link_flags: Sequence[str] = (),
    ptx: Callable[[tuple[Any, ...]], str] | None = None,
) -> Exported:
    """Write a library for calls in positional form; see `AcceleratedFunction.export`. `ptx` gives the kernels of
    one."""
    name = function.__name__ if name is None else name
    way = check_settings(name, threads, blas)
    check_platform()
    flags = tuple(link_flags)
    chosen = Settings(name, targets(target), way, blas == "cblas", config.contract, config.fastmath, flags)
    if not calls:
        raise ExportError("nothing is exported without arguments: give those of a call, or of several")
    made: dict[Any, Specialized] = {}
    kernels: dict[str, str] = {}
    fixed = []
    for args in calls:
        one = _specialized(function, args, config)
        if one.signature in made:
            continue
        made[one.signature] = one
        if any(with_any_extents(spec) != spec for spec in one.signature.params):
            fixed.append(args)
        if ptx is not None and (text := _kernels(ptx, args)):
            kernels[f"{name}_{len(made)}.ptx"] = text
    for args in fixed:
        with suppress(ExportError):  # as where a row is taken apart into so many names: that needs its length
            one = _specialized(function, args, config, any_extents=True)
            made.setdefault(one.signature, one)
    return write_library(Path(folder), chosen, function, version, [*made.values()], kernels)


def _kernels(ptx: Callable[[tuple[Any, ...]], str], args: tuple[Any, ...]) -> str:
    try:
        return ptx(args)
    except ValueError as error:  # no such architecture
        raise ExportError(str(error)) from None


def _specialized(
    function: types.FunctionType, args: tuple[Any, ...], config: settings.Config, any_extents: bool = False
) -> Specialized:
    name = function.__qualname__
    knowledge = Knowledge(any_extents=any_extents)
    token = own_sorts.set(True)
    try:
        compiled = compile_alone(function, args, knowledge, dataclasses.replace(config, exact=False))
    except NeedObservation as need:
        text = f"{name} cannot be exported, as it hands something back to Python: {_place_of(need)}"
        raise ExportError(text) from None
    except UnsupportedError as error:
        raise ExportError(f"{name} cannot be exported: {error}") from None
    finally:
        own_sorts.reset(token)
    _refuse_python(name, compiled)
    signature = compiled.signature
    return Specialized(
        compiled.imp,
        signature,
        compiled.specialization.result,
        tuple(
            Failure(one.exception, one.message, one.formats, one.for_python or one.exception in _OF_PYTHON)
            for one in failures_of(compiled)
        ),
        compiled.specialization.stored_params,
        tuple(read_source(function, one.source, args) for one in signature.hidden),
        ", ".join(map(describe_spec, signature.params)),
        compiled.specialization.asks_writeable,
    )


def _place_of(need: NeedObservation) -> str:
    """What is handed back, and where."""
    error = need.error
    if error.pos is None:
        return f"{error.filename}: {need.reason}"
    return f"{error.filename}:{error.pos.line}: {need.reason}" + underlined(error.lines, error.first_line, error.pos)


def _refuse_python(name: str, compiled: Compiled) -> None:
    done = compiled.specialization
    if done.calls_numba:
        raise ExportError(f"{name} cannot be exported, as it calls code that numba has compiled in this process")
    if done.opaque_sites:
        what = "; ".join(done.opaque_calls) or done.opaque_sites[0].reason
        raise ExportError(f"{name} cannot be exported, as it hands something back to Python: {what}")
    if done.assigns:
        raise ExportError(f"{name} cannot be exported, as it changes attributes of objects")
