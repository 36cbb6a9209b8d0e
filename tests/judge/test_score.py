"""Scores follow from probabilities alone, and what was not seen is bounded, never a "no"."""

import math
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.judge.cases import scored
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.judge.score import (
    basis_points,
    matches,
    probabilities_from_exact,
    probabilities_from_top,
    score_answer,
)
from tollhouse.evaluation.types import AnswerProbabilities, FailureReason, Score

YES: Final = ("Yes", "yes", " Yes", " yes")
NO: Final = ("No", "no", " No", " no")
SLACK_BASIS_POINTS = 1
"""Of rounding, where two sums of the same numbers are compared."""


def logs(**probabilities: float) -> dict[str, float]:
    return {token.replace("_", " "): math.log(p) for token, p in probabilities.items()}


def score(evidence: AnswerProbabilities, floor: int = 0) -> Score:
    return score_answer(evidence, coverage_floor_basis_points=floor)


def test_all_spellings_of_a_side_count_together() -> None:
    found = logs(Yes=0.3, yes=0.2, No=0.1, _no=0.2, Perhaps=0.2)

    evidence = probabilities_from_top(found, yes=YES, no=NO)

    assert evidence.p_yes == pytest.approx(0.5)
    assert evidence.p_no == pytest.approx(0.3)
    assert score(evidence).basis_points == 6_250
    assert score(evidence).coverage_basis_points == 8_000


def test_a_spelling_of_one_side_alone_counts_for_neither() -> None:
    assert probabilities_from_top(logs(Yes=0.2, NO=0.7), yes=YES, no=NO).p_no == 0.0


def test_what_is_missing_is_at_most_as_likely_as_the_last_that_is_there() -> None:
    evidence = probabilities_from_top(logs(Yes=0.6, yes=0.2, No=0.1, Perhaps=0.01), yes=YES, no=NO)

    assert evidence.unseen_yes_max == pytest.approx(2 * 0.01)
    assert evidence.unseen_no_max == pytest.approx(3 * 0.01)


def test_what_is_missing_is_at_most_what_is_left_over() -> None:
    evidence = probabilities_from_top(logs(Yes=0.5, No=0.4995), yes=YES, no=NO)

    assert evidence.unseen_yes_max == pytest.approx(0.0005)


def test_bounds_are_those_of_the_formula() -> None:
    found = score(AnswerProbabilities(p_yes=0.6, p_no=0.2, unseen_yes_max=0.05, unseen_no_max=0.1))

    assert found.basis_points == basis_points(0.6 / 0.8)
    assert found.lowest_basis_points == basis_points(0.6 / 0.9)
    assert found.highest_basis_points == basis_points(0.65 / 0.85)


@pytest.mark.parametrize("seen", [{"Yes": 0.7}, {"No": 0.7}])
def test_one_side_alone_is_an_answer_with_bounds(seen: dict[str, float]) -> None:
    found = score(probabilities_from_top(logs(**seen, Perhaps=0.001), yes=YES, no=NO))

    assert found.basis_points in {0, 10_000}
    assert found.lowest_basis_points < found.highest_basis_points


@pytest.mark.parametrize("found", [{}, {"Perhaps": -0.01}, {"NO": -0.01}])
def test_neither_side_is_no_answer(found: dict[str, float]) -> None:
    with pytest.raises(JudgeFailed) as failure:
        score(probabilities_from_top(found, yes=YES, no=NO))

    assert failure.value.reason is FailureReason.UNSEEN


def test_too_little_of_both_is_no_answer() -> None:
    evidence = probabilities_from_top(logs(Yes=0.2, No=0.2, Perhaps=0.5), yes=YES, no=NO)

    assert score(evidence, floor=4_000).basis_points == 5_000
    with pytest.raises(JudgeFailed) as failure:
        score(evidence, floor=4_001)
    assert failure.value.reason is FailureReason.UNCOVERED


@pytest.mark.parametrize("logprob", [math.nan, math.inf, 0.5])
def test_what_is_no_logarithm_of_a_probability_is_no_answer(logprob: float) -> None:
    with pytest.raises(JudgeFailed) as failure:
        probabilities_from_top({"No": -0.1, "Yes": logprob}, yes=YES, no=NO)

    assert failure.value.reason is FailureReason.GARBLED


