"""Parsing of filters, composition of pages, and sums of hours. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from itertools import groupby
from typing import Final
from uuid import UUID

from tollhouse.activity.types import (
    FAILED_STATUS_MIN,
    FailureCount,
    HourlyCount,
    HourlyTotal,
    HourRange,
    RecordCursor,
    RecordFilter,
    RecordPage,
    RequestOutcome,
    RequestRecord,
    StatusRange,
)
from tollhouse.base.ids import RequestId, day_of, first_uuid_at
from tollhouse.base.ranges import check_range

HOUR_SECONDS: Final = 3_600
NEWEST: Final = RecordCursor(request_id=UUID(int=2**128 - 1), day=date.max)
OLDEST: Final = RecordCursor(request_id=UUID(int=0), day=date.min)
_UNKNOWN_MODEL: Final = frozenset({400, 404})
_SERVER_STATUS_MIN: Final = 500
_NOT_IMPLEMENTED: Final = 501
"""The caller asked for something that the model does not have."""
_REFUSING_CODES: Final = frozenset({"policy_violation", "policy_not_evaluable"})
"""Those that an answer may end with after status 200."""
_REFUSING_STATUSES: Final = frozenset({402, 403, 429})


def statuses(text: str) -> StatusRange:
    """Parse a status such as `503`, or a class of statuses such as `5xx`."""
    if text.endswith("xx"):
        lowest = int(text[0]) * 100
        return StatusRange(lowest=lowest, highest=lowest + 99)
    return StatusRange(lowest=int(text), highest=int(text))


# Each answer is counted by it: few pairs occur, and finding one again costs less than the rule.
@cache
def outcome(status: int, error_code: str | None) -> RequestOutcome:
    """Return how a request ended. An answer that began and then failed keeps status 200.

    The filter of `activity.search` is the same rule in SQL.
    """
    if error_code in _REFUSING_CODES or status in _REFUSING_STATUSES:
        return RequestOutcome.REFUSED
    if status < FAILED_STATUS_MIN:
        return RequestOutcome.SUCCEEDED if error_code is None else RequestOutcome.FAILED
    if status < _SERVER_STATUS_MIN or status == _NOT_IMPLEMENTED:
        return RequestOutcome.CLIENT_ERROR
    return RequestOutcome.FAILED


def cursor(after: RequestId | None) -> RecordCursor:
    """Return the start of the page after a request. An ID without a day starts at the newest."""
    day = None if after is None else day_of(after)
    return NEWEST if after is None or day is None else RecordCursor(request_id=after, day=day)


def bounds(before: RecordCursor, only: RecordFilter) -> tuple[RecordCursor, RecordCursor]:
    """Return where a search starts and where it ends, oldest request included.

    The ID of a request tells when it began, so that a range of time is a range of IDs. Raises
    `RangeReversed`.
    """
    check_range(only.start, only.end)
    newest, oldest = before, OLDEST
    if only.end is not None and (end := first_uuid_at(only.end)) < before.request_id:
        newest = RecordCursor(request_id=end, day=only.end.date())
    if only.start is not None:
        oldest = RecordCursor(request_id=first_uuid_at(only.start), day=only.start.date())
    return newest, oldest


def known_model(record: RequestRecord) -> str | None:
    """Return the model, or None after 400 and 404, where it may be any text of the caller."""
    return None if record.status in _UNKNOWN_MODEL else record.model


def page(examined: Sequence[tuple[RequestRecord, bool]], *, limit: int, is_cut: bool) -> RecordPage:
    """Return a page of the requests that a search returned and that its filter matches.

    Each request comes with whether the filter matches it. `is_cut` means that the search stopped at
    the last one because it reached its bound.
    """
    wanted = [record for record, is_wanted in examined if is_wanted]
    if len(wanted) > limit:
        shown = tuple(wanted[:limit])
        return RecordPage(records=shown, has_more=True, last_id=shown[-1].request_id)
    last_id = examined[-1][0].request_id if examined else None
    return RecordPage(records=tuple(wanted), has_more=is_cut, last_id=last_id)


def hours(start: int, end: int) -> HourRange:
    """Return the whole hours that contain a range of seconds."""
    return HourRange(start=start - start % HOUR_SECONDS, end=end + -end % HOUR_SECONDS)


def tallies(counted: Iterable[HourlyCount]) -> list[HourlyTotal]:
    """Return one total per hour and group. `counted` must be sorted by hour and group."""
    return [
        _tally(hour, group, list(parts))
        for (hour, group), parts in groupby(counted, lambda one: (one.hour, one.group))
    ]


def _tally(hour: int, group: str | None, parts: Sequence[HourlyCount]) -> HourlyTotal:
    return HourlyTotal(
        hour=hour,
        group=group,
        requests=sum(part.requests for part in parts),
        failed=_count(parts, RequestOutcome.FAILED),
        refused=_count(parts, RequestOutcome.REFUSED),
        client_errors=_count(parts, RequestOutcome.CLIENT_ERROR),
        failures=tuple(
            FailureCount(status=part.status, error_code=part.error_code, requests=part.requests)
            for part in parts
            if part.status >= FAILED_STATUS_MIN
        ),
        input_tokens=sum(part.input_tokens for part in parts),
        cached_input_tokens=sum(part.cached_input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        total_ms=sum(part.total_ms for part in parts),
        latency_counts=tuple(map(sum, zip(*(part.latency_counts for part in parts), strict=True))),
    )


def _count(parts: Iterable[HourlyCount], wanted: RequestOutcome) -> int:
    return sum(part.requests for part in parts if outcome(part.status, part.error_code) is wanted)
