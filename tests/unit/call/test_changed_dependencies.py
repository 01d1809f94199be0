"""What compiled code depends on may change: between two processes that share a disk cache, and between two calls."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from parakeet_py import accelerate, options
from tests.helpers import changed_dependencies

# Results that no later process can use: opaque calls are done by objects of this process.
UNCACHED = {"helper_array_default", "helper_closure_data"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Version 2, version 2 again, version 3, each in a process of its own."""
    folder = tmp_path_factory.mktemp("programs")
    environment = os.environ | {"PARAKEET_CACHE": "1", "PARAKEET_CACHE_DIR": os.fspath(folder / "cache")}
    root = os.fspath(Path(__file__).parents[3])
    environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    found = []
    for version in (2, 2, 3):
        changed_dependencies.write(folder, version)
        command = [sys.executable, "-m", "tests.helpers.changed_dependencies", os.fspath(folder)]
        done = subprocess.run(
            command, env=environment, cwd=root, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr
        found.append(json.loads(done.stdout))
    return found


@pytest.mark.parametrize("name", changed_dependencies.PROGRAMS)
def test_nothing_stale_comes_from_the_disk(name: str, runs: list[dict[str, Any]]) -> None:
    first, again, edited = (run[name] for run in runs)
    for run in (first, again, edited):
        assert not run["wrong"], run
        assert not run["fell_back"], run
    assert first["expected"] == again["expected"] != edited["expected"] or name == "builtin_replaced"
    assert all(again["disk"]) == (name not in UNCACHED)


def load(folder: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


CHANGES: dict[str, Any] = {
    "global_scalar": lambda module, other: setattr(module, "G", 3),
    "global_array": lambda module, other: module.G.__setitem__(7, 5.0),
    "global_string": lambda module, other: setattr(module, "MODE", "b"),
    "global_function": lambda module, other: setattr(module, "h", np.abs),
    "helper": lambda module, other: setattr(module, "h", lambda x: x - 1),
    "builtin_replaced": lambda module, other: setattr(module, "abs", lambda x: x - 1),
    "helper_array_default": lambda module, other: module.D.__setitem__(7, 5.0),
    "class_constant": lambda module, other: setattr(module.C, "N", 3.5),
    "class_inherited": lambda module, other: setattr(module.D, "N", 3.5),
    "instance_method": lambda module, other: setattr(module.D, "get", lambda self: 9.0),
    "instance_of_dataclass": lambda module, other: setattr(
        module.E, "__init__", lambda self: vars(self).update(k=7, made=1.0)
    ),
    "class_method": lambda module, other: setattr(module.C, "h", staticmethod(lambda x: x - 1)),
    "instance": lambda module, other: setattr(module.a, "k", 7),
    "module_data": lambda module, other: setattr(other, "MODE", "b"),
    "module_none": lambda module, other: setattr(other, "K", 1.0),
    "module_function": lambda module, other: setattr(other, "h", lambda x: x - 1),
    "module_chain": lambda module, other: setattr(other, "k", lambda x: x - 1),
    "module_class": lambda module, other: setattr(other, "C", type("C", (), {"N": 4, "h": staticmethod(lambda x: x)})),
    "module_instance": lambda module, other: setattr(other.a, "k", 7),
    "imported_in_body": lambda module, other: setattr(other, "h", lambda x: x - 1),
    "wrapper": lambda module, other: setattr(other, "K", 7),
}


@pytest.mark.filterwarnings("ignore::parakeet_py.FallbackWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_by_the_next_call(name: str, tmp_path: Path) -> None:
    changed_dependencies.write(tmp_path, 2)
    loaded = [part for part in (f"{name}_other", name) if (tmp_path / f"{part}.py").exists()]
    x = np.arange(3.0) - 1
    try:
        modules = [load(tmp_path, part) for part in loaded]
        with options(cache=False):
            f = modules[-1].f
            for _ in range(3):
                assert changed_dependencies.shown(f, x) == changed_dependencies.shown(f.__wrapped__, x)
            before = changed_dependencies.shown(f, x)
            CHANGES[name](modules[-1], modules[0])
            for _ in range(3):
                assert changed_dependencies.shown(f, x) == changed_dependencies.shown(f.__wrapped__, x) != before
    finally:
        for part in loaded:
            sys.modules.pop(part, None)


def test_a_value_that_is_gone(tmp_path: Path) -> None:
    """Deleted globals raise what Python raises, and are found again when they are back."""
    changed_dependencies.write(tmp_path, 2)
    x = np.arange(3.0)
    try:
        module = load(tmp_path, "global_scalar")
        with options(cache=False):
            module.f(x)
            del module.G
            for _ in range(2):
                with pytest.raises(NameError, match="'G' is not defined"):
                    module.f(x)
            assert "not there" in str(module.f.explain(x))
            module.G = 5.0
            np.testing.assert_array_equal(module.f(x), x * 5.0)
    finally:
        sys.modules.pop("global_scalar", None)


def test_the_same_file_under_another_name(tmp_path: Path) -> None:
    """What was learned about a helper's globals names the module it was learned in."""
    changed_dependencies.write(tmp_path, 2)
    text = (tmp_path / "module_chain_other.py").read_text() + "from parakeet_py import accelerate\n"
    path = tmp_path / "one.py"
    path.write_text(text + "@accelerate\ndef f(x):\n    return g(x)\n")
    x = np.arange(3.0)
    with options(cache=True, cache_dir=os.fspath(tmp_path / "cache")):
        for name in ("one", "two"):
            try:
                (tmp_path / f"{name}.py").write_text(path.read_text())
                f = load(tmp_path, name).f
                np.testing.assert_array_equal(f(x), x * 4)
                assert not f.fell_back
                assert "K" not in str(f.explain(x))
            finally:
                sys.modules.pop(name, None)


def test_items_of_a_default_may_change() -> None:
    values, nested = [1.0, 2.0], ([1.0, 2.0], 2)

    def weighted(x: Any, w: Any = values) -> Any:
        return x * w[1] + len(w)

    def deep(x: Any, w: Any = nested) -> Any:
        return x * w[0][1]

    def both(x: Any) -> Any:
        return weighted(x) + deep(x)

    x = np.arange(3.0)
    with options(cache=False):
        f = accelerate(both)
        np.testing.assert_array_equal(f(x), both(x))
        values[1] = 5.0
        values.append(1.0)
        nested[0][1] = 8.0
        for _ in range(2):
            np.testing.assert_array_equal(f(x), both(x))


class Disc:
    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        return self.radius * 3.0

    @staticmethod
    def scaled(x: float) -> float:
        return x * 2.0


class Holder:
    def __init__(self) -> None:
        self.disc = Disc(2.0)


@pytest.mark.parametrize("held", [False, True])
def test_methods_that_an_instance_has_of_its_own(held: bool) -> None:
    def of_disc(disc: Disc, x: float) -> float:
        return disc.area() + disc.scaled(x)

    def of_holder(holder: Holder, x: float) -> float:
        return holder.disc.area() + holder.disc.scaled(x)

    function = of_holder if held else of_disc
    compiled = accelerate(when="now")(function)
    owner = Holder() if held else Disc(2.0)
    disc = owner.disc if held else owner
    assert [compiled(owner, 1.0) for _ in range(3)] == [8.0] * 3
    assert compiled.opaque_calls == []
    disc.area = lambda: 1.0
    assert [compiled(owner, 1.0) for _ in range(3)] == [3.0] * 3
    del disc.area
    with mock.patch.object(disc, "scaled", return_value=5.0) as scaled:
        assert [compiled(owner, 1.0) for _ in range(3)] == [11.0] * 3
    assert scaled.call_count == 3
    assert [compiled(owner, 1.0) for _ in range(3)] == [8.0] * 3


@pytest.mark.filterwarnings("ignore::parakeet_py.FallbackWarning")
def test_methods_of_its_own_in_a_long_list() -> None:
    def pairs(discs: list[Disc]) -> float:
        total = 0.0
        for one in discs:
            for other in discs:
                total += one.area() * other.radius
        return total

    compiled = accelerate(when="now")(pairs)
    discs = [Disc(float(k)) for k in range(40)]
    for _ in range(3):
        assert compiled(discs) == pairs(discs)
    assert compiled.specializations and not compiled.fell_back
    discs[7].area = lambda: 1000.0  # type: ignore[method-assign]
    for _ in range(3):
        assert compiled(discs) == pairs(discs)
