"""The page of `explain`: what it says of each line, links between its parts, escaping; clicks in a browser."""

from __future__ import annotations

import inspect
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

import numpy as np
import pytest

from parakeet_py import options
from parakeet_py.call.explain.page import _folded, _Names
from parakeet_py.call.explain.report import Explanation
from parakeet_py.call.explain.source_lines import Fate, SourceFunction, SourceLine
from tests.helpers import browser
from tests.unit.call.explain import explained

IMAGE = np.arange(60.0).reshape(6, 10)
VOID = {"meta", "base", "link", "br", "img", "input", "hr"}


class _Parser(HTMLParser):
    """Makes a tree; an end tag that does not close the element that is open is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.builder, self.open = TreeBuilder(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {key: value or "" for key, value in attrs})
        self.open.append(tag)
        if tag in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        if self.open:
            self.builder.data(data)


def parsed(text: str) -> Element:
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser.builder.close()


def text_of(element: Element | None) -> str:
    assert element is not None
    return "".join(element.itertext())


def of_class(page: Element, name: str) -> list[Element]:
    return [one for one in page.iter() if name in one.get("class", "").split()]


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    for _ in range(2):
        explained.blend(IMAGE, 0.5, "x<y")
    found: Explanation = explained.blend.explain(IMAGE, 0.5, "x<y")
    return found


@pytest.fixture(scope="module")
def page(explanation: Explanation) -> Element:
    return parsed(explanation.html())


def row(page: Element, text: str) -> Element:
    """The line of the source that has this text."""
    (found,) = [one for code in of_class(page, "code") for one in code if text in text_of(one.find("code"))]
    return found


def test_lines_are_those_of_the_source(page: Element) -> None:
    first, second = of_class(page, "code")
    for code, function in ((first, explained.blend.__wrapped__), (second, explained.norm)):
        lines, start = inspect.getsourcelines(function)
        assert [text_of(one.find("code")) for one in code] == [line.rstrip("\n") for line in lines]
        assert [text_of(one.find("a")) for one in code] == [str(start + n) for n in range(len(lines))]


def test_long_texts_are_shown_in_part() -> None:
    short = ["def f(x):", '    """One."""', "    return x"]
    text = ["@accelerate", "def f(x):", '    """One.', *["    more"] * 20, '    """', "    return x"]
    assert not _folded(short) and not _folded(["lambda x: x,"]) and not _folded(["    def f(:"])
    assert _folded([f"    {line}" for line in text]) == range(3, 24)


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("Lines of every kind", "no-code"),
        ("inner = ", "view"),
        ("around = ", "kernel"),
        ("mixed = ", "kernel"),
        ("v / np.sqrt", "kernel"),
        ("share = ", "handed-back"),
        ("total = 0.0", "folded"),
        ("for r in rows:", "machine-code"),
        ("total += ", "machine-code"),
    ],
)
def test_what_became_of_each_line(page: Element, text: str, fate: str) -> None:
    line = row(page, text)
    assert line.get("class", "").split()[0] == fate
    assert bool(of_class(line, "tip")) == (fate != "no-code")


def test_fused_lines_have_the_same_kernel(page: Element) -> None:
    around, mixed = row(page, "around = "), row(page, "mixed = ")
    assert around.get("class") == mixed.get("class")
    (mark,) = of_class(mixed, "mark")
    (card,) = [one for one in page.iter("article") if one.get("id") == mark.get("href", "")[1:]]
    assert {around.get("data-line"), mixed.get("data-line")} <= set(card.get("data-lines", "").split())
    assert "Map over 4 × 8" in text_of(card) and "≈" in text_of(card)


def test_calls_have_what_the_called_function_has(page: Element) -> None:
    called, calling = row(page, "v / np.sqrt"), row(page, "rows = norm")
    marks = [text_of(one) for one in of_class(calling, "mark")]
    assert {text_of(one) for one in of_class(called, "mark")} < set(marks)


def test_shapes_bytes_and_times(page: Element) -> None:
    assert "float64[4, 8], 256 bytes" in text_of(of_class(row(page, "mixed = "), "tip")[0])
    assert "k1: Map over 4 × 8, ≈" in text_of(of_class(row(page, "mixed = "), "tip")[0])
    assert "float64[4], 32 bytes" in text_of(of_class(row(page, "v / np.sqrt"), "tip")[0])


def test_runs_of_lines_are_named_by_their_ends() -> None:
    lines = tuple(SourceLine(number, "pass", Fate.NATIVE) for number in range(1, 20))
    names = _Names((SourceFunction("f", "one.py", lines), SourceFunction("g", "other.py", lines)))
    wanted = [("one.py", number) for number in (2, 3, 5, 7, 8, 9, 10)] + [("other.py", 11), ("other.py", 12)]
    shown = names.links(wanted)
    assert text_of(shown) == "lines 2, 3, 5, 7–10, 11, 12"
    assert [one.get("href") for one in shown][2:5] == ["#L0-5", "#L0-7", "#L0-10"]
    assert text_of(names.links(wanted[2:3])) == "line 5"


def test_advice_for_what_is_handed_back(page: Element) -> None:
    (mark,) = of_class(row(page, "share = "), "mark")
    (card,) = [one for one in page.iter("article") if one.get("id") == mark.get("href", "")[1:]]
    assert "Fraction is not compiled" in text_of(card)
    assert "Instead: " in text_of(card) and "parakeet messages other-packages" in text_of(card)


def test_stages_say_which_line_they_come_from(page: Element) -> None:
    stages = {text_of(one.find("summary/b")): one for one in of_class(page, "stage")}
    assert list(stages) == ["untyped", "typed", "imp", "llvm", "assembly"]
    line = row(page, "mixed = ").get("data-line")
    for name, stage in stages.items():
        lines = [text_of(one) for one in stage.iter("span") if one.get("data-line") == line]
        assert lines, name
        assert "dbg" not in text_of(stage) and ".loc" not in text_of(stage)
    assert "fmul" in "".join(text_of(one) for one in stages["llvm"].iter("span") if one.get("data-line") == line)


def test_all_text_is_escaped_and_nothing_is_loaded(explanation: Explanation, page: Element) -> None:
    assert '<b>markup</b> & "quotes"' in text_of(row(page, "mixed = "))
    assert "'x<y'" in text_of(page.find("body/main/header/h1"))
    for element in page.iter():
        assert element.tag not in ("link", "img", "iframe")
        assert not {"src", "srcset", "onclick", "onload"} & set(element.attrib)
        assert element.get("href", "#").startswith("#")
    text = explanation.html()
    assert "http://" not in text and "https://" not in text and "url(" not in text and "@import" not in text


def test_links_lead_somewhere(page: Element) -> None:
    names = [one.get("id") for one in page.iter() if one.get("id")]
    assert len(names) == len(set(names))
    assert {one.get("href", "")[1:] for one in page.iter("a")} <= set(names)
    assert {one.get("aria-describedby") for one in page.iter() if one.get("aria-describedby")} <= set(names)


def test_a_call_that_runs_in_python() -> None:
    with pytest.warns(UserWarning):
        explained.collects(3)
    page = parsed(explained.collects.explain(3).html())
    (refused,) = of_class(page, "refused")
    assert "This call runs in Python" in text_of(refused) and "pass `i` to the function" in text_of(refused)
    assert row(page, "found = []").get("class") == "python"
    assert {one.get("class") for one in of_class(page, "code")[0]} == {"no-code", "python", "cause"}


def test_a_call_that_has_to_be_seen_first() -> None:
    """The line is one of the function's own, although what is handed back stands in another file."""
    with options(when="pays"):
        explanation = explained.scores.explain(IMAGE)
    page = parsed(explanation.html())
    (refused,) = of_class(page, "refused")
    assert "This call is not compiled yet" in text_of(refused) and "under options(when='now')" in text_of(refused)
    assert "of scores, which calls inv_cdf" in text_of(refused)
    assert row(page, "NormalDist().inv_cdf").get("class") == "cause"


