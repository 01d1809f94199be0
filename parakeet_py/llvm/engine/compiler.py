"""LLVM itself: from IR text to object code and, to be read, assembly text.

LLVM is llvmlite's, called by way of `library`; llvmlite's own binding is only imported for other machines and where
the loader does not do (`binding`). A process that finds all its code in the disk cache pays for neither.  Text goes in;
it is parsed and verified first, because LLVM answers broken IR deeper down by ending the process.  What fails here
raises `CodegenError`.

Code is position independent in the small code model: calls leave through stubs, foreign data through a table of
addresses, both made by the loader next to the code, so that an object runs wherever it is put.  Vector width is
asked for by the text itself ("prefer-vector-width"="512" on the functions, `host().vector_bits`).

Loop strength reduction is switched off for the whole process, as LLVM has no smaller switch: it takes more than half
of code generation and gains nothing measurable on loops over arrays. So are versions of loops for stride 1.

What a user's function becomes is compiled in parts, side by side (`compile_divided`, `divide`), each in a context and
on a target machine that no other thread uses meanwhile: LLVM is most of a first call.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from parakeet_py.base.errors import CodegenError
from parakeet_py.base.machine import JIT_LINK
from parakeet_py.llvm.engine import c_symbols, object_loader, perf_symbols, procedure_objects, split_module
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.engine.llvm_library import Library, Module, TargetMachine, library, optimize, text_of
from parakeet_py.llvm.engine.object_loader import LoadedCode, LoadError, UnsupportedObject

__all__ = ["CodegenError", "HostInfo", "compile_divided", "compile_ir", "emit_assembly", "host", "load", "optimized_ir"]

MOST_PARTS = 8

_lock = threading.Lock()
_idle: dict[int, list[TargetMachine]] = {}  # target machines that are not in use, by level


@lru_cache(maxsize=1)
def _ready() -> Library:
    """LLVM's library, with the native target ready."""
    with _lock:
        found = library()
        found.InitializeNativeTarget()
        found.InitializeNativeAsmPrinter()
        found.InitializeNativeAsmParser()
        found.SetCommandLine(b"parakeet_py", b"-disable-lsr")
        # strides are counted in bytes: a loop with a version for stride 1 never runs it, and is scalar for all others
        found.SetCommandLine(b"parakeet_py", b"-enable-mem-access-versioning=false")
        found.SetCommandLine(b"parakeet_py", b"-unroll-threshold-default=300")  # as at level 3, at level 2 too
    return found


@lru_cache(maxsize=1)
def binding() -> Any:
    """llvmlite's binding, with the native target ready: for all that is not code for this machine."""
    import llvmlite.binding as llvm

    _ready()
    return llvm


@contextmanager
def _own_target_machine(level: int) -> Iterator[TargetMachine]:
    """A target machine that no other thread uses meanwhile."""
    with _lock:
        idle = _idle.setdefault(level, [])
        machine = idle.pop() if idle else None
    if machine is None:
        machine = _target_machine(level)
    try:
        yield machine
    finally:
        idle.append(machine)


def _target_machine(level: int) -> TargetMachine:
    return TargetMachine(*_cpu_and_features(), level)


def _cpu_and_features() -> tuple[str, str]:
    """What code is made for."""
    _ready()
    cpu, features = text_of("GetHostCPUName"), _flat(_features())
    if cpu.startswith("znver"):  # one load after another is faster there
        features += ",+prefer-no-gather"
    return cpu, features


def _features() -> dict[str, bool]:
    """The features of this machine's CPU, and whether it has them."""
    listed = text_of("GetHostCPUFeatures").split(",")
    return {feature[1:]: feature[0] == "+" for feature in listed if feature}


def _flat(features: dict[str, bool]) -> str:
    return ",".join(f"{'+' if has else '-'}{name}" for name, has in sorted(features.items()))


@lru_cache(maxsize=1)
def host() -> HostInfo:
    """This machine, as the code generator sees it (loads LLVM)."""
    _ready()
    features = _features()
    if all(features.get(name) for name in ("avx512f", "avx512vl", "avx512dq", "avx512bw")):
        bits = 512
    else:
        bits = 256 if features.get("avx2") else 128
    with _own_target_machine(3) as machine:
        data_layout = machine.data_layout
    return HostInfo(
        cpu=text_of("GetHostCPUName"),
        features=_flat(features),
        vector_bits=bits,
        triple=text_of("GetProcessTriple"),
        data_layout=data_layout,
    )


