"""Convert rows of the alerts' tables to types."""

import msgspec

from tollhouse.alerts.types import (
    AlertDelivery,
    AlertSubscription,
    AlertThresholds,
    AlertType,
    ClaimedDelivery,
    DeliveryState,
)
from tollhouse.base.ids import AlertDeliveryId, AlertSubscriptionId, OrganizationId
from tollhouse.base.money import PicoUsd
from tollhouse.storage.database import Row


def to_subscription(row: Row) -> AlertSubscription:
    """Convert a row of a subscription."""
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


def to_delivery(row: Row) -> AlertDelivery:
    """Convert a row of the outbox."""
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


def to_claimed(row: Row) -> ClaimedDelivery:
    """Convert a row of the outbox with what it needs of its subscription."""
    secrets = (row["secret"], row["previous_secret"])
    return ClaimedDelivery(
        delivery=to_delivery(row),
        url=row["url"],
        emails=tuple(row["emails"]),
        sealed_secrets=tuple(secret for secret in secrets if secret is not None),
    )
