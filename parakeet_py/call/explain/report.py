"""What happened in a call: stages and their times, kernels, fusion, storage, what went back to Python.

`Explanation` is for programs (attributes) and for readers (`str`, `html`, and how notebooks show it).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parakeet_py.base.fast_dataclass import record
from parakeet_py.call.compiled import leaf_names
from parakeet_py.call.explain.kernels import Kernel, kernels_of, statements
from parakeet_py.call.explain.source_lines import SourceFunction, functions_of, in_python
from parakeet_py.imp.storage.allocations import in_short
from parakeet_py.signature.describe import counted_axes, describe_spec
from parakeet_py.typed_ir import ir
from parakeet_py.typed_ir.places import entries
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite, shown_sites

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.call.devices.device_report import DeviceReport
    from parakeet_py.call.devices.team_report import TeamReport
    from parakeet_py.call.dispatcher import Dispatcher
    from parakeet_py.cluster.report import ClusterReport
    from parakeet_py.hybrid.devices.team import Team
    from parakeet_py.hybrid.devices.timeline import Timeline
    from parakeet_py.imp.storage.allocations import StorageReport


_GUARDED = "this is for extents that fit without broadcasting or clipping; other calls get a form of their own"

_PYTHON = "Python runs such calls as a whole: there is little to do beside what is handed back"


@record
class Operator:
    """One parallel operator left after fusion: its kind, the line of the user's source and its index space."""

    kind: str
    line: int
    rank: int
    outs: int

    def __str__(self) -> str:
        results = "" if self.outs == 1 else f", {self.outs} results" if self.outs else ", stores in place"
        return f"{self.kind} over {counted_axes(self.rank)} (line {self.line}{results})"


@record
class Made:
    """What an explanation was made from.

    Attributes
    ----------
    functions : the user's function and those that are inlined in it, line by line
    kernels : the operators after fusion
    sites : the operations that are handed back to Python
    compiled : what every stage has made; None of a call that runs in Python
    refusal : why a call runs in Python, as the catalogue of messages knows it
    """

    functions: tuple[SourceFunction, ...]
    kernels: tuple[Kernel, ...] = ()
    sites: tuple[OpaqueSite, ...] = ()
    compiled: Compiled | None = None
    refusal: str = ""


