"""Operations on alert subscriptions, in the caller's transaction."""

import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Final

from tollhouse.alerts import rules, store
from tollhouse.alerts.errors import (
    AlertSubscriptionNotFound,
    AlertWithoutSecret,
)
from tollhouse.alerts.types import AlertDelivery, AlertSubscription
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import (
    AlertDeliveryId,
    AlertSubscriptionId,
    OrganizationId,
    time_ordered_uuid,
)
from tollhouse.base.quotas import Quota
from tollhouse.storage import audit, quotas
from tollhouse.storage.database import Mutation, Transaction
from tollhouse.storage.sealing import Sealer

_SECRET_BYTES: Final = 32


async def mint_secret(sealer: Sealer, subscription_id: AlertSubscriptionId) -> tuple[str, bytes]:
    """Return a new signing secret, and its sealed form for the database."""
    secret = rules.secret_text(secrets.token_bytes(_SECRET_BYTES))
    return secret, await sealer.seal_lasting(secret.encode(), bound_to=subscription_id.bytes)


async def require_room(tx: Mutation, quota: int) -> None:
    """Raise `QuotaExceeded` if the organization has `quota` subscriptions."""
    await quotas.require_room(tx, Quota.ALERT_SUBSCRIPTIONS, quota, store.count)


async def create(tx: Mutation, subscription: AlertSubscription, *, sealed: bytes | None) -> None:
    """Create a subscription. The next look raises what is reached already."""
    await store.insert(tx, subscription, sealed=sealed)
    await _audit(tx, "alert_subscription.create", before=None, after=subscription)


async def edit(
    tx: Mutation, edited: AlertSubscription, *, by_operator: bool = False
) -> AlertSubscription:
    """Replace all fields but the secret.

    Only the operator changes `backend_down`.
    """
    found = await retrieve(tx, tx.organization_id, edited.id)
    thresholds = edited.thresholds if by_operator else found.thresholds
    edited = replace(
        edited,
        thresholds=replace(edited.thresholds, backend_down=thresholds.backend_down),
        previous_secret_until=found.previous_secret_until,
        created_at=found.created_at,
    )
    if edited == found:
        tx.unchanged()
        return found
    await store.save(tx, edited)
    await _audit(tx, "alert_subscription.edit", before=found, after=edited)
    return edited


async def delete(tx: Mutation, subscription_id: AlertSubscriptionId) -> None:
    """Delete a subscription with its deliveries: what is pending is not delivered."""
    found = await retrieve(tx, tx.organization_id, subscription_id)
    await store.delete(tx, tx.organization_id, subscription_id)
    await _audit(tx, "alert_subscription.delete", before=found, after=None)


async def rotate_secret(
    tx: Mutation, subscription_id: AlertSubscriptionId, *, sealed: bytes, overlap: timedelta
) -> AlertSubscription:
    """Replace the secret. During the overlap, alerts are signed with both."""
    found = await retrieve(tx, tx.organization_id, subscription_id)
    if found.url is None:
        raise AlertWithoutSecret
    until = tx.now + overlap
    await store.replace_secret(
        tx, tx.organization_id, subscription_id, sealed=sealed, previous_until=until
    )
    rotated = replace(found, previous_secret_until=until)
    await _audit(tx, "alert_subscription.rotate_secret", before=found, after=rotated)
    return rotated


async def send_test(tx: Mutation, subscription_id: AlertSubscriptionId) -> AlertDelivery:
    """Put a test alert into the outbox, at most one each minute."""
    found = await retrieve(tx, tx.organization_id, subscription_id)
    delivery_id = await store.insert_test(
        tx, tx.organization_id, subscription_id, AlertDeliveryId(time_ordered_uuid())
    )
    sent = await store.get_delivery(tx, tx.organization_id, delivery_id)
    assert sent is not None, "it was inserted in this transaction"
    await _audit(tx, "alert_subscription.test", before=found, after=found)
    return sent


async def retry(tx: Mutation, subscription_id: AlertSubscriptionId) -> AlertSubscription:
    """Make the failed and withheld deliveries of a subscription pending again."""
    found = await retrieve(tx, tx.organization_id, subscription_id)
    await store.retry_undelivered(tx, tx.organization_id, subscription_id)
    await _audit(tx, "alert_subscription.retry", before=found, after=found)
    return found


async def retrieve(
    tx: Transaction, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> AlertSubscription:
    """Return a subscription, or raise `AlertSubscriptionNotFound`."""
    found = await store.get(tx, organization_id, subscription_id)
    if found is None:
        raise AlertSubscriptionNotFound
    return found


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    *,
    after: AlertSubscriptionId | None,
    limit: int,
) -> list[AlertSubscription]:
    """Return subscriptions in order of creation. Raises `UnknownCursor`."""
    if after is not None and await store.get(tx, organization_id, after) is None:
        raise UnknownCursor
    return await store.page(tx, organization_id, after=after, limit=limit)


async def deliveries(
    tx: Transaction, organization_id: OrganizationId, *, after: AlertDeliveryId | None, limit: int
) -> list[AlertDelivery]:
    """Return deliveries of all subscriptions, newest first. Raises `UnknownCursor`."""
    if after is not None and await store.get_delivery(tx, organization_id, after) is None:
        raise UnknownCursor
    return await store.page_deliveries(tx, organization_id, after=after, limit=limit)


async def _audit(
    tx: Mutation,
    action: str,
    *,
    before: AlertSubscription | None,
    after: AlertSubscription | None,
) -> None:
    named = after or before
    assert named is not None, "a change has a subscription before or after it"
    await audit.record(
        tx, action=action, resource=("alert_subscription", named.id), before=before, after=after
    )
