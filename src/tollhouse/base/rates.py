"""Rates for each organization, counted in this process alone."""

from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX
from tollhouse.base.ids import OrganizationId

MINUTE_US: Final = 60_000_000
SECOND_US: Final = 1_000_000
ORGANIZATIONS_MAX: Final = 10_000
"""How many buckets are kept. The least recently used is dropped first, which fills it."""


class OrganizationRate:
    """One token bucket for each organization. It holds the amount of one minute.

    An amount larger than the bucket passes when the bucket is full. The bucket is then in debt,
    and nothing passes until it has filled again.
    """

    def __init__(self, clock: Clock, *, per_minute: int) -> None:
        self._clock = clock
        self.per_minute = per_minute
        self._full_at_us: dict[OrganizationId, int] = {}

    def wait_us(self, organization_id: OrganizationId, amount: int) -> int:
        """Return how long this amount has to wait; 0 if it passes now. Charges nothing."""
        needed_us = min(self._microseconds(amount), MINUTE_US)
        return max(self._missing_us(organization_id) + needed_us - MINUTE_US, 0)

    def acquire(self, organization_id: OrganizationId, amount: int) -> int:
        """Charge this amount if it passes now. Returns what `wait_us` returned before."""
        wait_us = self.wait_us(organization_id, amount)
        if not wait_us:
            self.charge(organization_id, amount)
        return wait_us

    def charge(self, organization_id: OrganizationId, amount: int) -> None:
        """Charge this amount even if it does not pass. A negative amount is a refund."""
        missing_us = self._missing_us(organization_id) + self._microseconds(amount)
        self._full_at_us.pop(organization_id, None)
        if missing_us > 0:
            self._full_at_us[organization_id] = self._now_us() + missing_us
        if len(self._full_at_us) > ORGANIZATIONS_MAX:
            del self._full_at_us[next(iter(self._full_at_us))]

    def _missing_us(self, organization_id: OrganizationId) -> int:
        return max(self._full_at_us.get(organization_id, 0) - self._now_us(), 0)

    def _microseconds(self, amount: int) -> int:
        """Return how long the bucket takes to fill by this amount, rounded up."""
        return -(-amount * MINUTE_US // self.per_minute)

    def _now_us(self) -> int:
        return int(self._clock.monotonic_seconds() * SECOND_US)


def retry_after_seconds(wait_us: int) -> int:
    """Return a wait as whole seconds for `Retry-After`, rounded up."""
    return min(max(-(-wait_us // SECOND_US), 1), RETRY_AFTER_SECONDS_MAX)
