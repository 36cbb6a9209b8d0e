"""Metrics of the continuous verification, as each worker reads them from the database."""

from tollhouse.observability.buffered_metrics import BufferedGauge
from tollhouse.observability.registry import registry

_differing_organizations = BufferedGauge(
    "tollhouse_ledger_differing_organizations",
    "Organizations with a stored number that did not follow from its entries when last verified.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_oldest_verification_seconds = BufferedGauge(
    "tollhouse_ledger_oldest_verification_seconds",
    "Age of the oldest verification among all organizations, or of one that was never verified.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
_exported_until_seconds = BufferedGauge(
    "tollhouse_exported_until_timestamp_seconds",
    "End of the newest day whose costs are exported, in Unix time; 0 before the first one.",
    multiprocess_mode="livemax",
    registry=registry,
)


def verified(*, differing_organizations: int, oldest_seconds: float) -> None:
    """Set what the continuous verification has found, and how old it is."""
    _differing_organizations.set(differing_organizations)
    _oldest_verification_seconds.set(oldest_seconds)


def exported(*, until_seconds: int) -> None:
    """Set the end of the newest day that the nightly export has written."""
    _exported_until_seconds.set(until_seconds)
