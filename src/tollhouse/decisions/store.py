"""SQL for evaluations, decisions and their daily sums."""

from collections.abc import Sequence
from datetime import date
from typing import Final

from tollhouse.base.ids import (
    OrganizationId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    day_of,
)
from tollhouse.base.policies import EvaluationOutcome, Mode, judged_direction
from tollhouse.decisions.types import (
    BlockingDecision,
    DailyCount,
    DayRange,
    DecisionCursor,
    EvaluationRecord,
    PolicyDecision,
    ReportedDecision,
)
from tollhouse.storage.database import Database, Row, Transaction
from tollhouse.storage.partitions import read_in_index_order

# A retry after a lost answer counts nothing twice. All workers write days in the same order, so
# that they cannot deadlock.
_INSERT: Final = """
    WITH evaluated AS (
        SELECT *
          FROM unnest($1::uuid[], $2::date[], $3::uuid[], $4::text[], $5::text[], $6::uuid[],
                      $7::uuid[], $8::timestamptz[], $9::real[], $10::bigint[], $11::bytea[])
               WITH ORDINALITY
            AS e (organization_id, day, request_id, direction, mode, project_id, api_key_id,
                  evaluated_at, judging_ms, characters, content_digest, number)
    ), decided AS (
        SELECT *
          FROM unnest($12::bigint[], $13::uuid[], $14::integer[], $15::text[], $16::integer[],
                      $17::integer[], $18::integer[], $19::integer[], $20::integer[], $21::text[],
                      $22::integer[], $23::boolean[])
               WITH ORDINALITY
            AS d (number, policy_id, version, outcome, threshold, score, lowest, highest, coverage,
                  reason, windows, is_cached, place)
    ), inserted AS (
        INSERT INTO evaluations (
            organization_id, day, request_id, direction, mode, project_id, api_key_id,
            evaluated_at, judging_ms, characters, content_digest,
            policy_ids, versions, outcomes, scores)
        SELECT e.organization_id, e.day, e.request_id, e.direction, e.mode, e.project_id,
               e.api_key_id, e.evaluated_at, e.judging_ms, e.characters, e.content_digest,
               d.policy_ids, d.versions, d.outcomes, d.scores
          FROM evaluated e
          JOIN (SELECT number, array_agg(policy_id ORDER BY place) AS policy_ids,
                       array_agg(version ORDER BY place) AS versions,
                       array_agg(outcome ORDER BY place) AS outcomes,
                       array_agg(score ORDER BY place) AS scores
                  FROM decided
                 GROUP BY number) d USING (number)
            ON CONFLICT DO NOTHING
        RETURNING organization_id, day, request_id, direction, mode
    ), fresh AS (
        SELECT *
          FROM evaluated
          JOIN inserted USING (organization_id, day, request_id, direction, mode)
          JOIN decided USING (number)
    ), told AS (
        INSERT INTO policy_decisions (
            organization_id, policy_id, day, request_id, direction, version, mode, outcome,
            threshold, score, lowest, highest, coverage, reason, windows, is_cached, project_id,
            api_key_id, evaluated_at)
        SELECT organization_id, policy_id, day, request_id, direction, version, mode, outcome,
               threshold, score, lowest, highest, coverage, reason, windows, is_cached, project_id,
               api_key_id, evaluated_at
          FROM fresh
         WHERE outcome IN ('match', 'failed')
            ON CONFLICT DO NOTHING
    ), rolled_up AS (
        INSERT INTO policy_days AS known (
            organization_id, policy_id, day, version, direction, mode, outcome, bin, decisions)
        SELECT organization_id, policy_id, day, version, direction, mode, outcome,
               CASE WHEN score IS NULL THEN -1 ELSE least(score / 100, 99) END, count(*)
          FROM fresh
         GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
         ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
            ON CONFLICT (organization_id, policy_id, day, version, direction, mode, outcome, bin)
            DO UPDATE SET decisions = known.decisions + EXCLUDED.decisions
    )
    SELECT count(*) AS written FROM fresh
"""


