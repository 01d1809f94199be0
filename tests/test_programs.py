"""Every program of the corpus on every backend, compared with plain Python; then how it was compiled."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType

import numpy as np
import pytest

from parakeet_py.base import machine
from tests.backends import BACKENDS, INTERPRETERS, accelerated, has_fallen_back, run
from tests.corpus import Case, Outcome, Program, all_programs, assert_same, outcome


def _runs() -> Iterator[object]:
    for backend in BACKENDS:
        for program in all_programs():
            if backend not in INTERPRETERS or any(_for_interpreters(backend, program, c) for c in program.cases):
                yield pytest.param(backend, program, id=f"{backend}-{program.name}")


def _for_interpreters(backend: str, program: Program, case: Case) -> bool:
    """Interpreters take positional arguments, of a size for interpreters."""
    if backend == "untyped_ir" and (program.fell_back is not False or not isinstance(program.function, FunctionType)):
        return False  # it is made from functions that have source, and cannot run what is refused in Python
    if case.raises is TypeError and isinstance(program.function, FunctionType):
        try:
            inspect.signature(program.function).bind(*case.make()[0])
        except TypeError:
            return False  # the call itself is refused, before anything is compiled
    return not (case.native_only or case.kwargs)


@pytest.mark.parametrize(("backend", "program"), list(_runs()))
def test_program(backend: str, program: Program) -> None:
    for number, case in enumerate(program.cases):
        if backend in INTERPRETERS and not _for_interpreters(backend, program, case):
            continue
        if backend == "emulated" and case.host_only:
            continue
        try:
            _check(backend, program, case)
        except BaseException as error:
            error.add_note(f"case {number}: {case!r}")
            raise


def _check(backend: str, program: Program, case: Case) -> None:
    args, kwargs = case.make()
    expected = outcome(program.function, args, kwargs)
    actual = run(backend, program, case)
    if backend == "python":
        _check_claims(program, case, expected)
    elif program.fell_back is not None and backend != "untyped_ir" and not machine.PORTABLE_ENTRY:
        _check_fallback(backend, program, actual)
    sums = max(program.sums, program.regrouped) if backend in ("emulated", "gpu") else program.sums
    assert_same(expected, actual, ulp=program.ulp, sums=sums, message=program.message, order=program.order)


def _check_claims(program: Program, case: Case, expected: Outcome) -> None:
    """What the corpus says of the plain program is so: its exception."""
    if case.raises is None and expected.exception is not None:
        raise expected.exception
    assert case.raises is None or type(expected.exception) is case.raises


def _check_fallback(backend: str, program: Program, actual: Outcome) -> None:
    warned = [w for w in actual.warned if w.category.__name__ == "FallbackWarning"]
    if not program.fell_back:
        assert not warned, f"fell back to Python: {warned[0].message}"
    if backend.startswith("native") or backend == "checked":
        assert has_fallen_back(backend, program.function) == program.fell_back, "fell_back is not as stated"


@pytest.mark.parametrize("program", all_programs(), ids=repr)
def test_mutated_arguments(program: Program) -> None:
    """`mutates` names exactly the arguments that plain Python changes for some input; attributes of ordinary objects
    do not count."""
    changed = set()
    for case in program.cases:
        before, after = case.make()[0], case.make()[0]
        outcome(program.function, after, case.make()[1])
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            try:
                assert_same(Outcome((one,)), Outcome((other,)), attributes=False)
            except AssertionError:
                changed.add(i)
    assert changed == set(program.mutates)


@pytest.mark.parametrize("program", [p for p in all_programs() if p.opaque is not None], ids=repr)
def test_handed_back(program: Program) -> None:
    """As many calls are handed back to Python as the program states, for every input that runs through."""
    if program.fell_back is not False:
        return
    function = accelerated(program.function)
    for case in program.cases:
        if case.raises is None and not case.kwargs and not program.overflow:
            function(*case.make()[0])  # what is handed back has to be seen once
            args, _ = case.make()
            explained = function.explain(*args)
            assert len(explained.opaque_calls) == program.opaque, (case, explained.opaque_calls)


@pytest.mark.parametrize("program", [p for p in all_programs() if p.kernels is not None], ids=repr)
def test_kernels(program: Program) -> None:
    """Fusion leaves as many kernels as the program states; fewer for arrays known to have one element."""
    function = accelerated(program.function)
    for case in program.cases:
        if case.raises is None and not case.kwargs:
            args, _ = case.make()
            explained = function.explain(*args)
            count = explained.kernels
            single = any(isinstance(arg, np.ndarray) and arg.size == 1 for arg in args)
            assert count == program.kernels or (single and count < program.kernels), (case, explained)


@pytest.mark.parametrize(
    ("program", "case"),
    [
        pytest.param(program, case, id=f"{program.name}-{i}")
        for program in all_programs()
        for i, case in enumerate(program.cases)
        if case.native_only
    ],
)
def test_threads_agree_to_the_bit(program: Program, case: Case) -> None:
    """One thread and two give the same bits: reductions are summed in blocks of a fixed size."""
    assert_same(run("native-1", program, case), run("native-2", program, case), message=True)
