"""`parakeet explain`, `parakeet export`, `parakeet messages`: what becomes of a function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from parakeet_py.cli.app import app, fail


@app.command()
def explain(
    target: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="What to explain; or FILE.py:FUNCTION.")],
    args: Annotated[
        str | None, typer.Option(help="Arguments as in a call in Python, np being NumPy: 'np.ones(10), scale=2.0'.")
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="Call it first, so that what is handed back to Python has been seen.")
    ] = False,
    stage: Annotated[str | None, typer.Option(help="Print one stage instead: untyped, typed, imp or llvm.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page instead, with all stages beside the source.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Show what the compiler makes of a function: with --args for arguments of these types, else its untyped IR."""
    function = _load(target)
    if (show or html) and (stage or args is None):
        raise fail("a page shows all stages of one call: give --args, and no --stage")
    stages = {"untyped": "untyped_ir", "typed": "typed_ir", "imp": "imp", "llvm": "llvm"}
    if stage is not None and stage not in stages:
        raise fail(f"no stage {stage}; there are {', '.join(stages)}")
    if args is None or stage == "untyped":
        if stage not in (None, "untyped"):
            raise fail(f"the {stage} stage needs argument types: give --args")
        typer.echo(function.untyped_ir())
        return
    from parakeet_py import options
    from parakeet_py.base.errors import ParakeetError

    arguments, named = _evaluate(args, function)
    try:
        if call:
            with options(when="now"):
                for _ in range(2):  # the first call shows what is handed back, the second is compiled
                    function(*arguments, **named)
        show_stage = function.explain if stage is None else getattr(function, stages[stage])
        shown = show_stage(*arguments, **named)
    except (ParakeetError, TypeError) as error:
        raise fail(str(error)) from None
    if show or html:
        _write_page(shown, html, show)
    else:
        typer.echo(str(shown))
    if not call and getattr(shown, "waits", False):
        typer.secho("with --call the function is called first, which shows the rest", err=True, fg="yellow")


@app.command()
def export(
    target: Annotated[str, typer.Argument(metavar="FILE.py:FUNCTION", help="What to export; or MODULE:FUNCTION.")],
    args: Annotated[
        list[str] | None,
        typer.Option(help="Arguments as in a call in Python, np being NumPy (repeatable: further types)."),
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
        raise fail(
            "what is exported is compiled for types: give --args 'np.ones(10), scale=2.0', once or several times"
        )
    if out is None:
        raise fail("where to? give a folder: -o build")
    function = _load(target)
    from parakeet_py.base.errors import ParakeetError

    calls = [_evaluate(one, function) for one in args]
    (first, named), *others = calls
    try:
        made = function.export(
            out,
            *first,
            kwargs=named,
            also=[(*given, keywords) for given, keywords in others],
            name=name,
            target=cpu,
            threads=threads,
            blas=blas,
            link_flags=tuple(link_flag or ()),
            ptx=ptx,
        )
    except (ParakeetError, TypeError) as error:
        raise fail(str(error)) from None
    for path in made.files:
        typer.echo(f"written: {path}")
    if made.library is None:
        which = " for aarch64" if cpu == "aarch64" else ""
        said = f"there is no C compiler{which} here, so nothing is linked; with one, in {out}:"
        typer.secho(said, err=True, fg="yellow")
        typer.echo(made.command)


def _write_page(explanation: Any, path: Path | None, show: bool) -> None:
    """Write the page of an explanation, to a temporary file if no path is given."""
    import tempfile
    import webbrowser

    path = path or Path(tempfile.mkdtemp(prefix="parakeet-")) / f"{explanation.name}.html"
    try:
        explanation.html(path)
    except OSError as error:
        raise fail(f"--html {path}: {error.strerror}") from None
    typer.echo(f"written: {path}")
    if show and not webbrowser.open(path.resolve().as_uri()):
        raise fail(f"there is no browser here: open {path}")


def _load(target: str) -> Any:
    """The accelerated function that MODULE:FUNCTION or FILE.py:FUNCTION names."""
    from parakeet_py import accelerate

    file, colon, name = target.rpartition(":")
    if not colon or not name:
        raise fail(f"{target!r} is not MODULE:FUNCTION or FILE.py:FUNCTION")
    found = _module(file)
    for part in name.split("."):
        if not hasattr(found, part):
            raise fail(f"{file} has no {name}")
        found = getattr(found, part)
    if not callable(found):
        raise fail(f"{name} of {file} is no function, it is {type(found).__name__}")
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
            raise fail(f"there is no module {error.name}") from None
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or specification is None or specification.loader is None:
        raise fail(f"there is no Python file {name}")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))
    specification.loader.exec_module(module)
    return module


def _evaluate(text: str, function: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that `text` means in a call, in the namespace of the function's module and of NumPy."""
    import numpy as np

    scope = dict(getattr(getattr(function, "__wrapped__", function), "__globals__", {}))
    scope.setdefault("np", np)
    scope["__call__"] = lambda *args, **kwargs: (args, kwargs)
    try:
        result: tuple[tuple[Any, ...], dict[str, Any]] = eval(f"__call__({text}\n)", scope)  # it is the user's own text
    except Exception as error:
        raise fail(
            f"--args {text!r}: {type(error).__name__}: {error}\n"
            "write what a call in the function's module has in parentheses, with NumPy as np: "
            "--args 'np.ones(10), scale=2.0'"
        ) from None
    return result


@app.command()
def messages(
    code: Annotated[str | None, typer.Argument(help="One kind of message; all are listed if none is named.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The whole catalogue as a page.")] = False,
) -> None:
    """Explain what messages about refusals mean and what to do, with examples."""
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
        raise fail(str(error.args[0])) from None
