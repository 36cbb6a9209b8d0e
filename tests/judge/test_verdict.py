"""Only what every enforcing policy was asked about and let pass may pass."""

from itertools import product

import pytest

from tests.judge.cases import policy, scored
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import Direction, EvaluationOutcome, JudgedDirection, Mode
from tollhouse.evaluation.errors import PolicyEvaluatorUnavailable, PolicyViolation
from tollhouse.evaluation.judge.verdict import decide, refusal, unanswered
from tollhouse.evaluation.types import EvaluationDecision, FailureReason

RULE = "Is it about bread?"
DIRECTIONS: list[JudgedDirection] = [Direction.REQUEST, Direction.RESPONSE]


def decision(mode: Mode, outcome: EvaluationOutcome) -> EvaluationDecision:
    return EvaluationDecision(policy=policy(RULE, mode=mode), outcome=outcome, score=scored(9_900))


@pytest.mark.parametrize(("outcome", "other"), list(product(EvaluationOutcome, EvaluationOutcome)))
def test_monitoring_is_never_felt(outcome: EvaluationOutcome, other: EvaluationOutcome) -> None:
    found = [decision(Mode.MONITORING, outcome), decision(Mode.MONITORING, other)]

    assert refusal(found, Direction.REQUEST) is None


@pytest.mark.parametrize("outcome", EvaluationOutcome)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_enforcing_lets_pass_only_what_does_not_match(
    outcome: EvaluationOutcome, direction: JudgedDirection
) -> None:
    found = [
        decision(Mode.ENFORCING, EvaluationOutcome.NO_MATCH),
        decision(Mode.ENFORCING, outcome),
    ]

    assert (refusal(found, direction) is None) == (outcome is EvaluationOutcome.NO_MATCH)


@pytest.mark.parametrize("outcome", [EvaluationOutcome.FAILED, EvaluationOutcome.SKIPPED])
def test_no_answer_is_a_failure_of_the_evaluator(outcome: EvaluationOutcome) -> None:
    failure = refusal([decision(Mode.ENFORCING, outcome)], Direction.REQUEST)

    assert isinstance(failure, PolicyEvaluatorUnavailable)
    assert (failure.kind, failure.code) == (503, "policy_evaluator_unavailable")
    assert failure.is_policy_failure
    assert failure.should_retry is False


def test_a_certain_match_counts_before_a_missing_answer() -> None:
    found = [
        decision(Mode.ENFORCING, EvaluationOutcome.FAILED),
        decision(Mode.ENFORCING, EvaluationOutcome.MATCH),
    ]

    assert isinstance(refusal(found, Direction.REQUEST), PolicyViolation)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_violation_names_ids_and_nothing_else(direction: JudgedDirection) -> None:
    matched = decision(Mode.ENFORCING, EvaluationOutcome.MATCH)
    failure = refusal([matched, decision(Mode.MONITORING, EvaluationOutcome.MATCH)], direction)

    assert isinstance(failure, PolicyViolation)
    assert (failure.kind, failure.code) == (403, "policy_violation")
    assert failure.is_policy_failure
    assert failure.policy_ids == (matched.policy.id,)
    assert policy_id_text(matched.policy.id) in failure.message
    assert "bread" not in failure.message
    assert "99" not in failure.message.replace(policy_id_text(matched.policy.id), "")
    assert ("charged" in failure.message) == (direction is Direction.RESPONSE)


def test_nothing_applies_and_nothing_is_refused() -> None:
    assert refusal([], Direction.REQUEST) is None


@pytest.mark.parametrize(
    ("basis_points", "expected"),
    [
        (4_999, EvaluationOutcome.NO_MATCH),
        (5_000, EvaluationOutcome.MATCH),
        (10_000, EvaluationOutcome.MATCH),
    ],
)
def test_a_match_is_at_or_above_the_threshold(
    basis_points: int, expected: EvaluationOutcome
) -> None:
    assert decide(policy(RULE), scored(basis_points)) is expected


def test_a_threshold_within_the_bounds_decides_nothing() -> None:
    assert (
        decide(policy(RULE), scored(5_000, lowest=4_000, highest=6_000)) is EvaluationOutcome.FAILED
    )


def test_where_nothing_could_be_asked_every_policy_failed() -> None:
    policies = [policy(RULE), policy(RULE, mode=Mode.MONITORING)]

    found = unanswered(policies, FailureReason.NOT_EVALUABLE)

    assert [each.outcome for each in found] == [EvaluationOutcome.FAILED, EvaluationOutcome.FAILED]
    assert isinstance(refusal(found, Direction.REQUEST), PolicyEvaluatorUnavailable)
