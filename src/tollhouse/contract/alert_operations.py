"""The operations on alerts under `/manage/v1`."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import alerts, listing
from tollhouse.contract.command import Command, Words
from tollhouse.contract.operation import declare

_SUBSCRIPTIONS = "/manage/v1/organization/alert_subscriptions"
_SUBSCRIPTION = f"{_SUBSCRIPTIONS}/{{alert_subscription_id}}"

_read = partial(declare, tag="Alerts", permission=Permission.ALERTS_READ)
_write = partial(declare, tag="Alerts", permission=Permission.ALERTS_WRITE)

LIST_ALERT_SUBSCRIPTIONS = _read(
    "listAlertSubscriptions",
    f"GET {_SUBSCRIPTIONS}",
    "List who is told about what",
    "OQ-143",
    query=listing.ListQuery,
    result=alerts.AlertSubscriptionList,
    command=Command(
        "alerts list",
        "List who is told about what.",
        example="--json",
        columns="id name url emails cap_percents credit_percents backend_down",
    ),
)
"""In order of creation, without secrets."""
CREATE_ALERT_SUBSCRIPTION = _write(
    "createAlertSubscription",
    f"POST {_SUBSCRIPTIONS}",
    "Subscribe a URL or e-mail addresses to alerts",
    "OQ-143",
    body=alerts.SetAlertSubscription,
    result=alerts.AlertSubscription,
    creates_idempotently=True,
    command=Command(
        "alerts create",
        (
            "Subscribe a URL or e-mail addresses to alerts.\n\nThe secret that signs webhooks "
            "is shown only here."
        ),
        example="finance --email a@b.example --cap-percent 80",
        arguments="name",
        is_creation=True,
    ),
)
"""The `secret` that signs webhooks is in this answer, and for 24 hours in a repetition with the
same `Idempotency-Key`."""
RETRIEVE_ALERT_SUBSCRIPTION = _read(
    "retrieveAlertSubscription",
    f"GET {_SUBSCRIPTION}",
    "Read an alert subscription",
    "OQ-143",
    result=alerts.AlertSubscription,
    command=Command(
        "alerts show",
        "Show one subscription, without its secret.",
        example="finance",
        arguments="alert_subscription_id",
    ),
)
"""Without its secret."""
EDIT_ALERT_SUBSCRIPTION = _write(
    "editAlertSubscription",
    f"PUT {_SUBSCRIPTION}",
    "Replace an alert subscription, without its secret",
    "OQ-143",
    body=alerts.SetAlertSubscription,
    result=alerts.AlertSubscription,
    command=Command(
        "alerts edit",
        "Replace a subscription by what is given. Its secret stays.",
        example="finance --name finance --email a@b.example --cap-percent 95",
        arguments="alert_subscription_id",
    ),
)
"""Fields that are not sent get their defaults. The secret stays."""
DELETE_ALERT_SUBSCRIPTION = _write(
    "deleteAlertSubscription",
    f"DELETE {_SUBSCRIPTION}",
    "Delete an alert subscription and its deliveries",
    "OQ-143",
    result=alerts.AlertSubscriptionDeleted,
    command=Command(
        "alerts delete",
        "Delete a subscription. Its pending alerts are not delivered.",
        example="finance --yes",
        arguments="alert_subscription_id",
        question="Delete the subscription {}?",
    ),
)
"""Alerts that are still being delivered are dropped."""
ROTATE_ALERT_SECRET = _write(
    "rotateAlertSecret",
    f"POST {_SUBSCRIPTION}/rotate_secret",
    "Replace the signing secret; both are valid during the overlap",
    "OQ-143",
    body=alerts.RotateAlertSecret,
    result=alerts.AlertSubscription,
    creates_idempotently=True,
    command=Command(
        "alerts rotate-secret",
        "Replace the secret that signs webhooks.\n\nThe new secret is shown only here.",
        example="finance",
        arguments="alert_subscription_id",
        words={
            "overlap_seconds": Words(
                "overlap-seconds", "Sign with the previous secret as well for this long."
            ),
        },
    ),
)
"""The new `secret` is in this answer. The previous one signs as well for `overlap_seconds`."""
TEST_ALERT_SUBSCRIPTION = _write(
    "testAlertSubscription",
    f"POST {_SUBSCRIPTION}/test",
    "Send a test alert",
    "OQ-143",
    result=alerts.AlertDelivery,
    command=Command(
        "alerts test",
        "Send a test alert, at most one each minute. A worker delivers it within seconds.",
        example="finance",
        arguments="alert_subscription_id",
    ),
)
"""Shows in its deliveries like any other."""
RETRY_ALERT_DELIVERIES = _write(
    "retryAlertDeliveries",
    f"POST {_SUBSCRIPTION}/retry",
    "Attempt the failed deliveries of a subscription again",
    "OQ-143",
    result=alerts.AlertSubscription,
    command=Command(
        "alerts retry",
        "Attempt the failed and withheld deliveries of a subscription again.",
        example="finance",
        arguments="alert_subscription_id",
    ),
)
"""Those that failed for good and are still stored."""
LIST_ALERT_DELIVERIES = _read(
    "listAlertDeliveries",
    "GET /manage/v1/organization/alert_deliveries",
    "List alerts and whether they were delivered",
    "OQ-143",
    query=listing.ListQuery,
    result=alerts.AlertDeliveryList,
    command=Command(
        "alerts deliveries",
        "List the latest alerts and whether they were delivered, newest first.",
        columns="id created_at text status attempts last_error",
        shown_max=20,
    ),
)
"""Newest first, with the last error of each."""
