"""The command `parakeet` itself: its commands are added in the modules beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

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


def fail(message: str) -> typer.Exit:
    typer.secho(message, err=True, fg="red")
    return typer.Exit(2)
