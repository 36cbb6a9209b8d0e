"""The operations on alerts under `/manage/v1`."""

from functools import partial

from tollhouse.base.permissions import Permission
from tollhouse.contract import alerts, listing
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
)
"""The `secret` that signs webhooks is in this answer, and for 24 hours in a repetition with the
same `Idempotency-Key`."""
RETRIEVE_ALERT_SUBSCRIPTION = _read(
    "retrieveAlertSubscription",
    f"GET {_SUBSCRIPTION}",
    "Read an alert subscription",
    "OQ-143",
    result=alerts.AlertSubscription,
)
"""Without its secret."""
EDIT_ALERT_SUBSCRIPTION = _write(
    "editAlertSubscription",
    f"PUT {_SUBSCRIPTION}",
    "Replace an alert subscription, without its secret",
    "OQ-143",
    body=alerts.SetAlertSubscription,
    result=alerts.AlertSubscription,
)
"""Fields that are not sent get their defaults. The secret stays."""
DELETE_ALERT_SUBSCRIPTION = _write(
    "deleteAlertSubscription",
    f"DELETE {_SUBSCRIPTION}",
    "Delete an alert subscription and its deliveries",
    "OQ-143",
    result=alerts.AlertSubscriptionDeleted,
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
)
"""The new `secret` is in this answer. The previous one signs as well for `overlap_seconds`."""
TEST_ALERT_SUBSCRIPTION = _write(
    "testAlertSubscription",
    f"POST {_SUBSCRIPTION}/test",
    "Send a test alert",
    "OQ-143",
    result=alerts.AlertDelivery,
)
"""Shows in its deliveries like any other."""
RETRY_ALERT_DELIVERIES = _write(
    "retryAlertDeliveries",
    f"POST {_SUBSCRIPTION}/retry",
    "Attempt the failed deliveries of a subscription again",
    "OQ-143",
    result=alerts.AlertSubscription,
)
"""Those that failed for good and are still stored."""
LIST_ALERT_DELIVERIES = _read(
    "listAlertDeliveries",
    "GET /manage/v1/organization/alert_deliveries",
    "List alerts and whether they were delivered",
    "OQ-143",
    query=listing.ListQuery,
    result=alerts.AlertDeliveryList,
)
"""Newest first, with the last error of each."""
