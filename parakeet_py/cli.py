"""The command line: `parakeet bench`, `parakeet bench-gpu`, `parakeet explain FILE.py:FUNCTION`, `parakeet export
FILE.py:FUNCTION`, `parakeet doctor`, `parakeet cache`.

Commands import what they need when they run, so that `--help` is quick. This is the only module that prints.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

app = typer.Typer(
    name="parakeet",
    help="Ordinary NumPy functions, made fast by one decorator.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from parakeet_py import __version__

        typer.echo(f"parakeet_py {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ordinary NumPy functions, made fast by one decorator."""


def main() -> None:
    """Run the command line."""
    app()


def _fail(message: str) -> typer.Exit:
    typer.secho(message, err=True, fg="red")
    return typer.Exit(2)


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Programs to run; all of them if none is named.")] = None,
    size: Annotated[str, typer.Option(help="Input size: XS, S, M or L.")] = "M",
    threads: Annotated[int | None, typer.Option(help="Threads for every implementation.", min=1)] = None,
    peers: Annotated[
        str | None,
        typer.Option(help="Comma-separated: numpy, numba, numba-parallel, jax, c. Default: what is installed."),
    ] = None,
    devices: Annotated[
        str,
        typer.Option(help="Where parakeet_py runs: cpu, cuda:0, emulated... (other than cpu: compared with NumPy)."),
    ] = "cpu",
    split: Annotated[
        str | None,
        typer.Option(help="Percents, such as 0,50,100: time at each share of the devices instead, and as chosen."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Seconds for the whole run, roughly: 140, for --npbench 3600.")
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Measure fresh processes instead: imports, first and small calls.")
    ] = False,
    small: Annotated[
        bool, typer.Option("--small", help="Measure calls of 200 idioms on 1 to 10,000 elements instead.")
    ] = False,
    roofline: Annotated[
        bool,
        typer.Option("--roofline", help="Measure each kernel instead, beside what memory and arithmetic allow here."),
    ] = False,
    npbench: Annotated[
        Path | None, typer.Option(help="Run the programs of this checkout of NPBench, unmodified, instead.")
    ] = None,
    npbench_programs: Annotated[
        str | None, typer.Option("--programs", help="With --npbench: its programs, separated by commas.")
    ] = None,
    presets: Annotated[
        str | None,
        typer.Option(help="With --npbench: presets, such as S,M. Default: M, of eight programs S."),
    ] = None,
    cpu_time: Annotated[
        bool,
        typer.Option(
            "--cpu-time", help="With --npbench: measure the processors' time, on one thread, not the clock's."
        ),
    ] = False,
    timeline: Annotated[
        Path | None,
        typer.Option(help="Write what a call does on the devices when, instead: FILE.json, for ui.perfetto.dev."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.")] = None,
    plot: Annotated[list[Path] | None, typer.Option(help="Write a plot: FILE.png or FILE.html (repeatable).")] = None,
    readme: Annotated[Path | None, typer.Option(help="Update the results between the markers of this file.")] = None,
    list_programs: Annotated[bool, typer.Option("--list", help="List the programs and stop.")] = False,
) -> None:
    """Run the benchmark programs on parakeet_py, NumPy and the other systems installed, and compare."""
    from rich.console import Console

    console = Console()
    if npbench is not None:
        chosen = [*(names or []), *_listed(npbench_programs)]
        wanted = chosen, _listed(presets)
        _bench_npbench(console, npbench, *wanted, peers, threads, budget, json_file, readme, cpu_time)
        return
    if npbench_programs or presets or cpu_time:
        only = "--programs, --presets and --cpu-time are for --npbench"
        raise _fail(f"{only}; the programs of this package are named as arguments")
    if devices != "cpu" and peers is None:
        peers = "numpy"
    settings, programs = _bench_settings(names, size, threads, peers, 140.0 if budget is None else budget, devices)
    if list_programs:
        for program in programs:
            console.print(f"[bold]{program.name:28}[/bold]{program.summary}", soft_wrap=True)
        return
    if roofline:
        _bench_roofline(console, programs, settings, json_file, plot or [])
        return
    _check_bench(settings.peers, peers, plot or [], split)
    if timeline is not None:
        _bench_timeline(console, programs, devices, split, timeline, settings.size)
        return
    if split is not None:
        _bench_split(console, programs, devices, split, settings.size, plot or [])
        return
    if cold:
        _bench_cold(console, [program.name for program in programs], settings, json_file)
        return
    if small:
        _bench_small(console, settings, json_file, readme)
        return

    from parakeet_py import options
    from parakeet_py.bench import report
    from parakeet_py.bench.peers import PEERS
    from parakeet_py.bench.plot import write_plot
    from parakeet_py.bench.runner import run

    with options(devices=devices):
        rows = _with_progress(
            len(programs),
            lambda tell: run(programs, settings, lambda program, peer: tell(program, PEERS.get(peer, peer))),
        )
    if not console.is_terminal:
        console = Console(width=150)
    console.print(report.table(rows, settings))
    for line in report.notes(rows, settings):
        console.print(line, style="dim", markup=False, highlight=False)
    if json_file is not None:
        report.write_json(json_file, rows, settings)
    if readme is not None:
        report.update_readme(readme, rows, settings)
    for path in plot or []:
        write_plot(path, rows, settings)
    if any(m.status == "WRONG" for row in rows for name, m in row.measurements.items() if name == "parakeet"):
        raise typer.Exit(1)


def _bench_split(console: Any, programs: list[Any], devices: str, percents: str, size: Any, plots: list[Path]) -> None:
    """`bench --split`: every program at every share."""
    from parakeet_py.bench.split import curve, table
    from parakeet_py.bench.split_plot import Curve, write_curves

    shares = _shares(devices, percents)
    wrong = False
    curves = []
    for program in programs:
        points = curve(program, devices, shares, size)
        curves.append(Curve(program.name, devices, points))
        console.print(table(program.name, devices, points))
        wrong |= any(point.wrong for point in points)
    for path in plots:
        write_curves(path, curves)
    if wrong:
        raise typer.Exit(1)


def _shares(devices: str, percents: str) -> tuple[float, ...]:
    """The shares that --split names, if they make sense for the devices."""
    from parakeet_py.base.device_names import check_split
    from parakeet_py.bench.split import parse_splits

    try:
        shares = parse_splits(percents)
        for share in shares:
            check_split(devices, share)
    except ValueError as error:
        raise _fail(str(error)) from None
    return shares


def _bench_timeline(
    console: Any, programs: list[Any], devices: str, percents: str | None, path: Path, size: Any
) -> None:
    """`bench --timeline`: one call of every program, at the share of --split or as chosen."""
    from parakeet_py.bench.timelines import write

    if devices == "cpu":
        raise _fail("--timeline shows calls on devices: name some, such as --devices cpu,cuda or cpu,emulated*2")
    if path.suffix.lower() != ".json":
        raise _fail(f"a timeline is .json, for ui.perfetto.dev, not {path.suffix or 'without a suffix'}")
    share = None if percents is None else _shares(devices, percents)[0]
    for target, found in write(path, programs, devices, size, share):
        console.print(f"{target}: {found}", markup=False, highlight=False, soft_wrap=True)


def _bench_settings(
    names: list[str] | None, size: str, threads: int | None, peers: str | None, budget: float, devices: str
) -> tuple[Any, list[Any]]:
    """The settings and programs that the options of `bench` ask for."""
    from parakeet_py.base.config import available_cpus
    from parakeet_py.bench.peers import DEFAULT_PEERS, OURS, PEERS
    from parakeet_py.bench.program import SIZES
    from parakeet_py.bench.programs import select
    from parakeet_py.bench.runner import Settings

    chosen = tuple(name.strip() for name in peers.split(",") if name.strip()) if peers else DEFAULT_PEERS
    unknown = [name for name in chosen if name not in PEERS]
    if unknown:
        raise _fail(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    sizes = {str(name): name for name in SIZES}
    if size.upper() not in sizes:
        raise _fail(f"no size {size}; there are {', '.join(SIZES)}")
    try:
        programs = select(names or [])
    except KeyError as error:
        raise _fail(str(error.args[0])) from None
    wanted = (OURS, *(name for name in PEERS if name in chosen and name != OURS))
    if devices != "cpu":
        from parakeet_py.hybrid.devices.device import DeviceError
        from parakeet_py.hybrid.devices.selection import open_devices

        try:
            open_devices(devices)
        except (ValueError, DeviceError) as error:
            raise _fail(str(error)) from None
    from parakeet_py.bench.load import busy_processors

    return Settings(
        wanted, sizes[size.upper()], threads or available_cpus(), budget, busy_processors(), devices
    ), programs


def _check_bench(columns: tuple[str, ...], asked: str | None, plots: list[Path], split: str | None) -> None:
    """Refuse, before anything is measured, what could not be measured or written."""
    import importlib.util

    from parakeet_py.bench.peers import Unavailable, availability

    for name in (part.strip() for part in (asked or "").split(",")):
        try:
            availability(name)
        except Unavailable as error:
            raise _fail(f"--peers {name}: {error}") from None
    for path in plots:
        if path.suffix.lower() not in (".png", ".html"):
            raise _fail(f"a plot is .png or .html, not {path.suffix or 'without a suffix'}")
        if path.suffix.lower() == ".png" and importlib.util.find_spec("matplotlib") is None:
            raise _fail(f"--plot {path}: matplotlib is not installed; .html needs nothing")
    if plots and "numpy" not in columns and split is None:
        raise _fail("--plot shows times against NumPy's: add numpy to --peers")


def _with_progress(total: int, work: Callable[[Callable[[str, str], None]], Any]) -> Any:
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


def _bench_small(console: Console, settings: Any, json_file: Path | None, readme: Path | None) -> None:
    from rich.table import Table

    from parakeet_py.bench import small_calls
    from parakeet_py.bench.idioms import IDIOMS
    from parakeet_py.bench.report import busy, replace_between, seconds

    cells = _with_progress(
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
        small_calls.write_json(json_file, cells)
    if readme is not None:
        replace_between(readme, small_calls.BEGIN, small_calls.END, small_calls.markdown(cells))


def _bench_roofline(
    console: Console, programs: Sequence[Any], settings: Any, json_file: Path | None, plots: Sequence[Path]
) -> None:
    from parakeet_py.bench import roofline
    from parakeet_py.bench.report import busy

    wrong = [path for path in plots if path.suffix.lower() not in (".png", ".html")]
    if wrong:
        raise _fail(f"a plot is .png or .html, not {wrong[0]}")
    found = _with_progress(
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
        roofline.write_json(json_file, found, settings.size)
    for path in plots:
        roofline.write_plot(path, found)


def _listed(text: str | None) -> list[str]:
    """The names in a list separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _bench_npbench(
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
        raise _fail(f"--npbench: {error}") from None
    asked = [name for name in _listed(peers) if name not in ("numpy", systems.OURS)]
    if unknown := [name for name in asked if name not in systems.RIVALS]:
        raise _fail(f"no peer {', '.join(unknown)} for --npbench; there are numpy, {', '.join(systems.RIVALS)}")
    if missing := [name for name in asked if not systems.is_installed(name)]:
        raise _fail(f"--peers: {', '.join(missing)} is not installed")
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
    rows = _with_progress(2 * count, lambda tell: runner.run(programs, settings, tell))
    if not console.is_terminal:
        console = Console(width=150)
    console.print(report.table(rows, settings))
    for line in (*report.summary(rows), *report.notes(rows)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if load is not None and load >= 0.5:
        console.print(f"{load:.1f} other processes were busy at the start: only ratios mean something", style="dim")
    if json_file is not None:
        report.write_json(json_file, rows, settings, load)
    if readme is not None:
        replace_between(readme, report.BEGIN, report.END, report.markdown(rows, settings, load))
    if any(row.findings["numpy"].status in ("WRONG", "error", "timeout") for row in rows):
        raise typer.Exit(1)


def _bench_cold(console: Console, programs: list[str], settings: Any, json_file: Path | None) -> None:
    import json

    from rich.table import Table

    from parakeet_py.bench.cold import CALLS, REPEATS, SYSTEMS, measure, ways_of
    from parakeet_py.bench.report import busy, seconds

    systems = [name for name in SYSTEMS if name in settings.peers]
    report = _with_progress(
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
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(report.as_data(), indent=1) + "\n", encoding="utf-8")


@app.command("bench-gpu")
def bench_gpu(
    names: Annotated[list[str] | None, typer.Argument(help="Operators and programs; all if none is named.")] = None,
    device: Annotated[str, typer.Option(help="cuda:0, cuda:1..., or emulated for a rehearsal.")] = "cuda:0",
    size: Annotated[str, typer.Option(help="Input size: XS, S, M or L.")] = "M",
    budget: Annotated[float, typer.Option(help="Seconds for the whole run, roughly.")] = 400.0,
    out: Annotated[Path | None, typer.Option(help="Write JSON and Markdown into this folder.")] = None,
) -> None:
    """Measure operators and programs on a GPU: kernels, transfers, bandwidth; CuPy, JAX, PyTorch, numba beside them."""
    from parakeet_py.bench.gpu import report, runner, supervise
    from parakeet_py.bench.program import SIZES
    from parakeet_py.hybrid.devices import cuda
    from parakeet_py.hybrid.devices.device import DeviceError

    sizes = {str(name): name for name in SIZES}
    if size.upper() not in sizes:
        raise _fail(f"no size {size}; there are {', '.join(SIZES)}")
    if device.startswith("cuda") and not cuda.probe().devices:
        typer.echo(f"skipped: no GPU to measure: {cuda.probe().reason}")
        return
    try:
        found = _with_progress(
            len(runner.tasks(names or ())),
            lambda tell: supervise.run(device, sizes[size.upper()], budget, names or (), lambda n: tell(n, "")),
        )
    except (ValueError, DeviceError) as error:
        raise _fail(str(error)) from None
    typer.echo(report.markdown(found))
    if out is not None:
        typer.echo(f"written: {', '.join(map(str, report.write(out, found)))}")
    if any(row.ours.status == "WRONG" for row in (*found.operators, *found.programs)):
        raise typer.Exit(1)


@app.command()
def explain(
    target: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="What to explain; or FILE.py:FUNCTION.")],
    args: Annotated[
        str | None, typer.Option(help="Arguments as a Python expression, np being NumPy: 'np.ones(10), 2.0'.")
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="Call it first, so that what is handed back to Python has been seen.")
    ] = False,
    stage: Annotated[str | None, typer.Option(help="Print one stage instead: untyped, typed, imp or llvm.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page instead, with all stages beside the source.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Tell what the compiler makes of a function: with --args for arguments of these types, else its untyped IR."""
    function = _load(target)
    if (show or html) and (stage or args is None):
        raise _fail("a page shows all stages of one call: give --args, and no --stage")
    stages = {"untyped": "untyped_ir", "typed": "typed_ir", "imp": "imp", "llvm": "llvm"}
    if stage is not None and stage not in stages:
        raise _fail(f"no stage {stage}; there are {', '.join(stages)}")
    if args is None or stage == "untyped":
        if stage not in (None, "untyped"):
            raise _fail(f"the {stage} stage needs argument types: give --args")
        typer.echo(function.untyped_ir())
        return
    from parakeet_py.base.errors import ParakeetError

    arguments = _evaluate(args, function)
    try:
        if call:
            for _ in range(2):  # the first call shows what is handed back, the second is compiled
                function(*arguments)
        shown = function.explain(*arguments) if stage is None else getattr(function, stages[stage])(*arguments)
    except (ParakeetError, TypeError) as error:
        raise _fail(str(error)) from None
    if show or html:
        _write_page(shown, html, show)
    else:
        typer.echo(str(shown))


@app.command()
def export(
    target: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="What to export; or MODULE:FUNCTION.")],
    args: Annotated[
        list[str] | None,
        typer.Option(help="Arguments of a call, as a Python expression, np being NumPy (repeatable: further types)."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write to; it is made.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the library and its functions. Default: the function's.")] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="x86-64-v2, x86-64-v3, x86-64-v4 (comma-separated); or aarch64. Default: all of here.",
        ),
    ] = None,
    threads: Annotated[str, typer.Option(help="How loops run: serial, pool or openmp.")] = "serial",
    blas: Annotated[str, typer.Option(help="Matrix products: none (loops), or cblas, which is linked.")] = "none",
    link_flag: Annotated[
        list[str] | None, typer.Option(help="A further argument of the C compiler, as -lopenblas (repeatable).")
    ] = None,
    ptx: Annotated[str | None, typer.Option(help="Write the kernels for this GPU beside it, as sm_90.")] = None,
) -> None:
    """Write a function as a library for C and for Python with NumPy alone: code, header, module."""
    if not args:
        raise _fail("what is exported is compiled for types: give --args 'np.ones(10), 2.0', once or several times")
    if out is None:
        raise _fail("where to? give a folder: -o build")
    function = _load(target)
    from parakeet_py.base.errors import ParakeetError

    calls = [_evaluate(one, function) for one in args]
    try:
        made = function.export(
            out,
            *calls[0],
            also=calls[1:],
            name=name,
            target=cpu,
            threads=threads,
            blas=blas,
            link_flags=tuple(link_flag or ()),
            ptx=ptx,
        )
    except (ParakeetError, TypeError) as error:
        raise _fail(str(error)) from None
    for path in made.files:
        typer.echo(f"written: {path}")
    if made.library is None:
        typer.secho(f"there is no C compiler here, so nothing is linked; with one, in {out}:", err=True, fg="yellow")
        typer.echo(made.command)


def _write_page(explanation: Any, path: Path | None, show: bool) -> None:
    """Write the page of an explanation, to a temporary file if no path is given."""
    import tempfile
    import webbrowser

    path = path or Path(tempfile.mkdtemp(prefix="parakeet-")) / f"{explanation.name}.html"
    try:
        explanation.html(path)
    except OSError as error:
        raise _fail(f"--html {path}: {error.strerror}") from None
    typer.echo(f"written: {path}")
    if show and not webbrowser.open(path.resolve().as_uri()):
        raise _fail(f"there is no browser here: open {path}")


def _load(target: str) -> Any:
    """The accelerated function that MODULE:FUNCTION or FILE.py:FUNCTION names."""
    from parakeet_py import accelerate

    file, colon, name = target.rpartition(":")
    if not colon or not name:
        raise _fail(f"{target!r} is not MODULE:FUNCTION or FILE.py:FUNCTION")
    found = _module(file)
    for part in name.split("."):
        if not hasattr(found, part):
            raise _fail(f"{file} has no {name}")
        found = getattr(found, part)
    return found if hasattr(found, "untyped_ir") else accelerate(found)


def _module(name: str) -> Any:
    """The module of this name, or of the Python file of this name."""
    import importlib.util
    import sys

    path = Path(name)
    if not path.is_file() and path.suffix != ".py" and path.name == name:
        sys.path.insert(0, "")
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise _fail(f"there is no module {error.name}") from None
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or specification is None or specification.loader is None:
        raise _fail(f"there is no Python file {name}")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))
    specification.loader.exec_module(module)
    return module


def _evaluate(text: str, function: Any) -> tuple[Any, ...]:
    """The arguments that the expression `text` means, in the namespace of the function's module and of NumPy."""
    import numpy as np

    scope = dict(getattr(getattr(function, "__wrapped__", function), "__globals__", {}))
    scope.setdefault("np", np)
    text = text.strip().removesuffix(",")
    try:
        result = eval(f"({text},)" if text else "()", scope)  # the user's own expression, on their own command line
    except Exception as error:
        raise _fail(
            f"--args {text!r}: {type(error).__name__}: {error}\n"
            "it is a Python expression in the function's module, with NumPy as np: --args 'np.ones(10), 2.0'"
        ) from None
    return tuple(result)


@app.command()
def messages(
    code: Annotated[str | None, typer.Argument(help="One kind of message; all are listed if none is named.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The whole catalogue as a page.")] = False,
) -> None:
    """Tell what messages about refusals mean and what to do, with examples."""
    from parakeet_py.call.troubleshooting import as_list, as_text, page
    from parakeet_py.messages.lookup import entry_named

    if markdown:
        typer.echo(page(), nl=False)
        return
    if code is None:
        typer.echo(as_list())
        return
    try:
        typer.echo(as_text(entry_named(code)))
    except KeyError as error:
        raise _fail(str(error.args[0])) from None


@app.command()
def chosen(
    only: Annotated[str, typer.Argument(help="The beginning of a name: matmul, axpy, exp, total...")] = "",
    most: Annotated[int, typer.Option(help="No larger sizes than this.")] = 10**9,
    write: Annotated[Path | None, typer.Option(help="Put the table into this page, between its marks.")] = None,
) -> None:
    """Compare what is chosen for calls on the CPU and a device of set speed with the better of the two."""
    from parakeet_py.bench.chosen import into, rows, table

    found = []
    for row in rows(only, most):
        found.append(row)
        typer.echo(table(found).splitlines()[-1])
    if write is None:
        typer.echo(table(found))
    else:
        write.write_text(into(write.read_text(), table(found)))


@app.command()
def doctor(
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the speeds of CPU and devices, and remember them.")
    ] = False,
    devices: Annotated[str, typer.Option(help="Which devices to calibrate.")] = "cuda",
) -> None:
    """Say what parakeet_py finds on this machine, and what it lacks."""
    from rich.console import Console
    from rich.table import Table

    from parakeet_py.doctor import examine

    console = Console()
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examine():
        mark = "[green]✓[/green]" if finding.good else "[yellow]–[/yellow]"
        table.add_row(f"{mark} {finding.topic}", finding.text)
    if calibrate:
        from parakeet_py.call.devices.calibrate import calibrate as measure_speeds
        from parakeet_py.hybrid.devices.device import DeviceError
        from parakeet_py.hybrid.devices.selection import open_devices

        try:
            speeds = measure_speeds(open_devices(devices))
        except (DeviceError, ValueError) as error:
            raise _fail(str(error)) from None
        for name, (rate, link, start) in speeds.items():
            copies = (
                f"a thread, memory {link / 1e9:.3g} GB/s, "
                if name == "cpu"
                else f"{link / 1e9:.3g} GB/s to and from it, "
            )
            text = f"{rate:.3g} operations/s, {copies}{start:.2g} s a start"
            table.add_row(f"[green]✓[/green] speed of {name}", text)
    console.print(table)


