"""How many bytes of answers are held back at once: of a request, an organization, the worker."""

from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId
from tollhouse.inference.errors import AnswerTooLongToHold, NoRoomToHold

ORGANIZATION_SHARE = 4
"""One organization may hold this part of what the worker may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HoldingBounds:
    """In bytes."""

    request_max: int
    worker_max: int


class HeldBytes:
    """One per worker."""

    def __init__(self, bounds: HoldingBounds) -> None:
        self._bounds = bounds
        self._organization_max = bounds.worker_max // ORGANIZATION_SHARE
        self._worker_bytes = 0
        self._by_organization: dict[OrganizationId, int] = {}

    @property
    def request_max(self) -> int:
        """Of one answer."""
        return self._bounds.request_max

    @property
    def held(self) -> int:
        """Of all organizations together."""
        return self._worker_bytes

    def of(self, organization_id: OrganizationId) -> "Allowance":
        """One answer's own; whoever gets it gives it back."""
        return Allowance(self, organization_id, self._bounds.request_max)

    def take(self, organization_id: OrganizationId, size_bytes: int) -> None:
        """Refuse what would exceed the share of the organization, or what the worker has."""
        of_organization = self._by_organization.get(organization_id, 0) + size_bytes
        of_worker = self._worker_bytes + size_bytes
        if of_organization > self._organization_max or of_worker > self._bounds.worker_max:
            raise NoRoomToHold
        self._by_organization[organization_id] = of_organization
        self._worker_bytes = of_worker

    def give_back(self, organization_id: OrganizationId, size_bytes: int) -> None:
        """Organizations that hold nothing are forgotten."""
        self._worker_bytes -= size_bytes
        left = self._by_organization.pop(organization_id, 0) - size_bytes
        if left > 0:
            self._by_organization[organization_id] = left


class Allowance:
    """What one answer holds."""

    def __init__(self, shared: HeldBytes, organization_id: OrganizationId, bytes_max: int) -> None:
        self._shared = shared
        self._organization_id = organization_id
        self._bytes_max = bytes_max
        self._bytes = 0

    def take(self, size_bytes: int) -> None:
        """Hold more, or fail: what does not fit is never let through instead."""
        if self._bytes + size_bytes > self._bytes_max:
            raise AnswerTooLongToHold
        self._shared.take(self._organization_id, size_bytes)
        self._bytes += size_bytes

    def give_back(self) -> None:
        """Hold nothing any more; any number of times."""
        held, self._bytes = self._bytes, 0
        self._shared.give_back(self._organization_id, held)
