"""From token probabilities to a score in basis points, with bounds for what was not seen.

What a list of the most likely tokens leaves out is at most as likely as its last entry, and all
of it together at most what the list leaves over. So every variant that is missing is bounded,
and a threshold outside the bounds is decided as if nothing were missing.
"""

import math
from collections.abc import Collection, Mapping

from tollhouse.judging.errors import JudgeFailed
from tollhouse.judging.types import Evidence, FailureReason, Score

WHOLE_BASIS_POINTS = 10_000
_EXCESS_MAX = 0.01
"""By how much probabilities may sum to more than one: engines round."""

Logprobs = Mapping[str, float]


def from_top(found: Logprobs, *, yes: Collection[str], no: Collection[str]) -> Evidence:
    """Evidence from the most likely tokens, some variants of which may be missing."""
    probabilities = _probabilities(found)
    p_yes, missing_yes = _tally(probabilities, yes)
    p_no, missing_no = _tally(probabilities, no)
    left_over = max(0.0, 1.0 - sum(probabilities.values()))
    least = min(probabilities.values(), default=1.0)
    return Evidence(
        p_yes=p_yes,
        p_no=p_no,
        unseen_yes_max=min(left_over, missing_yes * least),
        unseen_no_max=min(left_over, missing_no * least),
    )


def from_exact(found: Logprobs, *, yes: Collection[str], no: Collection[str]) -> Evidence:
    """Evidence from exactly the tokens that were asked for; nothing may be missing."""
    probabilities = _probabilities(found)
    p_yes, missing_yes = _tally(probabilities, yes)
    p_no, missing_no = _tally(probabilities, no)
    if missing_yes or missing_no:
        raise JudgeFailed(FailureReason.GARBLED)
    return Evidence(p_yes=p_yes, p_no=p_no)


def score_of(evidence: Evidence, *, coverage_floor_basis_points: int) -> Score:
    """The share of "yes". Neither side seen, or too little of both, is no answer."""
    p_yes, p_no = evidence.p_yes, evidence.p_no
    coverage = p_yes + p_no
    if coverage <= 0.0:
        raise JudgeFailed(FailureReason.UNSEEN)
    coverage_basis_points = min(basis_points(coverage), WHOLE_BASIS_POINTS)
    if coverage_basis_points < coverage_floor_basis_points:
        raise JudgeFailed(FailureReason.UNCOVERED)
    most_yes = p_yes + evidence.unseen_yes_max
    most_no = p_no + evidence.unseen_no_max
    return Score(
        basis_points=basis_points(p_yes / coverage),
        lowest_basis_points=basis_points(p_yes / (p_yes + most_no)),
        highest_basis_points=basis_points(most_yes / (most_yes + p_no)),
        coverage_basis_points=coverage_basis_points,
    )


def matches(score: Score, *, threshold_basis_points: int) -> bool | None:
    """At or above the threshold; nothing where what was not seen could decide otherwise."""
    if score.lowest_basis_points >= threshold_basis_points:
        return True
    if score.highest_basis_points < threshold_basis_points:
        return False
    return None


def basis_points(share: float) -> int:
    """Halves go up."""
    return math.floor(WHOLE_BASIS_POINTS * share + 0.5)


def _probabilities(found: Logprobs) -> dict[str, float]:
    """Whatever cannot be the logarithm of a probability makes the whole answer unusable."""
    if any(math.isnan(logprob) or logprob > _EXCESS_MAX for logprob in found.values()):
        raise JudgeFailed(FailureReason.GARBLED)
    probabilities = {token: min(1.0, math.exp(logprob)) for token, logprob in found.items()}
    if sum(probabilities.values()) > 1.0 + _EXCESS_MAX:
        raise JudgeFailed(FailureReason.GARBLED)
    return probabilities


def _tally(probabilities: Mapping[str, float], variants: Collection[str]) -> tuple[float, int]:
    """The sum of what is there, and how many are not."""
    there = [probabilities[variant] for variant in variants if variant in probabilities]
    return sum(there), len(variants) - len(there)
