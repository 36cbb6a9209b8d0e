"""Ranges of time that callers ask for. An empty range is valid, a reversed one is refused."""

from datetime import datetime
from typing import TypeVar

from tollhouse.base.errors import InvalidInput

_InstantT = TypeVar("_InstantT", int, datetime)


class RangeReversed(InvalidInput):
    """The range ends before it begins."""

    param = "end_time"
    template = "Invalid 'end_time': it lies before 'start_time'."


def check_range(start: _InstantT | None, end: _InstantT | None) -> None:
    """Raise `RangeReversed` if the range ends before it begins."""
    if start is not None and end is not None and end < start:
        raise RangeReversed


def range_end(start: int, end: int | None, *, now: datetime) -> int | None:
    """Return the end of a range of Unix seconds, or None if the range is empty.

    Without `end`, the present second is the last one of the range. Raises `RangeReversed`.
    """
    check_range(start, end)
    resolved = int(now.timestamp()) + 1 if end is None else end
    return resolved if resolved > start else None
