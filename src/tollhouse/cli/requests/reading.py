"""Reading of requests that match a search, over several pages."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tollhouse.activity import service
from tollhouse.activity.types import RecordGap, RecordPage, RequestRecord
from tollhouse.api import request_search
from tollhouse.api.request_search import BlockedRequests, RequestSearch
from tollhouse.base.ids import OrganizationId, ProjectKeyId, RequestId
from tollhouse.keys import service as keys
from tollhouse.storage.database import Database

SEARCHES_MAX: Final = 100
"""The most searches for one list; each reads up to ten thousand requests."""


class FoundRequests(NamedTuple):
    """A page of requests, the policies that refused them, and gaps in the records.

    `names` has the name of each key with that of its project.
    """

    page: RecordPage
    blocked: BlockedRequests
    names: Mapping[ProjectKeyId, tuple[str, str]]
    gaps: Sequence[RecordGap] = ()


async def latest(
    database: Database, organization_id: OrganizationId, search: RequestSearch, *, limit: int
) -> FoundRequests:
    """Return the latest requests that match. A page can be short, so it searches repeatedly."""
    records: list[RequestRecord] = []
    after: RequestId | None = None
    has_more = True
    for _ in range(SEARCHES_MAX):
        async with database.transaction() as tx:
            page = await request_search.page(
                tx, organization_id, search, after=after, limit=limit - len(records)
            )
        records += page.records
        after, has_more = page.last_id, page.has_more
        if not has_more or len(records) == limit:
            break
    found = RecordPage(records=tuple(records), has_more=has_more, last_id=after)
    async with database.transaction() as tx:
        gaps = await service.gaps(tx, search.only)
    return (await with_policies(database, organization_id, found))._replace(gaps=gaps)


async def with_policies(
    database: Database, organization_id: OrganizationId, page: RecordPage
) -> FoundRequests:
    """Return a page with the policies that refused its requests, and the names of their keys."""
    used = [record.api_key_id for record in page.records]
    async with database.transaction() as tx:
        blocked = await request_search.blocked(tx, organization_id, page)
        return FoundRequests(page, blocked, await keys.project_key_names(tx, organization_id, used))
