"""A line through figures that span several powers of ten."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """What stands before anything is done, and what each further one adds."""

    fixed: float
    each: float


def fitted(points: Sequence[tuple[float, float]]) -> Line:
    """By least squares of relative errors, so that the largest figure does not drown the least."""
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    x_mean = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    y_mean = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    together = sum(
        w * (x - x_mean) * (y - y_mean) for w, (x, y) in zip(weights, points, strict=True)
    )
    alone = sum(w * (x - x_mean) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    each = together / alone
    return Line(fixed=y_mean - each * x_mean, each=each)
