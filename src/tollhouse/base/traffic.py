"""How much traffic is allowed. Keys carry it and limits enforce it, so it is neither's alone."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficLimits:
    """Bounds on one scope; nothing means none."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
