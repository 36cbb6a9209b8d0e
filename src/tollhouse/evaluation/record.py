"""Build the stored record of an evaluation."""

from collections.abc import Sequence
from datetime import datetime

from tollhouse.base.ids import RequestId
from tollhouse.base.policies import JudgedDirection
from tollhouse.decisions.types import EvaluationRecord, PolicyDecision
from tollhouse.evaluation.judge.question_runner import JudgedContent
from tollhouse.evaluation.types import EvaluationDecision
from tollhouse.keys.types import Customer

_MS_PER_SECOND = 1000.0


def evaluation_record(
    customer: Customer,
    request_id: RequestId,
    direction: JudgedDirection,
    decisions: Sequence[EvaluationDecision],
    judged: JudgedContent | None,
    *,
    evaluated_at: datetime,
    seconds: float,
) -> EvaluationRecord:
    """Return the record of policies of one mode. `judged` is None if the judge was not asked."""
    return EvaluationRecord(
        organization_id=customer.organization_id,
        request_id=request_id,
        project_id=customer.project_id,
        api_key_id=customer.key_id,
        direction=direction,
        mode=decisions[0].policy.mode,
        evaluated_at=evaluated_at,
        judging_ms=seconds * _MS_PER_SECOND,
        decisions=tuple(map(_decision, decisions)),
        content_digest=None if judged is None else judged.request_keys.digest,
        characters=0 if judged is None else judged.rendered.characters,
    )


def _decision(decision: EvaluationDecision) -> PolicyDecision:
    policy, score = decision.policy, decision.score
    return PolicyDecision(
        policy_id=policy.id,
        version=policy.version,
        mode=policy.mode,
        outcome=decision.outcome,
        threshold=policy.match_threshold_basis_points,
        score=None if score is None else score.basis_points,
        lowest=None if score is None else score.lowest_basis_points,
        highest=None if score is None else score.highest_basis_points,
        coverage=None if score is None else score.coverage_basis_points,
        reason=None if decision.reason is None else decision.reason.value,
        windows=decision.windows,
        is_cached=decision.is_cached,
    )
