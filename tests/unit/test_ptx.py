"""PTX text: what is in it, for whom it is made, and that the assembler accepts it."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.bench.programs import select
from parakeet_py.errors import NotObservedError, UnsupportedError
from parakeet_py.hybrid.calls import plan_of
from tests.corpus import Program, all_programs
from tests.ptxas import PTXAS

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
ASSEMBLE_EVERY = 3
HEADER = re.compile(r"^\.(version|target|address_size).*\n", re.MULTILINE)


def axpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + y


def test_loads_are_wide_and_read_only() -> None:
    text = accelerate(axpy).ptx(np.float32(2), np.ones(8, "f4"), np.ones(8, "f4"))
    assert "ld.global.nc.v4" in text and "st.global.v4" in text


def test_no_contraction_unless_allowed() -> None:
    args = 2.0, np.ones(8), np.ones(8)
    assert "fma" not in accelerate(axpy).ptx(*args)
    assert "fma.rn.f64" in accelerate(contract=True)(axpy).ptx(*args)


def test_architectures() -> None:
    function = accelerate(axpy)
    assert ".target sm_90" in function.ptx(2.0, np.ones(8), np.ones(8), target="sm_90")
    with pytest.raises(ValueError, match="sm_90"):
        function.ptx(2.0, np.ones(8), np.ones(8), target="sm_12")


def test_names_do_not_change() -> None:
    args = 2.0, np.ones(8), np.ones(8)
    assert accelerate(axpy).ptx(*args) == accelerate(axpy).ptx(*args)
    assert ".entry axpy_map_0(" in accelerate(axpy).ptx(*args)


def kernels(function: Any, args: tuple[Any, ...], architecture: str) -> list[str]:
    """The PTX of all kernels of a call; none if it does not get so far as to be compiled."""
    try:
        plan = plan_of(function._dispatcher.compiled_for(args, {}))
    except (NotObservedError, UnsupportedError):
        return []
    return [plan.ptx(architecture, number) for number in range(len(plan.kernels))]


def assemble(texts: list[str], architecture: str, folder: Path) -> None:
    """Have ptxas assemble kernels, in as few runs as their device functions (which may be the same) allow."""
    plain = [text for text in texts if ".func" not in text]
    files = [text for text in texts if ".func" in text]
    if plain:
        files.append(plain[0] + "".join(HEADER.sub("", text) for text in plain[1:]))
    for number, text in enumerate(files):
        path = folder / f"{architecture}_{number}.ptx"
        path.write_text(text)
        command = [PTXAS or "ptxas", f"-arch={architecture}", str(path), "-o", "/dev/null"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        assert found.returncode == 0, f"{found.stderr}\n{text}"


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("program", select([]), ids=lambda program: program.name)
def test_benchmark_programs_are_assembled(program: Any, tmp_path: Path) -> None:
    function = accelerate(program.function)
    for architecture in ARCHITECTURES:
        assemble(kernels(function, program.arguments("XS"), architecture), architecture, tmp_path)


def _modules() -> list[str]:
    return sorted({program.name.partition(".")[0] for program in all_programs()})


@pytest.mark.skipif(PTXAS is None, reason="ptxas is not installed")
@pytest.mark.parametrize("module", _modules())
def test_the_corpus_is_assembled(module: str, tmp_path: Path) -> None:
    """The first input of every few programs, for the architectures in turn; the emulator runs them all."""
    programs = [p for p in all_programs() if p.name.partition(".")[0] == module and p.fell_back is False]
    for architecture, program in zip(itertools.cycle(ARCHITECTURES), programs[::ASSEMBLE_EVERY], strict=False):
        assemble(_of_program(program, architecture), architecture, tmp_path)


def _of_program(program: Program, architecture: str) -> list[str]:
    case = program.cases[0]
    if case.kwargs or case.raises is not None:
        return []
    function = accelerate(program.function)
    with options(strict=False):
        return kernels(function, case.make()[0], architecture)
