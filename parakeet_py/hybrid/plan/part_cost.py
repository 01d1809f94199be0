"""What a part of a region would cost, and the shares that let all members finish at the same time.

The time of a part is taken to be linear in its length: a fixed cost of starting it and of the bytes that it needs in
any case, and for each index of the split axis the operations and the bytes that it takes. Bytes cost only if they are
missing where the part would run. Operations are counted in the operator's body and divided by the device's rate, until
the region has been run: from then on the seconds that its parts have taken count instead.

`shares` pours the indices like water: with the time T to finish, a member whose fixed cost is f and whose cost for an
index is c can do (T - f) / c of them, none if f > T; T is what makes all of them together. So a member whose start
costs more than all the rest needs is left out, and one device may get everything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from parakeet_py.hybrid.devices import calibration
from parakeet_py.hybrid.devices.device import Device

ALWAYS, SELDOM = 4, 16  # so many first runs of a part are measured, and count; of later ones one of so many


class Speed(NamedTuple):
    """How fast a member is.

    Attributes
    ----------
    operations : scalar operations in a second
    link : bytes in a second between its memory and the host's; 0 where it is the same memory
    start : seconds that a part costs in any case
    """

    operations: float
    link: float
    start: float


CUDA = Speed(1e12, 1.2e10, 4e-5)
EMULATED = Speed(1e6, 1e9, 1e-3)


def cpu_speed(threads: int) -> Speed:
    """The speed of so many threads, as calibrated or as assumed."""
    found = calibration.stored("cpu")
    return Speed(1.5e9 * threads, 0.0, 5e-6) if found is None else Speed(found[0] * threads, 0.0, found[2])


def device_speed(device: Device) -> Speed:
    """The speed that a device says it has, that has been calibrated, or is assumed of its kind."""
    said = getattr(device, "speed", None)
    if isinstance(said, Speed):
        return said
    found = calibration.stored(device.name)
    if found is not None:
        return Speed(*found)
    return EMULATED if device.name.startswith("emulated") else CUDA


class Cost(NamedTuple):
    """Seconds of a part: fixed, and for each index of the split axis."""

    fixed: float
    each: float

    def of(self, count: int) -> float:
        return self.fixed + self.each * count if count else 0.0


class Rates:
    """Measured costs of parts, by part and member: the line through what the last runs have taken."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, str], deque[tuple[int, float]]] = {}
        self._means: dict[tuple[int, str], deque[tuple[int, float]]] = {}
        self._times: Counter[tuple[int, str]] = Counter()

    def wanted(self, part: int, name: str) -> bool:
        """Whether the next run of a part should be measured: measuring makes the host wait for it."""
        self._times[part, name] += 1
        return self._times[part, name] <= ALWAYS or self._times[part, name] % SELDOM == 0

    def learn(self, part: int, name: str, count: int, seconds: float) -> None:
        """A part of so many indices has taken so long."""
        self._samples.setdefault((part, name), deque(maxlen=ALWAYS)).append((count, seconds))

    def learn_mean(self, part: int, name: str, count: int, seconds: float) -> None:
        """So many indices of a region whose indices differ in cost have taken so long: no line goes through that."""
        self._means.setdefault((part, name), deque(maxlen=ALWAYS)).append((count, seconds))

    def cost(self, part: int, name: str) -> Cost | None:
        """What a part costs this member, None before it has run there."""
        means = self._means.get((part, name))
        if means is not None:
            return Cost(0.0, sum(seconds for _, seconds in means) / sum(count for count, _ in means))
        samples = self._samples.get((part, name))
        if samples is None:
            return None
        counts, seconds = zip(*samples, strict=True)
        middle, mean = sum(counts) / len(counts), sum(seconds) / len(counts)
        spread = sum((count - middle) ** 2 for count in counts)
        if not spread:
            return Cost(0.0, mean / middle)
        slope = sum((c - middle) * (s - mean) for c, s in samples) / spread
        each = min(max(slope, 0.0), mean / middle)
        return Cost(mean - each * middle, each)


def shares(extent: int, costs: Sequence[Cost]) -> list[int]:
    """How many indices each gets, so that the last one to finish does so as early as it can."""
    costs = [Cost(cost.fixed, max(cost.each, 1e-15)) for cost in costs]
    order = sorted(range(len(costs)), key=lambda who: costs[who].fixed)
    capacity = filled = 0.0  # of those that take part: indices in a second; indices that they lose to fixed costs
    finish = 0.0
    for position, who in enumerate(order):
        capacity += 1 / costs[who].each
        filled += costs[who].fixed / costs[who].each
        finish = (extent + filled) / capacity
        if position + 1 == len(order) or finish <= costs[order[position + 1]].fixed:
            break
    counts = [max(0, int((finish - cost.fixed) / cost.each)) for cost in costs]
    for _ in range(extent - sum(counts)):  # what rounding has left: one for each member at most
        best = min(range(len(costs)), key=lambda who: costs[who].of(counts[who] + 1))
        counts[best] += 1
    return counts
