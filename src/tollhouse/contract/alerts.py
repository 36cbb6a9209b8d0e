"""The wire types of alert subscriptions and the deliveries of their alerts."""

from typing import Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import (
    AlertCount,
    AlertEmails,
    AlertPercents,
    AlertUrl,
    Name,
    OverlapSeconds,
)
from tollhouse.contract.listing import ListPage
from tollhouse.contract.money import Money, MoneyToSet
from tollhouse.contract.origins import extension

OVERLAP_SECONDS_DEFAULT = 86_400

DeliveryStatus = Literal["pending", "delivered", "failed", "withheld"]


class SetAlertSubscription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A subscription: `url` or `emails`, and at least one threshold."""

    mark: ClassVar[Meta] = extension("OQ-143")

    name: Name
    url: AlertUrl | UnsetType = UNSET
    """Where alerts are sent as signed webhooks."""
    emails: AlertEmails = []
    """Where alerts are sent as e-mail."""
    cap_percents: AlertPercents = []
    """The shares of each spending limit, in percent, at which an alert is raised."""
    credit_percents: AlertPercents = []
    """The used shares of the credit, in percent, at which an alert is raised."""
    credit_below: MoneyToSet | None = None
    """The available credit below which an alert is raised, or null."""
    policy_matches_per_hour: AlertCount | None = None
    """The matches of one policy in an hour at which an alert is raised, or null."""
    unsettled_requests: AlertCount | None = None
    """The requests without a final cost at which an alert is raised, or null."""


class RotateAlertSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long alerts are signed with the previous secret as well."""

    mark: ClassVar[Meta] = extension("OQ-143")

    overlap_seconds: OverlapSeconds = OVERLAP_SECONDS_DEFAULT
    """How long the previous secret signs as well."""


class AlertSubscription(Struct, frozen=True, kw_only=True):
    """Whom to alert, and when."""

    mark: ClassVar[Meta] = extension("OQ-143")

    id: str
    object: Literal["organization.alert_subscription"] = "organization.alert_subscription"
    name: str
    url: str | None
    """Where alerts are sent as signed webhooks, or null."""
    emails: list[str]
    """Where alerts are sent as e-mail."""
    cap_percents: list[int]
    """The shares of each spending limit, in percent, at which an alert is raised."""
    credit_percents: list[int]
    """The used shares of the credit, in percent, at which an alert is raised."""
    credit_below: Money | None
    """The available credit below which an alert is raised, or null."""
    policy_matches_per_hour: int | None
    """The matches of one policy in an hour at which an alert is raised, or null."""
    unsettled_requests: int | None
    """The requests without a final cost at which an alert is raised, or null."""
    backend_down: bool
    """Whether an alert is raised when a backend is down. Only the operator sets it."""
    secret: str | UnsetType = UNSET
    """The key that signs webhooks, only in the answers that create or rotate it."""
    previous_secret_expires_at: int | None
    """Until when the previous secret signs too, in Unix seconds, or null."""
    created_at: int


class AlertSubscriptionList(ListPage, frozen=True, kw_only=True):
    """A page of subscriptions, in order of creation."""

    mark: ClassVar[Meta] = extension("OQ-143")

    data: list[AlertSubscription]


class AlertSubscriptionDeleted(Struct, frozen=True, kw_only=True):
    """A subscription that was deleted, with its deliveries."""

    mark: ClassVar[Meta] = extension("OQ-143")

    id: str
    object: Literal["organization.alert_subscription.deleted"] = (
        "organization.alert_subscription.deleted"
    )
    deleted: bool


class AlertDelivery(Struct, frozen=True, kw_only=True):
    """An alert on its way to one subscription."""

    mark: ClassVar[Meta] = extension("OQ-143")

    id: str
    """The header `webhook-id` of all attempts."""
    object: Literal["organization.alert_delivery"] = "organization.alert_delivery"
    subscription_id: str
    """The subscription to which the alert is delivered."""
    type: str
    """What the alert is about."""
    text: str
    """The alert in one sentence."""
    details: dict[str, Any]
    """The figures of the alert; their names depend on its type."""
    status: DeliveryStatus
    """Where it is; `withheld` if the organization had no attempts left in that hour."""
    attempts: int
    """How often delivery was attempted."""
    created_at: int
    last_attempt_at: int | None
    """The last attempt, in Unix seconds, or null before the first."""
    next_attempt_at: int | None
    """The next attempt, in Unix seconds, or null if none is planned."""
    last_status_code: int | None
    """The status that the receiver answered last, or null."""
    last_error: str | None
    """Why the last attempt failed, or null."""


class AlertDeliveryList(ListPage, frozen=True, kw_only=True):
    """A page of deliveries, newest first."""

    mark: ClassVar[Meta] = extension("OQ-143")

    data: list[AlertDelivery]


def check(sent: SetAlertSubscription) -> None:
    """Raise `InvalidRequest` without exactly one kind of destination and a threshold."""
    if (sent.url is UNSET) == (not sent.emails):
        message = "Send 'url' or 'emails', not both and not neither."
        raise InvalidRequest("invalid_parameter_combination", message, param="url")
    if not any(
        (
            sent.cap_percents,
            sent.credit_percents,
            sent.credit_below,
            sent.policy_matches_per_hour,
            sent.unsettled_requests,
        )
    ):
        message = "Send at least one threshold, such as 'cap_percents': [80]."
        raise InvalidRequest("missing_required_parameter", message, param="cap_percents")
