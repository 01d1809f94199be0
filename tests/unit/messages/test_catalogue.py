"""The catalogue of messages: it knows all texts of refusals, its examples do what they say, and arrays are named."""

from __future__ import annotations

import ast
import logging
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parakeet_py
from parakeet_py import FallbackWarning, UnsupportedError, accelerate
from parakeet_py.base.errors import advised
from parakeet_py.call.troubleshooting import as_list, as_text, called, page
from parakeet_py.messages.catalogue import CATALOGUE
from parakeet_py.messages.entry import Entry
from parakeet_py.messages.lookup import entry_named, entry_of

PACKAGE = Path(parakeet_py.__file__).parent
MOST_LINES, MOST_COLUMNS = 24, 200  # of a screen; a line of the user's source may be as long


# Which argument of the calls that refuse something is the text.
PLACES = {"unsupported": 0, "refuse": 1, "UnsupportedError.at": 2, "UnsupportedError": 0, "Unknown": 0, "advised": 0}


def texts() -> list[tuple[str, str]]:
    """The texts of refusals in the sources of the package, with X where values stand, and where they are."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if {"emulator", "bench", "library"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            at = PLACES.get(name if name == "UnsupportedError.at" else name.rpartition(".")[2])
            text = literal(node.args[at]) if at is not None and len(node.args) > at else None
            if text is not None:
                found.append((text, f"{path.name}:{node.lineno}"))
    return found


def literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    return None


def test_every_text_is_in_the_catalogue() -> None:
    found = texts()
    assert len(found) > 250
    assert [one for one in found if entry_of(one[0]) is None] == []


def test_every_warning_says_what_to_do() -> None:
    """Warnings are about functions that fell back, whose texts are tested above, or `advised`."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if {"emulator", "bench", "library"} & set(path.parts):
            continue
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                what = ast.unparse(node.args[0])
                found.append(what)
                assert "FallbackWarning(" in what or "advised(" in source, f"{path.name}:{node.lineno}"
    assert len(found) >= 4


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no CUDA device: there is no driver; calls run on the CPU", "device-missing"),
        ("cuda:0 has failed, its work is done by the CPU: cuda:0 has no memory for 8 bytes", "device-lost"),
        ("the environment variable PARAKEET_X is no setting of parakeet_py; there are PARAKEET_CHECK", "setting-name"),
        (
            "an int beyond 64 bits, in the middle of a call that has changed something; "
            "such calls run in Python from now on: a.py:3",
            "changed-already",
        ),
    ],
)
def test_texts_without_a_place_are_advised(text: str, code: str) -> None:
    lines = advised(text).splitlines()
    assert lines == [text, f"  instead: {entry_named(code).hint}", f"  more: parakeet messages {code}"]


def test_codes_are_names_of_their_own() -> None:
    codes = [entry.code for entry in CATALOGUE]
    assert len(set(codes)) == len(codes)
    for entry in CATALOGUE:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.code) and entry_named(entry.code) is entry
        assert entry.hint and not entry.hint.endswith(".") and entry.title
    with pytest.raises(KeyError, match="no message iterations; did you mean 'iteration'"):
        entry_named("iterations")


@pytest.mark.parametrize("entry", [entry for entry in CATALOGUE if entry.example], ids=lambda entry: entry.code)
def test_examples_do_what_they_say(entry: Entry) -> None:
    f, _, said = called(entry.example, entry.args, "example.py")
    (message,) = said
    assert f.fell_back and message == f"f fell back to Python. {f.fell_back}"
    assert f"\n  more: parakeet messages {entry.code}" in message and "\n  instead: " in message
    assert "^" in message and "example.py:" in message
    lines = message.splitlines()
    assert len(lines) <= MOST_LINES and max(map(len, lines)) <= MOST_COLUMNS
    f, _, said = called(entry.works, entry.works_args or entry.args, "works.py")
    assert said == [] and not f.fell_back and f.specializations and f.opaque_calls == []


def test_entries_are_one_screen() -> None:
    for entry in CATALOGUE:
        assert len(as_text(entry).splitlines()) <= 40
    assert any(line.startswith("unusual-array ") for line in as_list().splitlines())


def test_the_page_is_made_from_the_catalogue() -> None:
    written = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
    assert written.read_text(encoding="utf-8") == page(), "make docs writes it"


