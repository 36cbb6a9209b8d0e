"""Metrics of the delivery of alerts."""

from tollhouse.observability.buffered_metrics import BufferedCounter
from tollhouse.observability.registry import registry

_alert_attempts = BufferedCounter(
    "tollhouse_alert_attempts_total",
    "Attempts to deliver an alert, by destination and the state of the delivery afterwards.",
    ["destination", "state"],
    registry=registry,
)


def alert_attempted(destination: str, state: str) -> None:
    """Count an attempt; `pending` afterwards means that another one follows."""
    _alert_attempts.labels(destination, state).add()
