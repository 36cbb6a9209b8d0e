"""Verbs of reports: understand the question, and read one page of its answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.clock import unix_seconds
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, parse_uuid
from tollhouse.reports import rules, store
from tollhouse.reports.cursors import Cursors
from tollhouse.reports.errors import (
    DetailIsGone,
    EmptyRange,
    InvalidCursor,
    KeyNotFound,
    ProjectNotFound,
)
from tollhouse.reports.types import Filter, Pieces, Place, Question, Report, Span, Used
from tollhouse.storage.database import Database, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One page as a caller asks for it."""

    question: Question
    end: int | None
    cursor: str | None
    buckets_max: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A report's page and the cursor of the next one."""

    report: Report
    next_cursor: str | None


def filter_of(project_ids: Iterable[str] | None, api_key_ids: Iterable[str] | None) -> Filter:
    """A filter from the caller's texts; what cannot be an ID is answered like an unknown one."""
    return Filter(
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
    """Read the page that the cursor leads to, or the first one."""
    question = asked.question
    place = _place(cursors, organization_id, asked, now=now)
    async with database.transaction() as tx:
        report = await read(tx, organization_id, question, place, buckets_max=asked.buckets_max)
        if report.next_start is None:
            return Page(report=report, next_cursor=None)
        master_id = await cursors.writing_id(tx)
    next_place = Place(bucket=report.next_start, end=place.end)
    cursor = cursors.write(organization_id, question, next_place, master_id=master_id)
    return Page(report=report, next_cursor=cursor)


def first_place(question: Question, end: int | None, *, now: datetime) -> Place:
    """The beginning. Without an end the present second is the last one that counts."""
    resolved = unix_seconds(now) + 1 if end is None else end
    if resolved <= question.start:
        raise EmptyRange
    return Place(bucket=rules.first_bucket(question.start, question.width), end=resolved)


async def read(
    tx: Transaction,
    organization_id: OrganizationId,
    question: Question,
    place: Place,
    *,
    buckets_max: int,
) -> Report:
    """Buckets from a place on, all seen at one instant; begins the transaction's statements."""
    await store.hold_still(tx)
    await _refuse_strangers(tx, organization_id, question.only)
    whole = Span(start=question.start, end=place.end)
    await _refuse_lost_detail(tx, whole, rules.pieces(whole, question.width))
    page_ = rules.page_span(place, question.width, buckets_max=buckets_max)
    found = await _found(tx, organization_id, question, rules.inside(page_, whole))
    return Report(
        buckets=rules.buckets(page_, question.width, rules.merged(found)),
        next_start=page_.end if page_.end < place.end else None,
        unsettled=await store.unsettled(tx, organization_id, question, whole),
    )


def _place(
    cursors: Cursors, organization_id: OrganizationId, asked: Asked, *, now: datetime
) -> Place:
    if asked.cursor is None:
        return first_place(asked.question, asked.end, now=now)
    place = cursors.read(organization_id, asked.question, asked.cursor)
    if asked.end not in (None, place.end):
        raise InvalidCursor
    return place


async def _refuse_strangers(tx: Transaction, organization_id: OrganizationId, only: Filter) -> None:
    if only.project_ids and (
        unknown := await store.unknown_projects(tx, organization_id, only.project_ids)
    ):
        raise ProjectNotFound(unknown)
    if only.api_key_ids and (
        unknown := await store.unknown_project_keys(tx, organization_id, only.api_key_ids)
    ):
        raise KeyNotFound(unknown)


async def _refuse_lost_detail(tx: Transaction, span: Span, pieces: Pieces) -> None:
    """Asked of the whole range on every page, so that a report is refused before it begins."""
    for piece in pieces.entries:
        if await store.is_closed(tx, piece):
            raise DetailIsGone(rules.cut_parameter(span, piece))


async def _found(
    tx: Transaction, organization_id: OrganizationId, question: Question, span: Span
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
        raise ProjectNotFound([text])
    return ProjectId(parsed)


def _key_id(text: str) -> ProjectKeyId:
    parsed = parse_uuid(text)
    if parsed is None:
        raise KeyNotFound([text])
    return ProjectKeyId(parsed)
