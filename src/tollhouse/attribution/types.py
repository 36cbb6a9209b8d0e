"""Types of attribution."""

from dataclasses import dataclass

from msgspec import Struct


class AttributionSetting(Struct, frozen=True, kw_only=True):
    """The dimensions that are stored, none by default, and for how many days.

    A dimension is `user`, `safety_identifier` or `metadata.KEY`.
    """

    dimensions: tuple[str, ...] = ()
    retention_days: int = 30


@dataclass(frozen=True, kw_only=True, slots=True)
class ErasedValue:
    """The number of days on which a value is stored, for the audit log, without the value."""

    dimension: str
    days: int
