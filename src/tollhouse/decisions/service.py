"""Operations on decisions: list and count those of a policy, read those of a request."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId, PolicyId, RequestId, day_of
from tollhouse.base.policies import JudgedDirection
from tollhouse.base.ranges import range_end
from tollhouse.decisions import rules, store
from tollhouse.decisions.errors import TooManyDays
from tollhouse.decisions.types import (
    BlockingDecision,
    DailyTotal,
    DayRange,
    DecisionCursor,
    EvaluationRecord,
    ReportedDecision,
)
from tollhouse.storage import partitions
from tollhouse.storage.batches import in_batches
from tollhouse.storage.database import Database, Transaction
from tollhouse.storage.leases import LeasedJob
from tollhouse.storage.partitions import DailyTable

DAYS_MAX: Final = 400
REQUESTS_MAX: Final = 1_000
"""The most decisions of a policy that one search for its requests reads."""
NEWEST: Final = DecisionCursor(day=date.max, request_id=UUID(int=2**128 - 1), direction="")


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    after: DecisionCursor | None,
    limit: int,
) -> list[ReportedDecision]:
    """Return a page of the matches and failures of one policy, newest first."""
    return await store.reported_of_policy(
        tx, organization_id, policy_id, before=after or NEWEST, limit=limit
    )


async def requests_of_policy(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    before: DecisionCursor,
    since: DecisionCursor,
) -> tuple[tuple[RequestId, ...], bool]:
    """Return the requests before `before` on which a policy matched or failed, newest first.

    At most `REQUESTS_MAX` decisions are read; the second value is whether there may be more.
    """
    found = await store.requests_of_policy(
        tx, organization_id, policy_id, before=before, since=since, limit=REQUESTS_MAX
    )
    return tuple(dict.fromkeys(found)), len(found) == REQUESTS_MAX


async def tallies(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, days: DayRange
) -> list[DailyTotal]:
    """Return totals per day, version, direction and mode, without days that have no decisions."""
    return rules.tallies(await store.counted(tx, organization_id, policy_id, days))


async def of_request(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId
) -> list[EvaluationRecord]:
    """Return all evaluations of one request; matches and failures with all their fields."""
    day = day_of(request_id)
    if day is None:
        return []
    evaluations = await store.evaluations_of(tx, organization_id, request_id, day)
    reported = await store.reported_of_request(tx, organization_id, request_id, day)
    return rules.with_details(evaluations, reported)


async def blocking(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> dict[RequestId, list[BlockingDecision]]:
    """Return the enforcing policies that matched or failed, by request."""
    if not request_ids:
        return {}
    found: dict[RequestId, list[BlockingDecision]] = {}
    for decision in await store.blocking(tx, organization_id, request_ids):
        found.setdefault(decision.request_id, []).append(decision)
    return found


async def policy_names(
    tx: Transaction, organization_id: OrganizationId, policy_ids: Sequence[PolicyId]
) -> dict[PolicyId, str]:
    """Return the current names of policies."""
    return await store.policy_names(tx, organization_id, policy_ids)


async def remove_old_sums(database: Database, now: datetime) -> None:
    """Delete daily sums that are older than any report shows."""
    first_kept = (now - timedelta(days=DAYS_MAX)).date()
    await in_batches(database, partial(store.remove_days, first_kept=first_kept))


def retention_job(database: Database, clock: Clock, *, decision_days: int) -> LeasedJob:
    """Return the job that drops old days of decisions and deletes old daily sums."""

    async def remove_old() -> None:
        for table in (DailyTable.EVALUATIONS, DailyTable.POLICY_DECISIONS):
            await partitions.remove_old(database, table, days_kept=decision_days)
        await remove_old_sums(database, clock.now())

    seconds = partitions.KEEP_EVERY.total_seconds()
    return LeasedJob(name="decision-retention", every_seconds=seconds, run=remove_old)


def place_of(request_id: RequestId, direction: JudgedDirection) -> DecisionCursor | None:
    """Return the cursor of the page after a decision, or None if the ID has no day."""
    day = day_of(request_id)
    if day is None:
        return None
    return DecisionCursor(day=day, request_id=request_id, direction=direction)


def days(start: int, end: int | None, *, now: datetime) -> DayRange:
    """Return the whole days that contain a range of Unix seconds; without an end, it ends now.

    An empty range has no days. Raises `RangeReversed` or `TooManyDays`.
    """
    resolved = range_end(start, end, now=now)
    first = datetime.fromtimestamp(start, UTC).date()
    if resolved is None:
        return DayRange(first=first, end=first)
    last = datetime.fromtimestamp(resolved - 1, UTC).date()
    if last - first >= timedelta(days=DAYS_MAX):
        raise TooManyDays(days_max=DAYS_MAX)
    return DayRange(first=first, end=last + timedelta(days=1))
