"""IPython and Jupyter: `%load_ext parakeet_py` gives the magics `%%accelerate` and `%explain`.

%%accelerate --strict          each function that the cell defines is decorated
def f(x): ...

%explain f(np.ones(3), 2.0)    what a call with these arguments does: it is compiled, not run
"""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import Any, NoReturn

from parakeet_py.call.accelerate import accelerate


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"%%accelerate: {message}; {self.format_usage().strip()}")


def _options(line: str) -> dict[str, Any]:
    """The options of the decorator that the line of a `%%accelerate` cell names."""
    parser = _Parser(prog="%%accelerate", add_help=False, argument_default=argparse.SUPPRESS)
    for name in ("strict", "contract", "fastmath"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--devices")
    parser.add_argument("--when", choices=("now", "pays"))
    return vars(parser.parse_args(shlex.split(line)))


def functions_of(cell: str) -> list[str]:
    """The names of the functions that a cell defines at its top level."""
    return [node.name for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef)]


def load(shell: Any) -> None:
    """Register the magics with an IPython shell."""

    from IPython.core.error import UsageError  # shown as a line

    def accelerate_cell(line: str, cell: str) -> None:
        try:
            options = _options(line)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if not shell.run_cell(cell).success:  # which has shown why
            return
        names = functions_of(shell.transform_cell(cell))
        if not names:
            raise UsageError("%%accelerate: the cell defines no function at its top level")
        for name in names:
            function = shell.user_ns[name]
            shell.user_ns[name] = accelerate(**options)(function)

    def explain(line: str) -> Any:
        try:
            call = ast.parse(line.strip(), mode="eval").body
        except SyntaxError as error:
            raise UsageError(f"%explain: {error.msg}; write a call, such as %explain f(np.ones(3))") from None
        if not isinstance(call, ast.Call):
            raise UsageError("%explain: write a call, such as %explain f(np.ones(3))")
        function = shell.ev(ast.unparse(call.func))
        function = function if hasattr(function, "explain") else accelerate(function)
        call.func = ast.Attribute(ast.Name("_parakeet_function", ast.Load()), "explain", ast.Load())
        shell.user_ns["_parakeet_function"] = function
        try:
            return shell.ev(ast.unparse(call))
        finally:
            del shell.user_ns["_parakeet_function"]

    shell.register_magic_function(accelerate_cell, "cell", "accelerate")
    shell.register_magic_function(explain, "line", "explain")
