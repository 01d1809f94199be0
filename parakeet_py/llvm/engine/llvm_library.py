"""LLVM as llvmlite's shared library has it, called without llvmlite.

Importing `llvmlite.binding` takes half of what LLVM takes in the first call of a short function: it defines all of its
interface, and finds its library by way of fifty modules. Here are the three dozen functions that the CPU's code needs,
and objects around them: a `Module` in a context of its own, a `TargetMachine`. The functions do not wait for llvmlite's
lock: LLVM asks no more than that modules which are worked on at the same time have contexts and target machines of
their own.

The library is that of the installed llvmlite, and is loaded once. Versions of llvmlite that are not
`KNOWN` are imported, to see that the functions still take the same arguments.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_void_p
from functools import lru_cache
from typing import Any

from parakeet_py.base.errors import CodegenError
from parakeet_py.llvm.engine import late_functions

__all__ = ["Module", "TargetMachine", "library", "optimize", "text_of"]

KNOWN = ("0.50.",)
_TEXT = ctypes.POINTER(c_char_p)  # where a text is left
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "InitializeNativeTarget": (c_int, ()),
    "InitializeNativeAsmPrinter": (c_int, ()),
    "InitializeNativeAsmParser": (c_int, ()),
    "SetCommandLine": (c_int, (c_char_p, c_char_p)),
    "GetHostCPUName": (c_int, (_TEXT,)),
    "GetHostCPUFeatures": (c_int, (_TEXT,)),
    "GetProcessTriple": (c_int, (_TEXT,)),
    "GetDefaultTargetTriple": (c_int, (_TEXT,)),
    "GetTargetFromTriple": (c_void_p, (c_char_p, _TEXT)),
    "CreateTargetMachine": (
        c_void_p,
        (c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int, c_char_p),
    ),
    "CreateTargetMachineData": (c_void_p, (c_void_p,)),
    "CopyStringRepOfTargetData": (c_int, (c_void_p, _TEXT)),
    "DisposeTargetData": (c_int, (c_void_p,)),
    "ContextCreate": (c_void_p, ()),
    "ContextDispose": (c_int, (c_void_p,)),
    "ParseAssembly": (c_void_p, (c_void_p, c_char_p, _TEXT)),
    "VerifyModule": (c_bool, (c_void_p, _TEXT)),
    "SetTarget": (c_int, (c_void_p, c_char_p)),
    "SetDataLayout": (c_int, (c_void_p, c_char_p)),
    "LinkModules": (c_int, (c_void_p, c_void_p, _TEXT)),
    "DisposeModule": (c_int, (c_void_p,)),
    "PrintModuleToString": (c_int, (c_void_p, _TEXT)),
    "CreatePipelineTuningOptions": (c_void_p, ()),
    "PTOSetLoopInterleaving": (c_int, (c_void_p, c_bool)),
    "PTOSetLoopVectorization": (c_int, (c_void_p, c_bool)),
    "PTOSetSLPVectorization": (c_int, (c_void_p, c_bool)),
    "PTOSetLoopUnrolling": (c_int, (c_void_p, c_bool)),
    "DisposePipelineTuningOptions": (c_int, (c_void_p,)),
    "CreatePassBuilder": (c_void_p, (c_void_p, c_void_p)),
    "DisposePassBuilder": (c_int, (c_void_p,)),
    "buildPerModuleDefaultPipeline": (c_void_p, (c_void_p, c_int)),
    "CreateNewModulePassManager": (c_void_p, ()),
    "module_AddAlwaysInlinerPass": (c_int, (c_void_p,)),
    "module_AddSROAPass": (c_int, (c_void_p,)),
    "module_AddInstCombinePass": (c_int, (c_void_p,)),
    "module_AddSimplifyCFGPass": (c_int, (c_void_p,)),
    "RunNewModulePassManager": (c_int, (c_void_p, c_void_p, c_void_p)),
    "DisposeNewModulePassManger": (c_int, (c_void_p,)),
    "TargetMachineEmitToMemory": (c_void_p, (c_void_p, c_void_p, c_int, _TEXT)),
    "GetBufferStart": (c_void_p, (c_void_p,)),
    "GetBufferSize": (c_size_t, (c_void_p,)),
    "DisposeMemoryBuffer": (c_int, (c_void_p,)),
    "DisposeString": (c_int, (c_char_p,)),
}


class Library:
    """The functions, by their names without the prefix."""

    __slots__ = ("path", *_FUNCTIONS)

    def __init__(self, path: str) -> None:
        self.path = path
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, f"LLVMPY_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@lru_cache(maxsize=1)
def library() -> Library:
    """The library of the installed llvmlite.

    Raises
    ------
    CodegenError
        Its functions are others than are known here.
    """
    import llvmlite
    from llvmlite.utils import get_library_name

    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    if not llvmlite.__version__.startswith(KNOWN) or not os.path.exists(path):
        path = _checked()
    try:
        return Library(path)
    except (AttributeError, OSError) as error:
        raise CodegenError(f"llvmlite {llvmlite.__version__} has another library: {error}") from error


def _checked() -> str:
    """Where a library is that llvmlite has loaded; its functions must take what those known here take."""
    import llvmlite
    from llvmlite.binding import ffi

    for name, (_, arguments) in _FUNCTIONS.items():
        theirs = getattr(getattr(ffi.lib, f"LLVMPY_{name}", None), "argtypes", None)
        if theirs is not None and len(theirs) != len(arguments):
            raise CodegenError(
                f"llvmlite {llvmlite.__version__}: LLVMPY_{name} takes other arguments than were expected"
            )
    return str(ffi.lib._name)


class _Text:
    """Where a function of the library leaves a text."""

    def __init__(self) -> None:
        self.pointer = c_char_p(None)
        self._as_parameter_ = ctypes.byref(self.pointer)

    def take(self) -> str:
        """The text, which is freed; empty if there is none."""
        if not self.pointer:
            return ""
        found = (self.pointer.value or b"").decode("utf-8", "replace")
        library().DisposeString(self.pointer)
        self.pointer = c_char_p(None)
        return found


def text_of(name: str, *arguments: Any) -> str:
    """The text that a function leaves behind its arguments."""
    text = _Text()
    getattr(library(), name)(*arguments, text._as_parameter_)
    return text.take()


class Module:
    """A verified module of LLVM IR for a machine, in a context of its own: the types and constants it has go with it.

    Raises
    ------
    CodegenError
        The text does not parse or does not verify.
    """

    def __init__(self, text: str, machine: TargetMachine) -> None:
        lib, told = library(), _Text()
        self.pointer: int | None = None
        self.late = late_functions.needed(text)
        self.context = lib.ContextCreate()
        try:
            self.pointer = lib.ParseAssembly(self.context, text.encode(), told._as_parameter_)
            message = told.take()
            if message or not self.pointer:
                raise CodegenError(f"LLVM refuses the generated code: {message}")
            lib.SetTarget(self.pointer, text_of("GetProcessTriple").encode())
            self.layout = machine.data_layout.encode()
            lib.SetDataLayout(self.pointer, self.layout)
            wrong = lib.VerifyModule(self.pointer, told._as_parameter_)
            message = told.take()
            if wrong:
                raise CodegenError(f"LLVM refuses the generated code: {message}")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self.pointer:
            library().DisposeModule(self.pointer)
        library().ContextDispose(self.context)
        self.pointer = None

    def add_late_functions(self) -> None:
        """Link the functions to it that are to be inlined after all other passes."""
        lib, told = library(), _Text()
        other = lib.ParseAssembly(self.context, self.late.encode(), told._as_parameter_)
        if not other:
            raise CodegenError(f"LLVM refuses late functions: {told.take()}")
        lib.SetTarget(other, text_of("GetProcessTriple").encode())
        lib.SetDataLayout(other, self.layout)
        if lib.LinkModules(self.pointer, other, told._as_parameter_):  # which disposes of the other one
            raise CodegenError(f"LLVM does not link late functions: {told.take()}")

    def __str__(self) -> str:
        return text_of("PrintModuleToString", self.pointer)


class TargetMachine:
    """What generates code for this process; kept for its life."""

    def __init__(self, cpu: str, features: str, level: int) -> None:
        lib, told = library(), _Text()
        triple = text_of("GetDefaultTargetTriple").encode()
        target = lib.GetTargetFromTriple(triple, told._as_parameter_)
        message = told.take()
        if not target:
            raise CodegenError(f"LLVM does not know this machine: {message}")
        self.pointer = lib.CreateTargetMachine(
            target, triple, cpu.encode(), features.encode(), level, b"pic", b"small", 0, 0, b""
        )
        if not self.pointer:
            raise CodegenError("LLVM cannot generate code for this machine")
        data = lib.CreateTargetMachineData(self.pointer)
        self.data_layout = text_of("CopyStringRepOfTargetData", data)
        lib.DisposeTargetData(data)

    def emitted(self, module: Module, assembly: bool = False) -> bytes:
        """The object of a module, or its assembly text; no other thread may use the machine meanwhile."""
        lib, told = library(), _Text()
        buffer = lib.TargetMachineEmitToMemory(self.pointer, module.pointer, int(not assembly), told._as_parameter_)
        message = told.take()
        if not buffer:
            raise CodegenError(f"LLVM cannot generate code: {message}")
        try:
            return ctypes.string_at(lib.GetBufferStart(buffer), lib.GetBufferSize(buffer))
        finally:
            lib.DisposeMemoryBuffer(buffer)


SCALAR_PASSES = ("AlwaysInliner", "SROA", "SimplifyCFG", "InstCombine", "SimplifyCFG")
"""What code that only starts regions is optimised by: a tenth of what the default pipeline takes, which goes over all
instructions seven times with `InstCombine` alone, and looks for loops that gain by being written anew."""


def optimize(module: Module, machine: TargetMachine, level: int, vectorize: bool, scalar: bool = False) -> None:
    """Run LLVM's default pipeline over a module, or `SCALAR_PASSES`, then inline its late functions; no other thread
    may use the machine meanwhile."""
    lib = library()
    options = lib.CreatePipelineTuningOptions()
    lib.PTOSetLoopVectorization(options, vectorize)
    lib.PTOSetSLPVectorization(options, vectorize)
    lib.PTOSetLoopInterleaving(options, level > 0)
    lib.PTOSetLoopUnrolling(options, level > 0)
    builder = lib.CreatePassBuilder(machine.pointer, options)
    try:
        _run(module, builder, _passes(SCALAR_PASSES) if scalar else lib.buildPerModuleDefaultPipeline(builder, level))
        if module.late:
            module.add_late_functions()
            _run(module, builder, _passes(("AlwaysInliner",)))
    finally:
        lib.DisposePassBuilder(builder)
        lib.DisposePipelineTuningOptions(options)


def _passes(names: Sequence[str]) -> int:
    """A pipeline of these passes."""
    lib = library()
    pipeline: int = lib.CreateNewModulePassManager()
    for name in names:
        getattr(lib, f"module_Add{name}Pass")(pipeline)
    return pipeline


def _run(module: Module, builder: int, pipeline: int) -> None:
    """Run a pipeline, and dispose of it."""
    try:
        library().RunNewModulePassManager(pipeline, module.pointer, builder)
    finally:
        library().DisposeNewModulePassManger(pipeline)
