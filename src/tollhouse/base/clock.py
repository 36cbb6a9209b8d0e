"""Clocks. Rules get instants as arguments; only the edge and jobs read a clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of the present time."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """Return seconds since an arbitrary instant, to measure durations."""
        ...


class SystemClock:
    """The machine's clock."""

    monotonic_seconds = staticmethod(time.monotonic)

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return datetime.now(UTC)


class DatabaseClock:
    """The database's time, extrapolated by the monotonic clock of the machine.

    All workers of a database agree on it, even if their machines' clocks differ. It is the
    machine's time until `correct` is first called.
    """

    def __init__(self, machine: Clock | None = None) -> None:
        machine = machine or SystemClock()
        self.monotonic_seconds: Callable[[], float] = machine.monotonic_seconds
        self._set_to(machine.now())

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return self._instant + timedelta(seconds=self.monotonic_seconds() - self._seconds)

    def correct(self, database_now: datetime, *, asked_seconds: float) -> None:
        """Adopt the database's time, which was queried at this monotonic instant.

        The database may have read its clock at any moment since then. The clock moves only as far
        as needed to agree with one of them, so that a slow answer never sets it back.
        """
        taken = timedelta(seconds=self.monotonic_seconds() - asked_seconds)
        self._set_to(min(max(self.now(), database_now), database_now + taken))

    def _set_to(self, instant: datetime) -> None:
        self._instant = instant
        self._seconds = self.monotonic_seconds()


class HeldClock:
    """A clock that stands still until it is advanced, for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic_seconds = 0.0

    def now(self) -> datetime:
        """Return the instant that the clock was last moved to."""
        return self._now

    def monotonic_seconds(self) -> float:
        """Return the seconds that the clock has been advanced by."""
        return self._monotonic_seconds

    def advance(self, by: timedelta) -> None:
        """Move the clock forward."""
        self._now += by
        self._monotonic_seconds += by.total_seconds()


def unix_seconds(instant: datetime) -> int:
    """Return an instant as whole seconds of Unix time, its form on the wire."""
    return int(instant.timestamp())
