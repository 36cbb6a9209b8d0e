"""Sums of decisions by day and version. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from tollhouse.base.policies import EvaluationOutcome
from tollhouse.decisions.types import (
    DailyCount,
    DailyTotal,
    EvaluationRecord,
    ReportedDecision,
)

BINS = 100
BASIS_POINTS_PER_BIN = 100
DECIDED = frozenset({EvaluationOutcome.MATCH, EvaluationOutcome.NO_MATCH})


def tallies(counted: Iterable[DailyCount]) -> list[DailyTotal]:
    """Return one total per day, version, direction and mode. `counted` must be sorted by these."""
    return [_tally(list(rows)) for _, rows in groupby(counted, key=_group)]


def matched(score_counts: Sequence[int], *, threshold_basis_points: int) -> tuple[int, int]:
    """Return the least and the greatest number of scores that can reach a threshold.

    The numbers differ if the threshold lies within a bin: only the bin of a score is known.
    """
    first_inside, is_between = divmod(threshold_basis_points, BASIS_POINTS_PER_BIN)
    certain = sum(score_counts[first_inside + bool(is_between) :])
    return certain, sum(score_counts[first_inside:])


def with_details(
    evaluations: Iterable[EvaluationRecord], reported: Iterable[ReportedDecision]
) -> list[EvaluationRecord]:
    """Return the evaluations of one request, with the reported matches and failures in place."""
    known = {(each.direction, each.decision.policy_id): each.decision for each in reported}
    return [
        replace(
            record,
            decisions=tuple(
                known.get((record.direction, decision.policy_id), decision)
                for decision in record.decisions
            ),
        )
        for record in evaluations
    ]


def _group(row: DailyCount) -> tuple[object, ...]:
    return row.day, row.version, row.direction, row.mode


def _tally(rows: list[DailyCount]) -> DailyTotal:
    outcomes = dict.fromkeys(EvaluationOutcome, 0)
    scores = [0] * BINS
    for row in rows:
        outcomes[row.outcome] += row.decisions
        # The score of a failed or skipped decision predicts nothing for another threshold.
        if row.bin is not None and row.outcome in DECIDED:
            scores[row.bin] += row.decisions
    first = rows[0]
    return DailyTotal(
        day=first.day,
        version=first.version,
        direction=first.direction,
        mode=first.mode,
        outcomes=outcomes,
        score_counts=tuple(scores),
    )