async def insert(database: Database, evaluations: Sequence[EvaluationRecord]) -> int:
    """Insert the evaluations that are new and add their decisions to the daily sums.

    Returns the number of new decisions.
    """
    decisions = [
        (number, decision)
        for number, record in enumerate(evaluations, 1)
        for decision in record.decisions
    ]
    found = await database.fetch_all(
        _INSERT,
        [each.organization_id for each in evaluations],
        [day_of(each.request_id) for each in evaluations],
        [each.request_id for each in evaluations],
        [each.direction for each in evaluations],
        [each.mode for each in evaluations],
        [each.project_id for each in evaluations],
        [each.api_key_id for each in evaluations],
        [each.evaluated_at for each in evaluations],
        [each.judging_ms for each in evaluations],
        [each.characters for each in evaluations],
        [each.content_digest for each in evaluations],
        [number for number, _ in decisions],
        [each.policy_id for _, each in decisions],
        [each.version for _, each in decisions],
        [each.outcome for _, each in decisions],
        [each.threshold for _, each in decisions],
        [each.score for _, each in decisions],
        [each.lowest for _, each in decisions],
        [each.highest for _, each in decisions],
        [each.coverage for _, each in decisions],
        [each.reason for _, each in decisions],
        [each.windows for _, each in decisions],
        [each.is_cached for _, each in decisions],
    )
    return found[0]["written"]


async def reported_of_policy(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    before: DecisionCursor,
    limit: int,
) -> list[ReportedDecision]:
    """Return matches and failures, newest request first, and its response before its request."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM policy_decisions
         WHERE organization_id = $1
           AND policy_id = $2
           AND day <= $3
           AND (request_id, direction) < ($4, $5)
         ORDER BY day DESC, request_id DESC, direction DESC
         LIMIT $6
        """,
        organization_id,
        policy_id,
        before.day,
        before.request_id,
        before.direction,
        limit,
    )
    return [_reported(row) for row in rows]


async def requests_of_policy(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    before: DecisionCursor,
    since: DecisionCursor,
    limit: int,
) -> list[RequestId]:
    """Return the requests of a policy's matches and failures, newest first; some of them twice."""
    await read_in_index_order(tx)
    rows = await tx.fetch_all(
        """
        SELECT request_id
          FROM policy_decisions
         WHERE organization_id = $1
           AND policy_id = $2
           AND day <= $3
           AND request_id < $4
           AND day >= $5
           AND request_id >= $6
         ORDER BY day DESC, request_id DESC, direction DESC
         LIMIT $7
        """,
        organization_id,
        policy_id,
        before.day,
        before.request_id,
        since.day,
        since.request_id,
        limit,
    )
    return [RequestId(row["request_id"]) for row in rows]


async def evaluations_of(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId, day: date
) -> list[EvaluationRecord]:
    """Return all evaluations of one request, with the fields that `evaluations` stores."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM evaluations
         WHERE organization_id = $1
           AND day = $2
           AND request_id = $3
         ORDER BY direction, mode
        """,
        organization_id,
        day,
        request_id,
    )
    return [_evaluation_record(row) for row in rows]


async def reported_of_request(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId, day: date
) -> list[ReportedDecision]:
    """Return the matches and failures of one request, with all their fields."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM policy_decisions
         WHERE organization_id = $1
           AND day = $2
           AND request_id = $3
        """,
        organization_id,
        day,
        request_id,
    )
    return [_reported(row) for row in rows]


