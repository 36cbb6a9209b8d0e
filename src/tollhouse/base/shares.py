"""A worker's memory or work, of which every organization may use a share."""

from typing import Final

from tollhouse.base.ids import OrganizationId

ORGANIZATION_SHARE: Final = 4
"""One organization may use this part of what a worker has: 1 in 4."""


class Shares:
    """So much for all organizations of a worker together, and a part of it for each."""

    def __init__(self, worker_max: int) -> None:
        self._worker_max = worker_max
        self.organization_max = max(1, worker_max // ORGANIZATION_SHARE)
        self._by_organization: dict[OrganizationId, int] = {}
        self.used = 0

    def take(self, organization_id: OrganizationId, amount: int) -> bool:
        """Whether there was room for it."""
        if self.exceeds_share(organization_id, amount) or self.used + amount > self._worker_max:
            return False
        self._by_organization[organization_id] = self.used_by(organization_id) + amount
        self.used += amount
        return True

    def exceeds_share(self, organization_id: OrganizationId, amount: int) -> bool:
        """Whether it would be too much also if nobody else used anything."""
        return self.used_by(organization_id) + amount > self.organization_max

    def used_by(self, organization_id: OrganizationId) -> int:
        """What an organization uses now."""
        return self._by_organization.get(organization_id, 0)

    def give_back(self, organization_id: OrganizationId, amount: int) -> None:
        """Organizations that use nothing are forgotten."""
        self.used -= amount
        left = self._by_organization.pop(organization_id, 0) - amount
        if left > 0:
            self._by_organization[organization_id] = left
