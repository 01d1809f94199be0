"""A function that is inlined into one of `explained`."""

import numpy as np


def doubled(x):
    doubled_and_more = 2.0 * x + np.sin(x)
    return doubled_and_more
