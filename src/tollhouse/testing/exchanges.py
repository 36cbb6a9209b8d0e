"""What the upstream was sent and how each of its answers ended, for whoever asks afterwards."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

KEPT_MAX: Final = 1_000
KEPT_BODY_BYTES_MAX: Final = 1024 * 1024


class Outcome(StrEnum):
    """How an exchange ended, or that it did not yet."""

    UNDER_WAY = "under_way"
    COMPLETE = "complete"
    CUT = "cut"
    CALLER_LEFT = "caller_left"


class SeenRequest(Struct, frozen=True, kw_only=True):
    """An exchange as it is shown."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    events_sent: int
    outcome: Outcome


class Seen(Struct, frozen=True, kw_only=True):
    """Answer of GET /seen."""

    connections_open: int
    requests: list[SeenRequest]


class Exchange:
    """A request and its answer. `body` is what came, up to a bound."""

    def __init__(
        self, *, method: str, path: str, headers: Mapping[str, str], body: bytes, number: int = 0
    ) -> None:
        self.number = number
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body[:KEPT_BODY_BYTES_MAX]
        self.events_sent = 0
        self.outcome = Outcome.UNDER_WAY
        self._ended = asyncio.Event()
        self._stalled = asyncio.Event()
        self._released = asyncio.Event()

    async def end(self) -> Outcome:
        """Wait until it is over."""
        await self._ended.wait()
        return self.outcome

    async def stall(self) -> None:
        """Wait until the answer stands where its script makes it stall."""
        await self._stalled.wait()

    def release(self) -> None:
        """Let a stalled answer go on to its end."""
        self._released.set()

    def finish(self, outcome: Outcome) -> None:
        """The first that is said holds."""
        if self.outcome is Outcome.UNDER_WAY:
            self.outcome = outcome
            self._ended.set()

    async def stand_still(self) -> None:
        """Stall here."""
        self._stalled.set()
        await self._released.wait()

    def shown(self) -> SeenRequest:
        """As JSON has it."""
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
    """The last exchanges, oldest first. What was only asked, such as health, is not in it."""

    def __init__(self) -> None:
        self._kept: deque[Exchange] = deque(maxlen=KEPT_MAX)
        self._count = 0
        self._next = asyncio.Event()

    def __iter__(self) -> Iterator[Exchange]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> Exchange:
        return self._kept[index]

    def open(self, *, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Exchange:
        """Enter a request that has arrived."""
        self._count += 1
        exchange = Exchange(
            number=self._count, method=method, path=path, headers=headers, body=body
        )
        self._kept.append(exchange)
        self._next.set()
        self._next = asyncio.Event()
        return exchange

    async def arrival(self, match: str = "", *, nth: int = 1) -> Exchange:
        """The nth request whose body holds `match`, as soon as it is there."""
        wanted = match.encode()
        while True:
            found = [exchange for exchange in self._kept if wanted in exchange.body]
            if len(found) >= nth:
                return found[nth - 1]
            await self._next.wait()

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
