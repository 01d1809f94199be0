"""Programs of a checkout of NPBench: what is in its `bench_info/*.json` and beside the NumPy sources they name.

    bench_info/lu.json                           parameters of each preset, names of arguments and results, tolerances
    npbench/benchmarks/polybench/lu/lu.py        makes the arguments
    npbench/benchmarks/polybench/lu/lu_numpy.py  the program; lu_numba_n.py, lu_jax.py... are its variants

Nothing is imported here: sources run in child processes only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRESETS = ("S", "M", "L", "paper")
SMALLER = frozenset({"atax", "azimint_naive", "bicg", "channel_flow", "k2mm", "k3mm", "mlp", "mvt"})
"""Programs whose preset M takes NumPy seconds, or is all one product: they are measured at S if no preset is named."""


class CheckoutError(ValueError):
    """The path is no checkout of NPBench, or names of programs or presets are not in it; the message says which."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program of a checkout.

    Attributes
    ----------
    name : str
        The name of its file in `bench_info`.
    root : Path
        The checkout.
    folder, module, function : str
        Where its sources are, below `npbench/benchmarks`; the beginning of their names; the function that is measured.
    parameters : dict
        Of each preset, by name.
    makes : tuple or None
        What initializes it: the function in the module, the names of its arguments and of its results.
    arguments, arrays, results : tuple of str
        Names of the arguments in order; of those that are arrays; of those that the program changes.
    rtol, atol, norm_error : float
        NPBench's tolerances: element by element, or else the norm of the error over the norm of the result.
    """

    name: str
    root: Path
    folder: str
    module: str
    function: str
    parameters: dict[str, dict[str, Any]]
    makes: tuple[str, tuple[str, ...], tuple[str, ...]] | None
    arguments: tuple[str, ...]
    arrays: tuple[str, ...]
    results: tuple[str, ...]
    rtol: float
    atol: float
    norm_error: float

    def source(self, variant: str) -> Path:
        """The file of a variant, such as "numpy" or "numba_n"; "" is what makes the arguments."""
        name = f"{self.module}_{variant}.py" if variant else f"{self.module}.py"
        return self.root / "npbench" / "benchmarks" / self.folder / name

    def module_name(self, variant: str) -> str:
        """The name by which a variant is imported, with the checkout on the path."""
        return ".".join(("npbench", "benchmarks", *self.folder.split("/"), self.source(variant).stem))

    def variants(self) -> tuple[str, ...]:
        """The variants that there are sources of."""
        there = self.source("").parent.glob(f"{self.module}_*.py")
        return tuple(sorted(path.stem.removeprefix(f"{self.module}_") for path in there))


def preset_of(program: Program) -> str:
    """The preset at which a program is measured if none is named."""
    return "S" if program.name in SMALLER else "M"


def programs(root: Path, names: Sequence[str] = ()) -> list[Program]:
    """The programs of a checkout, in the order of their names, or those that are named.

    Raises
    ------
    CheckoutError
        The path is no checkout of NPBench, has no such program, or a file of it cannot be understood.
    """
    if not root.is_dir():
        raise CheckoutError(f"{root} is no folder; it must be a checkout of NPBench (https://github.com/spcl/npbench)")
    described = {path.stem: path for path in sorted((root / "bench_info").glob("*.json"))}
    if not described or not (root / "npbench" / "benchmarks").is_dir():
        raise CheckoutError(f"{root} is no checkout of NPBench: it has no bench_info/*.json with npbench/benchmarks")
    unknown = [name for name in names if name not in described]
    if unknown:
        raise CheckoutError(f"{root} has no program {', '.join(unknown)}; there are {', '.join(described)}")
    return [_program(root, described[name]) for name in (names or described)]


def check_presets(found: Sequence[Program], presets: Sequence[str]) -> None:
    """Raise `CheckoutError` for a preset that one of the programs does not have."""
    for preset in presets:
        if missing := [program.name for program in found if preset not in program.parameters]:
            there = ", ".join(dict.fromkeys(one for program in found for one in program.parameters))
            some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
            raise CheckoutError(f"no preset {preset} of {some}; there are {there}")


def _program(root: Path, path: Path) -> Program:
    try:
        info = json.loads(path.read_text(encoding="utf-8"))["benchmark"]
        init = info.get("init")
        makes = (init["func_name"], tuple(init["input_args"]), tuple(init["output_args"])) if init else None
        program = Program(
            path.stem,
            root.resolve(),
            info["relative_path"],
            info["module_name"],
            info["func_name"],
            dict(info["parameters"]),
            makes,
            tuple(info["input_args"]),
            tuple(info["array_args"]),
            tuple(info["output_args"]),
            float(info.get("rtol", 1e-5)),
            float(info.get("atol", 1e-8)),
            float(info.get("norm_error", 1e-5)),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckoutError(f"{path}: not a description of a program ({type(error).__name__}: {error})") from None
    if not program.source("numpy").is_file():
        raise CheckoutError(f"{path} describes a program without a source: {program.source('numpy')}")
    return program
