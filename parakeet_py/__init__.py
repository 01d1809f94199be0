"""parakeet_py: one decorator that makes ordinary NumPy functions fast, and never gives a wrong answer."""

from parakeet_py.accelerate import accelerate
from parakeet_py.config import options
from parakeet_py.errors import FallbackWarning, ParakeetError, UnsupportedError
from parakeet_py.operators import allpairs, generate, map, prange, reduce, scan, scatter, stencil

__all__ = [
    "FallbackWarning",
    "ParakeetError",
    "UnsupportedError",
    "accelerate",
    "allpairs",
    "generate",
    "map",
    "options",
    "prange",
    "reduce",
    "scan",
    "scatter",
    "stencil",
]
__version__ = "0.1.0"
