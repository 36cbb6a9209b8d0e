"""How much of something each organization may use in a minute, counted in this process alone."""

from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX
from tollhouse.base.ids import OrganizationId

MINUTE_US: Final = 60_000_000
SECOND_US: Final = 1_000_000
ORGANIZATIONS_MAX: Final = 10_000
"""Buckets that are remembered. The one used longest ago is forgotten first, which means full."""


class OrganizationRate:
    """One token bucket for each organization. It holds one minute's worth and fills evenly.

    An amount that is larger than the whole bucket passes when the bucket is full. A bucket may
    be in debt, and then has to fill before anything passes again.
    """

    def __init__(self, clock: Clock, *, per_minute: int) -> None:
        self._clock = clock
        self.per_minute = per_minute
        self._full_at_us: dict[OrganizationId, int] = {}

    def wait_us(self, organization_id: OrganizationId, amount: int) -> int:
        """Return how long this amount has to wait; 0 if it passes now. Takes nothing."""
        needed_us = min(self._microseconds(amount), MINUTE_US)
        return max(self._missing_us(organization_id) + needed_us - MINUTE_US, 0)

    def take(self, organization_id: OrganizationId, amount: int) -> int:
        """Take this amount if it passes now. Returns as `wait_us` does."""
        wait_us = self.wait_us(organization_id, amount)
        if not wait_us:
            self.charge(organization_id, amount)
        return wait_us

    def charge(self, organization_id: OrganizationId, amount: int) -> None:
        """Take this amount also if it does not pass; a negative one is given back."""
        missing_us = self._missing_us(organization_id) + self._microseconds(amount)
        self._full_at_us.pop(organization_id, None)
        if missing_us > 0:
            self._full_at_us[organization_id] = self._now_us() + missing_us
        if len(self._full_at_us) > ORGANIZATIONS_MAX:
            del self._full_at_us[next(iter(self._full_at_us))]

    def _missing_us(self, organization_id: OrganizationId) -> int:
        return max(self._full_at_us.get(organization_id, 0) - self._now_us(), 0)

    def _microseconds(self, amount: int) -> int:
        """How long the bucket takes to fill by this amount, rounded up."""
        return -(-amount * MINUTE_US // self.per_minute)

    def _now_us(self) -> int:
        return int(self._clock.monotonic_seconds() * SECOND_US)


def retry_after_seconds(wait_us: int) -> int:
    """Round a wait up to what `Retry-After` can say."""
    return min(max(-(-wait_us // SECOND_US), 1), RETRY_AFTER_SECONDS_MAX)
