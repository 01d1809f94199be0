"""Counting flags that lie in bytes: true elements of a mask, or bytes that satisfy a condition.

A sum of flags into 64 bits turns every byte into eight before it adds. So runs of `RUN` are summed up in bytes, as many
at once as a vector register has, and only what they come to is widened.
"""

from __future__ import annotations

from dataclasses import replace

from parakeet_py.base.types import INT64, Array, Scalar, itemsize
from parakeet_py.imp.ir import Cell
from parakeet_py.imp.lower.builder import Lowering
from parakeet_py.imp.schedule.loop_order import Study
from parakeet_py.imp.writer import ONE, ZERO
from parakeet_py.typed_ir.ir import Block, Cast, Const, Operand, Prim, Var, dtype_of

RUN = 192  # less than 256, and a multiple of the lanes of all vector registers

_BYTE = Scalar("uint8")


def counted(found: Study, body: Block) -> Var | None:
    """The flag that a body of one result counts, if all that the body reads are bytes; None otherwise."""
    (result,) = body.results
    if not (isinstance(result, Var) and found.simple and not found.has_check):
        return None
    flag = None
    match found.definitions.get(result):
        case Cast(Var() as arg):
            flag = arg
        case Prim("select", (Var() as arg, Const(1), Const(0))):
            flag = arg
    if flag is None or dtype_of(flag) != "bool" or dtype_of(result) != "int64" or not in_bytes(found, flag):
        return None
    return flag


def in_bytes(found: Study, flag: Operand) -> bool:
    """Whether a body finds a flag by looking at bytes alone."""
    arrays = [access.array.type for access in found.accesses]
    return flag in found.inside and all(isinstance(kind, Array) and itemsize(kind.dtype) == 1 for kind in arrays)


def count(
    lo: Lowering,
    cell: Cell,
    body: Block,
    flag: Operand,
    index: Var,
    start: Operand,
    stop: Operand,
    kept: Var | None = None,
) -> None:
    """Add to `cell` for how many values of `index` in [start, stop) the flag is true; flags are stored into `kept`."""
    flags = replace(body, results=(flag,))
    length = Const(RUN, INT64)
    runs = lo.floor_div(lo.maximum(lo.subtract(stop, start), ZERO), length)
    end = lo.add(start, lo.multiply(runs, length))
    first = lo.index("run")

    def flag_of_point() -> Operand:
        (keep,) = lo.lower_block(flags)
        if kept is not None:
            lo.store(kept, (lo.operand(index),), keep)
        return keep

    def run() -> None:
        few = lo.declare("few", _BYTE, Const(0, _BYTE))

        def one() -> None:
            keep = flag_of_point()
            lo.write(few, lo.prim("add", lo.read(few), lo.let("t", _BYTE, Cast(keep)), type_=_BYTE))

        lo.loop(lo.bind(index), first, lo.add(first, length), one, "vector")
        lo.write(cell, lo.add(lo.read(cell), lo.let("t", INT64, Cast(lo.read(few)))))

    def rest() -> None:
        keep = flag_of_point()
        lo.write(cell, lo.add(lo.read(cell), lo.prim("select", keep, ONE, ZERO)))

    lo.loop(first, start, end, run, "serial", length)
    lo.loop(lo.bind(index), end, stop, rest, "vector")
