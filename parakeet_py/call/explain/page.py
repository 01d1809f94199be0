"""An explanation as a page of HTML: one file that loads nothing, can be read without scripts, in light and dark.

The page is a tree (`elements`). Colours of the source are by Pygments, which `rich` brings.
What needs no script is native to HTML: stages are `details` of one name, of which one is open at a time; lines, kernels
and operations handed back are linked with each other. `page.js` adds that a line which is clicked is marked wherever it
occurs.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from parakeet_py.call.explain.elements import Child, as_html, document, element
from parakeet_py.call.explain.kernels import Kernel, Rates
from parakeet_py.call.explain.source_lines import (
    Fate,
    LinePlace,
    SourceFunction,
    SourceLine,
    lines_of_kernel,
    lines_of_site,
)
from parakeet_py.call.explain.stages import STAGES, Stage, ptx_stage, stages_of
from parakeet_py.imp.storage.allocations import in_short
from parakeet_py.messages.entry import Entry
from parakeet_py.messages.lookup import entry_named, entry_of
from parakeet_py.typed_ir.specialize.opaque.sites import OpaqueSite

if TYPE_CHECKING:
    from parakeet_py.call.explain.report import Explanation

LONG = 6  # lines of a text at the beginning of a function that are shown
HUES = 8  # colours of kernels, see page.css
IN_NOTEBOOKS = ("untyped", "typed", "imp")  # those that do not ask LLVM
_MEANING = {
    Fate.KERNEL: "computed by the kernels that are named, together with the other lines that name them",
    Fate.NATIVE: "runs on the calling thread",
    Fate.VIEW: "computes an address; nothing is copied",
    Fate.FOLDED: "no code of its own: known when it was compiled, or computed where its value is used",
    Fate.HANDED_BACK: "Python does this; everything around it stays compiled",
    Fate.PYTHON: "Python runs this",
    Fate.CAUSE: "because of this line",
}


def page(explanation: Explanation, stages: Sequence[str] = tuple(STAGES), base: str = "") -> str:
    """The page as a document."""
    script = element("script", _resource("page.js"))
    parts = content(explanation, stages), script
    return document(f"{explanation.name}: what became of it", _resource("page.css"), *parts, base=base)


def fragment(explanation: Explanation) -> str:
    """The page as notebooks show it, without the stages that LLVM would have to make.

    It is in a frame, as the style sheets of a notebook would change how it looks, and names in it are its own.
    """
    shown = page(explanation, IN_NOTEBOOKS, base="about:srcdoc")
    return as_html(element("iframe", srcdoc=shown, title=explanation.name, style="width:100%;height:32rem;border:0"))


@lru_cache(maxsize=2)
def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _section(title: str, *children: Child) -> Element:
    return element("section", element("h2", title), *children)


def _note(*children: Child) -> Element:
    return element("p", *children, class_="note")


def _table(rows: Iterable[Iterable[str]]) -> Element:
    return element("table", [element("tr", [element("td", cell) for cell in row]) for row in rows])


# ---- the whole -------------------------------------------------------------------------------------------------------


def content(explanation: Explanation, stages: Sequence[str]) -> Element:
    """All of the page, as the `main` that the style sheet is written for."""
    made = explanation.made
    if made is None:
        return element("main", element("pre", str(explanation)), class_="parakeet")
    names = _Names(made.functions)
    shown = [] if made.compiled is None else stages_of(made.compiled, stages)
    if made.compiled is not None and explanation.device is not None:
        shown.append(ptx_stage(made.compiled, getattr(explanation.device, "architecture", "")))
    rates = Rates.of_cpu(explanation.threads)
    beside = [
        _stages(shown, names) if shown else None,
        _handed_back(made.sites, names) if made.sites else None,
        _kernels(made.kernels, names, rates) if made.kernels else None,
        _devices(explanation) if explanation.device is not None else None,
    ]
    kernels = [f"k{number + 1}: {_in_short(kernel, rates)}" for number, kernel in enumerate(made.kernels)]
    reasons = ["".join(element("i", _said_of(site)).itertext()) for site in made.sites]
    sources = element("div", [_source(one, names, kernels, reasons) for one in made.functions], class_="sources")
    columns = element("div", sources, element("div", beside, class_="beside"), class_="columns")
    return element(
        "main", _header(explanation), _legend(made.functions), columns, _footer(explanation), class_="parakeet"
    )


class _Names:
    """Names of lines on the page: the number of their file, and that of the line."""

    def __init__(self, functions: Sequence[SourceFunction]) -> None:
        files = list(dict.fromkeys(function.filename for function in functions))
        lines = [(function.filename, line.number) for function in functions for line in function.lines]
        self._names = {line: f"{files.index(line[0])}-{line[1]}" for line in lines}

    def of(self, line: LinePlace | None) -> str | None:
        """The name of a line that is on the page."""
        return None if line is None else self._names.get(line)

    def all(self, lines: Iterable[LinePlace]) -> str:
        return " ".join(filter(None, map(self.of, sorted(lines))))

    def links(self, lines: Iterable[LinePlace]) -> Element:
        """Links to those lines that are on the page."""
        wanted = set(lines)
        shown = [line for line in self._names if line in wanted]
        links: list[Child] = []
        for _, group in itertools.groupby(enumerate(shown), key=lambda one: (one[1][0], one[1][1] - one[0])):
            run = [line for _, line in group]  # lines of a file, one below the other
            ends = [run[0], run[-1]] if len(run) > 2 else run
            for place, line in enumerate(ends):
                links.append("" if not links else "–" if place and len(run) > 2 else ", ")
                links.append(element("a", str(line[1]), href=f"#L{self.of(line)}"))
        return element("div", "lines " if len(shown) > 1 else "line ", links, class_="where")


def _header(explanation: Explanation) -> Element:
    call = element("h1", f"{explanation.name}({', '.join(explanation.signature)})")
    if explanation.fell_back is not None:
        title = "This call is not compiled yet" if explanation.waits else "This call runs in Python"
        refusal = explanation.made.refusal if explanation.made is not None else ""
        why = _section(title, element("pre", explanation.fell_back), _example(entry_of(refusal)))
        why.set("class", "refused")
        return element("header", call, why)
    handed_back = _count(len(explanation.opaque_calls), "operation") if explanation.opaque_calls else "nothing"
    where = f"runs on cpu, up to {explanation.threads} threads"
    facts = [
        f"{_count(explanation.operators_before, 'array operation')} in {_count(explanation.kernels, 'kernel')}",
        f"{handed_back} handed back",
        where if explanation.device is None else str(explanation.device).partition("\n")[0],
    ]
    if explanation.times:
        facts.append(f"compiled in {1000 * sum(explanation.times.values()):.0f} ms")
    if (explanation.decision or "").startswith("not compiled yet"):
        facts.append("calls run in Python so far (see the notes)")
    return element("header", call, element("ul", [element("li", fact) for fact in facts], class_="facts"))


def _footer(explanation: Explanation) -> Element | None:
    storage, parts = explanation.storage, []
    if storage is not None and explanation.device is None:
        named = ("temporary", storage.temporaries), ("result", storage.results)
        memory = [(what, text) for what, allocations in named for text in in_short(allocations)]
        parts += [_section("Memory", _table(memory))] if memory else []
    if explanation.times:
        times = [(stage, f"{1000 * seconds:.1f} ms") for stage, seconds in explanation.times.items()]
        parts.append(_section("Compile time", _table(times)))
    notes = [*explanation.widened, *([f"when it pays: {explanation.decision}"] if explanation.decision else [])]
    if notes:
        parts.append(_section("Notes", element("ul", [element("li", note) for note in notes])))
    return element("footer", parts) if parts else None


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


# ---- the source ------------------------------------------------------------------------------------------------------


def _legend(functions: Sequence[SourceFunction]) -> Element:
    present = {line.fate for function in functions for line in function.lines}
    items = [
        element("li", element("i", class_=f"swatch {_class(fate)}"), element("b", fate.value), f": {meaning}")
        for fate, meaning in _MEANING.items()
        if fate in present
    ]
    return element("ul", items, class_="legend")


def _class(fate: Fate) -> str:
    return fate.value.lower().replace(" ", "-")


def _source(function: SourceFunction, names: _Names, kernels: Sequence[str], reasons: Sequence[str]) -> Element:
    coloured = _coloured([line.text for line in function.lines])
    rows, folded = [], _folded([line.text for line in function.lines])
    for place, (line, text) in enumerate(zip(function.lines, coloured, strict=True)):
        if place in folded:
            if place == folded[0]:
                rows.append(element("li", element("code", f"        … {len(folded)} lines"), class_="folded-text"))
            continue
        rows.append(_line(line, text, names.of((function.filename, line.number)) or "", kernels, reasons))
    where = f" {function.filename}:{function.lines[0].number}" if rows else f" {function.filename}: no source"
    title = element("h2", element("code", function.name), element("small", where))
    return element("section", title, element("ol", rows, class_="code"), class_="source")


def _folded(lines: Sequence[str]) -> range:
    """The lines of a long text at the beginning of a function that are left out: all but the first."""
    try:
        (function,) = ast.parse(textwrap.dedent("\n".join(lines))).body
    except (SyntaxError, ValueError):
        return range(0)
    first = getattr(function, "body", [None])[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str):
        return range(0)
    found = range(first.lineno, first.end_lineno or first.lineno)
    return found if len(found) > LONG else range(0)


def _line(line: SourceLine, text: Child, name: str, kernels: Sequence[str], reasons: Sequence[str]) -> Element:
    marks = [element("a", f"k{k + 1}", href=f"#k{k + 1}", class_=f"mark hue{k % HUES}") for k in line.kernels]
    if line.handed_back:
        count = f"Python ×{len(line.handed_back)}" if len(line.handed_back) > 1 else "Python"
        marks.append(element("a", count, href=f"#h{line.handed_back[0] + 1}", class_="mark handed-back"))
    tip = None
    if line.fate in _MEANING:
        said = [kernels[k] for k in line.kernels] + [reasons[h] for h in line.handed_back]
        value = element("div", element("code", line.value)) if line.value else None
        about = element("b", line.fate.value), f": {_MEANING[line.fate]}"
        more = [element("div", one) for one in said]
        tip = element("span", about, value, more, class_="tip", role="tooltip", id=f"T{name}")
    described = None if tip is None else f"T{name}"
    number = element("a", str(line.number), class_="number", href=f"#L{name}", aria_describedby=described)
    parts = number, element("code", text), element("span", marks, class_="marks"), tip
    hue = f" hue{line.kernels[0] % HUES}" if line.kernels else ""
    return element("li", parts, id=f"L{name}", data_line=name, class_=_class(line.fate) + hue)


def _coloured(lines: Sequence[str]) -> list[list[Child]]:
    """Lines of Python, their tokens in elements whose classes begin as those of Pygments."""
    from pygments.lexers import PythonLexer
    from pygments.token import STANDARD_TYPES

    found: list[list[Child]] = [[]]
    for kind, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        name = STANDARD_TYPES.get(kind, "")[:1]
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append([])
            found[-1].append(element("span", part, class_=name) if name in ("k", "s", "c", "m") and part else part)
    return found[: len(lines)]


# ---- beside the source -----------------------------------------------------------------------------------------------


def _stages(stages: Sequence[Stage], names: _Names) -> Element:
    parts = []
    for stage in stages:
        about = element("small", f" {stage.summary}, {_count(len(stage.lines), 'line')}")
        spans: list[Child] = []
        for line, group in itertools.groupby(stage.lines, key=lambda one: names.of(one[1])):
            text = "".join([f"{text}\n" for text, _ in group])
            spans.append(text if line is None else element("span", text, data_line=line))
        summary = element("summary", element("b", stage.name), about)
        parts.append(element("details", summary, element("pre", spans, tabindex=0), name="stage", class_="stage"))
    return _section("Stages", element("div", parts, class_="stages"))


def _handed_back(sites: Sequence[OpaqueSite], names: _Names) -> Element:
    cards = []
    for number, site in enumerate(sites):
        where = lines_of_site(site)
        title = element("h3", _said_of(site))
        parts = title, names.links(where), _advice(_entry_of(site))
        cards.append(
            element("article", parts, id=f"h{number + 1}", class_="card handed-back", data_lines=names.all(where))
        )
    about = _note("The results are Python's own. Each costs a call of Python, and kernels do not reach across it.")
    return _section("Handed back to Python", about, cards)


def _said_of(site: OpaqueSite) -> list[Child]:
    """What is handed back, and why; once, where that is the same."""
    if site.reason.startswith(site.text):
        return [site.reason]
    return [element("code", site.text), f": {site.reason}"]


def _entry_of(site: OpaqueSite) -> Entry | None:
    """The entry of the catalogue that says what to do: of a call that is not compiled, the one about such calls."""
    found = entry_of(site.reason)
    return (
        entry_named("other-packages") if site.operation == "call" and (not found or found.code == "syntax") else found
    )


def _advice(entry: Entry | None) -> Element | None:
    """What the catalogue of messages says to do."""
    if entry is None:
        return None
    more = _note("More: ", element("code", f"parakeet messages {entry.code}"))
    return element("div", element("p", element("b", "Instead: "), entry.hint), _example(entry), more)


def _example(entry: Entry | None) -> Element | None:
    if entry is None or not entry.works:
        return None
    summary = element("summary", "an example that is compiled")
    return element("details", summary, element("pre", entry.works.strip()))


def _kernels(kernels: Sequence[Kernel], names: _Names, rates: Rates) -> Element:
    seconds = [kernel.seconds(rates) for kernel in kernels]
    longest = max((one for both in seconds for one in both if one is not None), default=0.0) or 1.0
    cards = []
    for number, (kernel, times) in enumerate(zip(kernels, seconds, strict=True)):
        cards.append(_kernel(number, kernel, times, longest, names))
    speeds = f"{rates.bandwidth / 1e9:.1f} GB/s and {rates.operations / 1e9:.1f} G operations/s"
    command = element("code", "parakeet doctor --calibrate")
    how = "measured on this machine" if rates.measured else ("assumed: ", command, " measures them")
    about = "Bytes and operations are counted for these arguments; the longer bar is what bounds the kernel."
    return _section("Kernels", _note(f"Times are estimates for the CPU, at {speeds} (", how, f"). {about}"), cards)


def _kernel(
    number: int, kernel: Kernel, times: tuple[float | None, float | None], longest: float, names: _Names
) -> Element:
    mark = element("span", f"k{number + 1}", class_="mark")
    title = element("h3", mark, f" {kernel.title}")
    moved = f"{_bytes(kernel.loaded)} read, {_bytes(kernel.stored)} written"
    if kernel.loaded is None and kernel.stored is None:
        moved = "bytes are known when it runs"
    work = "operations are not counted" if kernel.operations is None else f"{kernel.operations:,} operations"
    bound = max((one for one in times if one is not None), default=None)
    bars = []
    for name, what, seconds in zip(("memory", "arithmetic"), (moved, work), times, strict=True):
        share = 100 * (seconds or 0.0) / longest
        bar = element("i", style=f"width:{share:.2f}%", class_="bar bound" if seconds == bound else "bar")
        took = "" if not seconds else f", ≈ {_seconds(seconds)}"
        bars += [element("dt", name), element("dd", bar, element("span", what + took))]
    lines = lines_of_kernel(kernel)
    often = _note("In a loop: the figures are those of one run.") if kernel.repeated else None
    parts = title, names.links(lines), element("dl", bars, class_="bars"), often
    return element(
        "article", parts, id=f"k{number + 1}", class_=f"card hue{number % HUES}", data_lines=names.all(lines)
    )


def _in_short(kernel: Kernel, rates: Rates) -> str:
    """A kernel on one line: what it is, and the longer one of its times."""
    known = [seconds for seconds in kernel.seconds(rates) if seconds]
    return f"{kernel.title}, ≈ {_seconds(max(known))} (estimate)" if known else kernel.title


def _devices(explanation: Explanation) -> Element:
    """What devices do, with the times that a recorded timeline has of it."""
    timed = _note("With options(timeline=True), what a call does is timed one by one.")
    if explanation.timeline is not None:
        timed = _table((one.device, one.kind, one.text, _seconds(one.seconds)) for one in explanation.timeline.events)
    return _section("Devices", element("pre", str(explanation.device)), timed)


def _bytes(size: int | None) -> str:
    if size is None:
        return "? bytes"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