RECORDS = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
UNALIGNED = np.frombuffer(bytearray(25), dtype="u1")[1:].view("f8")
ARRAYS: list[tuple[Any, str, str]] = [
    (np.ma.array([1.0, 2.0], mask=[0, 1]), "a masked array", "x.filled(0)"),
    (np.asmatrix([1.0]), "a numpy.matrix", "np.asarray(x)"),
    (RECORDS, "a structured array (of a, b)", "x['a'], x['b']"),
    (
        np.array(["2020-01-01"], dtype=">M8[D]"),
        "an array of datetime64[D] in another byte order (>M8[D])",
        "x.astype('datetime64[D]')",
    ),
    (np.array([5], dtype="m8"), "an array of timedelta64", "x.view('int64')"),
    (np.array([1, None]), "an array of Python objects", "x.astype(float)"),
    (np.arange(3.0).astype(">f8"), "an array of float64 in another byte order (>f8)", "x.astype('float64')"),
    (np.array(["a"]), "an array of strings (<U1)", "np.unique(x, return_inverse=True)[1]"),
    (np.array([b"a"]), "an array of strings (|S1)", "np.unique(x, return_inverse=True)[1]"),
    (UNALIGNED, "an array that is not aligned in memory", "x.copy()"),
    (np.ones(2, np.longdouble), "an array of longdouble", "x.astype('float64')"),
]


@pytest.mark.parametrize(("array", "what", "hint"), ARRAYS, ids=[what for _, what, _ in ARRAYS])
@pytest.mark.parametrize("inside", [False, True])
def test_unusual_arrays_are_named(array: Any, what: str, hint: str, inside: bool) -> None:
    @accelerate(strict=True)
    def f(x):
        return x[0]

    @accelerate(strict=True)
    def g(x):
        return x[0][0]

    with pytest.raises(UnsupportedError) as caught:
        g([array, 1]) if inside else f(array)
    what = what.replace("longdouble", np.dtype(np.longdouble).name)
    place = "x[0]" if inside else "x"
    assert caught.value.message == f"`{place}` is {what}, which is not compiled as an array"
    assert re.sub(r"\bx\b", place, hint) in caught.value.advice
    assert caught.value.code == "unusual-array"


def test_parameters_are_named_in_their_order() -> None:
    @accelerate(strict=True)
    def f(a, *rest, scale=1.0, **named):
        return a + rest[0][0] * scale + named["last"]

    odd = np.array([1, None])
    for args, named, place in (
        ((1.0, odd), {"last": 1.0}, "rest[0]"),
        ((1.0, [2.0]), {"last": 1.0, "scale": odd}, "scale"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            f(*args, **named)
        assert caught.value.message == f"`{place}` is an array of Python objects, which is not compiled as an array"


def test_memmaps(tmp_path: Path) -> None:
    """Only those whose elements are not compiled are refused; the text names these."""
    x = np.memmap(tmp_path / "x", dtype=">f8", mode="w+", shape=(3,))
    f = accelerate(lambda x: x.sum() + 1)
    with pytest.warns(FallbackWarning, match=r"`x` is an array of float64 in another byte order"):
        assert f(x) == 1.0


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (range(2**70, 2**70 + 3), "a range"),
        ({1, 2}, "a set"),
        (frozenset({1}), "a frozenset"),
        (iter([1]), "a list_iterator"),
        ((n for n in [1]), "a generator"),
        (np.array([1, 2], dtype=object).tolist().__iter__(), "a list_iterator"),
    ],
)
def test_loops_name_what_they_go_through(value: Any, what: str) -> None:
    @accelerate
    def f(numbers):
        s = 0
        for n in numbers:
            s += n
        return s

    with pytest.warns(FallbackWarning) as caught:
        f(value)
    text = str(caught[0].message)
    assert f"iteration over {what}\n" in text and "more: parakeet messages iteration" in text


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


LISTS: list[tuple[list[Any], str, str]] = [
    ([Point(1.0)] * 500, "iteration over a list of Point", "np.array([one.x for one in items])"),
    (["ab", "c"] * 500, "iteration over a list of str", "np.array([len(one) for one in items])"),
    ([None, 1] * 500, "iteration over a list of NoneType and int", "pass an array"),
    ([[1], [2, 3]] * 300, "iteration over a list of list", "np.concatenate(items)"),
]


@pytest.mark.parametrize(("items", "text", "hint"), LISTS, ids=[text for _, text, _ in LISTS])
def test_lists_say_what_is_in_them(items: list[Any], text: str, hint: str) -> None:
    @accelerate(strict=True)
    def f(scale, items):
        n = 0
        for one in items:
            if one is not None:
                n += scale
        return n

    with pytest.raises(UnsupportedError) as caught:
        f(2, items)
    assert caught.value.message == text and hint in caught.value.advice and caught.value.code == "iteration"


class Line:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3)

    def __iter__(self) -> Any:
        return iter([1, 2])


