"""One timer for all the waits of a call: moving it costs a comparison, not a timer each time."""

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    """Rings once the instant is reached that it was last moved to, by the loop's clock."""

    __slots__ = ("_loop", "_ring", "_timer", "_timer_seconds", "_until_seconds")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._until_seconds = inf
        self._timer: asyncio.TimerHandle | None = None
        self._timer_seconds = inf

    def move(self, until_seconds: float) -> None:
        """Somebody waits from now on; a timer set for earlier looks again when it is due."""
        self._until_seconds = until_seconds
        if until_seconds < self._timer_seconds:
            self._set(until_seconds)

    def rest(self) -> None:
        """Nobody waits."""
        self._until_seconds = inf

    def cancel(self) -> None:
        """It will not ring any more."""
        self._until_seconds = self._timer_seconds = inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, until_seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_seconds = until_seconds
        self._timer = self._loop.call_at(until_seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._timer_seconds = inf
        if self._until_seconds <= self._loop.time():
            self._ring()
        elif self._until_seconds < inf:
            self._set(self._until_seconds)
