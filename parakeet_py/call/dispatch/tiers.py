"""Two tiers of machine code: made quickly, or optimised.

LLVM's optimisation takes most of a first call, and code that is called a few times with little to do never pays for
it. With `tiers`, the code of a signature is first made *quickly*: straight from the IR by LLVM's fast instruction
selection, in a tenth of the time. Values are the same to the bit: where the IR leaves LLVM a choice (`contract`,
`fastmath`, matrix products without BLAS), code is optimised at once. Only which of two zeros an extremum is may differ.

Quick code takes several times as long to run. So it is made only if the present call has little to do
(`typed_ir.passes.analysis.work_bound`), and its entry stub takes calls only

* with ints and extents up to its `limits`: those of the first call, or `SMALL`;
* until they have taken the nanoseconds of its `budget`, about what optimising takes.

Loops that end by a condition may take long nevertheless, and recursion. If the function changes nothing outside, a call
that is still running when these look for signals (`runtime.loop_polls`) is given up, and begun again in optimised code.
Others with such loops, or with recursion, are optimised at once.

The call that it lets pass has the code optimised, which takes its place (`Compiling.optimize`). In all, that costs at
most about twice what optimising at once would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from parakeet_py.base import config as settings
from parakeet_py.base.types import INT64, is_complex, is_float
from parakeet_py.call.specialization_cache import Tier
from parakeet_py.signature.specs import ArraySpec, ScalarSpec, Signature, leaf_values, leaves

if TYPE_CHECKING:
    from parakeet_py.call.compiled import Compiled
    from parakeet_py.imp import ir as imp

MOST_WORK = 1e6
"""Statements of a call for which code is made quickly: a few milliseconds."""
SMALL = 64
"""Ints and extents up to which calls are taken in any case."""
OPTIMISING = 40_000
"""Nanoseconds of optimising a unit of work (`split_module.work_of`)."""


def has_tiers(config: settings.Config) -> bool:
    """Is there quick code under these settings? Python is what runs first where compiling has to pay."""
    return config.tiers and not (config.pays or config.contract or config.fastmath)


def limits_of(compiled: Compiled, normal: Sequence[Any]) -> dict[int, int] | None:
    """The limits of quick code for a call in positional form, by slots of its arguments; None: optimise at once."""
    if compiled.specialization.opaque_sites or compiled.specialization.guessed or _leaves_a_choice(compiled.imp):
        return None
    from parakeet_py.call.give_back import values_of
    from parakeet_py.typed_ir.passes.analysis.work_bound import work_bound

    values = values_of(compiled, normal)
    of_params = dict(zip(compiled.typed.params, values, strict=True))
    polls = may_restart(compiled)
    for least in (SMALL, 0):
        work = work_bound(compiled.typed, of_params, least, polls)
        if work <= MOST_WORK:
            return {slot: max(abs(size), least) for slot, size in _sizes(compiled.signature, values)}
        if polls and work == inf:  # there is too much to look at
            return None
    return None


def may_restart(compiled: Compiled) -> bool:
    """May a call be given up and begun again, as nothing of it shows outside?"""
    from parakeet_py.imp.schedule.effects import stores_only_into_its_own

    return not compiled.specialization.opaque_sites and stores_only_into_its_own(compiled.imp)


def _leaves_a_choice(function: imp.Function) -> bool:
    """May what LLVM does change the bits of a result?"""
    from parakeet_py.imp import ir as imp
    from parakeet_py.llvm.runtime import blas
    from parakeet_py.typed_ir.ir import Prim, dtype_of

    def rounds(dtype: str) -> bool:
        return is_float(dtype) or is_complex(dtype)

    def is_free(one: imp.Statement) -> bool:
        if isinstance(one, imp.Let) and one.reassoc:
            return isinstance(one.rhs, Prim) and one.rhs.name in ("add", "mul") and rounds(dtype_of(one.out))
        if isinstance(one, imp.Matmul):  # loops, where BLAS does not compute it
            dtype = dtype_of(one.out)
            return rounds(dtype) and (dtype not in blas.LETTERS or blas.find() is None)
        return False

    bodies = [function.body, *(one.body for one in function.procedures)]
    return any(is_free(one) for body in bodies for one in imp.walk(body))


def is_outgrown(tier: Tier, signature: Signature, values: Sequence[Any]) -> bool:
    """Are the arguments (`values`, hidden ones behind the others) beyond the limits of quick code?"""
    sizes = _sizes(signature, leaf_values(signature, values))
    return any(abs(size) > tier.limits[slot] for slot, size in sizes)


def budget_of(text: str) -> int:
    """Nanoseconds that calls of the quick code of a module may take."""
    from parakeet_py.llvm.engine.split_module import work_of

    return OPTIMISING * work_of(text)


def _sizes(signature: Signature, values: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """The slots of ints and extents, and what is in them."""
    for leaf, value in zip(leaves(signature), values, strict=True):
        if isinstance(leaf.spec, ArraySpec):
            yield from ((leaf.slot + 2 + axis, extent) for axis, extent in enumerate(value.shape))
        elif isinstance(leaf.spec, ScalarSpec) and leaf.spec.dtype == INT64.dtype:
            yield leaf.slot, int(value)
