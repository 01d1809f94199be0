"""The benchmark measures what it says: its programs agree with their variants, its comparison sees every difference."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from parakeet_py.bench import load, peers, report, runner
from parakeet_py.bench.c import bindings
from parakeet_py.bench.compare import difference
from parakeet_py.bench.files import write_json
from parakeet_py.bench.plot import means, speedups, write_plot
from parakeet_py.bench.program import SIZES, Program, Tolerance
from parakeet_py.bench.programs import PROGRAMS, select
from parakeet_py.bench.runner import Measurement, Row, Settings

EXACT = Tolerance(rtol=0.0, atol=0.0)


def called(function: Any, program: Program, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The result and the arguments the program stores into."""
    mine = program.fresh(arguments)
    with np.errstate(all="ignore"):
        result = function(*mine)
    return (result, *(mine[i] for i in program.mutates))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
class TestPrograms:
    def test_variants_agree_with_the_source(self, program: Program) -> None:
        arguments = program.arguments("XS")
        expected = called(program.function, program, arguments)
        for variant in (program.numpy, program.loops):
            if variant is not None:
                actual = called(variant, program, arguments)
                assert difference(expected, actual, program.tolerance, exact_types=False) is None

    def test_inputs_are_seeded_and_untouched(self, program: Program) -> None:
        one, other = program.arguments("XS"), program.arguments("XS")
        program.function(*program.fresh(one))
        assert difference(other, one, EXACT) is None

    def test_declares_what_it_mutates(self, program: Program) -> None:
        arguments = program.arguments("XS")
        before = tuple(np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments)
        program.function(*arguments)
        changed = tuple(
            i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and not np.array_equal(a, before[i])
        )
        assert set(changed) <= set(program.mutates)

    def test_has_all_sizes_in_ascending_order(self, program: Program) -> None:
        assert tuple(program.sizes) == SIZES
        work = [np.prod([float(n) for n in program.sizes[size]]) for size in SIZES]
        assert work == sorted(work)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", [name for name, program in PROGRAMS.items() if program.c])
@pytest.mark.parametrize("threads", [1, 2])
def test_c_baseline_agrees_with_numpy(name: str, threads: int) -> None:
    program = PROGRAMS[name]
    arguments = program.arguments("S")
    expected = called(program.baseline, program, arguments)
    actual = called(bindings.baseline(name, threads), program, arguments)
    assert difference(expected, actual, program.tolerance, exact_types=False) is None


def test_loading_the_c_baselines_leaves_subnormal_numbers_alone() -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    bindings.baseline("black_scholes", 1)
    assert np.float64(5e-324) * np.float64(1.0) == 5e-324


def test_all_c_baselines_are_declared() -> None:
    assert set(bindings._BINDINGS) == {name for name, program in PROGRAMS.items() if program.c}


class TestDifference:
    @pytest.mark.parametrize(
        ("expected", "actual", "message"),
        [
            (np.ones(3), np.ones(4), "result has shape (4,), not (3,)"),
            (np.ones(3), np.ones(3, np.float32), "result has dtype float32, not float64"),
            (np.ones(3), np.array([1.0, 2.0, 1.0]), "1 of 3 values differ: result[1] is np.float64(2.0)"),
            (np.float64(1), 1.0, "result is a float, not a float64"),
            ((np.ones(1), None), (np.ones(1), 2), "result[1] is a int, not None"),
            ((1, 2), (1, 2, 3), "result is a tuple of 3, not a tuple of 2"),
            (np.array([np.nan]), np.array([0.0]), "1 of 1 values differ"),
        ],
    )
    def test_names_what_differs(self, expected: Any, actual: Any, message: str) -> None:
        found = difference(expected, actual, Tolerance())
        assert found is not None
        assert message in found

    def test_nan_equals_nan_and_tolerance_counts(self) -> None:
        assert difference(np.array([np.nan, 1.0]), np.array([np.nan, 1.0 + 1e-12]), Tolerance()) is None

    def test_peers_may_return_python_scalars_and_miss_a_few_fractal_points(self) -> None:
        assert difference(np.float64(1), 1.0, Tolerance(), exact_types=False) is None
        one, other = np.zeros(1000, int), np.zeros(1000, int)
        other[7] = 1
        some = Tolerance(peer_mismatch=0.002)
        assert difference(one, other, some, exact_types=False) is None
        assert difference(one, other, some, exact_types=True) is not None


