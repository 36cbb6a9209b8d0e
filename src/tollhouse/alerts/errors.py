"""Errors of alert subscriptions."""

from tollhouse.base.errors import GatewayError, InvalidInput, Kind


class AlertSubscriptionNotFound(GatewayError):
    """The subscription does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "alert_subscription_not_found"
    param = "alert_subscription_id"
    template = (
        "No such alert subscription in this organization. "
        "`GET /manage/v1/organization/alert_subscriptions` lists them."
    )


class AlertDestinationRefused(InvalidInput):
    """The operator does not deliver alerts to such a destination."""

    template = "Invalid '{self.param}': {self.reason}"

    def __init__(self, param: str, reason: str) -> None:
        self.param, self.reason = param, reason
        super().__init__()


class AlertWithoutSecret(GatewayError):
    """A subscription by e-mail has no signing secret to rotate."""

    kind = Kind.CONFLICT
    code = "alert_subscription_unsigned"
    should_retry = False
    param = "alert_subscription_id"
    template = "Alerts by e-mail are not signed, so that there is no secret to rotate."
