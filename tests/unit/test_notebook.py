"""The magics of IPython, in a shell of this process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from parakeet_py.llvm.entry.callable_type import AcceleratedFunction


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell()
    made.run_cell("import numpy as np\n%load_ext parakeet_py").raise_error()
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> Any:
    done = shell.run_cell(cell)
    done.raise_error()
    return done.result


def test_cells_are_accelerated(shell: Any) -> None:
    cell = "K = 2.0\n\ndef scale(x):\n    return K * x\n\ndef twice(x):\n    return scale(scale(x))\n"
    run(shell, "%%accelerate\n" + cell)
    f = shell.user_ns["twice"]
    assert isinstance(f, AcceleratedFunction) and isinstance(shell.user_ns["scale"], AcceleratedFunction)
    assert run(shell, "twice(np.ones(3)).tolist()") == [4.0, 4.0, 4.0]
    assert not f.fell_back and len(f.specializations) == 1 and f.opaque_calls == []
    assert f.untyped_ir().startswith("function twice(x")
    assert pickle.loads(pickle.dumps(f))(3.0) == 12.0


def test_options_of_cells(shell: Any) -> None:
    run(shell, "%%accelerate --strict --threads 1\ndef f(x):\n    return x + 1\n")
    assert shell.user_ns["f"]._dispatcher.options == {"strict": True, "threads": 1}
    with pytest.raises(UsageError, match="unrecognized arguments: --nothing; usage: %%accelerate"):
        run(shell, "%%accelerate --nothing\ndef f(x):\n    return x + 1\n")
    with pytest.raises(UsageError, match="defines no function"):
        run(shell, "%%accelerate\nx = 1\n")


@pytest.mark.parametrize(
    ("cell", "kind"), [("def g(x):\n    return x\n1 / 0\n", "ZeroDivision"), ("def g(x)\n    return x\n", "Syntax")]
)
def test_a_cell_that_raises_shows_no_frames_of_the_magic(shell: Any, capsys: Any, cell: str, kind: str) -> None:
    run(shell, "%%accelerate\n" + cell)
    shown = capsys.readouterr().out
    assert shown.count(f"{kind}Error") >= 1 and "notebook.py" not in shown and "raise_error" not in shown
    assert not isinstance(shell.user_ns.get("g"), AcceleratedFunction)


def test_explain(shell: Any) -> None:
    run(shell, "def f(x, y=1):\n    return (x + y).sum()\n")
    found = run(shell, "%explain f(np.ones(3), y=2.0)")
    assert str(found).startswith("f(float64[1 axis], float)") and found.kernels == 1
    assert not [name for name in shell.user_ns if name.startswith("_parakeet")]
    for text in ("f", "f(", "1 +"):
        with pytest.raises(UsageError, match="write a call"):
            run(shell, f"%explain {text}")
