"""How much may be under way at once: of one organization, and of the worker."""

import asyncio
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