def run_pipeline(module: Any, machine: Any, options: Any) -> None:
    """Run LLVM's default pipeline over a module of llvmlite's.

    llvmlite (0.50) never disposes of the pipeline, some 200 KB after a run: the class that says how comes behind one
    that says nothing in the order of `ModulePassManager`'s bases. It is disposed of here, and detached, so that a
    llvmlite that does so itself would not do it again.
    """
    llvm = binding()
    builder = llvm.create_pass_builder(machine, options)
    pipeline = builder.getModulePassManager()
    try:
        pipeline.run(module, builder)
    finally:
        llvm.newpassmanagers.NewPassManager._dispose(pipeline)
        pipeline.detach()


@contextmanager
def _optimized(
    text: str, level: int, vectorize: bool, machine: TargetMachine, scalar: bool = False
) -> Iterator[Module]:
    """The verified, optimised module of `text`."""
    with Module(text, machine) as module:
        optimize(module, machine, level, vectorize, scalar)
        yield module


def compile_ir(
    text: str, *, level: int = 3, vectorize: bool = True, codegen_level: int | None = None, scalar: bool = False
) -> bytes:
    """Compile a module of LLVM IR text to a relocatable object for this machine.

    Parameters
    ----------
    text : the module; triple and data layout are set here
    level : optimisation, 0 to 3
    vectorize : allow the loop and the straight-line vectoriser
    codegen_level : effort of instruction selection and register allocation, if another than `level`
    scalar : its loops are not worth LLVM's time, whatever the level

    Raises
    ------
    CodegenError
        The text does not parse or does not verify.
    """
    with (
        _own_target_machine(level if codegen_level is None else codegen_level) as machine,
        _optimized(text, level, vectorize, machine, scalar) as module,
    ):
        return machine.emitted(module)


def compile_divided(
    text: str,
    most: int,
    library: Sequence[str] = (),
    *,
    level: int = 3,
    vectorize: bool = True,
    quick: bool = False,
    starts_only: bool = False,
    copies_loops: bool = True,
) -> bytes:
    """Compile a module in up to `most` parts, side by side; gives objects that `load` takes as one.

    Parameters
    ----------
    text, level, vectorize : as for `compile_ir`
    library : modules that this one refers to, each behind those that it refers to itself; they are compiled if they
        have not been compiled before
    quick : do not optimise it, but for these modules, which all functions share
    starts_only : outside of its regions, the function has no loop worth optimising
    copies_loops : whether it has loops that gain by copies for each branch, which LLVM makes at level 3

    Raises
    ------
    CodegenError
        As `compile_ir` does.
    """
    most = min(most, MOST_PARTS)
    divides = not quick and object_loader.supported()
    apart = split_module.host_apart(text, most) if divides and starts_only else []
    parts = apart or (split_module.divide(text, most) if divides and most > 1 else [text])
    found = {one: procedure_objects.find(one) for one in library}
    missing = [one for one, code in found.items() if code is None]
    own = _Effort(level if copies_loops else min(level, 2), vectorize)
    efforts = [own] * len(parts) + [_Effort(level, vectorize)] * len(missing)
    if quick:
        efforts[: len(parts)] = [_Effort(0, vectorize=False)] * len(parts)
    elif apart:
        large = split_module.is_large(parts[0])
        efforts[0] = _Effort(level, vectorize, scalar=True, codegen_level=0 if large else None)
    made = _compile_all([*parts, *missing], efforts, most)
    for one, code in zip(missing, made[len(parts) :], strict=True):
        procedure_objects.keep(one, code)
        found[one] = code
    before = [code for code in found.values() if code is not None]
    objects = [*before, *made[1 : len(parts)], made[0]]  # each refers to those before it
    return object_loader.joined(objects) if len(objects) > 1 else objects[0]


class _Effort(NamedTuple):
    """How a module is compiled: see `compile_ir`."""

    level: int
    vectorize: bool
    scalar: bool = False
    codegen_level: int | None = None


