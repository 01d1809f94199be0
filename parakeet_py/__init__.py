"""parakeet_py: one decorator that makes ordinary NumPy functions fast, and never gives a wrong answer."""

from parakeet_py.accelerate import accelerate
from parakeet_py.config import options
from parakeet_py.errors import FallbackWarning, ParakeetError, UnsupportedError

__all__ = ["FallbackWarning", "ParakeetError", "UnsupportedError", "accelerate", "options"]
__version__ = "0.1.0"
