"""Subscriptions and the outbox in SQL, as admins use them."""

from collections.abc import Sequence
from datetime import datetime

from tollhouse.alerts.rows import to_delivery, to_subscription
from tollhouse.alerts.types import AlertDelivery, AlertSubscription
from tollhouse.base.ids import AlertDeliveryId, AlertSubscriptionId, OrganizationId
from tollhouse.storage.database import Mutation, Transaction


async def insert(tx: Mutation, subscription: AlertSubscription, *, sealed: bytes | None) -> None:
    """Insert a subscription with its sealed secret."""
    await tx.execute(
        """
        INSERT INTO alert_subscriptions
               (organization_id, id, name, url, emails, cap_percents, credit_percents,
                credit_below_pico, policy_matches_per_hour, unsettled_requests, backend_down,
                created_at, secret)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        """,
        *_values(subscription),
        subscription.created_at,
        sealed,
    )


async def save(tx: Mutation, subscription: AlertSubscription) -> None:
    """Write what can change, without the secret."""
    await tx.execute(
        """
        UPDATE alert_subscriptions
           SET name = $3, url = $4, emails = $5, cap_percents = $6, credit_percents = $7,
               credit_below_pico = $8, policy_matches_per_hour = $9, unsettled_requests = $10,
               backend_down = $11
         WHERE organization_id = $1
           AND id = $2
        """,
        *_values(subscription),
    )


async def replace_secret(
    tx: Mutation,
    organization_id: OrganizationId,
    subscription_id: AlertSubscriptionId,
    *,
    sealed: bytes,
    previous_until: datetime,
) -> None:
    """Replace the secret, and keep signing with the previous one as well until then."""
    await tx.execute(
        """
        UPDATE alert_subscriptions
           SET previous_secret = secret, previous_secret_until = $4, secret = $3
         WHERE organization_id = $1
           AND id = $2
        """,
        organization_id,
        subscription_id,
        sealed,
        previous_until,
    )


async def delete(
    tx: Mutation, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> None:
    """Delete a subscription and its deliveries."""
    await tx.execute(
        "DELETE FROM alert_deliveries WHERE organization_id = $1 AND subscription_id = $2",
        organization_id,
        subscription_id,
    )
    await tx.execute(
        "DELETE FROM alert_subscriptions WHERE organization_id = $1 AND id = $2",
        organization_id,
        subscription_id,
    )


async def get(
    tx: Transaction, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> AlertSubscription | None:
    """Return a subscription, or None."""
    row = await tx.fetch_one(
        "SELECT * FROM alert_subscriptions WHERE organization_id = $1 AND id = $2",
        organization_id,
        subscription_id,
    )
    return None if row is None else to_subscription(row)


async def count(tx: Transaction, organization_id: OrganizationId, count_max: int) -> int:
    """Count subscriptions, up to `count_max`."""
    return await tx.fetch_value(
        """
        SELECT count(*)
          FROM (SELECT FROM alert_subscriptions WHERE organization_id = $1 LIMIT $2) counted
        """,
        organization_id,
        count_max,
    )


async def page(
    tx: Transaction,
    organization_id: OrganizationId,
    *,
    after: AlertSubscriptionId | None,
    limit: int,
) -> list[AlertSubscription]:
    """Return subscriptions in order of creation."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM alert_subscriptions
         WHERE organization_id = $1
           AND ($2::uuid IS NULL OR id > $2)
         ORDER BY id
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [to_subscription(row) for row in rows]


async def page_deliveries(
    tx: Transaction, organization_id: OrganizationId, *, after: AlertDeliveryId | None, limit: int
) -> list[AlertDelivery]:
    """Return deliveries, newest first."""
    rows = await tx.fetch_all(
        """
        SELECT *
          FROM alert_deliveries
         WHERE organization_id = $1
           AND ($2::uuid IS NULL OR id < $2)
         ORDER BY id DESC
         LIMIT $3
        """,
        organization_id,
        after,
        limit,
    )
    return [to_delivery(row) for row in rows]


async def insert_test(
    tx: Mutation,
    organization_id: OrganizationId,
    subscription_id: AlertSubscriptionId,
    delivery_id: AlertDeliveryId,
) -> AlertDeliveryId:
    """Insert a test alert and return its ID, or that of the one of the same minute."""
    return await tx.fetch_value(
        """
        INSERT INTO alert_deliveries AS d
               (organization_id, id, subscription_id, type, dedup_key, details)
        VALUES ($1, $3, $2, 'test', 'test ' || date_trunc('minute', clock_timestamp()), '{}')
        ON CONFLICT (organization_id, subscription_id, dedup_key) DO UPDATE
           SET subscription_id = EXCLUDED.subscription_id
        RETURNING id
        """,
        organization_id,
        subscription_id,
        delivery_id,
    )


async def get_delivery(
    tx: Transaction, organization_id: OrganizationId, delivery_id: AlertDeliveryId
) -> AlertDelivery | None:
    """Return a delivery, or None."""
    row = await tx.fetch_one(
        "SELECT * FROM alert_deliveries WHERE organization_id = $1 AND id = $2",
        organization_id,
        delivery_id,
    )
    return None if row is None else to_delivery(row)


async def retry_undelivered(
    tx: Mutation, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> None:
    """Make failed and withheld deliveries due now, with all their attempts."""
    await tx.execute(
        """
        UPDATE alert_deliveries
           SET state = 'pending', attempts = 0, next_attempt_at = clock_timestamp()
         WHERE organization_id = $1
           AND subscription_id = $2
           AND state IN ('failed', 'withheld')
        """,
        organization_id,
        subscription_id,
    )


def _values(subscription: AlertSubscription) -> Sequence[object]:
    thresholds = subscription.thresholds
    return (
        subscription.organization_id,
        subscription.id,
        subscription.name,
        subscription.url,
        subscription.emails,
        thresholds.cap_percents,
        thresholds.credit_percents,
        thresholds.credit_below_pico_usd,
        thresholds.policy_matches_per_hour,
        thresholds.unsettled_requests,
        thresholds.backend_down,
    )