@record
class Explanation:
    """What one call does.

    Attributes
    ----------
    signature : argument types as text
    operators : parallel operators after fusion, outermost ones, in order
    operators_before : how many there were before fusion
    kernels : how many of them are run (parallel regions and matrix products)
    opaque_calls : what is handed back to Python, with reasons
    storage : temporaries and results with their sizes
    times : seconds of each stage of compilation
    fell_back : None, or why the call runs as plain Python; with `waits`, only until such a call has been made
    decision : what was decided of the function's calls last, and by which figures, with `when="pays"`
    made : what `html` is made from
    device : None for the CPU, or what happens on the device that calls run on here, or on Dask
    """

    name: str
    signature: tuple[str, ...]
    operators: tuple[Operator, ...]
    operators_before: int
    opaque_calls: tuple[str, ...]
    storage: StorageReport | None
    times: dict[str, float]
    fell_back: str | None
    widened: tuple[str, ...] = ()
    threads: int = 1
    device: DeviceReport | TeamReport | ClusterReport | None = None
    waits: bool = False
    decision: str | None = None
    made: Made | None = field(default=None, repr=False, compare=False)

    @property
    def kernels(self) -> int:
        return len(self.operators)

    @property
    def timeline(self) -> Timeline | None:
        """What the last call of this signature on devices has done when, if it was recorded: `options(timeline=True)`.

        Its `save` writes the JSON that Perfetto and chrome://tracing read.
        """
        return None if self.device is None else self.device.timeline

    def __str__(self) -> str:
        lines = [f"{self.name}({', '.join(self.signature)})"]
        if self.fell_back is not None:
            lines.append("not compiled yet, because" if self.waits else "fell back to Python, because")
            lines.extend("  " + line for line in self.fell_back.splitlines())
            return "\n".join(lines)
        if self.device is None:
            lines.append(f"runs on cpu, up to {self.threads} threads")
        else:
            lines.extend(str(self.device).splitlines())
        lines.append(f"operators: {self.operators_before} before fusion, {self.kernels} after")
        lines.extend(f"  {operator}" for operator in self.operators)
        if self.opaque_calls:
            lines.append("handed back to Python:")
            lines.extend(f"  {call}" for call in self.opaque_calls)
        if self.storage is not None and self.device is None:
            for what, allocations in (("temporaries", self.storage.temporaries), ("results", self.storage.results)):
                lines.append(f"{what}: {', '.join(in_short(allocations)) or 'none'}")
        for note in self.widened:
            lines.append(f"note: {note}")
        if self.decision is not None:
            lines.append(f"when it pays: {self.decision}")
        if self.times:
            total = sum(self.times.values())
            stages = ", ".join(f"{stage} {1000 * seconds:.1f}" for stage, seconds in self.times.items())
            lines.append(f"compiled in {1000 * total:.1f} ms ({stages})")
        return "\n".join(lines)

    def html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page: the source with what became of each line, kernels, what is handed back, the text of every stage.

        It is one file that loads nothing, for light and dark, and can be read without scripts. LLVM is asked for the
        assembly, so this takes about as long as compiling the call has.

        Parameters
        ----------
        path : where to write it, if anywhere
        """
        from parakeet_py.call.explain.page import page

        text = page(self)
        if path is not None:
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", errors="backslashreplace")
        return text

    def _repr_html_(self) -> str:
        from parakeet_py.call.explain.page import fragment

        return fragment(self)


def explain(dispatcher: Dispatcher, args: Sequence[Any], kwargs: dict[str, Any]) -> Explanation:
    """What a call with these arguments does (it is compiled, not run)."""
    from parakeet_py.base.errors import NoSourceError, NotObservedError, UnsupportedError
    from parakeet_py.signature.specs import spec_of

    name = dispatcher.function.__name__
    try:
        normal = dispatcher.normalize(tuple(args), kwargs)
        if normal is not None and dispatcher.is_on_dask(normal):
            return _on_dask(dispatcher, normal)
        team = None if normal is None else dispatcher.place_of(normal)
        if team is None:
            compiled = dispatcher.compiled_for(tuple(args), kwargs)
            found = explain_compiled(compiled, normal)
            known = dispatcher.last_gate(compiled.call_signature)
            if known is not None and known.native.quick:
                left = f"{known.gate.left / 1e6:.1f} ms"
                found = replace(found, widened=(*found.widened, f"not optimised until calls have taken {left} more"))
            if not dispatcher.config().pays:
                return found
            decided = dispatcher.account.decided()
            if known is not None and not dispatcher.account.decision:
                decided = "there is machine code for such calls"
            return replace(found, decision=decided)
        return _on_devices(dispatcher, dispatcher.positional(tuple(args), kwargs), team)
    except (UnsupportedError, NoSourceError) as error:
        specs = tuple(describe_spec(spec_of(arg)) for arg in args)
        waits = isinstance(error, NotObservedError)
        pos = getattr(error, "pos", None)
        calls = entries(pos)  # those of functions inside are in other files, maybe of other packages
        refused = (calls[0].filename, calls[0].line) if calls else None
        if not calls and pos is not None:
            refused = getattr(error, "filename", ""), pos.line
        text = str(error)
        if len(calls) > 1:
            text += f"\n  in: line {calls[0].line} of {name}, which calls {calls[1].name}"
        made = Made(tuple(in_python(dispatcher.function, refused)), refusal=getattr(error, "message", ""))
        return Explanation(name, specs, (), 0, (), None, {}, text, waits=waits, made=made)


def _on_devices(dispatcher: Dispatcher, normal: tuple[Any, ...], team: Team) -> Explanation:
    """What a call does on devices."""
    from parakeet_py.call.devices.calls import residents_of
    from parakeet_py.call.devices.device_report import device_report
    from parakeet_py.call.devices.team_report import team_report
    from parakeet_py.hybrid.plan.routine_calls import as_calls

    with residents_of(dispatcher, normal, team):
        compiled = dispatcher.compiled_for_normal(normal, signature=dispatcher.signature(normal))
        found = explain_compiled(compiled, normal)
        by_host = tuple(str(call) for call in as_calls(compiled.typed)[1].values())
        report = device_report if team.alone is not None else team_report
        device = report(compiled, normal, team)
    return replace(found, opaque_calls=found.opaque_calls + by_host, device=device)


def _on_dask(dispatcher: Dispatcher, normal: tuple[Any, ...]) -> Explanation:
    """What a call on Dask arrays does."""
    from parakeet_py.call.devices.cluster_calls import cluster_report

    compiled, report = cluster_report(dispatcher, normal)
    return replace(explain_compiled(compiled), device=report)


def explain_compiled(compiled: Compiled, normal: tuple[Any, ...] | None = None) -> Explanation:
    """What is known of a compiled call; its arguments in positional form give the sizes of what it allocates."""
    from parakeet_py.call.give_back import values_of
    from parakeet_py.imp.storage.allocations import report

    values = () if normal is None else values_of(compiled, normal)
    names = leaf_names(compiled)
    kernels, sites = kernels_of(compiled.typed, values), shown_sites(compiled.specialization.opaque_sites)
    functions = functions_of(compiled.function, compiled.unfused, compiled.typed, kernels, sites, values)
    return Explanation(
        compiled.function.__name__,
        tuple(describe_spec(spec) for spec in compiled.signature.params),
        tuple(operators_of(compiled.typed.body)),
        len(list(operators_of(compiled.unfused.body))),
        compiled.specialization.opaque_calls,
        report(compiled.imp, names, values),
        dict(compiled.times),
        None,
        _notes(compiled, names),
        compiled.config.thread_count,
        made=Made(tuple(functions), tuple(kernels), sites, compiled),
    )


def _notes(compiled: Compiled, names: Sequence[str]) -> tuple[str, ...]:
    """What else is to be said of a call."""
    from parakeet_py.call.compile import runs_in_python

    if runs_in_python(compiled):
        return (*compiled.specialization.widened, _PYTHON)
    return compiled.specialization.widened + ((_GUARDED,) if compiled.passes.guarded else ()) + _kept(compiled, names)


def _kept(compiled: Compiled, names: Sequence[str]) -> tuple[str, ...]:
    """A note on arguments that are copied before the call."""
    from parakeet_py.call.give_back import kept_arguments

    kept = [names[leaf] for leaf in kept_arguments(compiled)]
    reason = "are kept, because Python may have to run the call from the beginning"
    return (f"the contents of {', '.join(kept)} {reason}",) if kept else ()


def operators_of(block: ir.Block) -> list[Operator]:
    """The outermost parallel operators of a block, in order (those in loops and branches included)."""
    found: list[Operator] = []
    for let, _ in statements(block):
        line = let.pos.line
        match let.op:
            case ir.Reduce(extents=extents, reduced_extents=reduced):
                found.append(Operator("Reduce", line, len(extents) + len(reduced), len(let.outs)))
            case ir.Map(extents=extents) | ir.Scan(extents=extents) | ir.Scatter(extents=extents):
                found.append(Operator(type(let.op).__name__, line, len(extents), len(let.outs)))
            case ir.Compress(extents=extents):
                found.append(Operator("Compress", line, len(extents), len(let.outs) - 1))
            case ir.Matmul():
                found.append(Operator("Matmul", line, 2, 1))
            case ir.Routine(name, outs, _):
                found.append(Operator(name, line, getattr(outs[0].type, "rank", 1), len(outs)))
    return found
