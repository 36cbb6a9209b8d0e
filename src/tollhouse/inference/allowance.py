"""How many bytes of answers are held back at once: of a request, an organization, the worker."""

from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId
from tollhouse.inference.errors import AnswerTooLongToHold, NoRoomToHold, TooMuchHeldBack

ORGANIZATION_SHARE = 4
"""One organization may hold this part of what the worker may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldingBounds:
    """In bytes."""

    request_max: int
    worker_max: int


class Shares:
    """So much for all organizations of a worker together, and a part of it for each."""

    def __init__(self, worker_max: int) -> None:
        self._worker_max = worker_max
        self._organization_max = max(1, worker_max // ORGANIZATION_SHARE)
        self._by_organization: dict[OrganizationId, int] = {}
        self.used = 0

    def take(self, organization_id: OrganizationId, amount: int) -> bool:
        """Whether there was room for it."""
        if self.exceeds_share(organization_id, amount) or self.used + amount > self._worker_max:
            return False
        self._by_organization[organization_id] = self._used_by(organization_id) + amount
        self.used += amount
        return True

    def exceeds_share(self, organization_id: OrganizationId, amount: int) -> bool:
        """Whether it would be too much also if nobody else used anything."""
        return self._used_by(organization_id) + amount > self._organization_max

    def _used_by(self, organization_id: OrganizationId) -> int:
        return self._by_organization.get(organization_id, 0)

    def give_back(self, organization_id: OrganizationId, amount: int) -> None:
        """Organizations that use nothing are forgotten."""
        self.used -= amount
        left = self._by_organization.pop(organization_id, 0) - amount
        if left > 0:
            self._by_organization[organization_id] = left


class HeldBytes:
    """One per worker."""

    def __init__(self, bounds: HoldingBounds) -> None:
        self._shares = Shares(bounds.worker_max)
        self.request_max = bounds.request_max

    @property
    def held(self) -> int:
        """Of all organizations together."""
        return self._shares.used

    def of(self, organization_id: OrganizationId) -> "Allowance":
        """One answer's own; whoever gets it gives it back."""
        return Allowance(self._shares, organization_id, self.request_max)


class Allowance:
    """What one answer holds."""

    def __init__(self, shares: Shares, organization_id: OrganizationId, bytes_max: int) -> None:
        self._shares = shares
        self._organization_id = organization_id
        self._bytes_max = bytes_max
        self._bytes = 0

    def take(self, size_bytes: int) -> None:
        """Hold more, or fail: what does not fit is never let through instead."""
        if self._bytes + size_bytes > self._bytes_max:
            raise AnswerTooLongToHold
        if self._shares.exceeds_share(self._organization_id, size_bytes):
            raise TooMuchHeldBack
        if not self._shares.take(self._organization_id, size_bytes):
            raise NoRoomToHold
        self._bytes += size_bytes

    def give_back(self) -> None:
        """Hold nothing any more; any number of times."""
        held, self._bytes = self._bytes, 0
        self._shares.give_back(self._organization_id, held)
