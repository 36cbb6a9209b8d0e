"""What a filter means, what a page shows, and how hours are added up."""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from typing import Final
from uuid import UUID

from tollhouse.activity.types import (
    FAILED_STATUS_MIN,
    Counted,
    Failures,
    Hours,
    Place,
    RecordPage,
    RequestRecord,
    Statuses,
    Tally,
)

HOUR_SECONDS: Final = 3_600
NEWEST: Final = Place(request_id=UUID(int=2**128 - 1), day=date.max)
_UNKNOWN_MODEL: Final = frozenset({400, 404})


def statuses(text: str) -> Statuses:
    """`503`, or `5xx` for its whole class."""
    if text.endswith("xx"):
        lowest = int(text[0]) * 100
        return Statuses(lowest=lowest, highest=lowest + 99)
    return Statuses(lowest=int(text), highest=int(text))


def known_model(record: RequestRecord) -> str | None:
    """The model, if it can be one of ours: a refused request names whatever its caller wrote."""
    return None if record.status in _UNKNOWN_MODEL else record.model


def page(examined: Sequence[tuple[RequestRecord, bool]], *, limit: int, is_cut: bool) -> RecordPage:
    """What is shown of the requests that a search came by, each with whether it was wanted.

    `is_cut` says that the search gave up at the last of them.
    """
    wanted = [record for record, is_wanted in examined if is_wanted]
    if len(wanted) > limit:
        shown = tuple(wanted[:limit])
        return RecordPage(records=shown, has_more=True, last_id=shown[-1].request_id)
    last_id = examined[-1][0].request_id if examined else None
    return RecordPage(records=tuple(wanted), has_more=is_cut, last_id=last_id)


def hours(start: int, end: int) -> Hours:
    """The hours that a range of seconds touches."""
    return Hours(start=start - start % HOUR_SECONDS, end=end + -end % HOUR_SECONDS)


def tallies(counted: Iterable[Counted]) -> list[Tally]:
    """One for each hour and group; what is given lies in that order."""
    return [
        _tally(hour, group, list(parts))
        for (hour, group), parts in groupby(counted, lambda one: (one.hour, one.group))
    ]


def _tally(hour: int, group: str | None, parts: Sequence[Counted]) -> Tally:
    return Tally(
        hour=hour,
        group=group,
        requests=sum(part.requests for part in parts),
        failures=tuple(
            Failures(status=part.status, error_code=part.error_code, requests=part.requests)
            for part in parts
            if part.status >= FAILED_STATUS_MIN
        ),
        input_tokens=sum(part.input_tokens for part in parts),
        cached_input_tokens=sum(part.cached_input_tokens for part in parts),
        output_tokens=sum(part.output_tokens for part in parts),
        total_ms=sum(part.total_ms for part in parts),
        latency_counts=tuple(map(sum, zip(*(part.latency_counts for part in parts), strict=True))),
    )