def test_busy_processors() -> None:
    before = [[10, 0, 5, 80, 5, 0, 0, 0], [0] * 8, [7] * 8]
    after = [[40, 0, 15, 120, 25, 0, 0, 0], [0, 0, 0, 60, 40, 0, 0, 0], [7] * 8]
    assert load.busy_between(before, after) == pytest.approx(0.4)
    found = load.busy_processors(0.01)
    assert found is None or 0 <= found <= (os.cpu_count() or 1)


class TestRunner:
    @pytest.fixture(autouse=True)
    def no_limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @contextmanager
        def nothing(threads: int) -> Iterator[None]:
            yield

        monkeypatch.setattr(runner, "thread_limits", nothing)
        monkeypatch.setattr(runner, "warm_up", lambda name, threads: None)
        monkeypatch.setattr(runner, "availability", lambda name: None)

    def run(self, monkeypatch: pytest.MonkeyPatch, ours: Any, name: str = "relaxation_2d") -> Row:
        def prepare(peer: str, program: Program, threads: int) -> peers.Prepared:
            return peers.Prepared(ours if peer == peers.OURS else program.function)

        monkeypatch.setattr(runner, "prepare", prepare)
        (row,) = runner.run([PROGRAMS[name]], Settings((peers.OURS, "numpy"), "XS", budget=0.5))
        return row

    def test_measures_and_compares(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = self.run(monkeypatch, PROGRAMS["relaxation_2d"].function)
        for m in row.measurements.values():
            assert m.status == "ok"
            assert m.first is not None and m.median is not None and m.minimum is not None
            assert m.minimum <= m.median
        assert row.ratio("numpy") is not None

    def test_a_wrong_mutation_is_wrong_and_not_timed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = self.run(monkeypatch, lambda old, new, rounds: None)
        ours = row.measurements[peers.OURS]
        assert ours.status == "WRONG"
        assert "result[1]" in ours.reason
        assert ours.median is None and row.ratio("numpy") is None

    def test_an_exception_is_an_error_with_its_first_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*arguments: Any) -> None:
            raise RuntimeError("first\nsecond")

        ours = self.run(monkeypatch, broken).measurements[peers.OURS]
        assert (ours.status, ours.reason) == ("error", "RuntimeError: first")

    def test_an_unavailable_peer_is_said_to_be(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> None:
            if name == "jax":
                raise peers.Unavailable("jax is not installed")

        monkeypatch.setattr(runner, "availability", missing)
        settings = Settings(("numpy", "jax"), "XS", budget=0.5)
        (row,) = runner.run([PROGRAMS["dot"]], settings)
        assert row.measurements["jax"].status == "unavailable"
        assert report.others(settings, [row]) == ["numpy"]


def helper(x: float) -> float:
    return x + 1.0


def uses_helper(x: float) -> float:
    return helper(x) * float(np.sqrt(4.0))


def test_rebound_decorates_helpers_and_replaces_globals() -> None:
    seen = []

    def decorate(function: Any) -> Any:
        seen.append(function.__name__)
        return function

    class Numpy:
        @staticmethod
        def sqrt(x: float) -> float:
            return 10.0

    function = peers.rebound(uses_helper, decorate, {"np": Numpy, "prange": range})
    assert function(1.0) == 20.0
    assert seen == ["helper", "uses_helper"]
    assert uses_helper(1.0) == 4.0


def test_select_names_what_there_is() -> None:
    assert [program.name for program in select(["dot", "matmul"])] == ["dot", "matmul"]
    assert len(select([])) == len(PROGRAMS)
    with pytest.raises(KeyError, match="no benchmark program nonsense; there are black_scholes"):
        select(["nonsense"])


@pytest.fixture
def rows() -> list[Row]:
    def ok(*samples: float) -> Measurement:
        return Measurement("ok", first=0.1, samples=list(samples), variant="source")

    def row(name: str, numpy: Measurement, c: Measurement) -> Row:
        return Row(name, "", (1,), {"parakeet": ok(1e-3), "numpy": numpy, "c": c})

    return [row("one", ok(2e-3), ok(5e-4)), row("two", ok(8e-3), Measurement("WRONG", "off by one"))]


class TestReport:
    settings = Settings(("parakeet", "numpy", "c"), "M", 2)

    @pytest.mark.parametrize(
        ("value", "text"), [(None, "–"), (1.5, "1.5 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.5 µs"), (3.2e-8, "32 ns")]
    )
    def test_seconds(self, value: float | None, text: str) -> None:
        assert report.seconds(value) == text

    def test_geometric_means_are_over_what_both_ran(self, rows: list[Row]) -> None:
        means = report.geometric_means(rows, ["numpy", "c"])
        assert means["numpy"] == (pytest.approx(4.0), 2)
        assert means["c"] == (pytest.approx(0.5), 1)

    def test_readme_section_is_replaced(self, rows: list[Row], tmp_path: Any) -> None:
        path = tmp_path / "README.md"
        path.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
        report.update_readme(path, rows, self.settings)
        text = path.read_text()
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
        assert "| `one` | 100 ms | **1 ms** | 2 ms (2.00×) | 500 µs (0.50×) |" in text
        assert "- two, C: WRONG: off by one" in text
        with pytest.raises(ValueError, match="has no"):
            path.write_text("nothing")
            report.update_readme(path, rows, self.settings)

    def test_says_that_the_machine_was_busy(self, rows: list[Row]) -> None:
        busy = Settings(("parakeet", "numpy", "c"), "M", 2, load=3.21)
        assert report.notes(rows, busy)[0].startswith("3.2 other processes were busy")

    def test_json(self, rows: list[Row], tmp_path: Any) -> None:
        write_json(tmp_path / "out" / "r.json", report.as_data(rows, self.settings))
        data = json.loads((tmp_path / "out" / "r.json").read_text())
        assert data["geometric_means"]["numpy"]["ratio"] == pytest.approx(4.0)
        assert data["programs"][1]["implementations"]["c"] == {"status": "WRONG", "reason": "off by one"}

    def test_means_of_a_plot_are_over_the_same_programs(self) -> None:
        found = [("one", {"parakeet": 2.0, "c": 8.0}), ("two", {"parakeet": 8.0, "numba": 1.0}), ("three", {"c": 5.0})]
        assert means(found) == [
            ("mean over all 2", {"parakeet": pytest.approx(4.0)}),
            ("mean over the 1 of numba", {"parakeet": pytest.approx(8.0), "numba": pytest.approx(1.0)}),
            ("mean over the 1 of C", {"parakeet": pytest.approx(2.0), "c": pytest.approx(8.0)}),
        ]

    def test_plots(self, rows: list[Row], tmp_path: Any) -> None:
        found = speedups(rows, self.settings)
        assert [name for name, _ in found] == ["one", "two"]
        write_plot(tmp_path / "p.html", rows, self.settings)
        drawn = (tmp_path / "p.html").read_text()
        assert "one, parakeet_py: 2.00×" in drawn and "times as fast as NumPy" in drawn
        svg = ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
        ticks = [one.text for one in svg.iter("text") if one.get("class") == "tick"]
        assert "1×" in ticks and "2×" in ticks
        assert len(svg.findall("rect")) == sum(len(values) for _, values in found + means(found))
        with pytest.raises(ValueError, match=r"\.png or \.html"):
            write_plot(tmp_path / "p.gif", rows, self.settings)
        pytest.importorskip("matplotlib")
        write_plot(tmp_path / "p.png", rows, self.settings)
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
