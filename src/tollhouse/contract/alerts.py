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

DeliveryStatus = Literal["pending", "delivered", "failed"]


class SetAlertSubscription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A subscription: `url` or `emails`, and at least one threshold."""

    mark: ClassVar[Meta] = extension("OQ-143")

    name: Name
    url: AlertUrl | UnsetType = UNSET
    emails: AlertEmails = []
    cap_percents: AlertPercents = []
    credit_percents: AlertPercents = []
    credit_below: MoneyToSet | None = None
    policy_matches_per_hour: AlertCount | None = None
    unsettled_requests: AlertCount | None = None


class RotateAlertSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long alerts are signed with the previous secret as well."""

    mark: ClassVar[Meta] = extension("OQ-143")

    overlap_seconds: OverlapSeconds = OVERLAP_SECONDS_DEFAULT


class AlertSubscription(Struct, frozen=True, kw_only=True):
    """A subscription. `secret` is returned only when it is created or rotated."""

    mark: ClassVar[Meta] = extension("OQ-143")

    id: str
    object: Literal["organization.alert_subscription"] = "organization.alert_subscription"
    name: str
    url: str | None
    emails: list[str]
    cap_percents: list[int]
    credit_percents: list[int]
    credit_below: Money | None
    policy_matches_per_hour: int | None
    unsettled_requests: int | None
    backend_down: bool
    secret: str | UnsetType = UNSET
    previous_secret_expires_at: int | None
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
    """An alert on its way to one subscription. `id` is the header `webhook-id` of all attempts."""

    mark: ClassVar[Meta] = extension("OQ-143")

    id: str
    object: Literal["organization.alert_delivery"] = "organization.alert_delivery"
    subscription_id: str
    type: str
    text: str
    details: dict[str, Any]
    status: DeliveryStatus
    attempts: int
    created_at: int
    last_attempt_at: int | None
    next_attempt_at: int | None
    last_status_code: int | None
    last_error: str | None


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
