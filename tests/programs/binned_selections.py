"""Loops that select by intervals, or by equality, whose elements are found in one pass; and bounds that forbid it."""

import numpy as np

from tests.corpus import Case, program

EDGES = np.linspace(0, 1, 50)
OPEN = np.r_[-np.inf, EDGES[1:-1], np.inf]
FALLING = EDGES[::-1].copy()


def _points(special=False):
    x = np.random.default_rng(3).random(260)
    if special:
        for every, value in ((7, np.nan), (11, np.inf), (13, -np.inf), (17, -0.0), (19, 1.0), (23, 5e-324)):
            x[::every] = value
    return x


def _whole():
    """Numbers whose sums are exact, in whatever order."""
    return np.round(np.random.default_rng(4).random(260) * 64)


@program([(_points(True), _whole(), EDGES.copy()), (_points(), _whole(), FALLING)])
def sums_between_edges(x, y, edges):
    sums = np.empty(len(edges) - 1)
    for i in range(len(edges) - 1):
        sums[i] = y[(x >= edges[i]) & (x < edges[i + 1])].sum()
    return sums


LENGTHS = [Case((_whole(), _points()[:200], 50), raises=IndexError)]


@program([(_whole(), _points() ** 4, 50), *LENGTHS])
def means_of_rings(data, radius, rings):
    """Some rings are empty: their means are NaN."""
    top = radius.max()
    means = np.zeros(rings)
    for i in range(rings):
        inside = np.logical_and(top * i / rings <= radius, radius < top * (i + 1) / rings)
        means[i] = data[inside].mean()
    return means


LABELS = np.arange(260) * 7 % 50


@program([(LABELS, _whole(), 50)])
def sums_of_groups(labels, values, groups):
    sums, counts = np.zeros(groups), np.zeros(groups, np.int64)
    for i in range(groups):
        chosen = values[labels == i]
        sums[i] = chosen.sum()
        counts[i] = len(chosen)
    return sums, counts


@program([(LABELS, _whole().reshape(130, 2)[:, [1, 0]].repeat(2, 0), 50)])
def centres_of_groups(labels, points, groups):
    centres = np.zeros((groups, 2))
    for i in range(groups):
        centres[i] = points[labels == i].mean(axis=0)
    return centres


@program([(_points(), _whole(), OPEN)])
def positions_between_open_edges(x, y, edges):
    """The mask asks for more, too, and the values are the positions."""
    found = []
    for i in range(len(edges) - 1):
        where = np.where((edges[i] < x) & (x <= edges[i + 1]) & (y > 32))[0]
        found.append(int(where.sum()) if len(where) else -1)
    return found


@program([(_points(), _whole(), 50, 2)])
def wide_intervals(x, y, rounds, width):
    """Intervals overlap."""
    sums = np.zeros(rounds)
    for i in range(rounds):
        sums[i] = y[(x >= (i - width) / rounds) & (x <= (i + width) / rounds)].sum()
    return sums


@program([Case(lambda: (_points(), _whole(), EDGES.copy()))], mutates=(0, 2))
def what_changes_in_the_loop(x, y, edges):
    """Elements, and then bounds, are not what they were before the loop."""
    total = 0.0
    for i in range(len(edges) - 1):
        x[i] = 0.5
        total += y[(x >= edges[i]) & (x < edges[i + 1])].sum()
    for i in range(len(edges) - 1):
        total += y[(x >= edges[i]) & (x < edges[i + 1])].sum()
        edges[i + 1] += 0.01
    return total


@program([(_points(), _whole(), 10**12, 0.2)])
def ends_early(x, y, rounds, last):
    """Bounds of rounds that do not happen are not computed."""
    total = 0.0
    for i in range(rounds):
        total += y[(x >= i / 50) & (x < (i + 1) / 50)].sum()
        if i / 50 > last:
            break
    return total


@program([Case((_points(), _whole(), EDGES.copy()), raises=IndexError)])
def one_edge_too_many(x, y, edges):
    sums = np.empty(len(edges))
    for i in range(len(edges)):
        sums[i] = y[(x >= edges[i]) & (x < edges[i + 1])].sum()
    return sums


@program([(_points(), _whole(), -17)])
def from_another_number(x, y, start):
    total = 0.0
    for i in range(start, start + 50):
        total += y[(x >= i / 50) & (x < (i + 1) / 50)].sum() * i
    return total


@program([Case(lambda: (_points(), _whole(), np.zeros(30), 50), raises=IndexError)], mutates=(2,))
def results_of_too_few_rounds(x, y, sums, rounds):
    for i in range(rounds):
        sums[i] = y[(x >= i / rounds) & (x < (i + 1) / rounds)].sum()


@program([(LABELS, _whole(), 50), (LABELS.astype(float), _whole(), 50)])
def equal_and_within_bounds(labels, values, groups):
    """Tests for equality beside one that is a bound."""
    above, below, both = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    for i in range(groups):
        above[i] = values[(labels > i - 3) & (labels == i)].sum()
        below[i] = values[(labels == i) & (labels < i + 3)].sum()
        both[i] = values[(labels <= i) & (labels == 2 * i) & (labels == i)].sum()
    return above, below, both
