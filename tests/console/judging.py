"""A judge who knows the rules of the console's example, and scores of days that are gone."""

import re
from datetime import UTC, datetime
from typing import Final

from tests.support.judge import Fault, ReceivedQuestion, ScriptedJudge
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import PolicyId

PAST_DAYS: Final = 40
RIDDLE: Final = "riddle"
_CARD_NUMBER: Final = re.compile(r"(?:\d[ -]?){13,19}")
_LAW: Final = re.compile(r"\b(?:sue|lawyer|court)\b")


def new_judge() -> ScriptedJudge:
    """Sure of card numbers, nearly of the law, and of nothing else."""
    return ScriptedJudge(answers=_probability, fails=_fault)


def _probability(question: ReceivedQuestion) -> float:
    if "card number" in question.rule:
        return (
            0.97
            if _CARD_NUMBER.search(question.content)
            else 0.42
            if "card" in question.content
            else 0.03
        )
    if "legal advice" in question.rule:
        return 0.86 if _LAW.search(question.content) else 0.05
    return 0.02


def _fault(question: ReceivedQuestion) -> Fault | None:
    return Fault.NEITHER_SIDE if RIDDLE in question.content else None


async def enter_past_scores(
    org: OrganizationFixture, policy_id: PolicyId, *, threshold: int
) -> None:
    """Many that are surely no, a hill that is nearly yes, the same on every run; none of today."""
    async with org.database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO policy_days (
                organization_id, policy_id, day, version, direction, mode, outcome, bin, decisions)
            SELECT $1, $2, $5::date - ago, 1, 'request', 'enforcing',
                   CASE WHEN bin * 100 >= $3 THEN 'match' ELSE 'no_match' END, bin, decisions
              FROM generate_series(1, $4) AS ago,
                   generate_series(0, 99) AS bin,
                   LATERAL (SELECT ((240 * exp(-bin / 5.0) + 9 * exp(-((bin - 91) ^ 2) / 60.0))
                                    * (5 + ago * 3 % 7) / 8)::integer AS decisions) AS sum
             WHERE decisions > 0
            """,
            org.organization_id,
            policy_id,
            threshold,
            PAST_DAYS,
            datetime.now(UTC).date(),
        )