class Table(Line):
    columns = "a", "b"


@pytest.mark.parametrize(("value", "made"), [(Line(), "np.asarray(x)"), (Table(), "columns, as np.asarray(x[...])")])
def test_arrays_of_other_libraries(value: Any, made: str) -> None:
    @accelerate(strict=True)
    def f(n, x):
        for _ in x:
            n += 1
        return n

    with pytest.raises(UnsupportedError) as caught:
        f(2, value)
    assert caught.value.advice == f"compute with {made}, made in the function or before the call"


def test_rows_of_structured_arrays_name_them() -> None:
    @accelerate(strict=True)
    def f(rows):
        return rows[0], 1

    with pytest.raises(UnsupportedError) as caught:
        f(RECORDS)
    assert caught.value.message == "`rows` is a structured array (of a, b), which is not compiled as an array"


def test_numbers_have_the_names_of_python() -> None:
    @accelerate
    def f(n):
        return [[0] for _ in range(n)] * n + [n]

    with pytest.warns(FallbackWarning) as caught:
        assert f(1) == [[0], 1]
    assert "pyint" not in str(caught[0].message)
    assert "a list and an int" in str(caught[0].message)


def test_classes_are_read_from_bytecode() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    class A:\n        y = x\n    return A.y\n", scope)
    f = accelerate(scope["f"])
    with pytest.warns(FallbackWarning, match="a class cannot be defined in an accelerated function"):
        assert f(1) == 1


def test_explain_before_a_first_call() -> None:
    def unknown(x: Any) -> Any:
        return eval("x + 1", {"x": x})

    f = accelerate(lambda x: unknown(x) + np.sum(x))
    first = str(f.explain(np.arange(3.0)))
    assert "not compiled yet, because" in first and "no call has shown yet what it gives" in first
    assert "instead: call the function with such arguments first" in first
    for _ in range(2):
        f(np.arange(3.0))
    assert "not compiled yet" not in str(f.explain(np.arange(3.0)))
    with pytest.raises(TypeError, match=r"<lambda>\(\) missing 1 required positional argument: 'x'"):
        f.explain()
    with pytest.raises(TypeError, match=r"<lambda>\(\) got an unexpected keyword argument 'y'"):
        f.typed_ir(1, y=2)
    assert "(Thing)\nfell back" in str(accelerate(lambda thing: [n for n in thing]).explain(Thing()))


def test_the_log_tells_without_any_setting(caplog: pytest.LogCaptureFixture) -> None:
    def scaled(x):
        return 2 * x

    with caplog.at_level(logging.INFO, "parakeet_py"):
        f = accelerate(scaled)
        f(1.0)
        f(np.ones(3))
        f(1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            f({1}) if False else accelerate(lambda s: [n for n in s])({1, 2})
    told = [record.getMessage() for record in caplog.records]
    name = re.escape(scaled.__qualname__)
    assert len(told) == 3 and all("\n" not in line for line in told)
    how = r": (compiled, \d+ operators after fusion, in|loaded from the disk cache in) \d+\.\d ms"
    assert re.fullmatch(name + r"\(float\)" + how, told[0])
    assert re.fullmatch(name + r"\(float64\[1 axis\]\)" + how, told[1])
    assert re.match(r".*<lambda>\(.*\) fell back: .*:\d+: iteration over a set$", told[2])


def test_the_log_tells_more_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    from parakeet_py import options

    def partitioned(x):
        return np.partition(x, 1) + 1 + np.sum(x * x) + np.sum(np.sqrt(x))

    with caplog.at_level(logging.DEBUG, "parakeet_py"), options(cache=False):
        f = accelerate(partitioned)
        for _ in range(3):
            f(np.arange(2000.0))
    assert "handed back: " in caplog.text and "partition" in caplog.text and "specialize " in caplog.text


def test_paths_name_what_meets() -> None:
    @accelerate(strict=True)
    def grows(n):
        found = ()
        for i in range(n):
            found = found + (i,)  # noqa: RUF005
        return found

    @accelerate(strict=True)
    def changes(n):
        held = [0.0, 1.0]
        for i in range(n):
            held = {i: 1} if i % 2 else [held[0], 2.0]
        return held

    with pytest.raises(UnsupportedError) as caught:
        grows(5)
    assert caught.value.message == "a name is a tuple of 0 items on one path and a tuple of 1 item on another"
    assert "append to a list" in caught.value.advice and caught.value.code == "types-by-path"
    with pytest.raises(UnsupportedError) as caught:
        changes(5)
    assert "dict" in caught.value.message and "varying" not in caught.value.message
