"""An operation that no pass has heard of: what its fields say is enough to print it, rebuild it and keep its order."""

from __future__ import annotations

from typing import Any

from parakeet_py.base import grammar
from parakeet_py.base.config import current
from parakeet_py.base.fast_dataclass import record
from parakeet_py.base.types import PYINT
from parakeet_py.typed_ir.ir import Const, Function, Indices, Updates, arrays_written
from parakeet_py.typed_ir.passes.analysis.alias import Aliases
from parakeet_py.typed_ir.pipeline import run_passes
from parakeet_py.typed_ir.print import format_function
from tests.helpers.typed_ir_programs import Program, array


@record
class Swap:
    """Two elements of an array change places."""

    TEXT = "swap {array}[{first}], [{second}]"

    array: Updates
    first: Indices
    second: Indices


def test_passes_keep_its_order() -> None:
    a, b, out = array("a"), array("b"), array("out")
    p = Program(a, b, out)
    zero, one, two = (Const(value, PYINT) for value in (0, 1, 2))
    p.store(out, (zero,), p.load(a, zero))
    p.store(out, (one,), p.load(b, zero))
    swap: Any = Swap(a, (zero,), (p.prim("add", zero, one),))
    p.let(swap)
    p.store(out, (two,), p.load(a, zero))
    p.store(out, (Const(3, PYINT),), p.load(b, zero))
    made = run_passes(Function("f", (a, b, out), p.block()), current())
    lines = format_function(made).splitlines()
    (at,) = [place for place, line in enumerate(lines) if f"swap {a!r}[0], [1]" in line]
    loads_of_a = [place for place, line in enumerate(lines) if line.endswith(f"= {a!r}[0]")]
    assert len(loads_of_a) == 2 and loads_of_a[0] < at < loads_of_a[1]
    assert sum(line.endswith(f"= {b!r}[0]") for line in lines) == 1


def test_effects_follow_from_its_fields() -> None:
    a = array("a")
    swap: Any = Swap(a, (Const(0, PYINT),), (Const(1, PYINT),))
    effects = Aliases(Function("f", (a,), Program(a).block())).effects(swap)
    assert effects.reads == effects.writes == {a} and not effects.fails
    assert arrays_written(swap) == (a,) and grammar.arrays(swap) == (a,)
