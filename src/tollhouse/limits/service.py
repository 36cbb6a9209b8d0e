"""Operations on rate limits, in the caller's transaction.

A change takes effect when a worker next looks up the key.
"""

from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import OrganizationId
from tollhouse.base.traffic import UNLIMITED, TrafficLimits
from tollhouse.limits import store
from tollhouse.limits.errors import (
    LimitedKeyNotFound,
    LimitedProjectNotFound,
    LimitNotFound,
    LimitOfNothing,
)
from tollhouse.limits.types import LimitId, LimitScope, RateLimit
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction


async def set_limit(tx: Mutation, place: LimitId, traffic: TrafficLimits) -> RateLimit:
    """Set or replace a limit with all its bounds; a bound that is not given is unlimited.

    Raises `LimitOfNothing` without any bound. Setting an equal limit changes nothing.
    """
    if traffic == UNLIMITED:
        raise LimitOfNothing
    before = await _locked(tx, place)
    limit = RateLimit(
        organization_id=tx.organization_id,
        scope=place.scope,
        scope_id=place.scope_id,
        owner=place.owner,
        traffic=traffic,
    )
    if before == limit:
        tx.unchanged()
        return limit
    await store.save_limit(tx, limit)
    await _audit(tx, "rate_limit.set", place, before, limit)
    return limit


async def clear_limit(tx: Mutation, place: LimitId) -> None:
    """Remove a limit, or raise `LimitNotFound`. The other owner's limit stays."""
    before = await _locked(tx, place)
    if before is None:
        raise LimitNotFound(place=place)
    await store.delete_limit(tx, tx.organization_id, place)
    await _audit(tx, "rate_limit.clear", place, before, None)


async def limits(
    tx: Transaction, organization_id: OrganizationId, *, after: LimitId | None, limit: int
) -> list[RateLimit]:
    """Return a page of the limits of both owners. The limit at `after` may be cleared already."""
    if (
        after is not None
        and after.scope is LimitScope.ORGANIZATION
        and after.scope_id != organization_id
    ):
        raise UnknownCursor
    return await store.page_limits(tx, organization_id, after=after, limit=limit)


async def _locked(tx: Mutation, place: LimitId) -> RateLimit | None:
    """Lock the organization's limits until the commit, and return the stored limit or None."""
    await store.lock_limits(tx, tx.organization_id)
    if not await store.has_scope(tx, tx.organization_id, place):
        raise LimitedKeyNotFound if place.scope is LimitScope.KEY else LimitedProjectNotFound
    return await store.get_limit(tx, tx.organization_id, place)


async def _audit(
    tx: Mutation,
    action: str,
    place: LimitId,
    before: RateLimit | None,
    after: RateLimit | None,
) -> None:
    resource = ("rate_limit", place.text)
    await audit.record(tx, action=action, resource=resource, before=before, after=after)
