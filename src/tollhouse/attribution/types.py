"""Types of attribution."""

from dataclasses import dataclass

from msgspec import Struct

from tollhouse.base.money import PicoUsd

OTHER = "(other)"
"""Stands for all values of a day beyond the bound."""
DELETED = "(deleted)"
"""Stands for a value that the organization deleted."""
UNRECORDED = "(unrecorded)"
"""Stands for requests that named no value, or whose value was not stored."""


class AttributionSetting(Struct, frozen=True, kw_only=True):
    """The dimensions that are stored, none by default, and for how many days.

    A dimension is `user`, `safety_identifier` or `metadata.KEY`.
    """

    dimensions: tuple[str, ...] = ()
    retention_days: int = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributedCost:
    """What the requests of one value used and cost. The cost is the ledger's."""

    value: str
    requests: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    cost_pico_usd: PicoUsd


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedValue:
    """The number of days on which a value is stored, for the audit log, without the value."""

    dimension: str
    days: int
