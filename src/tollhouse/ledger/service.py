"""Operations on credit and spending caps, in the caller's transaction."""

import hashlib
from collections.abc import Mapping
from datetime import datetime

import msgspec

from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import GrantId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import short_windows, store
from tollhouse.ledger.errors import (
    AccountMissing,
    CapNotFound,
    CappedKeyNotFound,
    CappedProjectNotFound,
    GrantNotFound,
    GrantOfNothing,
    GrantWouldTakeCredit,
)
from tollhouse.ledger.types import Cap, CapId, CapScope, CapUse, Credit, Grant, GrantKind
from tollhouse.storage import audit
from tollhouse.storage.database import Mutation, Transaction


async def grant(
    tx: Mutation, *, grant_id: GrantId, kind: GrantKind, amount: PicoUsd, reason: str
) -> Grant:
    """Grant credit. A correction may be negative, even below what is settled and reserved."""
    if kind is not GrantKind.CORRECTION and amount <= 0:
        raise GrantWouldTakeCredit
    if amount == 0:
        raise GrantOfNothing
    granted = Grant(
        organization_id=tx.organization_id,
        id=grant_id,
        kind=kind,
        amount_pico_usd=amount,
        reason=reason,
        actor_type=tx.authority.actor.type,
        actor_id=tx.authority.actor.id,
        created_at=tx.now,
    )
    await store.lock_account(tx, tx.organization_id)
    await store.insert_grant(tx, granted)
    await store.add_credit(tx, tx.organization_id, amount)
    resource = ("credit_entry", grant_id)
    await audit.record(tx, action="credit.grant", resource=resource, before=None, after=granted)
    return granted


async def credit(tx: Transaction, organization_id: OrganizationId) -> Credit:
    """Return the organization's account; raise `AccountMissing` if there is none."""
    found = await store.get_credit(tx, organization_id)
    if found is None:
        raise AccountMissing
    return found


async def retrieve_grant(
    tx: Transaction, organization_id: OrganizationId, grant_id: GrantId
) -> Grant:
    """Return one grant of the organization, or raise `GrantNotFound`."""
    found = await store.get_grant(tx, organization_id, grant_id)
    if found is None:
        raise GrantNotFound
    return found


async def page_grants(
    tx: Transaction, organization_id: OrganizationId, *, after: GrantId | None, limit: int
) -> list[Grant]:
    """Return grants, newest first; raise `UnknownCursor` if `after` is not the organization's."""
    if after is not None and await store.get_grant(tx, organization_id, after) is None:
        raise UnknownCursor
    return await store.page_grants(tx, organization_id, after=after, limit=limit)


async def set_cap(
    tx: Mutation, place: CapId, *, limit_pico_usd: PicoUsd, alert_percent: int
) -> CapUse:
    """Set or change a cap and return its use, which includes usage before the cap was set.

    Setting an equal cap changes nothing.
    """
    await store.lock_account(tx, tx.organization_id)
    await _require_scope(tx, place)
    before = await store.get_cap(tx, tx.organization_id, place, now=tx.now)
    cap = Cap(
        organization_id=tx.organization_id,
        scope=place.scope,
        scope_id=place.scope_id,
        period=place.period,
        limit_pico_usd=limit_pico_usd,
        alert_percent=alert_percent,
    )
    if before is not None and before.cap == cap:
        tx.unchanged()
        return before
    await store.save_cap(tx, cap)
    if place.period.short_days is None:
        await store.cap_counters(tx, cap, today=tx.now.date())
    else:
        await short_windows.cap_counters(tx, cap, today=tx.now.date())
    await _audit(tx, "spending_limit.set", place, None if before is None else before.cap, cap)
    after = await store.get_cap(tx, tx.organization_id, place, now=tx.now)
    assert after is not None, "what was just written is there"
    return after


async def clear_cap(tx: Mutation, place: CapId) -> None:
    """Remove a cap, or raise `CapNotFound`. Its counters go on, so a later cap has past usage."""
    await store.lock_account(tx, tx.organization_id)
    await _require_scope(tx, place)
    before = await store.get_cap(tx, tx.organization_id, place, now=tx.now)
    if before is None:
        raise CapNotFound(scope=place.scope, period=place.period)
    await store.delete_cap(tx, tx.organization_id, place)
    if place.period.short_days is None:
        await store.uncap_counters(tx, tx.organization_id, place)
    else:
        await short_windows.uncap_counters(tx, tx.organization_id, place)
    await _audit(tx, "spending_limit.clear", place, before.cap, None)


async def caps(
    tx: Transaction,
    organization_id: OrganizationId,
    now: datetime,
    *,
    after: CapId | None,
    limit: int,
) -> list[CapUse]:
    """Return a page of caps with their use at `now`. The cap at `after` may be cleared already."""
    if (
        after is not None
        and after.scope is CapScope.ORGANIZATION
        and after.scope_id != organization_id
    ):
        raise UnknownCursor
    return await store.page_caps(tx, organization_id, now=now, after=after, limit=limit)


async def price_revision(tx: Transaction, prices: Mapping[str, object]) -> int:
    """Return the ID of a price list, and store the list if it is new. Equal lists have one ID."""
    text = msgspec.json.encode(prices, order="sorted")
    digest = hashlib.sha256(text).digest()
    found = await store.find_prices(tx, digest)
    if found is None:
        found = await store.insert_prices(tx, digest, text.decode())
    if found is None:
        found = await store.find_prices(tx, digest)
    assert found is not None, "a faster worker has committed the same prices"
    return found


async def _require_scope(tx: Mutation, place: CapId) -> None:
    if await store.has_scope(tx, tx.organization_id, place):
        return
    raise CappedKeyNotFound if place.scope is CapScope.KEY else CappedProjectNotFound


async def _audit(
    tx: Mutation, action: str, place: CapId, before: Cap | None, after: Cap | None
) -> None:
    resource = ("spending_limit", place.text)
    await audit.record(tx, action=action, resource=resource, before=before, after=after)
