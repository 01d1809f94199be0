"""The examples run, small, on real input, and their accelerated results are NumPy's."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for name in ("common", *(path.stem for path in EXAMPLES.glob("*.py"))):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("quantize_photo", {"colours": 4, "rounds": 2, "every": 8}),
        ("smooth_photo", {"passes": 2, "every": 4}),
        ("edges_photo", {"every": 4}),
    ],
)
def test_photo_examples_write_pictures(
    example: Any, name: str, options: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    written = example(name).main(tmp_path, **options)
    assert len(written) == 2
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG")
    assert "parakeet_py" in capsys.readouterr().out


def test_option_chain(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    at_risk = example("black_scholes_chain").main(scenarios=20)
    assert at_risk > 0.0
    assert "1988 options" in capsys.readouterr().out
