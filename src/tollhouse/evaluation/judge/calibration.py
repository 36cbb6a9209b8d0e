"""Calibration: choose a threshold from scores of labelled texts, with confidence intervals.

Thresholds and scores are in basis points. A text matches at or above the threshold.
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
"""With fewer positive texts, the intervals are too wide to be of use."""
ROUNDS: Final = 400
SEED: Final = 1
_Z: Final = 1.96


@dataclass(frozen=True, slots=True)
class Labelled:
    """A score, and whether a person labelled the text as a match."""

    score_basis_points: int
    is_positive: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """A share from 0 to 1 with its 95 % confidence interval."""

    value: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """The results of a threshold on the labelled texts."""

    threshold_basis_points: int
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> Interval:
        """The share of matches that are right."""
        return wilson(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> Interval:
        """The share of positive texts that match."""
        return wilson(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> Interval:
        """The share of negative texts that match."""
        return wilson(self.false_positives, self.false_positives + self.true_negatives)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        doubled = 2 * self.true_positives
        wrong = self.false_positives + self.false_negatives
        return doubled / (doubled + wrong) if doubled else 0.0


def curve(labelled: Sequence[Labelled]) -> list[Point]:
    """Return one point for each distinct result of a threshold, by ascending threshold.

    Thresholds lie in the middle between two scores, and the lowest between 0 and a score. A
    threshold equal to a score would be undecided if the judge left out tokens.

    Scores above the highest threshold count as equal to it. No threshold matches a score of 0.
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
    """Return the results of one threshold."""
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
    """Return the point with the highest F1; of several, the middle one."""
    highest = max(point.f1 for point in points)
    best = [point for point in points if point.f1 == highest]
    return best[len(best) // 2]


def best_recall(points: Sequence[Point], *, false_positive_rate_max: float) -> Point | None:
    """Return the point with the highest recall within this false positive rate, or None."""
    allowed = [
        point for point in points if point.false_positive_rate.value <= false_positive_rate_max
    ]
    return max(allowed, key=lambda point: point.recall.value, default=None)


def auc(labelled: Sequence[Labelled]) -> Interval:
    """Return the area under the ROC curve: how often a positive text scores above a negative one.

    The interval is found by resampling.
    """
    chance = random.Random(SEED)  # noqa: S311 - resampling, not a secret
    drawn = sorted(_auc(chance.choices(labelled, k=len(labelled))) for _ in range(ROUNDS))
    edge = ROUNDS // 40
    return Interval(_auc(labelled), drawn[edge], drawn[-1 - edge])


def wilson(part: int, whole: int) -> Interval:
    """Return a share with its Wilson score interval, which is 0 to 1 if `whole` is 0."""
    if whole == 0:
        return Interval(0.0, 0.0, 1.0)
    share, weight = part / whole, _Z * _Z / whole
    middle = (share + weight / 2) / (1 + weight)
    half = _Z * sqrt(share * (1 - share) / whole + weight / (4 * whole)) / (1 + weight)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def _grouped(ordered: Sequence[Labelled]) -> Iterator[tuple[int, list[Labelled]]]:
    """Yield each distinct score with its texts, from scores in order."""
    group: list[Labelled] = []
    for one in ordered:
        if group and one.score_basis_points != group[0].score_basis_points:
            yield group[0].score_basis_points, group
            group = []
        group.append(one)
    if group:
        yield group[0].score_basis_points, group


def _auc(labelled: Sequence[Labelled]) -> float:
    """Return the area by ranks, where a tie counts half; 0.5 if all labels are equal."""
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
