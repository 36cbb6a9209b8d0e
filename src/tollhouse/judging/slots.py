"""How much may be under way at once: of one organization, and of the worker."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tollhouse.base.ids import OrganizationId


@dataclass(slots=True)
class _Share:
    """An organization's places; forgotten when nobody uses or awaits one."""

    places: asyncio.Semaphore
    users: int = 0


class Slots:
    """One per worker. An organization that asks much waits for itself before others wait for it."""

    def __init__(self, *, worker_max: int, organization_max: int) -> None:
        self._places = asyncio.Semaphore(worker_max)
        self._organization_max = organization_max
        self._shares: dict[OrganizationId, _Share] = {}

    @asynccontextmanager
    async def one(self, organization_id: OrganizationId) -> AsyncGenerator[None]:
        """Hold a place, waiting in the order of arrival."""
        share = self._shares.get(organization_id)
        if share is None:
            share = self._shares[organization_id] = _Share(
                asyncio.Semaphore(self._organization_max)
            )
        share.users += 1
        try:
            async with share.places, self._places:
                yield
        finally:
            share.users -= 1
            if not share.users:
                del self._shares[organization_id]


class PendingEvaluations:
    """Counts the evaluations of each organization that wait or run, enforcing and monitoring."""

    def __init__(self, organization_max: int) -> None:
        self.organization_max = organization_max
        self._by_organization: Counter[OrganizationId] = Counter()

    def has_room(self, organization_id: OrganizationId) -> bool:
        """Whether one more of this organization may begin."""
        return self._by_organization.get(organization_id, 0) < self.organization_max

    def begin(self, organization_id: OrganizationId) -> None:
        """Count one more, which `end` ends. What must not be refused begins without asking."""
        self._by_organization[organization_id] += 1

    def end(self, organization_id: OrganizationId) -> None:
        """Organizations that have none are forgotten."""
        self._by_organization[organization_id] -= 1
        if not self._by_organization[organization_id]:
            del self._by_organization[organization_id]
