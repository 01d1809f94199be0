"""The tables from which NumPy's `Generator` makes normal and exponential numbers, as arrays that compiled code reads.

Marsaglia and Tsang, "The Ziggurat Method for Generating Random Variables" (2000): 256 layers of equal area lie under
the density, layer 0 with the tail beyond the last. A drawn word names a layer and an integer; `width` is what the
integer is multiplied by, `inside` the bound below which the point is surely under the density, and `height` the density
at the layer's end. A number that is drawn shows the bits of its width, so the widths are asked of NumPy itself, which
is given the words that show them. (The other tables only decide, at one point in 2 ** 52, whether to draw again.)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

LAYERS = 256
NORMAL_BITS, EXPONENTIAL_BITS = 52, 53  # of the integers
NORMAL_TAIL = 3.6541528853610087963519472518  # where layer 0 becomes the tail
EXPONENTIAL_TAIL = 7.6971174701310497140446280481
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645  # of PCG64's step
_PERIOD = 2**128


def _widths(word: Callable[[int], int], draw: Callable[[np.random.Generator], float]) -> np.ndarray:
    """What NumPy draws from the words that name each layer and the integer 1."""
    bits = np.random.PCG64(0)
    generator = np.random.Generator(bits)
    back = pow(_MULTIPLIER, -1, _PERIOD)
    widths = []
    for layer in range(LAYERS):
        before = (word(layer) - 1) * back % _PERIOD  # the state that the next step takes to that word, with increment 1
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": before, "inc": 1},
            "has_uint32": 0,
            "uinteger": 0,
        }
        widths.append(draw(generator))
    return np.array(widths)


def _inside(width: np.ndarray, bits: int, tail: float) -> np.ndarray:
    """The bounds of the integers: the end of the layer above, as a part of the own one."""
    above = np.array([math.ldexp(tail, -bits), 0.0, *width[1:-1]])
    return np.asarray(above / width * 2.0**bits).astype(np.uint64)


normal_width = _widths(lambda layer: layer | 1 << 9, lambda generator: generator.standard_normal())
normal_inside = _inside(normal_width, NORMAL_BITS, NORMAL_TAIL)
normal_height = np.array([1.0, *[math.exp(-0.5 * math.ldexp(x, NORMAL_BITS) ** 2) for x in normal_width[1:]]])
exponential_width = _widths(lambda layer: layer << 3 | 1 << 11, lambda generator: generator.standard_exponential())
exponential_inside = _inside(exponential_width, EXPONENTIAL_BITS, EXPONENTIAL_TAIL)
exponential_height = np.array([1.0, *[math.exp(-math.ldexp(x, EXPONENTIAL_BITS)) for x in exponential_width[1:]]])

known = bool(
    abs(math.ldexp(normal_width[-1], NORMAL_BITS) - NORMAL_TAIL) < 1e-9
    and abs(math.ldexp(exponential_width[-1], EXPONENTIAL_BITS) - EXPONENTIAL_TAIL) < 1e-9
)  # whether this NumPy draws as said above
