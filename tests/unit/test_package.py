"""What is installed and shipped: metadata, the wheel, the source distribution, the files of the project."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import yaml

import parakeet_py

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version() -> None:
    assert parakeet_py.__version__ == importlib.metadata.version("parakeet-py") == PROJECT["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_needs_little() -> None:
    names = {entry.partition(">")[0] for entry in PROJECT["dependencies"]}
    assert names == {"numpy", "llvmlite", "pygments", "rich", "typer"}  # rich brings pygments


def test_configurations_are_read() -> None:
    for path in (*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"):
        assert isinstance(yaml.safe_load(path.read_text()), dict), path
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    supported = {entry.rpartition(" ")[2] for entry in PROJECT["classifiers"] if ":: 3." in entry}
    assert set(matrix["python"]) == supported


def test_what_is_shipped(tmp_path: Path) -> None:
    """The source distribution, and the wheel made from it; built once, as building writes into the checkout."""
    built = tmp_path / "dist"
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    source_distribution_is_complete(built)
    wheel_runs_without_the_checkout(built, tmp_path)


def source_distribution_is_complete(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:  # this is a checkout
        assert set(listed.stdout.splitlines()) <= names
    assert {"parakeet_py/__init__.py", "tests/unit/test_package.py", "docs/tour.md", "LICENSE", "Makefile"} <= names
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


def wheel_runs_without_the_checkout(built: Path, tmp_path: Path) -> None:
    (path,) = built.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    (metadata,) = [name for name in names if name.endswith("/METADATA")]
    description = (tmp_path / "site" / metadata).read_text(encoding="utf-8").partition("\n\n")[2]
    links = re.findall(r"\]\(([^)]*)\)", description)
    assert "# parakeet_py" in description and links  # an index has none of the checkout's files
    assert all(link.startswith("https://") for link in links)
    assert {"parakeet_py/py.typed"} <= names and any(name.endswith("/LICENSE") for name in names)
    suffixes = (".py", ".c", ".css", ".js")
    files = [file for file in (ROOT / "parakeet_py").rglob("*") if file.suffix in suffixes]
    sources = {str(file.relative_to(ROOT)) for file in files}
    assert sources <= names and not [name for name in names if name.startswith("tests/")]
    script = tmp_path / "script.py"
    script.write_text(
        "import json, numpy as np, parakeet_py\n"
        "@parakeet_py.accelerate(when='now')\n"
        "def f(x):\n"
        "    return (x * x).sum()\n"
        "print(json.dumps([parakeet_py.__file__, float(f(np.arange(4.0))), f.fell_back]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PARAKEET_CACHE_DIR": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, str(script)], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    place, value, fell_back = json.loads(ran.stdout)
    assert Path(place).is_relative_to(tmp_path) and value == 14.0 and fell_back is False
