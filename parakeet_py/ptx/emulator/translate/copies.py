"""Translation of asynchronous copies to shared memory, by pieces and by boxes, and of barriers that count bytes."""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.ir import Coordinates, Immediate, Register, Sink
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits
from parakeet_py.ptx.emulator.translate.memory import address_of


@emits("mbarrier")
def _barrier(c: Emitter) -> None:
    """The forms that say parities; a state that an arrival gives is not there."""
    what = c.take_any(("init", "inval", "arrive", "expect_tx", "try_wait", "test_wait"))
    expects = what == "expect_tx" or c.take("expect_tx")
    for order in ("acquire", "release", "relaxed"):
        if c.take(order):
            c.take("cta")
            if order == "relaxed" and what != "expect_tx":
                raise c.unsupported(c.instruction.name)
    if not what or not (c.take("shared") or c.take("shared::cta")) or not c.take("b64"):
        raise c.unsupported(c.instruction.name)
    if what in ("try_wait", "test_wait"):
        if not c.take("parity"):
            raise c.unsupported(c.instruction.name)
        text = f"M.bulk.is_over(L, {address_of(c, c.operands[1])}, {c.source(2, 'u4')}, {c.site()})"
        c.write_all([(c.operands[0], "p")], text, effect=True)
        return
    given = list(c.operands)
    if what == "arrive" and not isinstance(given.pop(0), Sink):
        raise c.unsupported("a state of a barrier in a register")
    address = address_of(c, given[0])
    number = c.read(given[1], "u4") if len(given) > 1 else "None"
    if what == "init":
        c.effect(f"M.bulk.make(L, {address}, {number}, {c.site()})")
    elif what == "inval":
        c.effect(f"M.bulk.drop(L, {address}, {c.site()})")
    else:
        count, size = ("None", number) if expects else (number, "None")
        c.effect(f"M.bulk.arrive(L, {address}, {count}, {size}, {what == 'arrive'}, {c.site()})")


def _bulk_copy(c: Emitter) -> None:
    """cp.async.bulk.tensor into shared memory, whose bytes a barrier counts."""
    if not c.take("tensor"):
        raise c.unsupported(c.instruction.name)
    rank = c.take_any(("1d", "2d", "3d", "4d", "5d"))
    shared = c.take("shared::cluster") or c.take("shared::cta")
    c.take("tile")
    if not rank or not shared or not c.take("global") or not c.take("mbarrier::complete_tx::bytes"):
        raise c.unsupported(c.instruction.name)
    target, source, barrier = c.operands
    if not isinstance(source, Coordinates) or len(source.at.items) != int(rank[0]):
        raise c.invalid("a tensor map with its coordinates was expected")
    at = "".join(f"{c.read(item, 'u4')}, " for item in source.at.items)
    places = f"{address_of(c, target)}, {address_of(c, source.address)}, ({at}), {address_of(c, barrier)}"
    c.effect(f"M.bulk.copy(L, {places}, {c.site()})")


@emits("cp")
def _copy(c: Emitter) -> None:
    """cp.async from global to shared memory, and the commits and waits that end it; bulk copies."""
    if not c.take("async"):
        raise c.unsupported(c.instruction.name)
    if c.take("bulk"):
        _bulk_copy(c)
        return
    if c.take("commit_group"):
        c.effect("M.commit_copies(L)")
        return
    if c.take("wait_all"):
        c.effect("M.await_copies(L, None)")
        return
    if c.take("wait_group"):
        left = c.operands[0]
        if not isinstance(left, Immediate):
            raise c.invalid("the number of groups is not a constant")
        c.effect(f"M.await_copies(L, {left.value})")
        return
    if not (c.take("ca") or c.take("cg")):
        raise c.unsupported(c.instruction.name)
    shared = c.take("shared") or c.take("shared::cta")
    if not shared or not c.take("global"):
        raise c.unsupported(c.instruction.name)
    for modifier in tuple(c.modifiers):
        if modifier.startswith("L2::"):
            c.modifiers.remove(modifier)
    size = c.operands[2]
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise c.unsupported("this size of cp.async")
    given = "None"
    if len(c.operands) > 3:
        if isinstance(c.operands[3], Register) and c.operands[3].type == "pred":
            zero, full = c.constants.number(0, "u4"), c.constants.number(size.value, "u4")
            given = f"where({c.source(3, 'p')}, {zero}, {full})"
        else:
            given = c.source(3, "u4")
    target, source = address_of(c, c.operands[0]), address_of(c, c.operands[1])
    c.effect(f"M.copy_async(L, {target}, {source}, {size.value}, {given}, {c.site()})")