async def blocking(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> list[BlockingDecision]:
    """Return the matches and failures of enforcing policies on these requests."""
    rows = await tx.fetch_all(
        """
        SELECT d.request_id, d.policy_id, d.version, d.direction, d.outcome, d.threshold, d.score,
               d.reason, p.name
          FROM policy_decisions d
          JOIN policies p ON p.organization_id = d.organization_id AND p.id = d.policy_id
         WHERE d.organization_id = $1
           AND d.day = ANY ($2::date[])
           AND d.request_id = ANY ($3::uuid[])
           AND d.mode = 'enforcing'
         ORDER BY d.request_id, d.direction, d.policy_id
        """,
        organization_id,
        list({day_of(request_id) for request_id in request_ids}),
        request_ids,
    )
    return [
        BlockingDecision(
            request_id=RequestId(row["request_id"]),
            policy_id=PolicyId(row["policy_id"]),
            name=row["name"],
            version=row["version"],
            direction=judged_direction(row["direction"]),
            outcome=EvaluationOutcome(row["outcome"]),
            threshold=row["threshold"],
            score=row["score"],
            reason=row["reason"],
        )
        for row in rows
    ]


async def policy_names(
    tx: Transaction, organization_id: OrganizationId, policy_ids: Sequence[PolicyId]
) -> dict[PolicyId, str]:
    """Return the current names of these policies."""
    rows = await tx.fetch_all(
        "SELECT id, name FROM policies WHERE organization_id = $1 AND id = ANY ($2::uuid[])",
        organization_id,
        policy_ids,
    )
    return {PolicyId(row["id"]): row["name"] for row in rows}


async def counted(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, days: DayRange
) -> list[DailyCount]:
    """Return the counts of these days, sorted by day, version, direction, mode and outcome."""
    rows = await tx.fetch_all(
        """
        SELECT day, version, direction, mode, outcome, bin, decisions
          FROM policy_days
         WHERE organization_id = $1
           AND policy_id = $2
           AND day >= $3
           AND day < $4
         ORDER BY day, version, direction, mode, outcome, bin
        """,
        organization_id,
        policy_id,
        days.first,
        days.end,
    )
    return [
        DailyCount(
            day=row["day"],
            version=row["version"],
            direction=judged_direction(row["direction"]),
            mode=Mode(row["mode"]),
            outcome=EvaluationOutcome(row["outcome"]),
            bin=None if row["bin"] < 0 else row["bin"],
            decisions=row["decisions"],
        )
        for row in rows
    ]


async def remove_days(  # all organizations: retention is the deployment's
    tx: Transaction, rows_max: int, *, first_kept: date
) -> int:
    """Delete at most `rows_max` daily sums before `first_kept`, and return their number."""
    return await tx.execute(
        """
        DELETE FROM policy_days
         WHERE ctid = ANY (ARRAY(SELECT ctid FROM policy_days WHERE day < $1 LIMIT $2))
        """,
        first_kept,
        rows_max,
    )


def _reported(row: Row) -> ReportedDecision:
    return ReportedDecision(
        request_id=RequestId(row["request_id"]),
        direction=judged_direction(row["direction"]),
        project_id=ProjectId(row["project_id"]),
        api_key_id=ProjectKeyId(row["api_key_id"]),
        evaluated_at=row["evaluated_at"],
        decision=PolicyDecision(
            policy_id=PolicyId(row["policy_id"]),
            version=row["version"],
            mode=Mode(row["mode"]),
            outcome=EvaluationOutcome(row["outcome"]),
            threshold=row["threshold"],
            score=row["score"],
            lowest=row["lowest"],
            highest=row["highest"],
            coverage=row["coverage"],
            reason=row["reason"],
            windows=row["windows"],
            is_cached=row["is_cached"],
        ),
    )


def _evaluation_record(row: Row) -> EvaluationRecord:
    """Convert a row of `evaluations`, which has no thresholds: the policy's version has them."""
    mode = Mode(row["mode"])
    packed = zip(row["policy_ids"], row["versions"], row["outcomes"], row["scores"], strict=True)
    return EvaluationRecord(
        organization_id=OrganizationId(row["organization_id"]),
        request_id=RequestId(row["request_id"]),
        project_id=ProjectId(row["project_id"]),
        api_key_id=ProjectKeyId(row["api_key_id"]),
        direction=judged_direction(row["direction"]),
        mode=mode,
        evaluated_at=row["evaluated_at"],
        judging_ms=row["judging_ms"],
        characters=row["characters"],
        content_digest=row["content_digest"],
        decisions=tuple(
            PolicyDecision(
                policy_id=PolicyId(policy_id),
                version=version,
                mode=mode,
                outcome=EvaluationOutcome(outcome),
                score=score,
            )
            for policy_id, version, outcome, score in packed
        ),
    )
