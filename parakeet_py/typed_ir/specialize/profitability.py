"""Loops and functions that are not worth compiling, because Python does most of them.

An operation handed back costs one or two microseconds more than in Python itself. Around array operations or loops of
its own that is nothing; but a loop, or a function, that does little else is faster in Python as a whole.
"""

from __future__ import annotations

from collections.abc import Container

from parakeet_py.typed_ir import ir

FEW = 4096  # points of an operator that Python's own loop would not notice
BESIDE = 24  # statements, for each operation handed back, that Python does in the time which entering it takes


def light_site(function: ir.Function, seldom: Container[int] = ()) -> int | None:
    """The number of an operation handed back in a loop that does little else; None if there is none.

    Operations that are `seldom` done, or take much longer anyway, do not count.
    """
    return _light_site(function.body, seldom)


def does_little_else(function: ir.Function, seldom: Container[int] = ()) -> bool:
    """Does a function nothing of size but what it hands back, each time it is called?"""
    always = [let.op for let in function.body.statements if isinstance(let.op, ir.Opaque)]
    sites = [op for op in always if op.site not in seldom]
    if not sites:
        return False
    ops = [let.op for let in ir.walk(function.body)]
    simple = [op for op in ops if _is_simple(op)]
    if len(simple) > 1 or any(isinstance(op, ir.For | ir.While) or _is_heavy(op) for op in ops if op not in simple):
        return False
    return len(ops) <= BESIDE * len(sites)


def _is_simple(op: ir.Op) -> bool:
    """Is this one pass of NumPy's over an array, with nothing that has been fused?"""
    if not isinstance(op, ir.Map):
        return False
    inside = [let.op for part in ir.blocks_of(op) for let in ir.walk(part)]
    prims = [one.name for one in inside if isinstance(one, ir.Prim)]
    return len(prims) <= 1 and all(isinstance(one, ir.Load | ir.Store | ir.Prim) for one in inside)


def _light_site(block: ir.Block, seldom: Container[int]) -> int | None:
    for let in block.statements:
        if isinstance(let.op, ir.For | ir.While):
            inside = [inner.op for part in ir.blocks_of(let.op) for inner in ir.walk(part)]
            sites = [op.site for op in inside if isinstance(op, ir.Opaque) and op.site not in seldom]
            if sites and not any(map(_is_heavy, inside)):
                return sites[0]
        else:
            for part in ir.blocks_of(let.op):
                found = _light_site(part, seldom)
                if found is not None:
                    return found
    return None


def _is_heavy(op: ir.Op) -> bool:
    match op:
        case _ if isinstance(op, ir.CALLS):
            return not isinstance(op, ir.Opaque)
        case ir.For() | ir.While():
            return not any(isinstance(let.op, ir.Opaque) for part in ir.blocks_of(op) for let in ir.walk(part))
        case ir.Map() | ir.Reduce() | ir.Scan() | ir.Compress() | ir.Scatter():
            points = 1.0
            for extent in (*op.extents, *(op.reduced_extents if isinstance(op, ir.Reduce) else ())):
                points *= extent.value.real if isinstance(extent, ir.Const) else FEW
            return points >= FEW
    return False
