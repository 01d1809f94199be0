"""Names of tasks and of code: what differs in anything that decides a value has another name."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402

from parakeet_py import accelerate, options  # noqa: E402
from parakeet_py.base.config import Config  # noqa: E402
from parakeet_py.base.types import Array, Scalar  # noqa: E402
from parakeet_py.cluster.arrays import Root  # noqa: E402
from parakeet_py.cluster.graph import Graph  # noqa: E402
from parakeet_py.cluster.plan import identity_of  # noqa: E402
from parakeet_py.cluster.windows import Snapshot, TaskInputs, Windows  # noqa: E402
from parakeet_py.cluster.worker.kernel import Kernel  # noqa: E402
from parakeet_py.typed_ir.ir import Block, Const, Function, Var  # noqa: E402
from parakeet_py.typed_ir.writer import Writer  # noqa: E402

FLOAT = Scalar("float64")


@pytest.fixture(autouse=True)
def _here_and_now() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


def scaled(by: float, message: str = "of 2.5") -> Function:
    w, x = Writer(), Var("x", FLOAT)
    w.check(w.prim("gt", x, Const(0.0, FLOAT), type_=Scalar("bool")), "ValueError", message)
    return Function("scaled", (x,), w.block(w.prim("mul", x, Const(by, FLOAT), type_=FLOAT)))


def test_code_that_differs_in_a_constant_is_other_code() -> None:
    x = da.arange(12.0, chunks=4)
    half, quarter = accelerate(when="now")(lambda x: x * 0.5), accelerate(when="now")(lambda x: x * 0.25)
    found = dask.compute(half(x), quarter(x))
    assert np.array_equal(found[0], np.arange(12.0) * 0.5) and np.array_equal(found[1], np.arange(12.0) * 0.25)


def test_tokens_know_globals_and_no_places() -> None:
    text = (
        "from parakeet_py import accelerate\n{}by = {}\ndef g(x): return x{}\n@accelerate\ndef f(x): return by * g(x)\n"
    )

    def token(*parts: str) -> str:
        scope: dict[str, Any] = {"__name__": "there"}
        exec(compile(text.format(*parts), f"<{len(scope)} {parts}>", "exec"), scope)
        return str(dask.base.tokenize(scope["f"]))

    known = token("", "2", "+1")
    assert token("\n\n", "2", "+1") == known
    assert len({known, token("", "3", "+1"), token("", "2", "+2"), token("", "[2]", "+1")}) == 4


def test_identities() -> None:
    known = identity_of(scaled(0.5), Config())
    assert identity_of(scaled(0.5), Config()) == known  # numbers of variables do not count
    others = [
        identity_of(scaled(0.25), Config()),
        identity_of(scaled(0.5, "of 2.6"), Config()),
        identity_of(scaled(0.5), Config(fastmath=True)),
        identity_of(scaled(0.5), Config(contract=True)),
        identity_of(scaled(0.5), Config(), True),
        identity_of(Function("scaled", (Var("x", Array("float64", 1)),), Block((), ())), Config()),
    ]
    assert len({known, *others}) == 1 + len(others)


def test_codes_that_differ_in_messages_arrive_as_two() -> None:
    kernels = [Kernel(one, Config(), False, identity_of(one, Config())) for one in (scaled(0.5), scaled(0.5, "other"))]
    for kernel, message in zip(map(pickle.loads, map(pickle.dumps, kernels)), ("of 2.5", "other"), strict=True):
        with pytest.raises(ValueError, match=message):
            kernel([-1.0])


def test_options_are_in_names() -> None:
    def product(x: Any, y: Any) -> Any:
        return x * y + x

    x = da.arange(12.0, chunks=4)
    plain = accelerate(when="now")(product)(x, x)
    with options(fastmath=True):
        fast = accelerate(when="now")(product)(x, x)
    assert not (set(plain.dask) & set(fast.dask)) - set(x.dask)


def test_windows_of_chunks_that_are_gone() -> None:
    graph = Graph("f", "token")
    windows = Windows(graph)
    for number in range(50):  # others may get their ids
        root = Root((4,), "float64", 8, ((2, 2),))
        root.keys.update({(0,): ("a", number), (1,): ("b", number)})
        inputs = TaskInputs()
        windows.spec(inputs, Snapshot(root), [((0, 2),)], False, True)
        assert list(inputs.places) == [("a", number)]
