"""The line through samples by least squares, with the standard error of its slope."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Slope:
    """How much a figure grows in an hour, and the standard error of that."""

    per_hour: float
    error: float


def slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """Return the slope of points with times in seconds; None for fewer than three points."""
    count = len(points)
    if count < 3:
        return None
    mean_at = sum(at for at, _ in points) / count
    mean = sum(value for _, value in points) / count
    spread = sum((at - mean_at) ** 2 for at, _ in points)
    each = sum((at - mean_at) * (value - mean) for at, value in points) / spread
    left = sum((value - mean - each * (at - mean_at)) ** 2 for at, value in points)
    error = math.sqrt(left / (count - 2) / spread)
    return Slope(per_hour=round(each * 3600, 3), error=round(error * 3600, 3))


def medians(points: Sequence[tuple[float, float]], *, seconds: float) -> list[tuple[float, float]]:
    """Return the median of each interval of so many seconds, at its middle."""
    values = defaultdict[int, list[float]](list)
    for at, value in points:
        values[int(at // seconds)].append(value)
    return [
        ((place + 0.5) * seconds, statistics.median(each)) for place, each in sorted(values.items())
    ]


def thinned(points: Sequence[tuple[float, float]], count: int) -> list[tuple[float, float]]:
    """Return at most so many points, each the mean of its neighbours."""
    size = -(-len(points) // count)
    groups = [points[at : at + size] for at in range(0, len(points), size or 1)]
    return [
        (round(_mean([at for at, _ in group]), 1), round(_mean([y for _, y in group]), 2))
        for group in groups
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
