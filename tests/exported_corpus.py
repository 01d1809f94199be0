"""The programs of the corpus as exported libraries, for a processor that is only emulated here.

    python -m tests.exported_corpus make FOLDER [--target aarch64] [--share 10 [--lot 3]]
    python -m tests.exported_corpus check FOLDER

`make` compiles here, at this machine's speed; `check` runs there (see scripts/qemu-aarch64) and compares what each
library does with the program in that Python. So far more code for a foreign processor is run than where the compiler is
emulated, too. Programs that cannot be exported, or need Python for a case, are counted.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from tests.corpus import Case, Program, all_programs, assert_same, lot, outcome

_PRODUCT = re.compile(r"^[^@\n]+ @=? |dot\(|matmul|inner\(|einsum", re.MULTILINE)


def _sums(program: Program) -> float:
    """The tolerance `sums`: matrix products are loops in a library and NumPy's BLAS in Python."""
    has_products = isinstance(program.function, FunctionType) and _PRODUCT.search(inspect.getsource(program.function))
    return max(program.sums, 8.0) if has_products else program.sums


def _cases(program: Program) -> list[int]:
    """The cases whose arguments can be given to a library: no keywords, no global that changes, no large arrays."""
    if not isinstance(program.function, FunctionType) or program.fell_back is not False:
        return []
    return [n for n, case in enumerate(program.cases) if not (case.kwargs or case.setup or case.native_only)]


def _arguments(case: Case) -> tuple[Any, ...]:
    return case.make()[0]


def make(folder: Path, target: str, share: int, which: int) -> None:
    """Write a library of each program into a folder of its own."""
    from parakeet_py import accelerate, options
    from parakeet_py.export.errors import ExportError

    shutil.rmtree(folder, ignore_errors=True)
    made: dict[str, str] = {}
    refused = 0
    for number, program in enumerate(all_programs()):
        calls = [_arguments(program.cases[n]) for n in _cases(program)]
        if not calls or lot(program, share) != which:
            continue
        name = f"p{number}"
        try:
            with warnings.catch_warnings(), options(threads=1):
                warnings.simplefilter("ignore")
                accelerate(program.function).export(folder / name, *calls[0], also=calls[1:], name=name, target=target)
        except (ExportError, TypeError):  # the call is one that the function refuses itself
            refused += 1
            continue
        made[program.name] = name
    (folder / "made.json").write_text(json.dumps(made))
    print(f"{len(made)} libraries in {folder}; {refused} programs cannot be exported")


def check(folder: Path) -> int:
    """Compare calls of the libraries with the programs; gives how many programs differ."""
    made = json.loads((folder / "made.json").read_text())
    programs = {program.name: program for program in all_programs()}
    seen: Counter[str] = Counter()
    wrong = 0
    for name, module in made.items():
        program = programs[name]
        sys.path.insert(0, str(folder / module))
        function = getattr(importlib.import_module(module), module)
        del sys.path[0]
        for number in _cases(program):
            case = program.cases[number]
            expected = outcome(program.function, _arguments(case))
            actual = outcome(function, _arguments(case))
            text = str(actual.exception)
            if "64 bits" in text or "in Python only" in text or "no exported signature" in text:
                seen["left to Python"] += 1
                continue
            try:
                tolerances = {"ulp": program.ulp, "sums": _sums(program)}
                assert_same(expected, actual, **tolerances, order=program.order, identity=False, attributes=False)
            except AssertionError as error:
                wrong += 1
                seen["different"] += 1
                print(f"{name}, case {number}: {error}", flush=True)
            else:
                seen["the same"] += 1
        if sum(seen.values()) % 50 == 0:
            print(f"{len(made)} programs: {dict(seen)}", flush=True)
    print(f"{len(made)} programs: {dict(seen)}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "check"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="aarch64")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one program of N")
    parser.add_argument("--lot", type=int, default=0, metavar="K", help="which of these N lots")
    given = parser.parse_args(arguments)
    if given.what == "make":
        make(given.folder, given.target, given.share, given.lot)
        return 0
    return min(check(given.folder), 1)


if __name__ == "__main__":
    sys.exit(main())
