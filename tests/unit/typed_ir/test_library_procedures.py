"""Long helpers of the library are procedures, which functions share."""

from __future__ import annotations

import numpy as np
import pytest

from parakeet_py import accelerate, options
from parakeet_py.llvm.engine import compiler
from parakeet_py.typed_ir import ir


def united(a, b):
    return len(set(a) | set(b))


def common(a, b):
    return sorted(set(a) & set(b)), len(set(a) | set(b))


def kinds_of_keys(a, b):
    s, t = set(), set()
    for x in a:
        s.add(x)
    for x in b:
        t.add(x)
    return len(s | t), len(s - t)


A, B = np.array([1, 2, 3, 2]), np.array([3, 4, 2])


def compiled(function):
    return function._dispatcher.compiled_for((A, B), {})


def names(function):
    return {one.name for one in compiled(function).typed.procedures if one.library}


def test_functions_share_them():
    with options(cache=False):
        first, second = accelerate(united), accelerate(common)
        assert first(A, B) == 4
        assert second(A, B) == ([2, 3], 4)
    shared = names(first) & names(second)
    assert any(name.startswith("distinct_") for name in shared)
    assert any(name.startswith("chosen_entries_") for name in shared)
    own = {one.name: one for one in compiled(first).typed.procedures}
    for one in compiled(second).typed.procedures:
        assert one.name not in shared or one is own[one.name]


def test_what_has_been_compiled_is_not_compiled_again(monkeypatch):
    with options(cache=False):
        assert accelerate(united)(A, B) == 4
        texts = []
        compile_ir = compiler.compile_ir

        def noted(text, **settings):
            texts.append(text)
            return compile_ir(text, **settings)

        monkeypatch.setattr(compiler, "compile_ir", noted)

        def another(a, b):
            return len(set(b) | set(a)) + 1

        assert accelerate(another)(A, B) == 5
    assert texts
    assert not any("define fastcc" in text for text in texts)


def test_what_fails_in_one_is_done_by_python():
    function = accelerate(kinds_of_keys)
    some, other = [1.0, float("nan"), 2.0], [2.0, 0.0, -0.0]
    for _ in range(2):
        assert function([1.0, 2.0], other) == kinds_of_keys([1.0, 2.0], other)
        assert function(some, other) == kinds_of_keys(some, other)


@pytest.mark.parametrize("check", [1, 2])
def test_checked(check):
    with options(check=check, cache=False):
        assert accelerate(common)(A, B) == ([2, 3], 4)


def test_devices_have_none():
    def shifted(a, b, x):
        return x * 2 + len(set(a) | set(b))

    x = np.arange(6.0)
    with options(devices="emulated", cache=False):
        function = accelerate(shifted)
        assert np.array_equal(function(A, B, x), x * 2 + 4)
        assert "launch" in str(function.explain(A, B, x).device)


def test_a_copy_of_the_body_has_no_calls():
    from parakeet_py.typed_ir.inlining import inlined

    with options(cache=False):
        function = accelerate(united)
        function(A, B)
    before = compiled(function).unfused
    after = inlined(before)
    assert any(isinstance(let.op, ir.Call) for let in before.statements())
    assert not any(isinstance(let.op, ir.Call) for let in after.statements())
    assert after.procedures == ()


def test_procedures_for_devices():
    """They have no body before a device is to run them, and then are written out."""

    def drawn(rng, n):
        return rng.normal(0.5, 2.0, n)

    fast = accelerate(drawn)
    rng, other = np.random.default_rng(5), np.random.default_rng(5)
    text = fast.typed_ir(rng, 10)
    assert "call fill_normal_at_once" in text and "library fill_normal_at_once" in text and "compress" not in text
    assert np.array_equal(fast(rng, 700), drawn(other, 700))
    with options(devices="emulated"):
        assert np.array_equal(fast(rng, 700), drawn(other, 700))
        launches = fast.explain(rng, 10).device
    assert "_compress_" in str(launches) and rng.bit_generator.state == other.bit_generator.state
