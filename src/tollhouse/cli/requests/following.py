"""New requests, as they end."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tollhouse.activity.types import RecordPage
from tollhouse.api.request_search import RequestSearch
from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId, RequestId, first_uuid_at
from tollhouse.cli.requests.reading import FoundRequests, latest, with_policies
from tollhouse.storage.database import Database

WINDOW: Final = timedelta(minutes=15)
"""How long a request may take and still be shown when it ends: IDs tell when requests began."""
READ_MAX: Final = 500
"""The most requests that are read at once. Of a busier organization the newest are shown."""


class RequestFollower:
    """Finds the requests that ended since it last looked, each of them once."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        organization_id: OrganizationId,
        search: RequestSearch,
    ) -> None:
        self._database = database
        self._clock = clock
        self._organization_id = organization_id
        self._search = search
        self._seen: set[RequestId] = set()

    async def first(self, *, limit: int) -> FoundRequests:
        """Return the latest requests, at most `limit`. Older ones count as seen."""
        await self.following()
        found = await latest(self._database, self._organization_id, self._search, limit=limit)
        self._seen.update(record.request_id for record in found.page.records)
        return found

    async def following(self) -> FoundRequests:
        """Return the requests of the window that were not returned before, newest first."""
        start = self._clock.now() - WINDOW
        found = await latest(
            self._database, self._organization_id, self._since(start), limit=READ_MAX
        )
        new = tuple(each for each in found.page.records if each.request_id not in self._seen)
        oldest = first_uuid_at(start)
        self._seen = {known for known in self._seen if known >= oldest}
        self._seen.update(record.request_id for record in new)
        page = RecordPage(records=new, has_more=False, last_id=None)
        return await with_policies(self._database, self._organization_id, page)

    def _since(self, start: datetime) -> RequestSearch:
        only = self._search.only
        first = start if only.start is None else max(start, only.start)
        return replace(self._search, only=replace(only, start=first))
