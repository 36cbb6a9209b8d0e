"""Sums of decisions, put together by day and version."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from tollhouse.decisions.types import Counted, Outcome, Tally

BINS = 100
BASIS_POINTS_PER_BIN = 100
DECIDED = frozenset({Outcome.MATCH, Outcome.NO_MATCH})


def tallies(counted: Iterable[Counted]) -> list[Tally]:
    """In the order in which they come, which is by day, version, direction and mode."""
    return [_tally(list(rows)) for _, rows in groupby(counted, key=_group)]


def summed(tallies: Iterable[Tally]) -> tuple[int, ...]:
    """How many scores there were in each hundredth, over all of them."""
    counts = [tally.score_counts for tally in tallies]
    return tuple(map(sum, zip(*counts, strict=True))) if counts else (0,) * BINS


def matched(score_counts: Sequence[int], *, threshold_basis_points: int) -> tuple[int, int]:
    """How many scores reach a threshold, at least and at most: scores are known by hundredths."""
    first_inside, is_between = divmod(threshold_basis_points, BASIS_POINTS_PER_BIN)
    certain = sum(score_counts[first_inside + bool(is_between) :])
    return certain, sum(score_counts[first_inside:])


def _group(row: Counted) -> tuple[object, ...]:
    return row.day, row.version, row.direction, row.mode


def _tally(rows: list[Counted]) -> Tally:
    outcomes = dict.fromkeys(Outcome, 0)
    scores = [0] * BINS
    for row in rows:
        outcomes[row.outcome] += row.decisions
        # A score that decided nothing says nothing about another threshold either.
        if row.bin is not None and row.outcome in DECIDED:
            scores[row.bin] += row.decisions
    first = rows[0]
    return Tally(
        day=first.day,
        version=first.version,
        direction=first.direction,
        mode=first.mode,
        outcomes=outcomes,
        score_counts=tuple(scores),
    )
