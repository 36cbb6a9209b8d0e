"""Records of the requests that the test upstream received, and of how their answers ended."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

KEPT_MAX: Final = 1_000
KEPT_BODY_BYTES_MAX: Final = 1024 * 1024
WAIT_SECONDS_MAX: Final = 120.0


class ExchangeOutcome(StrEnum):
    """How an exchange ended, or that it is still running."""

    UNDER_WAY = "under_way"
    COMPLETE = "complete"
    CUT = "cut"
    CALLER_LEFT = "caller_left"


class SeenRequest(Struct, frozen=True, kw_only=True):
    """One exchange in the answer of GET /seen."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    events_sent: int
    outcome: ExchangeOutcome


class Seen(Struct, frozen=True, kw_only=True):
    """Answer of GET /seen."""

    connections_open: int
    requests: list[SeenRequest]


class RecordedExchange:
    """A request and its answer. `body` is cut at a bound."""

    def __init__(
        self, *, method: str, path: str, headers: Mapping[str, str], body: bytes, number: int = 0
    ) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body[:KEPT_BODY_BYTES_MAX]
        self.events_sent = 0
        self.outcome = ExchangeOutcome.UNDER_WAY
        self._ended = asyncio.Event()
        self._stalled = asyncio.Event()
        self._released = asyncio.Event()

    async def end(self) -> ExchangeOutcome:
        """Wait until the exchange has ended."""
        await self._ended.wait()
        return self.outcome

    async def stall(self) -> None:
        """Wait until the answer has reached the place where its script makes it stall."""
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await self._stalled.wait()

    def release(self) -> None:
        """Continue a stalled answer."""
        self._released.set()

    def finish(self, outcome: ExchangeOutcome) -> None:
        """Record the outcome, unless there is one already."""
        if self.outcome is ExchangeOutcome.UNDER_WAY:
            self.outcome = outcome
            self._ended.set()

    async def stand_still(self) -> None:
        """Stall the answer until `release` is called."""
        self._stalled.set()
        await self._released.wait()

    def shown(self) -> SeenRequest:
        """Return the exchange for GET /seen."""
        return SeenRequest(
            number=self.number,
            method=self.method,
            path=self.path,
            headers=self.headers,
            body=self.body.decode(errors="replace"),
            events_sent=self.events_sent,
            outcome=self.outcome,
        )


class Journal:
    """The last exchanges, oldest first, without GET requests such as health checks."""

    def __init__(self) -> None:
        self._kept: deque[RecordedExchange] = deque(maxlen=KEPT_MAX)
        self._count = 0
        self._next = asyncio.Event()

    def __iter__(self) -> Iterator[RecordedExchange]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> RecordedExchange:
        return self._kept[index]

    def open(
        self, *, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> RecordedExchange:
        """Add a request that has arrived."""
        self._count += 1
        exchange = RecordedExchange(
            number=self._count, method=method, path=path, headers=headers, body=body
        )
        self._kept.append(exchange)
        self._next.set()
        self._next = asyncio.Event()
        return exchange

    async def arrival(self, match: str = "", *, nth: int = 1) -> RecordedExchange:
        """Wait for and return the nth request whose body contains `match`.

        Raises `TimeoutError` if it does not come: the gateway may have refused it.
        """
        wanted = match.encode()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while True:
                found = [exchange for exchange in self._kept if wanted in exchange.body]
                if len(found) >= nth:
                    return found[nth - 1]
                await self._next.wait()

    def clear(self) -> None:
        """Remove all exchanges."""
        self._kept.clear()
