"""Metrics of the delivery of alerts."""

from collections.abc import Iterable

from tollhouse.observability.buffered_metrics import BufferedCounter
from tollhouse.observability.registry import registry

_alert_attempts = BufferedCounter(
    "tollhouse_alert_attempts_total",
    "Attempts to deliver an alert, by destination and the state of the delivery afterwards.",
    ["destination", "state"],
    registry=registry,
)
_alerts_withheld = BufferedCounter(
    "tollhouse_alerts_withheld_total",
    "Alerts that were not sent because their organization had no attempts left in the hour.",
    registry=registry,
)


def alerts_end_as(states: Iterable[str]) -> None:
    """Show zeros for the states in which a delivery can be after an attempt."""
    _alert_attempts.show_zeros(("email", "webhook"), states)


def alert_attempted(destination: str, state: str) -> None:
    """Count an attempt; `pending` afterwards means that another one follows."""
    _alert_attempts.labels(destination, state).add()


def alerts_withheld(alerts: int) -> None:
    """Count alerts that exceed the hourly quota of their organization."""
    _alerts_withheld.add(alerts)
