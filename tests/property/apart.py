"""Random programs in another process, which loads from the disk cache what this one has compiled and kept there.

`again` runs programs in a process of their own and gives what is wrong with them; that process is this module, run
with a file of pickled programs and one for its answer.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.property.random_programs import Program


def again(programs: Sequence[Program], cache: Path) -> tuple[list[Exception | None], int]:
    """What is wrong with each program in a process that starts with this cache; how many came from the disk."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question"), Path(folder, "answer")
        question.write_bytes(pickle.dumps(list(programs)))
        settings = {"PARAKEET_CACHE": "1", "PARAKEET_CACHE_DIR": os.fspath(cache), "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", __name__, os.fspath(question), os.fspath(answer)]
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the process that loads has ended with {done.returncode}: {done.stderr[-2000:]}")
        found: tuple[list[Exception | None], int] = pickle.loads(answer.read_bytes())
        return found


def main(question: str, answer: str) -> None:
    import tests.conftest  # noqa: F401  (the environment of the tests)
    from tests.backends import accelerated, forget_accelerated
    from tests.property.generated import check_program, function, run_on

    def run(f: Any, args: tuple[Any, ...]) -> Any:
        return run_on("native-1", f, args)

    found: list[Exception | None] = []
    loaded = 0
    for program in pickle.loads(Path(question).read_bytes()):
        forget_accelerated()
        f = function(program.source)
        try:
            check_program(program, {"native-1": run}, f)
        except Exception as error:
            found.append(RuntimeError(f"{type(error).__name__}: {error}"))  # those of the package cannot be pickled
        else:
            found.append(None)
        loaded += any(one.from_disk for one in accelerated(f).specializations)
    Path(answer).write_bytes(pickle.dumps((found, loaded)))


if __name__ == "__main__":
    main(*sys.argv[1:])
