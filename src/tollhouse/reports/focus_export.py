"""Reading the costs of a range day by day, for a file of any length in bounded memory."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tollhouse.base.ids import OrganizationId
from tollhouse.reports import focus, rules, service, store
from tollhouse.reports.errors import ExportRangeTooLong
from tollhouse.reports.focus import FocusAccount
from tollhouse.reports.types import (
    CostFilter,
    CostQuery,
    CostReport,
    CostSubject,
    Dimension,
    PageCursor,
    ReportSpan,
    Width,
)
from tollhouse.storage.database import Database

DAYS_MAX: Final = 400
ITEMS_AT_ONCE: Final = 200
_GROUPING: Final = frozenset((Dimension.PROJECT, Dimension.KEY, Dimension.LINE_ITEM))


@dataclass(frozen=True, kw_only=True, slots=True)
class FocusRange:
    """The range and the filter of an export. Without `end`, it ends now."""

    start: int
    end: int | None
    only: CostFilter


_Day = tuple[CostReport, FocusAccount]
ReadDay = Callable[[Callable[[Database], Awaitable[_Day]]], Awaitable[_Day]]


class FocusExport:
    """One export of an organization's costs. Raises `ExportRangeTooLong`.

    `read` runs a query on a database. After the first piece, `unsettled` is the number of requests
    of the range that have no final cost yet.
    """

    def __init__(
        self,
        read: ReadDay,
        organization_id: OrganizationId,
        asked: FocusRange,
        *,
        provider_name: str,
        now: datetime,
    ) -> None:
        self._read = read
        self._organization_id = organization_id
        self._provider_name = provider_name
        self._question = CostQuery(
            subject=CostSubject.COSTS,
            start=asked.start,
            width=Width.DAY,
            only=asked.only,
            grouping=_GROUPING,
        )
        self._first = service.first_place(self._question, asked.end, now=now)
        if self._first and self._first.end - self._first.bucket > DAYS_MAX * Width.DAY:
            raise ExportRangeTooLong(days_max=DAYS_MAX)
        self.unsettled = 0

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the file in pieces, each day from a snapshot of its own. The first has the header.

        No connection is held while a piece is sent.
        """
        text, place = focus.header(), self._first
        if place is None:
            yield text.encode()
        while place is not None:
            report, account = await self._day(place)
            self.unsettled = report.unsettled
            (day,) = report.buckets
            whole = ReportSpan(start=self._question.start, end=place.end)
            span = rules.inside(day.span, whole)
            for start in range(0, max(1, len(day.used)), ITEMS_AT_ONCE):
                text += focus.lines(account, span, day.used[start : start + ITEMS_AT_ONCE])
                if text:
                    yield text.encode()
                text = ""
            bucket = report.next_start
            place = None if bucket is None else PageCursor(bucket=bucket, end=place.end)

    async def _day(self, place: PageCursor) -> _Day:
        async def read(database: Database) -> _Day:
            organization_id = self._organization_id
            async with database.transaction() as tx:
                report = await service.read(
                    tx, organization_id, self._question, place, buckets_max=1
                )
                groups = [used.group for used in report.buckets[0].used]
                name, names = await store.names(
                    tx,
                    organization_id,
                    {group.project_id for group in groups if group.project_id is not None},
                    {group.api_key_id for group in groups if group.api_key_id is not None},
                )
            account = FocusAccount(
                organization_id=organization_id,
                organization_name=name,
                provider_name=self._provider_name,
                names=names,
            )
            return report, account

        return await self._read(read)
