"""Metrics of what the operator pays, of unsettled holds, and of the ledger's verification."""

from enum import StrEnum
from typing import Final

from tollhouse.observability.buffered_metrics import BufferedCounter, BufferedGauge
from tollhouse.observability.registry import registry

_resolutions_set_aside = BufferedCounter(
    "tollhouse_resolutions_set_aside_total",
    "Resolutions that the database refuses permanently. Their holds become unsettled.",
    registry=registry,
)
_operator_pays_pico_usd = BufferedCounter(
    "tollhouse_operator_pays_pico_usd_total",
    "Pico-dollars that the operator pays: costs above the hold, unknown costs, unjudged answers.",
    ["account"],
    registry=registry,
)
_operator_pays = BufferedCounter(
    "tollhouse_operator_pays_total",
    "Requests for which the operator pays something, by rule.",
    ["rule"],
    registry=registry,
)
_unsettled_holds = BufferedGauge(
    "tollhouse_unsettled_holds",
    "Holds whose final cost is not known yet.",
    multiprocess_mode="livemostrecent",
    registry=registry,
)
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


class OperatorAccount(StrEnum):
    """What the operator pays: a cost above its hold, an unknown cost, or an unjudged answer."""

    EXCESS = "excess"
    UNKNOWN = "unknown"
    UNJUDGED = "unjudged"


_operator_pays_of: Final = {each: _operator_pays_pico_usd.labels(each) for each in OperatorAccount}


def verified(*, differing_organizations: int, oldest_seconds: float) -> None:
    """Set what the continuous verification has found, and how old it is."""
    _differing_organizations.set(differing_organizations)
    _oldest_verification_seconds.set(oldest_seconds)


def resolution_set_aside() -> None:
    """Count a resolution that the database refuses permanently."""
    _resolutions_set_aside.add()


def operator_pays(account: OperatorAccount, amount: int) -> None:
    """Add pico-dollars that the operator pays."""
    _operator_pays_of[account].add(amount)


def operator_paid(rule: str) -> None:
    """Count one resolution under a rule of `ledger.types.OperatorPays`."""
    _operator_pays.labels(rule).add()


def unsettled(count: int) -> None:
    """Set the number of unsettled holds."""
    _unsettled_holds.set(count)
