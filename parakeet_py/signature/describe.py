"""Types of arguments in words."""

from __future__ import annotations

from parakeet_py.signature.specs import (
    ArraySpec,
    FunctionSpec,
    ListSpec,
    NoneSpec,
    ObjectSpec,
    RecordsSpec,
    ScalarSpec,
    Spec,
    StaticSpec,
    TextSpec,
    TimesSpec,
    TupleSpec,
)


def counted_axes(count: int) -> str:
    """So many axes, in words."""
    return "1 axis" if count == 1 else f"{count} axes"


def describe_spec(spec: Spec) -> str:
    """A spec as it is written in messages: float64[2 axes, C order]."""
    match spec:
        case ArraySpec(dtype, rank, layout, unit, writeable, inner, axes, mapped, aligned, still):
            order = {"C": "", "F": ", Fortran order", "S": ", rows", "A": ", strided"}[layout]
            order += f", axes in order {' '.join(map(str, axes))}" if axes else ""
            order += f", steps of 0 along {' '.join(map(str, still))}" if still else ""
            ones = "".join(f", axis {axis} of 1" for axis, one in enumerate(unit) if one)
            last = f", last axis of {inner}" if inner else ""
            more = ("" if writeable else ", read-only") + (", memmap" if mapped else "")
            more += "" if aligned else ", not aligned"
            return f"{dtype}[{counted_axes(rank)}{order}{ones}{last}{more}]"
        case ScalarSpec(dtype, python):
            names = {"bool": "bool", "int64": "int", "float64": "float", "complex128": "complex"}
            return names[dtype] if python else dtype
        case StaticSpec(value):
            return repr(value)
        case FunctionSpec(code, _, cells, defaults):
            parts = ", ".join(describe_spec(item) for item in (*cells, *defaults))
            return f"{code.co_qualname}" + (f" over {parts}" if parts else "")
        case TextSpec():
            return "str"
        case ListSpec(dtype):
            return f"list of {'floats' if dtype == 'float64' else 'ints'}"
        case TupleSpec(items, kind):
            parts = ", ".join(describe_spec(item) for item in items)
            return f"({parts})" if kind == "tuple" else f"{kind}[{parts}]"
        case TimesSpec(unit, numbers):
            return describe_spec(numbers).replace("int64", unit, 1)
        case RecordsSpec(kind, _, names):
            return f"{kind.__qualname__} of records of {', '.join(names)}"
        case ObjectSpec(kind, _, unit):
            return kind.__qualname__ + (f" of {unit}" if unit else "")
        case NoneSpec():
            return "None"
