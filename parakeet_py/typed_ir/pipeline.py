"""The passes over the typed IR, in the order they run.

A pass is a name, one sentence and a pure function from `Function` to `Function`. `PARAKEET_PRINT=fuse` logs the program
after a pass (`all` after each), `PARAKEET_STOP=fuse` ends the list there, `PARAKEET_CHECK=1` runs the checker after
every pass; a miscompilation is found by stopping earlier and earlier.

Most functions have nothing of what most passes are about: these are not run, and their modules not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import field, replace
from functools import cached_property
from time import perf_counter
from types import ModuleType
from typing import Literal

from parakeet_py.base.config import Config
from parakeet_py.base.debug_log import log
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.interrupts import poll
from parakeet_py.typed_ir.ir import (
    PARALLEL,
    Alloc,
    Call,
    Check,
    Compress,
    For,
    Function,
    Interrupted,
    Map,
    Matmul,
    Opaque,
    Prim,
    Reduce,
    Routine,
    While,
)
from parakeet_py.typed_ir.passes.checks import hoist_checks, loop_guards
from parakeet_py.typed_ir.passes.checks.equal_extents import version_equal_extents
from parakeet_py.typed_ir.passes.fusion import masked_updates, masks, matvecs
from parakeet_py.typed_ir.passes.fusion.fuse import fuse
from parakeet_py.typed_ir.passes.fusion.sink import sink_operators
from parakeet_py.typed_ir.passes.loops import (
    binned_selections,
    blended_stores,
    carried_extents,
    collapse,
    counted_while,
    counter_rebase,
    interchange,
    licm,
    mirrored_updates,
    parallelize,
    products,
    row_sweeps,
    scalar_replacement,
    shared_matrices,
    signal_polls,
    time_tiles,
    unroll,
)
from parakeet_py.typed_ir.passes.scalar import abs_comparisons, modular_arithmetic, periodic_indices
from parakeet_py.typed_ir.passes.scalar.cse import eliminate_common_subexpressions
from parakeet_py.typed_ir.passes.scalar.dce import eliminate_dead_code
from parakeet_py.typed_ir.passes.scalar.simplify import simplify


@record
class Pass:
    """One entry of the list.

    Attributes
    ----------
    run : may be of a class that says which operators have to occur
    after : passes of which one must have changed the program
    """

    name: str
    summary: str
    run: Callable[[Function], Function]
    after: tuple[str, ...] = ()

    def has_work(self, contents: _Contents, changed: Set[str]) -> bool:
        """Whether it has anything to do, in a program with these contents."""
        if self.after and changed.isdisjoint(self.after):
            return False
        return not (isinstance(self.run, _Seldom) and contents.found.isdisjoint(self.run.about))


class _Seldom:
    """A function of a module that is about some operators, given by class, or primitives, by name."""

    def __init__(self, module: ModuleType, name: str, *about: type | str) -> None:
        self.module, self.name, self.about = module, name, about

    def __call__(self, function: Function) -> Function:
        made: Function = getattr(self.module, self.name)(function)
        return made


class _Contents:
    """What passes may be about."""

    def __init__(self, function: Function) -> None:
        self.function = function

    @cached_property
    def found(self) -> set[type | str]:
        """The classes of operators in a function, and the names of primitives."""
        ops = [let.op for let in self.function.statements()]
        return {*[op.__class__ for op in ops], *[op.name for op in ops if op.__class__ is Prim]}


count_loops = _Seldom(counted_while, "count_loops", While)
drop_polls = _Seldom(signal_polls, "drop_polls", Interrupted)
count_from_zero = _Seldom(counter_rebase, "count_from_zero", For, While)
wrap_masked = _Seldom(modular_arithmetic, "wrap_masked", "and", "mod")
move_invariants = _Seldom(licm, "move_invariants", For, While, *PARALLEL)
hoist_loop_checks = _Seldom(hoist_checks, "hoist_checks", For, While)
raise_to_products = _Seldom(products, "raise_to_products", For)
sum_computed_products = _Seldom(matvecs, "sum_computed_products", Matmul)
share_matrices = _Seldom(shared_matrices, "share_matrices", Matmul)
share_counts = _Seldom(masks, "share_counts", Compress)
share_extents = _Seldom(carried_extents, "share_extents", For, While)
join_selections = _Seldom(masks, "join_selections", Compress)
update_in_place = _Seldom(masked_updates, "update_in_place", Compress)
promote_elements = _Seldom(scalar_replacement, "promote_elements", For)
parallelize_loops = _Seldom(parallelize, "parallelize", For)
unroll_loops = _Seldom(unroll, "unroll_loops", For)
collapse_maps = _Seldom(collapse, "collapse_maps", Map)
bin_selections = _Seldom(binned_selections, "bin_selections", Compress)
unroll_reductions = _Seldom(unroll, "unroll_reductions", Reduce)
interchange_loops = _Seldom(interchange, "interchange_loops", For)
sweep_rows = _Seldom(row_sweeps, "sweep_rows", For)
pair_updates = _Seldom(mirrored_updates, "pair_updates", Map)
tile_rounds = _Seldom(time_tiles, "tile_rounds", For)
blend_stores = _Seldom(blended_stores, "blend_stores", Map)
unroll_maps = _Seldom(unroll, "unroll_maps", Map)
wrap_indices = _Seldom(periodic_indices, "wrap_indices", "mod")
compare_squares = _Seldom(abs_comparisons, "compare_squares", "abs", "hypot", "libm.hypot")

_LOOPS = ("equal-extents", "hoist-checks")
_OPERATORS = (
    "products",
    "computed-products",
    "shared-matrices",
    "selection-lengths",
    "carried-extents",
    "masked-updates",
    "joined-selections",
    "parallelize",
    "unroll-loops",
    "fuse",
    "collapse",
    "binned-selections",
    "unroll-reductions",
    "fuse-again",
    "interchange",
    "row-sweeps",
    "time-tiles",
    "mirrored-updates",
    "unroll-maps",
    "index-remainders",
    "abs-comparisons",
)
PASSES: tuple[Pass, ...] = (
    Pass("sink", "move pure operators down to their first use, below the checks", sink_operators),
    Pass("count-loops", "make `for` loops of `while` loops that count", count_loops),
    Pass("signal-polls", "let only loops that may take long poll for signals", drop_polls),
    Pass("counter-rebase", "let ints that inner loops count up begin at zero", count_from_zero),
    Pass("modular-arithmetic", "let arithmetic wrap of which only low bits are wanted", wrap_masked),
    Pass("simplify", "fold constants, resolve extents and views, decide what ranges decide", simplify),
    Pass("cse", "compute each value once", eliminate_common_subexpressions),
    Pass("dce", "remove what nothing needs", eliminate_dead_code),
    Pass("licm", "compute before a loop what is the same in all its iterations", move_invariants),
    Pass("equal-extents", "copy the body for when extents that broadcast are equal", version_equal_extents),
    Pass("hoist-checks", "test the checks of a loop before it, in a copy for when they hold", hoist_loop_checks),
    Pass("simplify-loops", "drop the checks that now hold", simplify, _LOOPS),
    Pass("dce-loops", "remove what only the checks needed", eliminate_dead_code, _LOOPS),
    Pass("products", "compute the dot products of loops by matrix products", raise_to_products),
    Pass("selection-lengths", "let selections by one mask have one length", share_counts),
    Pass("simplify-selections", "drop what asks whether the lengths are equal", simplify, ("selection-lengths",)),
    Pass("carried-extents", "let arrays of a loop that are as long as each other have one length", share_extents),
    Pass("simplify-extents", "drop what asks whether extents are equal", simplify, ("carried-extents",)),
    Pass("masked-updates", "store what is computed of selected elements where they are", update_in_place),
    Pass("joined-selections", "make selections by one mask together", join_selections),
    Pass(
        "scalar-replacement",
        "keep in variables the elements that loops read and write in every iteration",
        promote_elements,
    ),
    Pass("parallelize", "turn independent loops into operators", parallelize_loops),
    Pass("unroll-loops", "write out inner loops of a few iterations", unroll_loops),
    Pass("simplify-unrolled", "decide what the iterations decide", simplify, ("unroll-loops",)),
    Pass("computed-products", "sum up products of vectors and matrices that are computed", sum_computed_products),
    Pass("shared-matrices", "compute products of one matrix and two vectors by blocks of its rows", share_matrices),
    Pass("fuse", "compute elements where they are read, merge operators over one index space", fuse),
    Pass("collapse", "join operators that contain little but another one", collapse_maps),
    Pass("binned-selections", "find what a loop selects by intervals in one pass over the array", bin_selections),
    Pass("unroll-reductions", "take axes of two to four elements out of reductions", unroll_reductions),
    Pass("cse-unrolled", "load each element once", eliminate_common_subexpressions, ("unroll-reductions",)),
    Pass("fuse-again", "fuse what has become pointwise", fuse, ("unroll-reductions", "binned-selections")),
    Pass("interchange", "run loops around pointwise operators tile by tile", interchange_loops),
    Pass("fuse-tiles", "start tiles from what made the arrays", fuse, ("interchange",)),
    Pass("row-sweeps", "run loops along rows, around operators across them, row by row", sweep_rows),
    Pass("time-tiles", "run loops of sweeps over neighbouring rows tile by tile, several rounds at once", tile_rounds),
    Pass("mirrored-updates", "update arrays by their mirror images in place, by pairs of elements", pair_updates),
    Pass("unroll-maps", "take axes of two to four elements out of maps", unroll_maps),
    Pass("index-remainders", "let choices replace remainders of what is out of range by less than it", wrap_indices),
    Pass("abs-comparisons", "let squares decide comparisons of absolute values in loops", compare_squares),
    Pass("dce-absolutes", "leave absolute values only where they decide", eliminate_dead_code, ("abs-comparisons",)),
    Pass("simplify-again", "fold what fusion brought together", simplify, _OPERATORS),
    Pass("licm-again", "compute before a loop what is the same in all its iterations", move_invariants, _OPERATORS),
    Pass("cse-again", "compute each value once", eliminate_common_subexpressions, ("licm", *_LOOPS, *_OPERATORS)),
    Pass("dce-again", "remove what nothing needs", eliminate_dead_code, ("licm", *_LOOPS, *_OPERATORS)),
    Pass("blended-stores", "store complex elements in any case, what is computed or what is there", blend_stores),
)

_NOT_EXACT = ("products", "computed-products", "shared-matrices")  # which add in another order
_COUNTED = frozenset({*PARALLEL, Matmul, Routine, Opaque, For, While, Alloc, Check})


@record(frozen=False)
class PassReport:
    """What the passes did: seconds of each, and how many operators of each kind there were before and after."""

    seconds: dict[str, float] = field(default_factory=dict)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    guarded: bool = False

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())


def count_operators(function: Function) -> Counter[str]:
    """How many `Map`s, `Reduce`s, loops, allocations, checks... a function has, at all depths."""
    return Counter([kind.__name__ for let in function.statements() if (kind := let.op.__class__) in _COUNTED])


def run_passes(
    function: Function,
    config: Config,
    report: PassReport | None = None,
    extents: Literal["both", "usual", "general"] = "both",
) -> Function:
    """Optimise one specialization.

    Parameters
    ----------
    report
        Filled in, if given.
    extents
        Where broadcasting leaves open whether an extent is 1: `both` makes two versions of the body, `usual` only the
        one for extents that are equal, behind a check on entry that fails with `equal_extents.GENERAL` (then
        `report.guarded` is set), `general` only the one that is always right. In `usual`, indices of loops along rows
        are tested on entry, too (`loop_guards`).

    Raises
    ------
    InvalidTypedIR
        With ``config.check``, when the specializer or a pass made a program that breaks the rules of the IR.
    """
    names = [one.name for one in PASSES]
    if config.stop_pass is not None and config.stop_pass not in ("specialize", *names):
        log.warning("there is no pass %r of the typed IR; they are: specialize, %s", config.stop_pass, ", ".join(names))
    unknown = [name for name in config.print_passes if name not in ("specialize", "all", *names)]
    if unknown:
        log.warning("there is no pass %r of the typed IR; they are: specialize, %s, all", unknown[0], ", ".join(names))
    if report is not None:
        report.before = count_operators(function)
    _look(function, "specialize", config)
    if config.stop_pass != "specialize":
        changed: set[str] = set()
        contents = _Contents(function)
        for one in PASSES:
            if one.has_work(contents, changed) and not (config.exact and one.name in _NOT_EXACT):
                poll()
                started = perf_counter()
                before = function
                if one.run is not version_equal_extents:
                    function = one.run(function)
                elif extents == "usual":
                    function = loop_guards.guard_loops(version_equal_extents(function, guarded=True))
                elif extents == "both":
                    function = version_equal_extents(function)
                if function is not before:
                    changed.add(one.name)
                    contents = _Contents(function)
                if report is not None:
                    report.seconds[one.name] = perf_counter() - started
                    guarded = one.run is version_equal_extents and extents == "usual"
                    report.guarded |= guarded and function is not before
                _look(function, one.name, config, changed=function is not before)
            elif one.name in config.print_passes:
                _look(function, one.name, config, changed=False)
            if config.stop_pass == one.name:
                break
    if report is not None:
        report.after = count_operators(function)
    if function.inner or not function.procedures:
        return function
    return replace(function, procedures=tuple([_procedure(one, function, config) for one in called(function)]))


_of_library: dict[tuple[int, str | None], tuple[Function, Function]] = {}  # by `id` and the last pass


def _procedure(procedure: Function, caller: Function, config: Config) -> Function:
    """A procedure after the passes; for one of the library they run once."""
    key = (id(procedure), config.stop_pass)
    if key in _of_library and not config.print_passes:
        return _of_library[key][1]
    together = replace(procedure, procedures=caller.procedures)  # for the checker
    made = replace(run_passes(together, config), procedures=())
    if procedure.library:
        made = _of_library.setdefault(key, (procedure, made))[1]
    return made


def called(function: Function) -> list[Function]:
    """The procedures that a function calls, directly or not, in order."""
    known = {one.name: one for one in function.procedures}
    found: set[str] = set()
    waiting = [function]
    while waiting:
        calls = [let.op.procedure for let in waiting.pop().statements() if isinstance(let.op, Call)]
        waiting += [known[name] for name in {*calls} - found]
        found.update(calls)
    return [one for one in function.procedures if one.name in found]


def _look(function: Function, name: str, config: Config, changed: bool = True) -> None:
    """Print as asked, and check: what a pass has left as it was has been checked before."""
    printed = name in config.print_passes or "all" in config.print_passes
    checked = config.check and changed
    if not (printed or checked):
        return
    from parakeet_py.base.debug_log import listen
    from parakeet_py.typed_ir.check import InvalidTypedIR, check_function
    from parakeet_py.typed_ir.print import format_function

    if printed:
        listen()
        log.warning("%s after %s:\n%s", function.name, name, format_function(function))
    if checked:
        try:
            check_function(function)
        except InvalidTypedIR:
            log.error("the typed IR of %s is broken after %s:\n%s", function.name, name, format_function(function))
            raise
