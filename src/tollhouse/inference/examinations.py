"""What is written down of an examination, from what was asked and answered."""

from collections.abc import Sequence
from datetime import datetime

from tollhouse.base.ids import RequestId
from tollhouse.decisions.types import Direction, Examination, Mode, Outcome, PolicyDecision
from tollhouse.judging.asking import Subject
from tollhouse.judging.types import Decision, JudgedDirection
from tollhouse.keys.types import Customer

_MS = 1000.0


def of(
    customer: Customer,
    request_id: RequestId,
    direction: JudgedDirection,
    decisions: Sequence[Decision],
    subject: Subject | None,
    *,
    examined_at: datetime,
    seconds: float,
) -> Examination:
    """Of policies of one mode; without a subject nobody could be asked about it."""
    return Examination(
        organization_id=customer.organization_id,
        request_id=request_id,
        project_id=customer.project_id,
        api_key_id=customer.key_id,
        direction=Direction(direction),
        mode=Mode(decisions[0].policy.mode),
        examined_at=examined_at,
        judging_ms=seconds * _MS,
        decisions=tuple(map(_decision, decisions)),
        content_digest=None if subject is None else subject.seal.digest,
        characters=0 if subject is None else subject.sheet.characters,
    )


def _decision(decision: Decision) -> PolicyDecision:
    policy, score = decision.policy, decision.score
    return PolicyDecision(
        policy_id=policy.id,
        version=policy.version,
        mode=Mode(policy.mode),
        outcome=Outcome(decision.outcome),
        threshold=policy.match_threshold_basis_points,
        score=None if score is None else score.basis_points,
        lowest=None if score is None else score.lowest_basis_points,
        highest=None if score is None else score.highest_basis_points,
        coverage=None if score is None else score.coverage_basis_points,
        reason=None if decision.reason is None else decision.reason.value,
        windows=decision.windows,
        is_cached=decision.is_cached,
    )
