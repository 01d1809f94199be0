"""One benchmark program, declared.

A program is a function in plain NumPy, exactly as its user would write it, with seeded inputs in four sizes. Every
other implementation is either made from that same source (parakeet_py, numba, jax) or declared beside it:

    numpy     what the NumPy column runs when the source itself is not what a NumPy user would run: for programs written
              as Python loops, the usual vectorised form
    loops     the same computation as explicit loops with `prange` on the outermost independent one, the way numba users
              write for speed; what the numba-parallel column runs where it is given
    c         whether `bench/c` has a hand-written C function of this name

Inputs are made once per size and never changed: an implementation that stores into its arguments (`mutates`) gets fresh
copies at each call, made outside the measured time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arguments = tuple[Any, ...]
Size = Literal["XS", "S", "M", "L"]
SIZES: tuple[Size, ...] = ("XS", "S", "M", "L")

prange = range
"""Marks an independent loop in a `loops` variant: `range` in Python, rebound to `numba.prange` by the numba peer."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be from NumPy's and still be NumPy's result.

    Attributes
    ----------
    rtol, atol : float
        As in `numpy.allclose`, for floats and complex numbers. Integers and booleans must be equal.
    peer_mismatch : float
        The share of integer elements in which a *peer* may differ. Only for escape-time fractals, where a compiler that
        contracts or reorders arithmetic (C with -ffast-math) moves single points of the chaotic border. Never granted
        to parakeet_py.
    """

    rtol: float = 1e-10
    atol: float = 1e-12
    peer_mismatch: float = 0.0


@dataclass(frozen=True, slots=True)
class Program:
    """A benchmark program and everything the runner needs to know of it.

    Attributes
    ----------
    name : str
        What the user types after `parakeet bench`.
    summary : str
        One line for the table's legend.
    function : callable
        The plain source that is accelerated.
    inputs : callable
        `inputs(rng, *dimensions)` returns the arguments.
    sizes : mapping
        The dimensions for each of XS (tests), S, M (default) and L.
    mutates : tuple of int
        Positions of the arguments the function stores into.
    tolerance : Tolerance
        What counts as NumPy's result.
    numpy, loops : callable, optional
        The variants described at the top of this module.
    numpy_checks_only : bool
        `numpy` computes the same by another algorithm: it checks results, but its time would say nothing.
    jax : bool
        The source is functional, so that it runs with `jax.numpy` in the place of `np`.
    c : bool
        There is a C baseline of this name.
    """

    name: str
    summary: str
    function: Callable[..., Any]
    inputs: Callable[..., Arguments]
    sizes: Mapping[Size, tuple[int, ...]]
    mutates: tuple[int, ...] = ()
    tolerance: Tolerance = field(default_factory=Tolerance)
    numpy: Callable[..., Any] | None = None
    loops: Callable[..., Any] | None = None
    jax: bool = False
    c: bool = False
    numpy_checks_only: bool = False

    @property
    def baseline(self) -> Callable[..., Any]:
        """What the NumPy column runs, and what all results are compared with."""
        return self.numpy or self.function

    def arguments(self, size: Size, seed: int = 20240229) -> Arguments:
        """The arguments at `size`; the same for the same seed, on every machine."""
        return self.inputs(np.random.default_rng(seed), *self.sizes[size])

    def fresh(self, arguments: Arguments) -> Arguments:
        """`arguments` with the arrays this program stores into copied (same layout)."""
        if not self.mutates:
            return arguments
        return tuple(
            a.copy(order="K") if i in self.mutates and isinstance(a, np.ndarray) else a for i, a in enumerate(arguments)
        )