def test_kernels_in_loops() -> None:
    x = np.ones((4, 30))
    page = parsed(explained.steps.explain(x, 5).html())
    step, _, product = page.iter("article")
    assert "Map over 4 × 30" in text_of(step) and "In a loop" in text_of(step)
    assert "960 bytes read, 960 bytes written" in text_of(step)
    assert "Matmul over 4 × 30" in text_of(product) and "240 operations" in text_of(product)


def test_devices_have_a_stage_of_ptx() -> None:
    x = np.ones((4, 30))
    with options(devices="emulated", timeline=True):
        explained.steps(x, 2)
        page = parsed(explained.steps.explain(x, 2).html())
    (ptx,) = [one for one in of_class(page, "stage") if text_of(one.find("summary/b")) == "PTX"]
    line = row(page, "x = x[::-1]").get("data-line")
    assert any(
        "fma" in text_of(one) or "mul" in text_of(one) for one in ptx.iter("span") if one.get("data-line") == line
    )
    assert "emulated:0" in "".join(map(text_of, page.iter("table")))


def test_written_and_in_notebooks(explanation: Explanation, tmp_path: Path) -> None:
    text = explanation.html(tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == text
    fragment = parsed(parsed(explanation._repr_html_()).get("srcdoc", ""))
    assert len(of_class(fragment, "code")) == 2
    assert [text_of(one.find("summary/b")) for one in of_class(fragment, "stage")] == ["untyped", "typed", "imp"]


def test_functions_of_other_files() -> None:
    explanation = explained.halved.explain(IMAGE)
    page = parsed(explanation.html())
    _, other = of_class(page, "source")
    assert "other_file.py" in text_of(other)
    line = row(page, "doubled_and_more = ").get("data-line")
    assert line is not None and line.startswith("1-")
    for stage in of_class(page, "stage")[1:]:
        assert any(one.get("data-line") == line for one in stage.iter("span")), text_of(stage.find("summary"))


def test_a_function_without_source() -> None:
    scope: dict[str, Any] = {}
    exec(compile("def doubled(x):\n    return 2 * x\n", "<nowhere>", "exec"), scope)
    from parakeet_py import accelerate

    page = parsed(accelerate(when="now")(scope["doubled"]).explain(IMAGE).html())
    assert "no source" in text_of(of_class(page, "source")[0])


needs_browser = pytest.mark.skipif(not browser.AVAILABLE, reason="chromium and chromedriver are not installed")


@needs_browser
def test_clicks(explanation: Explanation, page: Element, tmp_path: Path) -> None:
    explanation.html(tmp_path / "page.html")
    line = row(page, "mixed = ").get("data-line")
    with browser.browser() as window:
        window.open(tmp_path / "page.html")
        selected = "return [...document.querySelectorAll('.selected')].map((one) => one.id).filter(Boolean)"
        assert window.script(selected) == []
        window.click(f"#L{line} > code")
        assert window.script(selected) == [f"L{line}", "k1"]
        window.click(".stage:nth-child(2) > summary")
        assert window.script("return document.querySelectorAll('.stage[open]').length") == 1
        assert window.script("return document.querySelector('.stage[open] .selected').checkVisibility()")
        window.click(".stage:nth-child(3) > summary")
        assert window.script("return document.querySelectorAll('.stage[open]').length") == 1
        other = window.script("return document.querySelector('.stage[open] [data-line]:not(.selected)').dataset.line")
        window.click(f".stage[open] [data-line='{other}']")
        assert f"L{other}" in window.script(selected)
        window.press(f"#L{line} > .number", "\ue015")  # arrow down
        assert window.script("return document.activeElement.closest('li').dataset.line") != line


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_contrast(dark: bool, explanation: Explanation, tmp_path: Path) -> None:
    """All text has a contrast of 4.5 with what is behind it (WCAG AA), as the browser draws it."""
    explanation.html(tmp_path / "page.html")
    with browser.browser(dark=dark) as window:
        window.open(tmp_path / "page.html")
        assert window.script("return matchMedia('(prefers-color-scheme: dark)').matches") == dark
        assert window.script((Path(__file__).with_name("contrast.js")).read_text()) == []


@needs_browser
def test_without_scripts(explanation: Explanation, page: Element, tmp_path: Path) -> None:
    explanation.html(tmp_path / "page.html")
    with browser.browser(scripts=False) as window:
        window.open(tmp_path / "page.html")
        window.click(f"#L{row(page, 'mixed = ').get('data-line')} .mark")
        assert window.script("return document.querySelector('.card:target').id") == "k1"
        assert window.script("return document.querySelector('main').dataset.ready") is None


@needs_browser
def test_notebooks_do_not_change_how_it_looks(explanation: Explanation, tmp_path: Path) -> None:
    style = "<style>code { background: red; padding: 9px } a { color: lime !important }</style>"
    (tmp_path / "notebook.html").write_text(f"<!doctype html>{style}<code>x</code>{explanation._repr_html_()}")
    with browser.browser() as window:
        window.open(tmp_path / "notebook.html")
        inside = "const page = document.querySelector('iframe').contentDocument;"
        code = f"{inside} return getComputedStyle(page.querySelector('.code code')).backgroundColor"
        assert window.script(code) == "rgba(0, 0, 0, 0)"
        frame = "document.querySelector('iframe').offsetHeight"
        page, frame = window.script(f"{inside} return [page.querySelector('.parakeet').offsetHeight, {frame}]")
        assert frame == min(page, 900) + 2
        window.script(f"{inside} page.querySelector('.mark').click()")
        assert window.script(f"{inside} return page.querySelector('.card:target')?.id") == "k1"
