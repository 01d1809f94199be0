"""How each system makes a program of NPBench callable: as NPBench's own runner does, but for what it gets wrong.

Our own column is the unmodified NumPy source under `accelerate`. The others run what NPBench's authors wrote for them:
numba has up to six variants a program (object mode, parallel, with `prange`), JAX up to two, Pythran is an extension
module made from a source with an export line, DaCe a graph that is transformed automatically.

These functions run in a child process; what they raise is reported as the reason why a system has no figure.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parakeet_py.bench.npbench.checkout import Program

OURS = "parakeet"
VARIANTS: dict[str, str] = {  # the systems, in order, by the variants of the programs that they run
    "numpy": OURS,
    "numba_n": "numba",
    "numba_np": "numba",
    "numba_npr": "numba",
    "numba_o": "numba",
    "numba_op": "numba",
    "numba_opr": "numba",
    "jax": "jax",
    "jax_lib": "jax",
    "pythran": "pythran",
    "dace": "dace",
}
RIVALS = tuple(dict.fromkeys(system for system in VARIANTS.values() if system != OURS))


def is_installed(system: str) -> bool:
    """Can this system be imported here?"""
    return system == OURS or importlib.util.find_spec(system) is not None


@dataclass(frozen=True, slots=True)
class Form:
    """A program as one system runs it.

    Attributes
    ----------
    call : callable
        Takes the arguments by name, as `convert` left them; returns when the result is complete.
    convert : callable
        Brings an array of NumPy into the system's own form; its cost is not measured.
    changes_arguments : bool
        Are results stored into arguments, as in the NumPy source?
    note : callable
        Asked after the first call: what a reader must know, or "".
    """

    call: Callable[[Mapping[str, Any]], Any]
    convert: Callable[[Any], Any] = lambda array: array
    changes_arguments: bool = True
    note: Callable[[], str] = lambda: ""


def load(variant: str) -> None:
    """Import the system of a variant, which is no part of its first call."""
    system = VARIANTS[variant]
    importlib.import_module("parakeet_py.call.accelerate" if system == OURS else system)


def function_of(program: Program, variant: str) -> Any:
    """The function that is measured, in the source of a variant; the checkout is on the path."""
    return getattr(importlib.import_module(program.module_name(variant)), program.function)


def form(program: Program, variant: str, preset: str) -> Form:
    """A program as the system of a variant runs it."""
    match VARIANTS[variant]:
        case "parakeet":
            return _parakeet(program)
        case "jax":
            return _jax(program, variant)
        case "pythran":
            return Form(_positional(program, _pythran(program)))
        case "dace":
            return _dace(program, preset)
    return Form(_positional(program, function_of(program, variant)))


def _positional(program: Program, function: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda values: function(*(values[name] for name in program.arguments))


def plain(program: Program) -> Form:
    """The NumPy source in Python."""
    return Form(_positional(program, function_of(program, "numpy")))


def _parakeet(program: Program) -> Form:
    from parakeet_py import accelerate

    accelerated: Any = accelerate(when="now", tiers=False)(function_of(program, "numpy"))

    def note() -> str:
        if accelerated.fell_back:
            return f"ran in Python: {accelerated.fell_back}"
        handed_back = ", ".join(dict.fromkeys(accelerated.opaque_calls))
        return f"handed back to Python: {handed_back}" if handed_back else ""

    return Form(_positional(program, accelerated), note=note)


def _jax(program: Program, variant: str) -> Form:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    function = _positional(program, function_of(program, variant))
    return Form(
        lambda values: jax.block_until_ready(function(values)),
        convert=lambda value: jax.block_until_ready(jax.numpy.array(value)) if isinstance(value, np.ndarray) else value,
        changes_arguments=False,
    )


def _pythran(program: Program) -> Callable[..., Any]:
    """The function of an extension module, compiled with NPBench's flags."""
    source = program.source("pythran")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{source.stem}.so"
        flags = ("-DUSE_XSIMD", "-fopenmp", "-march=native", "-ffast-math")
        command = [sys.executable, "-m", "pythran.run", *flags, str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0 or not made.exists():
            raise RuntimeError(f"pythran: {(done.stderr or done.stdout).strip()[-300:]}")
        specification = importlib.util.spec_from_file_location(source.stem, made)
        assert specification is not None and specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, program.function)
    return function


def _dace(program: Program, preset: str) -> Form:
    """The graph of a program, transformed automatically for a CPU, with names of sizes as further arguments."""
    dace = importlib.import_module("dace")
    optimizer: Any = importlib.import_module("dace.transformation.auto.auto_optimize")
    graph = function_of(program, "dace").to_sdfg(simplify=True)
    optimizer.auto_optimize(graph, dace.dtypes.DeviceType.CPU)
    compiled = graph.compile()
    sizes = {name: value for name, value in program.parameters[preset].items() if name not in program.arguments}
    return Form(lambda values: compiled(**{name: values[name] for name in program.arguments}, **sizes))
