"""Rate limits of one scope. Keys store them and `limits` enforces them."""

from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficLimits:
    """The limits of one scope. None means unlimited."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None

    def lowered(self, other: "TrafficLimits") -> "TrafficLimits":
        """Return the lower of each pair of limits."""
        return TrafficLimits(
            requests_per_minute=_lower(self.requests_per_minute, other.requests_per_minute),
            tokens_per_minute=_lower(self.tokens_per_minute, other.tokens_per_minute),
            concurrent_requests=_lower(self.concurrent_requests, other.concurrent_requests),
        )


ScopedLimits: TypeAlias = tuple[TrafficLimits, TrafficLimits, TrafficLimits]
"""The limits of the organization, the project and the key."""

UNLIMITED: Final = TrafficLimits()
UNLIMITED_EVERYWHERE: Final[ScopedLimits] = (UNLIMITED, UNLIMITED, UNLIMITED)


def _lower(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