def _compile_all(parts: Sequence[str], efforts: Sequence[_Effort], most: int) -> list[bytes]:
    """The objects of modules, compiled side by side."""

    def compiled(number: int) -> bytes:
        return compile_ir(parts[number], **efforts[number]._asdict())

    if most < 2 or len(parts) < 2:
        return list(map(compiled, range(len(parts))))
    objects: list[bytes | BaseException] = [b""] * len(parts)
    waiting = iter(range(len(parts)))

    def compile_parts() -> None:
        for number in waiting:
            try:
                objects[number] = compiled(number)
            except BaseException as error:
                objects[number] = error

    others = [threading.Thread(target=compile_parts) for _ in range(min(most, len(parts)) - 1)]
    started = [other for other in others if started_thread(other)]
    try:
        compile_parts()
    finally:
        for other in started:
            other.join()
    made: list[bytes] = []
    for one in objects:
        if isinstance(one, BaseException):
            raise one
        made.append(one)
    return made


def started_thread(thread: threading.Thread) -> bool:
    """Start a thread; False where the system allows no more of them."""
    try:
        thread.start()
    except RuntimeError:
        return False
    return True


def emit_assembly(text: str, *, vectorize: bool = True) -> str:
    """The assembly text of what `compile_ir` would give, to be read."""
    with _own_target_machine(3) as machine, _optimized(text, 3, vectorize, machine) as module:
        return machine.emitted(module, assembly=True).decode()


def optimized_ir(text: str, *, vectorize: bool = True) -> str:
    """The IR after LLVM's passes, to be read."""
    with _own_target_machine(3) as machine, _optimized(text, 3, vectorize, machine) as module:
        return str(module)


def load(
    object_bytes: bytes,
    symbols: Mapping[str, int],
    exports: Iterable[str],
    resolve: Callable[[str], int | None] = c_symbols.resolve,
    title: perf_symbols.Title | None = None,
) -> LoadedCode:
    """Load an object into this process (imports llvmlite only where `object_loader` cannot do it).

    Parameters
    ----------
    object_bytes : what `compile_ir` gave, fresh or from the disk cache
    symbols : addresses of what the object refers to
    exports : names of functions or data to give the addresses of
    resolve : gives the addresses of names that are not in `symbols`; by default those of libmvec, libm and libc
    title : what profilers call its functions by

    Raises
    ------
    LoadError
        A symbol is missing, or the object is malformed.
    """
    names = tuple(exports)

    def lookup(name: str) -> int | None:
        address = symbols.get(name)
        return resolve(name) if address is None else address

    if object_loader.supported():
        objects = object_loader.separate(object_bytes)
        try:
            code = object_loader.load_elves(objects, lookup, names)
            perf_symbols.announce(code, title, objects)
            return code
        except UnsupportedObject:
            pass
    return _load_with_llvm(object_bytes, symbols, lookup, names)


_library_names = itertools.count()


def _load_with_llvm(
    object_bytes: bytes, symbols: Mapping[str, int], lookup: Callable[[str], int | None], exports: tuple[str, ...]
) -> LoadedCode:
    """Load through LLVM's ORC, for machines and object formats that `object_loader` does not know."""
    builder = binding().JITLibraryBuilder()
    objects = object_loader.separate(object_bytes)
    for one in objects:
        builder.add_object_img(one)
    builder.add_current_process()
    is_elf = objects[0].startswith(b"\x7fELF")
    for name in object_loader.undefined_symbols(*objects) if is_elf else symbols:
        address = lookup(name)
        if address is None:
            raise LoadError(f"undefined symbol {name!r}")
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        library = builder.link(_orc(), f"parakeet_py.{next(_library_names)}")
        addresses = {name: int(library[name]) for name in exports}
    except RuntimeError as error:
        raise LoadError(str(error)) from error
    return LoadedCode(addresses, len(object_bytes), library.close)


@lru_cache(maxsize=1)
def _orc() -> Any:
    llvm = binding()
    cpu, features = _cpu_and_features()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small"
    )
    return llvm.create_lljit_compiler(target, use_jit_link=JIT_LINK, suppress_errors=True)
