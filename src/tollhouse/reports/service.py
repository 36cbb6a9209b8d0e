"""Operations on reports: build a filter, and read one page."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, parse_uuid
from tollhouse.base.ranges import range_end
from tollhouse.reports import rules, store
from tollhouse.reports.cursors import Cursors
from tollhouse.reports.errors import (
    DetailIsGone,
    HoursAreGone,
    InvalidCursor,
    ReportKeyNotFound,
    ReportProjectNotFound,
)
from tollhouse.reports.types import (
    EMPTY_REPORT,
    CostFilter,
    CostQuery,
    CostReport,
    PageCursor,
    ReportSpan,
    Used,
    Width,
)
from tollhouse.storage.database import Database, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A request for one page of a report."""

    question: CostQuery
    end: int | None
    cursor: str | None
    buckets_max: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page of a report, and the cursor of the next page."""

    report: CostReport
    next_cursor: str | None


def filter_of(project_ids: Iterable[str] | None, api_key_ids: Iterable[str] | None) -> CostFilter:
    """Return a filter for these IDs; text that is no ID raises the error of an unknown ID."""
    return CostFilter(
        project_ids=None if project_ids is None else frozenset(map(_project_id, project_ids)),
        api_key_ids=None if api_key_ids is None else frozenset(map(_key_id, api_key_ids)),
    )


async def page(
    database: Database,
    cursors: Cursors,
    organization_id: OrganizationId,
    asked: Asked,
    *,
    now: datetime,
) -> Page:
    """Return the page at the cursor, or the first page without a cursor."""
    question = asked.question
    place = _place(cursors, organization_id, asked, now=now)
    if place is None:
        return Page(report=EMPTY_REPORT, next_cursor=None)
    async with database.transaction() as tx:
        report = await read(tx, organization_id, question, place, buckets_max=asked.buckets_max)
        if report.next_start is None:
            return Page(report=report, next_cursor=None)
        master_id = await cursors.writing_id(tx)
    next_place = PageCursor(bucket=report.next_start, end=place.end)
    cursor = cursors.write(organization_id, question, next_place, master_id=master_id)
    return Page(report=report, next_cursor=cursor)


def first_place(question: CostQuery, end: int | None, *, now: datetime) -> PageCursor | None:
    """Return the position of the first page, or None if the range is empty.

    Raises `RangeReversed`. Without `end`, the current second is the last one that counts.
    """
    resolved = range_end(question.start, end, now=now)
    if resolved is None:
        return None
    return PageCursor(bucket=rules.first_bucket(question.start, question.width), end=resolved)


async def read(
    tx: Transaction,
    organization_id: OrganizationId,
    question: CostQuery,
    place: PageCursor,
    *,
    buckets_max: int,
) -> CostReport:
    """Return the buckets from `place` on, read from one snapshot.

    No statement may precede it in the transaction.
    """
    await store.hold_still(tx)
    await _refuse_strangers(tx, organization_id, question.only)
    whole = ReportSpan(start=question.start, end=place.end)
    await _refuse_lost_detail(tx, whole, question)
    page_ = rules.page_span(place, question.width, buckets_max=buckets_max)
    found = await _found(tx, organization_id, question, rules.inside(page_, whole))
    unsettled = await store.unsettled(tx, organization_id, question, whole)
    return CostReport(
        buckets=rules.buckets(page_, question.width, rules.merged(found), unsettled),
        next_start=page_.end if page_.end < place.end else None,
        unsettled=sum(each.requests for each in unsettled.values()),
    )


def _place(
    cursors: Cursors, organization_id: OrganizationId, asked: Asked, *, now: datetime
) -> PageCursor | None:
    if asked.cursor is None:
        return first_place(asked.question, asked.end, now=now)
    place = cursors.read(organization_id, asked.question, asked.cursor)
    if asked.end not in (None, place.end):
        raise InvalidCursor
    return place


async def _refuse_strangers(
    tx: Transaction, organization_id: OrganizationId, only: CostFilter
) -> None:
    if only.project_ids and (
        unknown := await store.unknown_projects(tx, organization_id, only.project_ids)
    ):
        raise ReportProjectNotFound(unknown)
    if only.api_key_ids and (
        unknown := await store.unknown_project_keys(tx, organization_id, only.api_key_ids)
    ):
        raise ReportKeyNotFound(unknown)


async def _refuse_lost_detail(tx: Transaction, span: ReportSpan, question: CostQuery) -> None:
    """Raise `DetailIsGone` or `HoursAreGone` if a piece needs what its retention removed.

    Every page checks the whole range, so that a report fails on its first page.
    """
    pieces = rules.pieces(span, question.width)
    for piece in pieces.entries:
        if await store.is_closed(tx, piece):
            raise DetailIsGone(param=rules.cut_parameter(span, piece, Width.HOUR))
    for piece in pieces.hours:
        if await store.are_hours_removed(tx, piece):
            is_by_hour = question.width is Width.HOUR
            param = "bucket_width" if is_by_hour else rules.cut_parameter(span, piece, Width.DAY)
            raise HoursAreGone(param=param)


async def _found(
    tx: Transaction, organization_id: OrganizationId, question: CostQuery, span: ReportSpan
) -> list[Used]:
    pieces = rules.pieces(span, question.width)
    found: list[Used] = []
    if pieces.days is not None:
        found += await store.days(tx, organization_id, question, pieces.days)
    for piece in pieces.hours:
        found += await store.hours(tx, organization_id, question, piece)
    for piece in pieces.entries:
        found += await store.entries(tx, organization_id, question, piece)
    return found


def _project_id(text: str) -> ProjectId:
    parsed = parse_uuid(text)
    if parsed is None:
        raise ReportProjectNotFound([text])
    return ProjectId(parsed)


def _key_id(text: str) -> ProjectKeyId:
    parsed = parse_uuid(text)
    if parsed is None:
        raise ReportKeyNotFound([text])
    return ProjectKeyId(parsed)