@app.command()
def cache(
    size: Annotated[bool, typer.Option("--size", help="Tell how many entries there are and what they take.")] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Delete all entries.")] = False,
    list_entries: Annotated[
        bool, typer.Option("--list", help="List the entries, those that were used last at the end.")
    ] = False,
) -> None:
    """Look at the compiled code that is kept on disk, or delete it (without an option: --size)."""
    import time

    from rich.filesize import decimal

    from parakeet_py.base.config import current
    from parakeet_py.llvm.engine import disk_cache

    if size + clear + list_entries > 1:
        raise _fail("one of --size, --clear and --list at a time")
    try:
        settings = current()
    except ValueError as error:
        raise _fail(str(error)) from None
    if not settings.cache:
        raise _fail("the disk cache is switched off (PARAKEET_CACHE=0)")
    folder = disk_cache.directory()
    if folder is None:
        raise _fail("there is no cache: no folder that this user owns and only this user can write")
    if clear:
        count, total = disk_cache.clear(folder)
        typer.echo(f"{folder}: {count} files deleted, {decimal(total)}")
        return
    entries = disk_cache.kept(folder)
    if list_entries:
        for entry in entries:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
            typer.echo(f"{when} {decimal(entry.size):>9}  {_one_line(entry.title) or Path(entry.path).name}")
        return
    total, limit = sum(entry.size for entry in entries), decimal(settings.cache_size)
    typer.echo(f"{folder}: {len(entries)} entries, {decimal(total)} of at most {limit} (PARAKEET_CACHE_SIZE)")


def _one_line(text: str) -> str:
    """Text of a file as it can be shown: without line ends and control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


__all__ = ["app", "main"]
