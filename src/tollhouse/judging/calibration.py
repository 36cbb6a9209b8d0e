"""From scores of texts whose answer is known to a threshold, and how sure one can be of it.

Thresholds, scores and rates are in basis points. A text matches at or above the threshold.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import sqrt
from typing import Final

FULL: Final = 10_000
THRESHOLD_MAX: Final = 9_999
POSITIVES_MIN: Final = 30
"""With fewer, the intervals say little more than that nothing is known."""
ROUNDS: Final = 400
SEED: Final = 1
_Z: Final = 1.96


@dataclass(frozen=True, slots=True)
class Labelled:
    """A score, and whether a person says that the policy should have matched."""

    score_basis_points: int
    is_positive: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with what it may be with 95 % confidence, from 0 to 1."""

    value: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """What a threshold would do to the labelled texts."""

    threshold_basis_points: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> Interval:
        """Of what matched, how much should have."""
        return wilson(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> Interval:
        """Of what should match, how much did."""
        return wilson(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> Interval:
        """Of what should not match, how much did."""
        return wilson(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        doubled = 2 * self.true_positives
        wrong = self.false_positives + self.false_negatives
        return doubled / (doubled + wrong) if doubled else 0.0


def curve(labelled: Sequence[Labelled]) -> list[Point]:
    """A point for each way in which a threshold tells scores apart, ascending.

    Thresholds lie in the middle between two scores, the lowest between 0 and a score: on a score,
    what a judge does not show of its tokens could decide either way.

    No threshold tells scores above the highest one apart, and none is low enough for a score of 0.
    """
    positives = sum(one.is_positive for one in labelled)
    negatives = len(labelled) - positives
    points: list[Point] = []
    true_positives = false_positives = 0
    reachable = [
        replace(one, score_basis_points=min(one.score_basis_points, THRESHOLD_MAX))
        for one in labelled
        if one.score_basis_points > 0
    ]
    reachable.sort(key=lambda one: one.score_basis_points, reverse=True)
    for score, group in _grouped(reachable):
        true_positives += sum(one.is_positive for one in group)
        false_positives += sum(not one.is_positive for one in group)
        points.append(
            Point(
                threshold_basis_points=score,
                true_positives=true_positives,
                false_positives=false_positives,
                false_negatives=positives - true_positives,
                true_negatives=negatives - false_positives,
            )
        )
    points = [
        replace(point, threshold_basis_points=_middle(lower, point))
        for point, lower in zip_longest(points, points[1:])
    ]
    return points[::-1] or [at(labelled, THRESHOLD_MAX)]


def _middle(lower: Point | None, point: Point) -> int:
    floor = 0 if lower is None else lower.threshold_basis_points
    return (floor + point.threshold_basis_points + 1) // 2


def at(labelled: Sequence[Labelled], threshold_basis_points: int) -> Point:
    """What this threshold would do."""
    matched = [one for one in labelled if one.score_basis_points >= threshold_basis_points]
    true_positives = sum(one.is_positive for one in matched)
    positives = sum(one.is_positive for one in labelled)
    false_positives = len(matched) - true_positives
    return Point(
        threshold_basis_points=threshold_basis_points,
        true_positives=true_positives,
        false_positives=false_positives,
        false_negatives=positives - true_positives,
        true_negatives=len(labelled) - positives - false_positives,
    )


def best_f1(points: Sequence[Point]) -> Point:
    """Of several that are as good, the middle one: furthest from doing worse."""
    highest = max(point.f1 for point in points)
    best = [point for point in points if point.f1 == highest]
    return best[len(best) // 2]


def best_recall(points: Sequence[Point], *, false_positive_rate_max: float) -> Point | None:
    """The most that can be found without troubling more than this share of the innocent."""
    allowed = [
        point for point in points if point.false_positive_rate.value <= false_positive_rate_max
    ]
    return max(allowed, key=lambda point: point.recall.value, default=None)


def auc(labelled: Sequence[Labelled]) -> Interval:
    """How often a text that should match scores above one that should not; by resampling."""
    chance = random.Random(SEED)  # noqa: S311 - resampling, not a secret
    drawn = sorted(_auc(chance.choices(labelled, k=len(labelled))) for _ in range(ROUNDS))
    edge = ROUNDS // 40
    return Interval(_auc(labelled), drawn[edge], drawn[-1 - edge])


def wilson(part: int, whole: int) -> Interval:
    """A share of few things, with its interval by Wilson's score; of nothing, nothing is known."""
    if whole == 0:
        return Interval(0.0, 0.0, 1.0)
    share, weight = part / whole, _Z * _Z / whole
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * sqrt(share * (1 - share) / whole + weight / (4 * whole)) / (1 + weight)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def _grouped(descending: Sequence[Labelled]) -> Iterator[tuple[int, list[Labelled]]]:
    """Equal scores stand and fall together."""
    group: list[Labelled] = []
    for one in descending:
        if group and one.score_basis_points != group[0].score_basis_points:
            yield group[0].score_basis_points, group
            group = []
        group.append(one)
    if group:
        yield group[0].score_basis_points, group


def _auc(labelled: Sequence[Labelled]) -> float:
    """By ranks: a tie counts half. Of one kind alone nothing can be told, which is 0.5."""
    ascending = sorted(labelled, key=lambda one: one.score_basis_points)
    positives = sum(one.is_positive for one in ascending)
    negatives = len(ascending) - positives
    if not positives or not negatives:
        return 0.5
    below, won = 0, 0.0
    for _, group in _grouped(ascending):
        ups = sum(one.is_positive for one in group)
        downs = len(group) - ups
        won += ups * (below + downs / 2)
        below += downs
    return won / (positives * negatives)
