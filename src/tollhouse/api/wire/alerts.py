"""Conversion of alert subscriptions and deliveries from and into wire types."""

from datetime import datetime

from msgspec import UNSET, UnsetType

from tollhouse.alerts import rules
from tollhouse.alerts.types import AlertDelivery, AlertSubscription, AlertThresholds
from tollhouse.api.wire import money as money_wire
from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import AlertSubscriptionId
from tollhouse.contract import alerts as contract
from tollhouse.storage.database import Mutation


def from_wire(
    tx: Mutation, subscription_id: AlertSubscriptionId, sent: contract.SetAlertSubscription
) -> AlertSubscription:
    """Return the subscription that a request describes."""
    below = sent.credit_below
    return AlertSubscription(
        organization_id=tx.organization_id,
        id=subscription_id,
        name=sent.name,
        url=None if isinstance(sent.url, UnsetType) else sent.url,
        emails=tuple(dict.fromkeys(sent.emails)),
        thresholds=AlertThresholds(
            cap_percents=tuple(sorted(set(sent.cap_percents))),
            credit_percents=tuple(sorted(set(sent.credit_percents))),
            credit_below_pico_usd=None if below is None else money_wire.amount(below),
            policy_matches_per_hour=sent.policy_matches_per_hour,
            unsettled_requests=sent.unsettled_requests,
        ),
        created_at=tx.now,
    )


def subscription(
    found: AlertSubscription, *, secret: str | None = None
) -> contract.AlertSubscription:
    """Convert a subscription, with its secret if the caller may see it."""
    thresholds = found.thresholds
    below = thresholds.credit_below_pico_usd
    return contract.AlertSubscription(
        id=str(found.id),
        name=found.name,
        url=found.url,
        emails=list(found.emails),
        cap_percents=list(thresholds.cap_percents),
        credit_percents=list(thresholds.credit_percents),
        credit_below=None if below is None else money_wire.money(below),
        policy_matches_per_hour=thresholds.policy_matches_per_hour,
        unsettled_requests=thresholds.unsettled_requests,
        backend_down=thresholds.backend_down,
        secret=UNSET if secret is None else secret,
        previous_secret_expires_at=_seconds(found.previous_secret_until),
        created_at=unix_seconds(found.created_at),
    )


def delivery(found: AlertDelivery) -> contract.AlertDelivery:
    """Convert a delivery, with what happened as a sentence."""
    return contract.AlertDelivery(
        id=str(found.id),
        subscription_id=str(found.subscription_id),
        type=found.type.value,
        text=rules.sentence(found),
        details=rules.shown_details(found.details),
        status=found.state.value,
        attempts=found.attempts,
        created_at=unix_seconds(found.raised_at),
        last_attempt_at=_seconds(found.last_attempt_at),
        next_attempt_at=_seconds(found.next_attempt_at),
        last_status_code=found.last_status,
        last_error=found.last_error,
    )


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else unix_seconds(at)
