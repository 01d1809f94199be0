"""Jumps ahead in the sequence of PCG64, as tables that compiled code reads.

The state goes from s to A s + c, modulo 2**128, so n steps take it to A**n s + (1 + A + ... + A**(n - 1)) c (Brown,
"Random Number Generation with Arbitrary Strides", 1994). Row d of level l has both factors for n = d * 256**l, as four
words of 64 bits, lower halves first. Five levels are a jump to any of 2**40 places.
"""

from __future__ import annotations

import numpy as np

DIGIT = 256
LEVELS = 5
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_PERIOD = 2**128


def _jumps() -> np.ndarray:
    made = np.empty((LEVELS * DIGIT, 4), np.uint64)
    step = _MULTIPLIER, 1  # of the level
    for level in range(LEVELS):
        power, total = 1, 0
        for digit in range(DIGIT):
            made[level * DIGIT + digit] = [word & (2**64 - 1) for one in (power, total) for word in (one, one >> 64)]
            power, total = power * step[0] % _PERIOD, (total * step[0] + step[1]) % _PERIOD
        step = power, total
    made.flags.writeable = False
    return made


jumps = _jumps()