def test_probabilities_of_more_than_one_together_are_no_answer() -> None:
    with pytest.raises(JudgeFailed) as failure:
        probabilities_from_top(logs(Yes=0.9, No=0.9), yes=YES, no=NO)

    assert failure.value.reason is FailureReason.GARBLED


def test_exact_tokens_leave_nothing_unseen() -> None:
    evidence = probabilities_from_exact(logs(a=0.5, b=0.25), yes=["a"], no=["b"])

    assert (evidence.p_yes, evidence.p_no) == pytest.approx((0.5, 0.25))
    assert (evidence.unseen_yes_max, evidence.unseen_no_max) == (0.0, 0.0)


def test_an_exact_token_that_is_missing_is_no_answer() -> None:
    with pytest.raises(JudgeFailed) as failure:
        probabilities_from_exact(logs(a=0.5, b=0.25), yes=["a", "c"], no=["b", "d"])

    assert failure.value.reason is FailureReason.GARBLED


def test_a_token_that_cannot_happen_is_there_all_the_same() -> None:
    evidence = probabilities_from_exact(
        {"a": -math.inf, "b": -9999.0, "c": -0.1}, yes=["a", "c"], no=["b"]
    )

    assert evidence.p_no == 0.0
    assert score(evidence).basis_points == 10_000


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 0), (0.00005, 1), (0.00004999, 0), (0.5, 5_000), (0.99994999, 9_999), (1.0, 10_000)],
)
def test_halves_go_up(share: float, expected: int) -> None:
    assert basis_points(share) == expected


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [(1, True), (4_000, True), (4_001, None), (6_000, None), (6_001, False), (9_999, False)],
)
def test_a_threshold_within_the_bounds_is_not_decided(threshold: int, expected: bool) -> None:
    found = scored(5_000, lowest=4_000, highest=6_000)

    assert matches(found, threshold_basis_points=threshold) is expected


@pytest.mark.parametrize("threshold", [1, 5_000, 9_999])
def test_every_threshold_tells_a_sure_yes_from_a_sure_no(threshold: int) -> None:
    assert matches(scored(10_000), threshold_basis_points=threshold) is True
    assert matches(scored(0), threshold_basis_points=threshold) is False


@st.composite
def distributions(draw: st.DrawFn) -> dict[str, float]:
    """Probabilities of a whole vocabulary, both sides in it."""
    others = [f"word {number}" for number in range(draw(st.integers(0, 30)))]
    weights = {token: draw(st.floats(0.0, 1.0)) ** 4 for token in (*YES, *NO, *others)}
    total = sum(weights.values())
    assume(total > 1e-6)
    return {token: weight / total for token, weight in weights.items()}


@given(distributions(), st.integers(1, 25))
def test_the_whole_truth_lies_within_the_bounds(whole: dict[str, float], shown: int) -> None:
    """Whatever a list of the most likely tokens leaves out."""
    ranked = sorted(whole.items(), key=lambda entry: -entry[1])[:shown]
    found = {token: math.log(p) if p else -math.inf for token, p in ranked}
    p_yes = sum(whole[token] for token in YES)
    p_no = sum(whole[token] for token in NO)
    assume(any(token in found and whole[token] for token in (*YES, *NO)))

    partial = score(probabilities_from_top(found, yes=YES, no=NO))

    truth = basis_points(p_yes / (p_yes + p_no))
    assert partial.lowest_basis_points - SLACK_BASIS_POINTS <= truth
    assert truth <= partial.highest_basis_points + SLACK_BASIS_POINTS
    assert partial.lowest_basis_points <= partial.basis_points <= partial.highest_basis_points
    assert partial.lowest_basis_points >= 0
    assert partial.highest_basis_points <= 10_000


@given(distributions())
def test_the_sides_are_treated_alike(whole: dict[str, float]) -> None:
    found = {token: math.log(p) if p else -math.inf for token, p in whole.items()}
    assume(any(whole[token] for token in (*YES, *NO)))

    one = score(probabilities_from_top(found, yes=YES, no=NO))
    other = score(probabilities_from_top(found, yes=NO, no=YES))

    assert abs(one.basis_points + other.basis_points - 10_000) <= SLACK_BASIS_POINTS
