"""`parakeet bench`, `parakeet bench-gpu`, `parakeet chosen`, `parakeet scaling`: measurements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parakeet_py.cli.app import app, fail
from parakeet_py.cli.bench_modes import first_calls, listed, rooflines, run_npbench, small_calls, with_progress

if TYPE_CHECKING:
    pass


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
    _check_folders([*(plot or []), *(one for one in (json_file, readme, timeline) if one is not None)])
    if npbench is not None:
        chosen = [*(names or []), *listed(npbench_programs)]
        wanted = chosen, listed(presets)
        run_npbench(console, npbench, *wanted, peers, threads, budget, json_file, readme, cpu_time)
        return
    if npbench_programs or presets or cpu_time:
        only = "--programs, --presets and --cpu-time are for --npbench"
        raise fail(f"{only}; the programs of this package are named as arguments")
    if devices != "cpu" and peers is None:
        peers = "numpy"
    settings, programs = _bench_settings(names, size, threads, peers, 140.0 if budget is None else budget, devices)
    if list_programs:
        for program in programs:
            console.print(f"[bold]{program.name:28}[/bold]{program.summary}", soft_wrap=True)
        return
    if roofline:
        rooflines(console, programs, settings, json_file, plot or [])
        return
    _check_bench(settings.peers, peers, plot or [], split)
    if timeline is not None:
        _bench_timeline(console, programs, devices, split, timeline, settings.size)
        return
    if split is not None:
        _bench_split(console, programs, devices, split, settings.size, plot or [])
        return
    if cold:
        first_calls(console, [program.name for program in programs], settings, json_file)
        return
    if small:
        small_calls(console, settings, json_file, readme)
        return

    from parakeet_py import options
    from parakeet_py.bench import report
    from parakeet_py.bench.files import write_json
    from parakeet_py.bench.peers import PEERS
    from parakeet_py.bench.plot import write_plot
    from parakeet_py.bench.runner import run

    with options(devices=devices):
        rows = with_progress(
            len(programs),
            lambda tell: run(programs, settings, lambda program, peer: tell(program, PEERS.get(peer, peer))),
        )
    if not console.is_terminal:
        console = Console(width=150)
    console.print(report.table(rows, settings))
    for line in report.notes(rows, settings):
        console.print(line, style="dim", markup=False, highlight=False)
    if json_file is not None:
        write_json(json_file, report.as_data(rows, settings))
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
        raise fail(str(error)) from None
    return shares


def _bench_timeline(
    console: Any, programs: list[Any], devices: str, percents: str | None, path: Path, size: Any
) -> None:
    """`bench --timeline`: one call of every program, at the share of --split or as chosen."""
    from parakeet_py.bench.timelines import write

    if devices == "cpu":
        raise fail("--timeline shows calls on devices: name some, such as --devices cpu,cuda or cpu,emulated*2")
    if path.suffix.lower() != ".json":
        raise fail(f"a timeline is .json, for ui.perfetto.dev, not {path.suffix or 'without a suffix'}")
    share = None if percents is None else _shares(devices, percents)[0]
    written = write(path, programs, devices, size, share)
    for target, found in written:
        console.print(f"{target}: {found}", markup=False, highlight=False, soft_wrap=True)
    left = len(programs) - len(written)
    if left:
        text = f"{left} of {len(programs)}: no timeline, as the CPU alone has the call; --split 50 gives devices a part"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


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
        raise fail(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    sizes = {str(name): name for name in SIZES}
    if size.upper() not in sizes:
        raise fail(f"no size {size}; there are {', '.join(SIZES)}")
    try:
        programs = select(names or [])
    except KeyError as error:
        raise fail(str(error.args[0])) from None
    wanted = (OURS, *(name for name in PEERS if name in chosen and name != OURS))
    if devices != "cpu":
        from parakeet_py.hybrid.devices.device import DeviceError
        from parakeet_py.hybrid.devices.selection import open_devices

        try:
            open_devices(devices)
        except (ValueError, DeviceError) as error:
            raise fail(str(error)) from None
    from parakeet_py.bench.load import busy_processors

    return Settings(
        wanted, sizes[size.upper()], threads or available_cpus(), budget, busy_processors(), devices
    ), programs


def _check_folders(paths: Sequence[Path]) -> None:
    """Refuse, before anything is measured, files that could not be written."""
    for path in paths:
        if not path.absolute().parent.is_dir():
            raise fail(f"{path} cannot be written: there is no folder {path.parent}")
        if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise fail(f"{path} cannot be written")


def _check_bench(columns: tuple[str, ...], asked: str | None, plots: list[Path], split: str | None) -> None:
    """Refuse, before anything is measured, what could not be measured or written."""
    import importlib.util

    from parakeet_py.bench.peers import Unavailable, availability

    for name in (part.strip() for part in (asked or "").split(",")):
        try:
            availability(name)
        except Unavailable as error:
            raise fail(f"--peers {name}: {error}") from None
    for path in plots:
        if path.suffix.lower() not in (".png", ".html"):
            raise fail(f"a plot is .png or .html, not {path.suffix or 'without a suffix'}")
        if path.suffix.lower() == ".png" and importlib.util.find_spec("matplotlib") is None:
            raise fail(f"--plot {path}: matplotlib is not installed; .html needs nothing")
    if plots and "numpy" not in columns and split is None:
        raise fail("--plot shows times against NumPy's: add numpy to --peers")


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
        raise fail(f"no size {size}; there are {', '.join(SIZES)}")
    if device.startswith("cuda") and not cuda.probe().devices:
        typer.echo(f"skipped: no GPU to measure: {cuda.probe().reason}")
        return
    try:
        found = with_progress(
            len(runner.tasks(names or ())),
            lambda tell: supervise.run(device, sizes[size.upper()], budget, names or (), lambda n: tell(n, "")),
        )
    except (ValueError, DeviceError) as error:
        raise fail(str(error)) from None
    typer.echo(report.markdown(found))
    if out is not None:
        typer.echo(f"written: {', '.join(map(str, report.write(out, found)))}")
    if any(row.ours.status == "WRONG" for row in (*found.operators, *found.programs)):
        raise typer.Exit(1)


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
def scaling(
    only: Annotated[str, typer.Argument(help="The beginning of a name: relaxation, elementwise, row_sums.")] = "",
    write: Annotated[Path | None, typer.Option(help="Put the table into this page, between its marks.")] = None,
) -> None:
    """The same work for each of 1, 2, 4 and 8 devices of set speed, with the host's own time."""
    from parakeet_py.bench.chosen import into
    from parakeet_py.bench.scaling import BEGIN, END, rows, table

    found = table([*rows(only=only)])
    if write is None:
        typer.echo(found)
    else:
        write.write_text(into(write.read_text(), found, BEGIN, END))
