"""Time is passed in, never taken: rules get instants as arguments, and tests hold the clock."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where the edge and the jobs read the time from."""

    def now(self) -> datetime:
        """The present instant, in UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """For measuring durations; has no relation to the wall clock."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present instant, in UTC."""
        return datetime.now(UTC)

    def monotonic_seconds(self) -> float:
        """Seconds since an arbitrary instant."""
        return time.monotonic()


class HeldClock:
    """A clock that stands still until it is moved: for trying out what happens tomorrow."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic_seconds = 0.0

    def now(self) -> datetime:
        """The instant that the clock was last moved to."""
        return self._now

    def monotonic_seconds(self) -> float:
        """Seconds that the clock was moved by so far."""
        return self._monotonic_seconds

    def advance(self, by: timedelta) -> None:
        """Move the clock forward."""
        self._now += by
        self._monotonic_seconds += by.total_seconds()


def unix_seconds(instant: datetime) -> int:
    """The wire form of a timestamp."""
    return int(instant.timestamp())
