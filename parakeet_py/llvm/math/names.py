"""The symbols of the vector math library."""

from __future__ import annotations

BITS = {"float64": 64, "float32": 32}


def symbol(name: str, dtype: str, lanes: int = 1) -> str:
    """The symbol of a function's form for so many lanes."""
    return f"pk_math_{name}_f{BITS[dtype]}" + (f"x{lanes}" if lanes > 1 else "")
