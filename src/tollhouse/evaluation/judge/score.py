"""Scores in basis points from token probabilities, with bounds for missing tokens.

A token that is missing from the list of the most likely ones is at most as likely as its last
entry, and all missing tokens together have at most the probability that the list leaves. These
bounds give a lowest and a highest score; a threshold outside of them is decided for certain.
"""

import math
from collections.abc import Collection, Mapping

from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.types import AnswerProbabilities, FailureReason, Score

WHOLE_BASIS_POINTS = 10_000
_EXCESS_MAX = 0.01
"""Probabilities may sum to so much more than one, because engines round."""

Logprobs = Mapping[str, float]


def probabilities_from_top(
    found: Logprobs, *, yes: Collection[str], no: Collection[str]
) -> AnswerProbabilities:
    """Return the probabilities from a list of the most likely tokens, which may lack some."""
    probabilities = _probabilities(found)
    p_yes, missing_yes = _tally(probabilities, yes)
    p_no, missing_no = _tally(probabilities, no)
    left_over = max(0.0, 1.0 - sum(probabilities.values()))
    least = min(probabilities.values(), default=1.0)
    return AnswerProbabilities(
        p_yes=p_yes,
        p_no=p_no,
        unseen_yes_max=min(left_over, missing_yes * least),
        unseen_no_max=min(left_over, missing_no * least),
    )


def probabilities_from_exact(
    found: Logprobs, *, yes: Collection[str], no: Collection[str]
) -> AnswerProbabilities:
    """Return the probabilities from requested token IDs. Raises `JudgeFailed` if one is missing."""
    probabilities = _probabilities(found)
    p_yes, missing_yes = _tally(probabilities, yes)
    p_no, missing_no = _tally(probabilities, no)
    if missing_yes or missing_no:
        raise JudgeFailed(FailureReason.GARBLED)
    return AnswerProbabilities(p_yes=p_yes, p_no=p_no)


def score_answer(answer: AnswerProbabilities, *, coverage_floor_basis_points: int) -> Score:
    """Return the share of "yes".

    Raises `JudgeFailed` if "yes" and "no" are missing, or together below the coverage floor.
    """
    p_yes, p_no = answer.p_yes, answer.p_no
    coverage = p_yes + p_no
    if coverage <= 0.0:
        raise JudgeFailed(FailureReason.UNSEEN)
    coverage_basis_points = min(basis_points(coverage), WHOLE_BASIS_POINTS)
    if coverage_basis_points < coverage_floor_basis_points:
        raise JudgeFailed(FailureReason.UNCOVERED)
    most_yes = p_yes + answer.unseen_yes_max
    most_no = p_no + answer.unseen_no_max
    return Score(
        basis_points=basis_points(p_yes / coverage),
        lowest_basis_points=basis_points(p_yes / (p_yes + most_no)),
        highest_basis_points=basis_points(most_yes / (most_yes + p_no)),
        coverage_basis_points=coverage_basis_points,
    )


def matches(score: Score, *, threshold_basis_points: int) -> bool | None:
    """Whether the score reaches the threshold. Returns None if missing tokens could decide it."""
    if score.lowest_basis_points >= threshold_basis_points:
        return True
    if score.highest_basis_points < threshold_basis_points:
        return False
    return None


def basis_points(share: float) -> int:
    """Return a share in basis points, with halves rounded up."""
    return math.floor(WHOLE_BASIS_POINTS * share + 0.5)


def _probabilities(found: Logprobs) -> dict[str, float]:
    """Return the probabilities. Raises `JudgeFailed` if a value cannot be a log probability."""
    if any(math.isnan(logprob) or logprob > _EXCESS_MAX for logprob in found.values()):
        raise JudgeFailed(FailureReason.GARBLED)
    probabilities = {token: min(1.0, math.exp(logprob)) for token, logprob in found.items()}
    if sum(probabilities.values()) > 1.0 + _EXCESS_MAX:
        raise JudgeFailed(FailureReason.GARBLED)
    return probabilities


def _tally(probabilities: Mapping[str, float], variants: Collection[str]) -> tuple[float, int]:
    """Return the sum of the variants that are present, and the number of missing ones."""
    there = [probabilities[variant] for variant in variants if variant in probabilities]
    return sum(there), len(variants) - len(there)
