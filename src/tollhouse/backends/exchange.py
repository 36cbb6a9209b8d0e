"""One answer from its request to its end: timed, closed and counted exactly once."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

from tollhouse.backends.calling import Caller
from tollhouse.backends.deadline import Deadline
from tollhouse.backends.errors import (
    BackendBroke,
    BackendError,
    BackendNonsense,
    BackendTimedOut,
)
from tollhouse.backends.routing import Lease, Replica
from tollhouse.backends.transport import Response
from tollhouse.backends.transport_errors import BodyTooLarge, TookTooLong, TransportError
from tollhouse.backends.types import Ask
from tollhouse.observability.metrics import BackendMetrics

E = TypeVar("E", bound=BackendError)

LINGER_SECONDS = 0.05
"""How long the end of a finished answer is awaited, so that its connection can be used again."""
_ANSWERED = "answered"
_LEFT = "left"


class Exchange:
    """Whoever made one must close it; closing early cuts the connection, which stops the engine."""

    __slots__ = (
        "_began_at_seconds",
        "_caller",
        "_deadline",
        "_has_begun",
        "_lease",
        "_loop",
        "_metrics",
        "_outcome",
        "_response",
        "_tried",
    )

    def __init__(self, caller: Caller, metrics: BackendMetrics) -> None:
        self._caller = caller
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._began_at_seconds = self._loop.time()
        self._deadline = Deadline(self._give_up)
        self._tried: list[Replica] = []
        self._lease: Lease | None = None
        self._response: Response | None = None
        self._has_begun = False
        self._outcome = _LEFT

    @property
    def replica(self) -> str:
        """Which replica answers, or was the last to be asked."""
        assert self._tried, "somebody is asked before anything is waited for"
        return self._tried[-1].url

    async def open(
        self, ask: Ask, headers: Mapping[str, str], *, media_type: str, seconds: float
    ) -> None:
        """Wait for the head of an answer of this media type."""
        try:
            async with asyncio.timeout_at(self._began_at_seconds + seconds):
                self._lease, self._response = await self._caller.open(ask, headers, self._tried)
        except TimeoutError:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except BackendError as failure:
            self._outcome = failure.outcome
            raise
        if not _is_plain(self._response, media_type):
            raise self.failed(BackendNonsense(replica=self.replica))

    async def next_bytes(self, until_seconds: float) -> bytes:
        """What comes next of the body, empty at its end; `until_seconds` by the loop's clock."""
        assert self._response is not None, "an exchange is opened before it is read"
        # Bytes that have already arrived are given without waiting, however late it is.
        if self._loop.time() >= until_seconds:
            raise self.failed(BackendTimedOut(replica=self.replica))
        self._deadline.move(until_seconds)
        try:
            return await self._response.next_bytes()
        except TookTooLong:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except TransportError:
            raise self.failed(BackendBroke(replica=self.replica)) from None
        finally:
            self._deadline.rest()

    async def read(self, *, bytes_max: int, seconds: float) -> bytes:
        """The whole body, `seconds` after the exchange began at the latest."""
        assert self._response is not None, "an exchange is opened before it is read"
        self._deadline.move(self._began_at_seconds + seconds)
        try:
            return await self._response.read(bytes_max)
        except TookTooLong:
            raise self.failed(BackendTimedOut(replica=self.replica)) from None
        except BodyTooLarge:
            raise self.failed(BackendNonsense(replica=self.replica)) from None
        except TransportError:
            raise self.failed(BackendBroke(replica=self.replica)) from None

    def began(self) -> None:
        """Something of the answer was understood: the replica works."""
        assert self._lease is not None, "an exchange is opened before it is read"
        self._has_begun = True
        self._lease.answered()
        self._metrics.answer_began(self._loop.time() - self._began_at_seconds)

    def completed(self) -> None:
        """The answer is whole."""
        self._outcome = _ANSWERED

    def failed(self, failure: E) -> E:
        """Note the failure and hand it back to be raised."""
        self._outcome = failure.outcome
        if self._lease is not None and failure.blames_replica and not self._has_begun:
            self._lease.failed()
        return failure

    async def linger(self) -> None:
        """Give the end of a finished answer a moment to arrive."""
        assert self._response is not None, "an exchange is opened before it is read"
        self._deadline.move(self._loop.time() + LINGER_SECONDS)
        with suppress(TransportError):
            while await self._response.next_bytes():
                pass

    def close(self) -> None:
        """Give the connection back or cut it, make room, and count."""
        self._deadline.cancel()
        if self._response is not None:
            self._response.close()
        if self._lease is not None:
            self._lease.end()
        self._metrics.call_ended(self._outcome)

    def _give_up(self) -> None:
        if self._response is not None:
            self._response.give_up()


def _is_plain(response: Response, media_type: str) -> bool:
    """Nothing else was asked for, and a compressed body would pass any bound when it is opened."""
    coding = response.header("content-encoding")
    found = (response.header("content-type") or "").partition(";")[0].strip().lower()
    return found == media_type and coding in (None, "", "identity")
