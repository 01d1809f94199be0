"""Heat in plates: compiled code in a wheel, the decorated function in a checkout."""

try:
    from plates.spread import spread  # type: ignore[import-not-found]  # made by setup.py
except ModuleNotFoundError:  # a checkout, which has no library: parakeet_py compiles at run time
    from plates.heat import spread

__all__ = ["spread"]
