"""The query and the headers of a page, which the reports of costs and usage share."""

from dataclasses import dataclass
from typing import TypeVar

from msgspec import UnsetType

from tollhouse.api.call import FileAnswer, OperationCall
from tollhouse.contract.costs import UNSETTLED_HEADER, CostsQuery
from tollhouse.contract.usage import CompletionsQuery, FocusQuery, UsageQuery
from tollhouse.keys.types import Admin
from tollhouse.reports import service
from tollhouse.reports.cursors import Cursors
from tollhouse.reports.focus_export import FocusExport, FocusRange
from tollhouse.reports.service import Asked, Page
from tollhouse.reports.types import CostQuery, CostReport, CostSubject, Dimension, Width
from tollhouse.storage.replica import ReportReads

WIDTHS = {"1h": Width.HOUR, "1d": Width.DAY}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReportReader:
    """Reads pages of reports and lists. `reads` has connections and a time limit of its own."""

    reads: ReportReads
    cursors: Cursors
    provider_name: str

    async def page(
        self,
        call: OperationCall[Admin, None, CostsQuery]
        | OperationCall[Admin, None, UsageQuery]
        | OperationCall[Admin, None, CompletionsQuery],
        subject: CostSubject,
    ) -> Page:
        """Return the page that a call asks for."""
        query = call.query
        asked = Asked(
            question=CostQuery(
                subject=subject,
                start=query.start_time,
                width=WIDTHS[query.bucket_width],
                only=service.filter_of(_sent(query.project_ids), _sent(query.api_key_ids)),
                grouping=frozenset(map(Dimension, _sent(query.group_by) or ())),
            ),
            end=_sent(query.end_time),
            cursor=_sent(query.page),
            buckets_max=query.limit,
        )
        return await self.reads.run(
            lambda database: service.page(
                database, self.cursors, call.organization_id, asked, now=call.now
            )
        )

    async def focus(self, call: OperationCall[Admin, None, FocusQuery]) -> FileAnswer:
        """Return the costs that a call asks for, as a file."""
        query = call.query
        asked = FocusRange(
            start=query.start_time,
            end=_sent(query.end_time),
            only=service.filter_of(_sent(query.project_ids), _sent(query.api_key_ids)),
        )
        export = FocusExport(
            self.reads.run,
            call.organization_id,
            asked,
            provider_name=self.provider_name,
            now=call.now,
        )
        rest = export.pieces()
        return FileAnswer(
            media_type="text/csv; charset=utf-8",
            name=f"focus-costs-{query.start_time}.csv",
            first=await anext(rest),
            rest=rest,
            headers=_unsettled(export.unsettled),
        )


def headers(report: CostReport) -> tuple[tuple[str, str], ...]:
    """Return the header with the number of requests that have no final cost yet."""
    return _unsettled(report.unsettled)


def _unsettled(requests: int) -> tuple[tuple[str, str], ...]:
    return ((UNSETTLED_HEADER, str(requests)),)


def _sent(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
