"""Subscriptions and the outbox in SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from tollhouse.alerts.types import (
    AlertDelivery,
    AlertSubscription,
    AlertThresholds,
    AlertType,
    ClaimedDelivery,
    DeliveryAttempt,
    DeliveryState,
)
from tollhouse.base.ids import AlertDeliveryId, AlertSubscriptionId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Mutation, Row, Transaction


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


async def evaluate(
    tx: Mutation, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> None:
    """Raise the alerts on credit and caps that are due now."""
    await tx.execute("SELECT alert_evaluate($1, $2)", organization_id, subscription_id)


async def get(
    tx: Transaction, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> AlertSubscription | None:
    """Return a subscription, or None."""
    row = await tx.fetch_one(
        "SELECT * FROM alert_subscriptions WHERE organization_id = $1 AND id = $2",
        organization_id,
        subscription_id,
    )
    return None if row is None else _subscription(row)


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
    return [_subscription(row) for row in rows]


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
    return [_delivery(row) for row in rows]


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
    return None if row is None else _delivery(row)


async def raise_backend_down(  # all organizations: the operator's are few
    tx: Transaction, backend: str
) -> int:
    """Raise this hour's alert about a backend for each subscription; return how many are new."""
    return await tx.execute(
        """
        INSERT INTO alert_deliveries
               (organization_id, id, subscription_id, type, dedup_key, details)
        SELECT organization_id, alert_id(), id, 'backend.down',
               concat_ws(' ', 'backend', date_trunc('hour', clock_timestamp(), 'UTC'), $1::text),
               jsonb_build_object('backend', $1::text)
          FROM alert_subscriptions
         WHERE backend_down
        ON CONFLICT DO NOTHING
        """,
        backend,
    )


async def claim(  # all organizations: one worker delivers for all
    tx: Transaction, *, deliveries_max: int, per_organization_max: int, seconds: float
) -> list[ClaimedDelivery]:
    """Return deliveries to attempt now. Until `seconds` are over, no worker gets them again."""
    rows = await tx.fetch_all(
        """
        WITH due AS (
            SELECT organization_id, id,
                   row_number() OVER (PARTITION BY organization_id
                                      ORDER BY next_attempt_at, id) AS place
              FROM alert_deliveries
             WHERE state = 'pending'
               AND next_attempt_at <= clock_timestamp()
        ), claimed AS (
            SELECT d.organization_id, d.id
              FROM due
              JOIN alert_deliveries d USING (organization_id, id)
             WHERE due.place <= $2
               AND d.state = 'pending'
               AND d.next_attempt_at <= clock_timestamp()
             ORDER BY due.place, d.next_attempt_at
             LIMIT $1
               FOR UPDATE OF d SKIP LOCKED
        )
        UPDATE alert_deliveries d
           SET attempts = d.attempts + 1, last_attempt_at = clock_timestamp(),
               next_attempt_at = clock_timestamp() + make_interval(secs => $3)
          FROM claimed
          JOIN alert_subscriptions s USING (organization_id)
         WHERE d.organization_id = claimed.organization_id
           AND d.id = claimed.id
           AND s.id = d.subscription_id
        RETURNING d.*, s.url, s.emails, s.secret,
                  CASE WHEN s.previous_secret_until > clock_timestamp()
                       THEN s.previous_secret END AS previous_secret
        """,
        deliveries_max,
        per_organization_max,
        seconds,
    )
    return [_claimed(row) for row in rows]


async def finish(
    tx: Transaction,
    organization_id: OrganizationId,
    delivery_id: AlertDeliveryId,
    *,
    state: DeliveryState,
    attempt: DeliveryAttempt,
    retry_after: timedelta,
) -> None:
    """Record the outcome of an attempt. A delivered alert stays delivered."""
    await tx.execute(
        """
        UPDATE alert_deliveries
           SET state = $3, last_status = $4, last_error = $5,
               next_attempt_at = clock_timestamp() + $6
         WHERE organization_id = $1
           AND id = $2
           AND state = 'pending'
        """,
        organization_id,
        delivery_id,
        state,
        attempt.status,
        attempt.error,
        retry_after,
    )


async def retry_failed(
    tx: Mutation, organization_id: OrganizationId, subscription_id: AlertSubscriptionId
) -> None:
    """Make failed deliveries due now, with all their attempts."""
    await tx.execute(
        """
        UPDATE alert_deliveries
           SET state = 'pending', attempts = 0, next_attempt_at = clock_timestamp()
         WHERE organization_id = $1
           AND subscription_id = $2
           AND state = 'failed'
        """,
        organization_id,
        subscription_id,
    )


async def purge(  # all organizations: by age
    tx: Transaction, *, days: int, rows_max: int
) -> int:
    """Delete deliveries that were raised before that many days; return how many."""
    return await tx.execute(
        """
        DELETE FROM alert_deliveries
         WHERE (organization_id, id) IN (
                SELECT organization_id, id
                  FROM alert_deliveries
                 WHERE raised_at < clock_timestamp() - make_interval(days => $1)
                 ORDER BY raised_at
                 LIMIT $2)
        """,
        days,
        rows_max,
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


def _subscription(row: Row) -> AlertSubscription:
    below = row["credit_below_pico"]
    return AlertSubscription(
        organization_id=OrganizationId(row["organization_id"]),
        id=AlertSubscriptionId(row["id"]),
        name=row["name"],
        url=row["url"],
        emails=tuple(row["emails"]),
        thresholds=AlertThresholds(
            cap_percents=tuple(row["cap_percents"]),
            credit_percents=tuple(row["credit_percents"]),
            credit_below_pico_usd=None if below is None else PicoUsd(int(below)),
            policy_matches_per_hour=row["policy_matches_per_hour"],
            unsettled_requests=row["unsettled_requests"],
            backend_down=row["backend_down"],
        ),
        previous_secret_until=row["previous_secret_until"],
        created_at=row["created_at"],
    )


def _delivery(row: Row) -> AlertDelivery:
    state = DeliveryState(row["state"])
    return AlertDelivery(
        organization_id=OrganizationId(row["organization_id"]),
        id=AlertDeliveryId(row["id"]),
        subscription_id=AlertSubscriptionId(row["subscription_id"]),
        type=AlertType(row["type"]),
        details=msgspec.json.decode(row["details"]),
        raised_at=row["raised_at"],
        state=state,
        attempts=row["attempts"],
        next_attempt_at=row["next_attempt_at"] if state is DeliveryState.PENDING else None,
        last_attempt_at=row["last_attempt_at"],
        last_status=row["last_status"],
        last_error=row["last_error"],
    )


def _claimed(row: Row) -> ClaimedDelivery:
    secrets = (row["secret"], row["previous_secret"])
    return ClaimedDelivery(
        delivery=_delivery(row),
        url=row["url"],
        emails=tuple(row["emails"]),
        sealed_secrets=tuple(secret for secret in secrets if secret is not None),
    )
