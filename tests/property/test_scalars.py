"""Random expressions of Python ints and floats: exact, those whose ints leave int64 too (Python runs such calls)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.property.generated import check, every_stage

EXTREMES = [2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 10**18, -(10**18), 3037000500]
integers = st.one_of(st.integers(-20, 20), st.sampled_from(EXTREMES))
floats = st.one_of(st.floats(-100, 100), st.sampled_from([0.0, -0.0, 1e300, float("inf"), float("nan"), 2.0**53]))
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} // {}", "{} % {}", "{} < {}", "{} == {}", "max({}, {})", "min({}, {})"]
INTEGER_ONLY = ["{} & {}", "{} | {}", "{} ^ {}", "{} >> ({} % 70)", "{} << (abs({}) % 5)", "({} % 4) ** ({} % 9)"]
UNARY = ["(-{})", "abs({})", "(+{})", "int({})", "(not {})"]
LEAVES = ["a", "b", "a", "b", "1", "3", "-2", "0"]


def _texts(binary: list[str]) -> st.SearchStrategy[str]:
    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds(lambda form, p, q: f"({form.format(p, q)})", st.sampled_from(binary), inner, inner),
            st.builds(lambda form, p: form.format(p), st.sampled_from(UNARY), inner),
            st.builds(lambda c, p, q: f"({p} if {c} else {q})", inner, inner, inner),
            st.builds(lambda p, q, word: f"({p} {word} {q})", inner, inner, st.sampled_from(["and", "or"])),
        )

    return st.recursive(st.sampled_from(LEAVES), grow, max_leaves=6)


@every_stage
@given(_texts(BINARY + INTEGER_ONLY), integers, integers)
def test_integer_expressions(stage: str, text: str, a: int, b: int) -> None:
    source = f"def f(a, b):\n    return {text}\n"
    check(stage, source, [a, b])


@every_stage
@given(_texts(BINARY), integers, floats)
def test_mixed_expressions(stage: str, text: str, a: int, b: float) -> None:
    source = f"def f(a, b):\n    return {text}\n"
    check(stage, source, [a, b])


@every_stage
@given(integers, integers, st.integers(0, 6))
def test_accumulation(stage: str, a: int, b: int, n: int) -> None:
    source = "def f(a, b, n):\n    s = a\n    for i in range(n):\n        s = s * 3 + b - i\n    return s\n"
    check(stage, source, [a, b, n])
