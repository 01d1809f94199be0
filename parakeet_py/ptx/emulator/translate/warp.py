"""Translation of operations across the lanes of a warp.

The block they begin waits until the lanes named in their mask are there; what is left is an exchange between lanes.
"""

from __future__ import annotations

from parakeet_py.ptx.emulator.front.ir import Immediate, Vector
from parakeet_py.ptx.emulator.front.kinds import KIND_OF_TYPE
from parakeet_py.ptx.emulator.translate.emitter import Emitter, emits
from parakeet_py.ptx.emulator.translate.memory import address_of


@emits("shfl")
def _shuffle(c: Emitter) -> None:
    sync = c.take("sync")
    mode = c.take_any(("up", "down", "bfly", "idx"))
    c.type()
    if not mode:
        raise c.unsupported(c.instruction.name)
    first, second = c.pair(c.operands[0])
    value, lane, clamp = c.sources(1, 3, "u4")
    mask = c.source(4, "u4") if sync else "None"
    text = f"M.shuffle(L, {mode!r}, {value}, {lane}, {clamp}, {mask}, {c.site()})"
    c.write_all([(first, "u4"), (second, "p")], text)


@emits("vote")
def _vote(c: Emitter) -> None:
    sync = c.take("sync")
    mode = c.take_any(("all", "any", "uni", "ballot"))
    c.take_any(("pred", "b32"))
    if not mode:
        raise c.unsupported(c.instruction.name)
    mask = c.source(2, "u4") if sync else "None"
    c.write(c.operands[0], f"M.vote(L, {mode!r}, {c.source(1, 'p')}, {mask})", "u4" if mode == "ballot" else "p")


@emits("match")
def _match(c: Emitter) -> None:
    kind = KIND_OF_TYPE[c.type()]
    mode = c.take_any(("any", "all"))
    if not c.take("sync") or not mode:
        raise c.unsupported(c.instruction.name)
    first, second = c.pair(c.operands[0])
    text = f"M.match(L, {mode!r}, {c.source(1, kind)}, {c.source(2, 'u4')})"
    c.write_all([(first, "u4"), (second, "p")], text)


@emits("redux")
def _redux(c: Emitter) -> None:
    ptx_type = c.type()
    kind = KIND_OF_TYPE[ptx_type]
    operation = c.take_any(("add", "min", "max", "and", "or", "xor"))
    absolute, nan = c.take("abs"), c.take("NaN")
    if not c.take("sync") or not operation:
        raise c.unsupported(c.instruction.name)
    text = f"M.redux(L, {operation!r}, {c.source(1, kind)}, {c.source(2, 'u4')}, {absolute}, {nan})"
    c.write(c.operands[0], text, kind)


@emits("elect")
def _elect(c: Emitter) -> None:
    if not c.take("sync"):
        raise c.unsupported(c.instruction.name)
    first, second = c.pair(c.operands[0])
    c.write_all([(first, "u4"), (second, "p")], f"M.elect(L, {c.source(1, 'u4')})")


@emits("ldmatrix")
def _load_matrix(c: Emitter) -> None:
    """Rows of 8x8 matrices of 16-bit elements, whose addresses are spread over the lanes."""
    aligned = c.take("sync") and c.take("aligned") and c.take("m8n8")
    count = c.take_any(("x1", "x2", "x4"))
    transposed = c.take("trans")
    shared = c.take("shared") or c.take("shared::cta")
    if not (aligned and count and shared and c.take("b16")):
        raise c.unsupported(c.instruction.name)
    items = c.vector(c.operands[0])
    if len(items) != int(count[1]):
        raise c.invalid("the vector does not fit the modifier")
    text = f"M.load_matrix(L, {address_of(c, c.operands[1])}, {len(items)}, {transposed}, {c.site()})"
    c.write_all([(item, "u4") for item in items], text if len(items) > 1 else f"{text}[0]", effect=True)


_SHAPES = {
    "m16n8k4": ("tf32", "f64"),
    "m16n8k8": ("tf32", "f16", "bf16", "f64"),
    "m16n8k16": ("f16", "bf16", "f64"),
    "m8n8k4": ("f64",),
}


@emits("mma")
def _matrix(c: Emitter) -> None:
    """mma.sync of one warp: fragments in, fragments out."""
    aligned = c.take("sync") and c.take("aligned")
    shape = c.take_any(tuple(_SHAPES))
    if not aligned or not c.take("row") or not c.take("col") or len(c.modifiers) != 4:
        raise c.unsupported(c.instruction.name)
    d_type, a_type, b_type, c_type = c.modifiers
    if a_type != b_type or d_type != c_type or a_type not in _SHAPES.get(shape, ()):
        raise c.unsupported(c.instruction.name)
    if d_type not in ("f32", "f16", "f64") or (d_type == "f64") != (a_type == "f64"):
        raise c.unsupported(c.instruction.name)
    c.modifiers.clear()
    kinds = ["f8" if t == "f64" else "u4" for t in (a_type, b_type, c_type)]
    groups = []
    for index, kind in enumerate(kinds, 1):
        items = c.vector(c.operands[index])
        groups.append(f"({', '.join(c.read(item, kind) for item in items)},)")
    destination = c.operands[0]
    items = destination.items if isinstance(destination, Vector) else (destination,)
    text = f"M.matrix(L, {shape!r}, {a_type!r}, {c_type!r}, {', '.join(groups)}, {c.site()})"
    kind = "f8" if d_type == "f64" else "u4"
    if len(items) == 1:
        c.write(items[0], f"{text}[0]", kind)
    else:
        c.write_all([(item, kind) for item in items], text)


@emits("wgmma")
def _group_matrix(c: Emitter) -> None:
    """wgmma: the products of each warp of a group, done where they are asked for.

    Sums are there at once, and not only behind a wait: that kernels wait before they look is not seen here.
    """
    what = c.take_any(("fence", "commit_group", "wait_group", "mma_async"))
    if not what or not c.take("sync") or not c.take("aligned"):
        raise c.unsupported(c.instruction.name)
    if what == "wait_group":
        left = c.operands[0]
        if not isinstance(left, Immediate):
            raise c.invalid("the number of groups is not a constant")
        c.effect(f"M.bulk.wait(L, {left.value})")
        return
    if what != "mma_async":
        c.effect("M.bulk.commit(L)" if what == "commit_group" else "M.activemask(L)")
        return
    shape, types = c.modifiers[:1], c.modifiers[1:]
    if len(shape) != 1 or types != ["f32", "f16", "f16"] or len(c.operands) != 8:
        raise c.unsupported(c.instruction.name)
    c.modifiers.clear()
    signs = [c.operands[place] for place in range(4, 8)]
    numbers = [one.value for one in signs if isinstance(one, Immediate)]
    if len(numbers) != 4 or numbers[:2] != [1, 1]:
        raise c.unsupported(c.instruction.name)
    columns = int(shape[0].removeprefix("m64n").removesuffix("k16"))
    items = c.vector(c.operands[0])
    if len(items) != columns // 2:
        raise c.invalid("the vector does not fit the modifier")
    sums = f"({', '.join(c.read(item, 'u4') for item in items)},)"
    factors = f"{c.source(1, 'u8')}, {c.source(2, 'u8')}, {c.source(3, 'p')}, {bool(numbers[2])}, {bool(numbers[3])}"
    text = f"M.group_matrix(L, {columns}, {sums}, {factors}, {c.site()})"
    c.write_all([(item, "u4") for item in items], text, effect=True)
