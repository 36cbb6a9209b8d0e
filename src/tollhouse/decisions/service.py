"""Verbs on what was decided: page through what a policy found, count it, look at a request."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final
from uuid import UUID

from tollhouse.base.ids import OrganizationId, PolicyId, RequestId
from tollhouse.decisions import rules, store
from tollhouse.decisions.errors import DaysEmpty, TooManyDays
from tollhouse.decisions.types import (
    BlockingDecision,
    Days,
    Direction,
    Examination,
    Place,
    Tally,
    ToldDecision,
    day_of,
)
from tollhouse.storage.database import Transaction

DAYS_MAX: Final = 400
NEWEST: Final = Place(day=date.max, request_id=UUID(int=2**128 - 1), direction="")


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    *,
    after: Place | None,
    limit: int,
) -> list[ToldDecision]:
    """Matches and failures of one policy, newest first."""
    return await store.told_of_policy(
        tx, organization_id, policy_id, before=after or NEWEST, limit=limit
    )


async def tallies(
    tx: Transaction, organization_id: OrganizationId, policy_id: PolicyId, days: Days
) -> list[Tally]:
    """By day, version, direction and mode; days without decisions are left out."""
    return rules.tallies(await store.counted(tx, organization_id, policy_id, days))


async def of_request(
    tx: Transaction, organization_id: OrganizationId, request_id: RequestId
) -> list[Examination]:
    """All that was decided about one request."""
    day = day_of(request_id)
    if day is None:
        return []
    return await store.examinations_of(tx, organization_id, request_id, day)


async def blocking(
    tx: Transaction, organization_id: OrganizationId, request_ids: Sequence[RequestId]
) -> dict[RequestId, list[BlockingDecision]]:
    """Which enforcing policies refused these requests, or could not decide about them."""
    if not request_ids:
        return {}
    found: dict[RequestId, list[BlockingDecision]] = {}
    for decision in await store.blocking(tx, organization_id, request_ids):
        found.setdefault(decision.request_id, []).append(decision)
    return found


async def policy_names(
    tx: Transaction, organization_id: OrganizationId, policy_ids: Sequence[PolicyId]
) -> dict[PolicyId, str]:
    """What the policies of decisions are called now."""
    return await store.policy_names(tx, organization_id, policy_ids)


def place_of(request_id: RequestId, direction: Direction) -> Place | None:
    """Where the page after this decision begins; nothing for an ID that is not ours."""
    day = day_of(request_id)
    if day is None:
        return None
    return Place(day=day, request_id=request_id, direction=direction)


def days(start: int, end: int | None, *, now: datetime) -> Days:
    """The whole days that a range of Unix seconds touches; one without an end ends now."""
    last = int(now.timestamp()) if end is None else end - 1
    if last < start:
        raise DaysEmpty
    first_day, last_day = (datetime.fromtimestamp(at, UTC).date() for at in (start, last))
    if last_day - first_day >= timedelta(days=DAYS_MAX):
        raise TooManyDays(DAYS_MAX)
    return Days(first=first_day, end=last_day + timedelta(days=1))
