"""Subscriptions, and the deliveries of their alerts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from tollhouse.base.ids import AlertDeliveryId, AlertSubscriptionId, OrganizationId
from tollhouse.base.money import PicoUsd


class AlertType(StrEnum):
    """What an alert is about."""

    CAP = "cap.threshold_reached"
    CREDIT = "credit.threshold_reached"
    POLICY_MATCHES = "policy.match_rate_reached"
    UNSETTLED = "holds.unsettled"
    BACKEND_DOWN = "backend.down"
    TEST = "test"


class DeliveryState(StrEnum):
    """Pending until the destination accepts the alert, or until the last attempt has failed.

    Withheld if the organization had no attempts left in the hour of the first one.
    """

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    WITHHELD = "withheld"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertThresholds:
    """When a subscription is told. `backend_down` is set by the operator only."""

    cap_percents: tuple[int, ...] = ()
    credit_percents: tuple[int, ...] = ()
    credit_below_pico_usd: PicoUsd | None = None
    policy_matches_per_hour: int | None = None
    unsettled_requests: int | None = None
    backend_down: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertSubscription:
    """Who is told about what: a URL, or e-mail addresses. The signing secret is not part of it."""

    organization_id: OrganizationId
    id: AlertSubscriptionId
    name: str
    url: str | None
    emails: tuple[str, ...]
    thresholds: AlertThresholds
    previous_secret_until: datetime | None = None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertDelivery:
    """One alert for one subscription, and what became of it. `details` depend on the type."""

    organization_id: OrganizationId
    id: AlertDeliveryId
    subscription_id: AlertSubscriptionId
    type: AlertType
    details: Mapping[str, Any]
    raised_at: datetime
    state: DeliveryState = DeliveryState.PENDING
    attempts: int = 0
    next_attempt_at: datetime | None = None
    last_attempt_at: datetime | None = None
    last_status: int | None = None
    last_error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimedDelivery:
    """A delivery that this worker attempts now, and its destination with the sealed secrets."""

    delivery: AlertDelivery
    url: str | None
    emails: tuple[str, ...]
    sealed_secrets: tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryAttempt:
    """The outcome of one attempt: a status of the destination, or an error; neither by e-mail."""

    status: int | None = None
    error: str | None = None
    is_final: bool = False
    """Another attempt cannot succeed."""

    @property
    def is_delivered(self) -> bool:
        """Whether the destination accepted the alert."""
        return self.error is None
