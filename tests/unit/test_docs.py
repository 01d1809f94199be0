"""Pages are programs: their blocks of Python run in order, in one namespace; PTX shown is what the compiler prints."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import parakeet_py
import parakeet_py.call.accelerate as accelerate_module
from parakeet_py.base import config

DOCS = Path(__file__).parents[2] / "docs"
FOR_USERS = (
    "cluster.md",
    "explain.md",
    "export.md",
    "faq.md",
    "guide.md",
    "howto.md",
    "index.md",
    "performance.md",
    "settings.md",
    "start.md",
)


def blocks(page: str) -> list[tuple[int, str, str]]:
    """(first line, language, text) of each block of code on a page."""
    text = (DOCS / page).read_text()
    return [
        (text[: match.start(2)].count("\n") + 1, match[1], match[2])
        for match in re.finditer(r"```(python|ptx)\n(.*?)```", text, re.S)
    ]


def run_block(page: str, first: int, source: str, namespace: dict[str, object]) -> None:
    # Padded, so that lines are those of the page; in linecache, so that functions have their source.
    padded = "\n" * (first - 1) + source
    name = f"{DOCS / page}#{first}"
    linecache.cache[name] = (len(padded), None, padded.splitlines(keepends=True), name)
    exec(compile(padded, name, "exec"), namespace)


def test_the_tour_runs() -> None:
    found = blocks("tour.md")
    assert len(found) >= 10
    namespace: dict[str, object] = {"__name__": "tour"}
    for first, _, source in found:
        run_block("tour.md", first, source, namespace)


def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an emulated device, and with fewer points."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "readme"}
    for first, _, source in blocks("../README.md"):
        shorter = source.replace('"cpu,cuda"', '"cpu,emulated"').replace("100_000", "500")
        run_block("../README.md", first, shorter, namespace)
    assert "nearest.html" in {path.name for path in tmp_path.iterdir()}


def test_the_page_on_several_devices_runs() -> None:
    namespace: dict[str, object] = {"__name__": "hybrid"}
    for first, _, source in blocks("hybrid.md"):
        run_block("hybrid.md", first, source, namespace)


@pytest.mark.parametrize("page", FOR_USERS)
def test_pages_for_users_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": page.removesuffix(".md")}
    for first, _, source in blocks(page):
        run_block(page, first, source, namespace)


def instructions(text: str) -> Iterator[str]:
    """The lines of PTX without comments, numbers of registers and labels; "..." stands for any lines."""
    for line in text.splitlines():
        plain = " ".join(re.sub(r"//.*", "", line).split())
        if plain not in ("", "..."):
            yield re.sub(r"\$L__BB\w+", "$L", re.sub(r"%(r|rd|p|rs|f|fd)\d+", r"%\1", plain))


def test_the_ptx_shown_is_what_is_printed() -> None:
    """Every block of PTX consists of lines of `text`, which the Python before it has made, in this order."""
    namespace: dict[str, object] = {"__name__": "ptx"}
    shown = 0
    for first, language, source in blocks("ptx.md"):
        if language == "python":
            run_block("ptx.md", first, source, namespace)
            continue
        printed = instructions(str(namespace["text"]))
        for line in instructions(source):
            assert any(line == other for other in printed), (
                f"ptx.md, block at line {first}: {line!r} is not printed there"
            )
        shown += 1
    assert shown == 3


def test_files_that_are_named_exist() -> None:
    """By the last parts of their paths."""
    root = DOCS.parent
    folders = "parakeet_py", "tests", "scripts", "examples"
    files = [f"/{path}" for folder in folders for path in (root / folder).rglob("*.py")]
    for page in (*DOCS.glob("*.md"), root / "README.md"):
        for named in re.findall(r"`([\w/]+\.py)`", page.read_text()):
            assert any(path.endswith(f"/{named}") for path in files), f"{page.name} names {named}, which is no file"


def test_all_settings_are_listed() -> None:
    rows = re.findall(r"^\| `(\w+)`( †)? \| `(\w+)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE)
    assert {name: variable for name, _, variable in rows} == {name: one for name, (one, _) in config._VARIABLES.items()}
    assert {name for name, mark, _ in rows if mark} == set(accelerate_module.Options.__annotations__)


def test_all_names_are_in_the_reference() -> None:
    page = (DOCS / "api.md").read_text()
    operators = set(parakeet_py.operators.__all__)
    shown = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert set(parakeet_py.__all__) - operators <= shown and "operators" in shown


def test_all_that_a_function_can_be_asked_is_described() -> None:
    asked = {name for name in vars(accelerate_module.AcceleratedFunction) if not name.startswith("_")}
    described = {name for name, one in vars(accelerate_module.Accelerated).items() if name in asked and one.__doc__}
    assert asked - described == {"stands_for_itself"}


def test_the_site_has_every_page() -> None:
    named = re.findall(r"(\w+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in DOCS.glob("*.md"))


def test_links_lead_somewhere() -> None:
    """Also to their headings, whose names are as mkdocs and GitHub make them."""
    pages = [*DOCS.glob("*.md"), *(DOCS.parent / name for name in ("README.md", "CONTRIBUTING.md"))]
    for page in pages:
        for target, heading in re.findall(r"\]\(([\w./-]*\.\w+)?(?:#([\w-]*))?\)", page.read_text()):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}"
            if heading:
                titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                names = {re.sub(r"[^\w -]", "", one.lower()).strip().replace(" ", "-") for one in titles}
                assert heading in names, f"{page.name} links to {target}#{heading}"
