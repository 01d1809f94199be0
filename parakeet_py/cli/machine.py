"""`parakeet doctor`, `parakeet cache`: what there is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from parakeet_py.cli.app import app, fail


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
            raise fail(str(error)) from None
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
def prepare(
    into: Annotated[
        Path | None, typer.Option(help="Write the file to this folder, to be copied to where the message says.")
    ] = None,
) -> None:
    """Compile the package's own code for this installation, so that first calls without a cache take half the time."""
    from rich.filesize import decimal

    from parakeet_py.llvm.engine.library_archive import installed
    from parakeet_py.prepare import prepare as compile_library

    try:
        made = compile_library(None if into is None else str(into))
    except OSError as error:
        raise fail(str(error)) from None
    typer.echo(f"{made.path}: {made.entries} entries, {decimal(made.size)}")
    if into is not None:
        typer.echo(f"it is read from {installed()}")


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
        raise fail("one of --size, --clear and --list at a time")
    try:
        settings = current()
    except ValueError as error:
        raise fail(str(error)) from None
    if not settings.cache:
        raise fail("the disk cache is switched off (PARAKEET_CACHE=0)")
    folder = disk_cache.directory()
    if folder is None:
        raise fail("there is no cache: no folder that this user owns and only this user can write")
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
