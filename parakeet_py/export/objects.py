"""Object code of a library for one target: all signatures, what they call, and the runtime, in one object.

Every module is optimised by itself, as code of this process is; then they are linked, and all but the functions that
the library's C code calls becomes internal. So nothing of one library can meet what another has under the same name.
The functions that are left are hidden, and named by `Names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from parakeet_py.base.errors import CodegenError
from parakeet_py.base.fast_dataclass import record
from parakeet_py.export.errors import ExportError
from parakeet_py.export.runtime import Threads, runtime_ir
from parakeet_py.export.targets import Target
from parakeet_py.imp import ir as imp
from parakeet_py.llvm.codegen import pack
from parakeet_py.llvm.codegen.module import generate
from parakeet_py.llvm.engine import compiler, late_functions
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.math import forms
from parakeet_py.llvm.runtime import pairwise_library
from parakeet_py.llvm.runtime.blas import Blas

_CBLAS = Blas("", "cblas_", "", "i32")  # the interface of the reference implementation: C ints
_MATH = re.compile(r"pk_math_([a-z0-9]+)_f(32|64)(?:x\d+)?")
_NUMPY = re.compile(r"pk_numpy\.\w+\.(.+)")
_START = ("pk_start", "pk_after_fork", "pk_stack_floor")  # what C code calls of the runtime
_MOST_ROUNDS = 8


def no_blas() -> None:
    """Products are loops."""


def cblas() -> Blas:
    """Products call the CBLAS that the library is linked with."""
    return _CBLAS


@record
class Names:
    """The symbols of a library."""

    library: str

    def entry(self, signature: int, target: Target) -> str:
        """The code of a signature (from 1 on)."""
        return f"{self.library}_{signature}_{target.suffix}"

    def start(self, function: str, target: Target) -> str:
        """A function of the runtime that C code calls, such as `pk_start`."""
        return f"{self.library}_{function}_{target.suffix}"

    @property
    def parallel(self) -> str:
        """What runs regions, where C code defines it."""
        return f"{self.library}_parallel"


@record
class ObjectCode:
    """An object, and the symbols of C libraries that it needs."""

    code: bytes
    needs: tuple[str, ...]


def object_code(
    names: Names,
    functions: Sequence[tuple[str, imp.Function]],
    target: Target,
    threads: Threads,
    *,
    with_cblas: bool = False,
    contract: bool = False,
    fastmath: bool = False,
) -> ObjectCode:
    """The object of all signatures for a target: functions, and what messages call them.

    Raises
    ------
    ExportError
        A function calls routines of NumPy's own.
    """
    host = target.host()
    find = cblas if with_cblas else no_blas
    with closing(_Linker(host)) as linker:
        for number, (title, function) in enumerate(functions, 1):
            code = generate(function, host, contract=contract, fastmath=fastmath, find_blas=find)
            _refuse_routines(title, code.symbols)
            linker.add_signature(code.text, code.library, code.entry, names.entry(number, target))
        linker.add(runtime_ir(threads, target.processor))
        linker.add_support()
        renamed = {one: names.start(one, target) for one in _START}
        if threads == "openmp":
            renamed["pk_parallel"] = names.parallel
        return linker.finish(renamed, {names.entry(number, target) for number in range(1, len(functions) + 1)})


def _refuse_routines(title: str, symbols: Sequence[str]) -> None:
    routines = sorted({match[1] for name in symbols if (match := _NUMPY.fullmatch(name))})
    if not routines:
        return
    name, *kinds = re.findall(r"[a-z_]+\.[a-z_]+|\w+", routines[0])
    what = f"a routine of NumPy's own ({name} of {', '.join(kinds)})"
    raise ExportError(f"{title} cannot be exported: it calls {what}, which an exported library has not")


class _Linker:
    """The modules of a library, optimised and linked one after the other."""

    def __init__(self, host: HostInfo) -> None:
        self.host = host
        self.llvm = compiler.binding()
        self.context = self.llvm.create_context()
        self.machine = self.llvm.Target.from_triple(host.triple).create_target_machine(
            cpu=host.cpu, features=host.features, opt=3, reloc="pic", codemodel="small"
        )
        self.modules: list[Any] = []
        self.whole = self._parsed("")
        self.added: set[str] = set()

    def close(self) -> None:
        """Dispose of all modules; they must not outlive their context."""
        for module in self.modules:
            module.close()  # nothing, once it is part of another

    def _parsed(self, text: str) -> Any:
        head = f'target datalayout = "{self.host.data_layout}"\ntarget triple = "{self.host.triple}"\n'
        try:
            module = self.llvm.parse_assembly(head + text, self.context)
            self.modules.append(module)
            module.verify()
        except RuntimeError as error:
            raise CodegenError(f"LLVM refuses the generated code: {error}") from error
        return module

    def _optimized(self, text: str, level: int = 3, vectorize: bool = True) -> Any:
        module = self._parsed(text)
        options = self.llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = options.slp_vectorization = vectorize
        options.loop_interleaving = options.loop_unrolling = level > 0
        compiler.run_pipeline(module, self.machine, options)
        if late := late_functions.needed(text):
            module.link_in(self._parsed(late))
            inliner = self.llvm.create_new_module_pass_manager()
            inliner.add_always_inliner_pass()
            inliner.run(module, self.llvm.create_pass_builder(self.machine, options))
        return module

    def add_signature(self, text: str, library: Sequence[str], entry: str, name: str) -> None:
        """Add the code of a signature and the library's procedures that it calls; its entry gets a name."""
        module = self._optimized(text)
        for one in library:
            module.link_in(self._optimized(one))
        for function in module.functions:
            if not function.is_declaration and function.name != entry:
                function.linkage = "internal"
        module.get_function(entry).name = name
        self.whole.link_in(module)

    def add(self, text: str) -> None:
        """Add a module that is written as it is to be."""
        self.whole.link_in(self._optimized(text, 0, vectorize=False))

    def add_support(self) -> None:
        """Add what is missing of our own libraries."""
        for _ in range(_MOST_ROUNDS):
            missing = [text for text in map(self._support, self.undefined()) if text is not None]
            if not missing:
                return
            for text, level in missing:
                if text not in self.added:
                    self.added.add(text)
                    self.whole.link_in(self._optimized(text, level, vectorize=False))

    def undefined(self) -> Iterator[str]:
        """The functions that are declared only, but for LLVM's own."""
        for function in list(self.whole.functions):
            if function.is_declaration and not function.name.startswith("llvm."):
                yield function.name

    def _support(self, name: str) -> tuple[str, int] | None:
        """The module that defines a function, and how far it is optimised."""
        match = _MATH.fullmatch(name)
        if match is not None:
            return forms.library_ir(match[1], f"float{match[2]}", self.host), 3
        if name.startswith(pack.PREFIX):
            return pack.library_ir(int(name.removeprefix(pack.PREFIX)), self.host), 0
        if name.startswith(pairwise_library.PREFIX):
            return pairwise_library.library_ir(name, self.host), 2
        return None

    def finish(self, renamed: dict[str, str], kept: set[str]) -> ObjectCode:
        """The object, in which only functions that are `renamed` or `kept` are seen."""
        for function in list(self.whole.functions):
            if function.name in renamed:
                function.name = renamed[function.name]
                kept.add(function.name)
        for function in list(self.whole.functions):
            if function.name in kept:
                function.visibility = "hidden"
            elif not function.is_declaration:
                function.linkage = "internal"
        passes = self.llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(self.whole, self.llvm.create_pass_builder(self.machine, self.llvm.create_pipeline_tuning_options()))
        self.whole.verify()
        needs = tuple(name for name in self.undefined() if name not in kept)
        if any(name.startswith(("pk_", "pk.")) for name in needs):
            raise CodegenError(f"exported code lacks {', '.join(needs)}")
        return ObjectCode(self.machine.emit_object(self.whole), needs)
