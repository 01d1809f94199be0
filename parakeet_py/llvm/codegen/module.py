"""From Imp to LLVM IR text.

`generate` prints one compiled function:

    i32 @<name>(ptr ctx, ptr args, ptr results)      the status: 0, or the code of the failure that ended the call

and one internal function for each of its parallel regions. `codegen/arrays.py` says how values lie in `args` and
`results`. The text parses and verifies; it declares only what it uses, because reading and optimizing it is on the
path of the first call. On a failure, blocks are left to the caller, which frees what the context lists.

Topics have their own files: `codegen_scalar` (primitives, with `codegen_division`, `codegen_reciprocal`,
`codegen_complex`, `codegen_cast`), `codegen_arrays` (descriptors, elements), `codegen_control` (statements),
`codegen_parallel` (regions), `vector_math` (elementary functions), `blas` (matrix products); `codegen_builder` writes
text, `codegen_scope` keeps the values.
"""

from __future__ import annotations

import re

from parakeet_py.base.fast_dataclass import record
from parakeet_py.imp import ir
from parakeet_py.llvm.codegen import arrays
from parakeet_py.llvm.codegen.access_checks import check_array, check_zones
from parakeet_py.llvm.codegen.arrays import slots_in, slots_out
from parakeet_py.llvm.codegen.builder import FunctionText, Locations, ModuleText, global_name
from parakeet_py.llvm.codegen.control import emit_block
from parakeet_py.llvm.codegen.loops import polls
from parakeet_py.llvm.codegen.scope import Scope, Unit
from parakeet_py.llvm.engine.host_info import HostInfo
from parakeet_py.llvm.runtime.blas import Finding, of_numpy
from parakeet_py.llvm.runtime.call_context import OUT_OF_MEMORY
from parakeet_py.llvm.safety.sites import Checks, Site

__all__ = ["OUT_OF_MEMORY", "GeneratedCode", "generate", "slots_in", "slots_out"]


@record
class GeneratedCode:
    """The text of a module.

    Attributes
    ----------
    text : LLVM IR
    symbols : external functions that it needs: of the runtime, the C libraries, BLAS, and `pk_opaque`
    entry : the name of the function to call
    sites : in checked code, what the failure codes after those of the function stand for
    library : the modules of the library's procedures that it calls, each behind those that it calls itself
    """

    text: str
    symbols: tuple[str, ...]
    entry: str
    sites: tuple[Site, ...] = ()
    library: tuple[str, ...] = ()


def generate(
    function: ir.Function,
    host: HostInfo,
    *,
    contract: bool = False,
    fastmath: bool = False,
    checked: bool = False,
    locations: Locations | None = None,
    find_blas: Finding = of_numpy,
    clocks: tuple[int, int, int] | None = None,
) -> GeneratedCode:
    """Print a function as LLVM IR.

    Parameters
    ----------
    host : the machine it will run on
    contract : products and sums may be fused (rounded once)
    fastmath : float arithmetic may be regrouped and assumed finite
    checked : what the code does to memory is checked (`access_checks`)
    locations : says of instructions where in the source they come from (`builder.Locations`)
    find_blas : gives the BLAS that matrix products call; None: they are loops
    clocks : where `clock_gettime` is, in this process, the number of the clock, and where the table of timed kernels is
    """
    flags = "fast " if fastmath else "contract " if contract else ""
    checks = Checks(max(1, len(function.failures))) if checked else None
    module = ModuleText(host, flags, checks=checks, locations=locations, blas=find_blas, clocks=clocks, unaligned=True)
    unit = Unit(function, module)
    unit.hands_back = any(isinstance(statement, ir.Opaque) for statement in ir.walk(function.body))
    unit.looks = polls.has_looks(function.body)
    library: list[tuple[str, tuple[str, ...]]] = []
    if function.procedures:
        from parakeet_py.llvm.codegen import calls

        unit.library = {one.name: one for one in function.procedures if one.library}
        for procedure in function.procedures:
            if procedure.library and checks is None:
                library.append(_of_library(procedure, unit, host, flags, find_blas))
            else:
                calls.define(procedure, unit)
    scope = Scope(unit, FunctionText(module))
    slot = 0
    for parameter in function.params:
        scope.values[parameter] = arrays.enter(scope.f, parameter.type, "%args", slot, scope.f.entry_value)
        slot += slots_in(parameter.type)
    if unit.looks:
        polls.be_quiet(scope)
    emit_block(scope, function.body)
    if not scope.f.dead:
        check_zones(scope)
        slot = 0
        for result in function.results:
            value = scope.operand(result)
            if checks is not None and isinstance(value, arrays.Descriptor):
                check_array(scope, value, f"result {result!r} of {function.name}")
            arrays.leave(scope.f, result.type, value, "%results", slot)
            slot += slots_out(result.type)
        scope.f.effect("ret i32 0")
    scope.aliases.finish()
    signature = "define i32 @(ptr %ctx, ptr noalias %args, ptr noalias %results)"
    # A user's function may have the name of one of C, such as memset, and letters that are not ASCII.
    entry = re.sub(r"\W", "_", function.name, flags=re.ASCII) + ".call"
    module.define(scope.f, signature, unit.attributes(scope.f), lambda: global_name(entry))
    sites = () if checks is None else tuple(checks.sites)
    symbols = dict.fromkeys([*module.symbols, *(symbol for _, needed in library for symbol in needed)])
    return GeneratedCode(module.text(), tuple(symbols), entry, sites, tuple(text for text, _ in library))


_known: dict[tuple[int, HostInfo, str, Finding], tuple[ir.Function, tuple[str, tuple[str, ...]]]] = {}


def _of_library(
    procedure: ir.Function, caller: Unit, host: HostInfo, flags: str, find_blas: Finding
) -> tuple[str, tuple[str, ...]]:
    """The module of a procedure of the library, written once, and the external functions that it needs."""
    from parakeet_py.llvm.codegen import calls

    key = (id(procedure), host, flags, find_blas)
    if key not in _known:
        module = ModuleText(host, flags, blas=find_blas, unaligned=True)
        calls.define(procedure, Unit(procedure, module, library=caller.library), "")
        _known[key] = (procedure, (module.text(), tuple(module.symbols)))
    return _known[key][1]
