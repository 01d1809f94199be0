"""What `parakeet bench` measures instead of its programs: small calls, rooflines, NPBench, first calls."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from parakeet_py.bench.files import write_json
from parakeet_py.cli.app import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console


def with_progress(total: int, work: Callable[[Callable[[str, str], None]], Any]) -> Any:
    """The result of `work(tell)`, with a progress bar that `tell(what, detail)` moves when `what` changes."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=total)
        seen: list[str] = []

        def tell(what: str, detail: str) -> None:
            if what not in seen:
                seen.append(what)
            progress.update(task, completed=len(seen) - 1, description=f"{what:28.28} {detail:16}")

        return work(tell)


def small_calls(console: Console, settings: Any, json_file: Path | None, readme: Path | None) -> None:
    from rich.table import Table

    from parakeet_py.bench import small_calls
    from parakeet_py.bench.idioms import IDIOMS
    from parakeet_py.bench.report import busy, replace_between, seconds

    cells = with_progress(
        sum(map(len, IDIOMS.values())),
        lambda tell: list(small_calls.measure([name for name in settings.peers if name == "numba"], tell=tell)),
    )
    measured = [name for name in ("parakeet", "numba") if any(cell.times.get(name) for cell in cells)]
    for system in measured:
        table = Table(title=f"small calls: time of NumPy / time of {system}, geometric means (slower ones)")
        table.add_column("idioms")
        rows = small_calls.summary(cells, system)
        for size in next(iter(rows.values())):
            table.add_column(f"{size:,}", justify="right")
        for group, row in rows.items():
            table.add_row(group, *(f"{mean:.2f} ({slower} of {count})" for mean, slower, count in row.values()))
        console.print(table)
    for cell in small_calls.slower(cells):
        line = f"{cell.ratio('parakeet'):5.2f}  {seconds(cell.times['parakeet']):>8}  {cell.size:6}  {cell.idiom!r}"
        console.print(line, markup=False, highlight=False)
    for line in busy(settings):
        console.print(line, style="dim", highlight=False)
    if json_file is not None:
        write_json(json_file, [asdict(cell) for cell in cells])
    if readme is not None:
        replace_between(readme, small_calls.BEGIN, small_calls.END, small_calls.markdown(cells))


def rooflines(
    console: Console, programs: Sequence[Any], settings: Any, json_file: Path | None, plots: Sequence[Path]
) -> None:
    from parakeet_py.bench import roofline
    from parakeet_py.bench.report import busy

    wrong = [path for path in plots if path.suffix.lower() not in (".png", ".html")]
    if wrong:
        raise fail(f"a plot is .png or .html, not {wrong[0]}")
    found = with_progress(
        len(programs),
        lambda tell: roofline.measure(programs, settings.size, settings.threads, lambda name: tell(name, "")),
    )
    for one in found:
        console.print(str(one), markup=False, highlight=False, soft_wrap=True)
    slow = roofline.slow_lines(found)
    console.print(f"below half of what is possible: {len(slow)}", highlight=False)
    for line in (*slow, *busy(settings)):
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True, style="dim")
    if json_file is not None:
        write_json(json_file, roofline.as_data(found, settings.size))
    for path in plots:
        roofline.write_plot(path, found)


def listed(text: str | None) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def run_npbench(
    console: Console,
    path: Path,
    names: list[str],
    presets: list[str],
    peers: str | None,
    threads: int | None,
    budget: float | None,
    json_file: Path | None,
    readme: Path | None,
    cpu_time: bool,
) -> None:
    """`bench --npbench`: the programs of a checkout, each in child processes."""
    from rich.console import Console

    from parakeet_py.base.config import available_cpus
    from parakeet_py.bench.load import busy_processors
    from parakeet_py.bench.npbench import checkout, report, runner, systems
    from parakeet_py.bench.report import replace_between

    try:
        programs = checkout.programs(path, names)
        checkout.check_presets(programs, presets)
    except checkout.CheckoutError as error:
        raise fail(f"--npbench: {error}") from None
    asked = [name for name in listed(peers) if name not in ("numpy", systems.OURS)]
    if unknown := [name for name in asked if name not in systems.RIVALS]:
        raise fail(f"no peer {', '.join(unknown)} for --npbench; there are numpy, {', '.join(systems.RIVALS)}")
    if missing := [name for name in asked if not systems.is_installed(name)]:
        raise fail(f"--peers: {', '.join(missing)} is not installed")
    there = [name for name in systems.RIVALS if systems.is_installed(name)]
    settings = runner.Settings(
        tuple(name for name in there if peers is None or name in asked),
        tuple(presets),
        threads or (1 if cpu_time else available_cpus()),
        3600.0 if budget is None else budget,
        "cpu" if cpu_time else "wall",
    )
    load = busy_processors()
    count = len(programs) * max(1, len(presets))
    rows = with_progress(2 * count, lambda tell: runner.run(programs, settings, tell))
    if not console.is_terminal:
        console = Console(width=150)
    console.print(report.table(rows, settings))
    for line in (*report.summary(rows), *report.notes(rows)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if load is not None and load >= 0.5:
        console.print(f"{load:.1f} other processes were busy at the start: only ratios mean something", style="dim")
    if json_file is not None:
        write_json(json_file, report.as_data(rows, settings, load))
    if readme is not None:
        replace_between(readme, report.BEGIN, report.END, report.markdown(rows, settings, load))
    if any(row.findings["numpy"].status in ("WRONG", "error", "timeout") for row in rows):
        raise typer.Exit(1)


def first_calls(console: Console, programs: list[str], settings: Any, json_file: Path | None) -> None:
    from rich.table import Table

    from parakeet_py.bench.cold import CALLS, REPEATS, SYSTEMS, measure, ways_of
    from parakeet_py.bench.report import busy, seconds

    systems = [name for name in SYSTEMS if name in settings.peers]
    report = with_progress(
        1 + 2 * len(systems) + len(ways_of(systems)) + len(programs),
        lambda tell: measure(systems, programs, lambda what: tell(what, "")),
    )
    table = Table(title="fresh processes")
    table.add_column("what")
    for system in systems:
        table.add_column(system, justify="right")
    values = {(figure.what, figure.system): figure.seconds for figure in report.figures}
    for what in dict.fromkeys(figure.what for figure in report.figures):
        table.add_row(what, *(seconds(values.get((what, system))) for system in systems))
    console.print(table)
    table = Table(title=f"fifty small functions, {CALLS} calls each, in fresh processes")
    for title in ("way", "import and decorate", "calls, empty cache", "calls, filled cache", "not compiled"):
        table.add_column(title, justify="left" if title == "way" else "right")
    for way in report.small_functions:
        table.add_row(way.way, seconds(way.decorated), seconds(way.cold), seconds(way.warm), str(way.refused))
    console.print(table)
    if report.programs:
        table = Table(title="first calls in fresh processes", show_footer=True)
        cold, warm = report.medians()
        table.add_column("program", footer="median")
        table.add_column("empty cache", footer=seconds(cold), justify="right")
        table.add_column("filled cache", footer=seconds(warm), justify="right")
        for one in report.programs:
            table.add_row(one.program, seconds(one.cold), seconds(one.warm))
        console.print(table)
    note = f"medians of {REPEATS} processes each; byte code was compiled beforehand, as by an installation"
    for line in (note, *busy(settings)):
        console.print(line, style="dim", highlight=False)
    if json_file is not None:
        write_json(json_file, report.as_data())
