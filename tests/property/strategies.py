"""Strategies for test arrays and for the pieces of source text the property tests are made of."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.arrays import Array

FLOATS = ["f8", "f4"]
SIGNED = ["i8", "i4", "i2", "i1"]
UNSIGNED = ["u1", "u2", "u4", "u8"]
REALS = [*FLOATS, *SIGNED, *UNSIGNED, "b1"]
LAYOUTS = ["C", "C", "F", "reversed", "stepped", "inner", "transposed", "readonly"]
WRITEABLE = [layout for layout in LAYOUTS if layout != "readonly"]

extents = st.sampled_from([0, 1, 2, 3, 4, 5])
shapes = st.lists(extents, max_size=3).map(tuple)


@st.composite
def arrays(
    draw: st.DrawFn,
    shape: Any = shapes,
    dtypes: list[str] = REALS,
    layouts: list[str] = LAYOUTS,
    values: tuple[str, ...] = ("normal", "special"),
) -> Array:
    """A recipe of an array: `shape` is a shape or a strategy for one."""
    extent = shape if isinstance(shape, tuple) else draw(shape)
    return Array(
        draw(st.sampled_from(dtypes)),
        extent,
        draw(st.sampled_from(layouts)),
        draw(st.sampled_from(values)),
        draw(st.integers(0, 3)),
    )


@st.composite
def broadcastable(draw: st.DrawFn, count: int) -> list[tuple[int, ...]]:
    """Shapes that broadcast together; now and then one that does not."""
    full = draw(shapes)
    result = []
    for _ in range(count):
        tail = full[draw(st.integers(0, len(full))) :] if full else ()
        result.append(tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in tail))
    if full and draw(st.integers(0, 15)) == 0:
        result[-1] = (*full[:-1], full[-1] + 2)
    return result


@st.composite
def slice_texts(draw: st.DrawFn, extent: int, steps: tuple[int, ...] = (1, 1, 1, 2, -1, -2, 3)) -> str:
    """Source text of a slice: bounds inside and outside of the extent, any sign, absent now and then."""
    bound = st.one_of(st.just(""), st.integers(-extent - 2, extent + 2).map(str))
    step = draw(st.sampled_from(steps))
    text = f"{draw(bound)}:{draw(bound)}"
    return text if step == 1 else f"{text}:{step}"


@st.composite
def index_texts(draw: st.DrawFn, shape: tuple[int, ...], advanced: bool = False) -> str:
    """Source text of an index of an array: integers, slices, newaxis, ellipsis, and index arrays if `advanced`."""
    parts = []
    named = draw(st.integers(0, len(shape)))
    dots = draw(st.sampled_from(["", "", "", "before", "after"]))
    for extent in shape[len(shape) - named :] if dots == "before" else shape[:named]:
        kind = draw(st.sampled_from(["slice", "slice", "integer", "newaxis", *(["array", "mask"] if advanced else [])]))
        if kind == "newaxis":
            parts.append("None")
        if kind == "array":
            # An index out of range would be an error even if nothing is selected: a documented difference.
            items = draw(st.lists(st.integers(-extent, extent - 1), max_size=4)) if extent else []
            parts.append(f"np.array({items}, dtype=np.int64)")
        elif kind == "mask":
            items = draw(st.lists(st.booleans(), min_size=extent, max_size=extent))
            parts.append(f"np.array({items}, dtype=bool)")
        elif kind == "integer":
            parts.append(str(draw(st.integers(-extent - (extent == 0), extent - (extent > 0)))))
        else:
            parts.append(draw(slice_texts(extent)))
    if dots:
        parts = ["...", *parts] if dots == "before" else [*parts, "..."]
    return ", ".join(parts) if parts else "..."
