"""Writing a library: objects, C source, header, Python module, and the shared library if there is a C compiler."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType

from parakeet_py.base import machine
from parakeet_py.base.fast_dataclass import record
from parakeet_py.export import link
from parakeet_py.export.c_header import header
from parakeet_py.export.c_source import source
from parakeet_py.export.errors import ExportError, told_of
from parakeet_py.export.interface import ExportedSignature, Specialized, codes_of, exported
from parakeet_py.export.objects import Names, ObjectCode, object_code
from parakeet_py.export.python_module import python_module
from parakeet_py.export.runtime import WAYS, Threads
from parakeet_py.export.targets import Target
from parakeet_py.signature.positional import parameter_names

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


@record
class Settings:
    """How a library is made.

    Attributes
    ----------
    name : of the library, its functions and its files
    targets : what it has code for, lowest first
    threads : how parallel regions run
    with_cblas : products call a CBLAS, which `link_flags` name
    contract, fastmath : as `accelerate` takes them
    link_flags : further arguments of the C compiler
    """

    name: str
    targets: tuple[Target, ...]
    threads: Threads = "serial"
    with_cblas: bool = False
    contract: bool = False
    fastmath: bool = False
    link_flags: tuple[str, ...] = ()


@record
class Exported:
    """What has been written.

    Attributes
    ----------
    library : the shared library; None if there is no C compiler to link it
    files : all that has been written
    command : links the library, run in the folder of the files
    """

    library: Path | None
    files: tuple[Path, ...]
    command: str


def check_settings(name: str, threads: str, blas: str) -> Threads:
    """Refuse settings that make no sense; gives how loops run.

    Raises
    ------
    ExportError
        The text says which there are.
    """
    if not _NAME.fullmatch(name):
        raise ExportError(
            f"{name!r} cannot be the name of a C library: letters, digits and _, a letter first: give another name"
        )
    if blas not in ("none", "cblas"):
        raise ExportError(f"no blas {blas!r}; there are none (products are loops) and cblas")
    for way in WAYS:
        if way == threads:
            return way
    raise ExportError(f"no threads {threads!r}; there are {', '.join(WAYS)}")


def write_library(
    folder: Path,
    settings: Settings,
    function: FunctionType,
    version: str,
    made: Sequence[Specialized],
    beside: Mapping[str, str],
) -> Exported:
    """Write a library of all signatures into a folder, which is made, and texts beside it.

    Raises
    ------
    ExportError
        A signature cannot be exported, the folder cannot be written, or the C compiler fails.
    """
    name, names = settings.name, Names(settings.name)
    signatures = tuple(_exported(number, one, function) for number, one in enumerate(made, 1))
    codes = codes_of(signatures)
    module = python_module(name, function, version, signatures)
    title = f"{function.__qualname__} of {Path(function.__code__.co_filename).name}"
    has_threads = settings.threads != "serial"
    texts = {
        f"{name}.h": header(name, title, version, signatures, codes, has_threads=has_threads),
        f"{name}.c": source(names, signatures, settings.targets, settings.threads, codes),
        f"{name}.py": module,
        **beside,
    }
    objects = {
        f"{name}-{target.name}.o": _object(names, function, made, target, settings) for target in settings.targets
    }
    needs = sorted({symbol for one in objects.values() for symbol in one.needs})
    files = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            files.append(folder / file)
            files[-1].write_text(text, encoding="utf-8")
        for file, one in objects.items():
            files.append(folder / file)
            files[-1].write_bytes(one.code)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror}") from None
    processor = settings.targets[0].processor
    compiler = link.compiler(processor)
    usual = "cc" if processor == machine.PROCESSOR else f"{processor}-linux-gnu-gcc"
    command = link.command(name, [*objects], needs, settings.threads, settings.link_flags, compiler or usual)
    if compiler is None:
        return Exported(None, tuple(files), shlex.join(command))
    link.run(command, folder)
    library = folder / f"lib{name}.so"
    return Exported(library, (*files, library), shlex.join(command))


def _exported(number: int, one: Specialized, function: FunctionType) -> ExportedSignature:
    with told_of(_title(function, one)):
        return exported(number, one, parameter_names(function.__code__))


def _title(function: FunctionType, one: Specialized) -> str:
    return f"{function.__qualname__}({one.text})"


def _object(
    names: Names, function: FunctionType, made: Sequence[Specialized], target: Target, settings: Settings
) -> ObjectCode:
    return object_code(
        names,
        [(_title(function, one), one.function) for one in made],
        target,
        settings.threads,
        with_cblas=settings.with_cblas,
        contract=settings.contract,
        fastmath=settings.fastmath,
    )
