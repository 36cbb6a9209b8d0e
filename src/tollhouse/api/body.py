"""Reading and parsing the bodies of requests, within bounds for each key and organization.

Small bodies are parsed on the event loop. A large body counts against its key and organization
while it is read and parsed, and is parsed in a thread. Each organization has at most one body in
these threads, so that the body of another organization waits for at most one body of each.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec import Struct

from tollhouse.api.body_quota import BodyMemory, BodyQuota, parsed_cost
from tollhouse.api.edge_errors import BodyTimedOut, BodyTooLarge, Disconnected, TooManyBodies
from tollhouse.api.parsing_turns import ParsingTurns, is_costly
from tollhouse.base.ids import OrganizationId
from tollhouse.contract import decoding
from tollhouse.contract.json_faults import Document
from tollhouse.keys.types import Caller
from tollhouse.observability import bound_metrics, metrics
from tollhouse.observability.bound_metrics import BodyBound

BodyT = TypeVar("BodyT", bound=Struct)
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Extensions = Mapping[str, Any]

ABORT: Final = "tollhouse.abort"
"""The ASGI extension by which an application closes a connection that its caller does not read."""
HAS_LEFT: Final = "tollhouse.has_left"
"""The ASGI extension that says whether the caller disconnected before the answer was complete."""
TAKE_ARRIVED_BODY: Final = "tollhouse.take_arrived_body"
"""The ASGI extension that returns the whole rest of the body at once if it has arrived, or None."""
ADMITTED: Final = "tollhouse.admitted"
"""The ASGI extension by which an application says that a request does not wait for it any more."""
FIRST_BYTE_SECONDS_MAX: Final = 1.0
"""An operation without a body waits this long for the end of one that was announced."""
ON_LOOP_BYTES_MAX: Final = 65_536
ON_LOOP_ELEMENTS_MAX: Final = 4_096
"""A body within both bounds occupies the event loop for about a millisecond. Others are large."""
_ON_LOOP_UNCOUNTED_BYTES_MAX: Final = ON_LOOP_ELEMENTS_MAX // 2
"""A body of so few bytes has at most that many elements: a bracket counts twice."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BodyBounds:
    """The size of one body, the time it may take to arrive, and how many are large at once.

    The last two fields bound the large bodies that one worker reads and parses at the same time.
    """

    bytes_max: int
    seconds: float
    per_key_max: int
    per_organization_max: int


class Body:
    """The body of one request. A disconnect before its end raises `Disconnected`.

    `charged_to` is the organization of a large body, and None for a small one.
    """

    __slots__ = (
        "_bounds",
        "_receive",
        "busy_seconds",
        "charged_to",
        "has_timed_out",
        "is_costly",
        "is_counted_large",
        "is_finished",
        "memory",
        "size_bytes",
        "take_arrived",
    )

    def __init__(
        self, receive: Receive, bounds: BodyBounds, *, is_announced: bool, extensions: Extensions
    ) -> None:
        self._receive = receive
        self._bounds = bounds
        self.take_arrived: Callable[[], bytes | None] = extensions.get(
            TAKE_ARRIVED_BODY, _nothing_arrived
        )
        self.is_finished = not is_announced
        self.has_timed_out = False
        self.is_counted_large = False
        self.size_bytes = 0
        self.memory: BodyMemory | None = None
        self.charged_to: OrganizationId | None = None
        self.is_costly = False
        self.busy_seconds = 0.0

    async def next_piece(self) -> bytes:
        """Return the next bytes, and note in `is_finished` whether they are the last ones."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self.is_finished = not message.get("more_body", False)
        return message.get("body", b"")

    async def has_content(self) -> bool:
        """Wait for the first byte, or for the end of an empty body."""
        try:
            async with asyncio.timeout(min(self._bounds.seconds, FIRST_BYTE_SECONDS_MAX)):
                while not self.is_finished:
                    if await self.next_piece():
                        return True
        except TimeoutError:
            self.has_timed_out = True
            raise BodyTimedOut from None
        return False

    async def discard(self) -> None:
        """Read and drop the rest within the bounds, so that the caller can read a refusal.

        Closing a connection with unread bytes resets it, and the caller would see the reset
        instead of the answer.
        """
        size_bytes = 0
        try:
            async with asyncio.timeout(self._bounds.seconds):
                while not self.is_finished and size_bytes <= self._bounds.bytes_max:
                    size_bytes += len(await self.next_piece())
        except (TimeoutError, Disconnected):
            return

    def release(self) -> None:
        """Stop counting the body's memory. Further calls change nothing."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory.release()


class BodyReader:
    """One per worker."""

    def __init__(self, pool: Executor, quota: BodyQuota, bounds: BodyBounds) -> None:
        self._pool = pool
        self._quota = quota
        self.bounds = bounds
        self._large_bodies: Counter[UUID] = Counter()
        self._turns = ParsingTurns()

    async def read(self, body: Body, type_: type[BodyT], caller: Caller) -> tuple[Any, BodyT]:
        """Return the parsed tree and the typed value. The caller of this releases the body."""
        body.memory = BodyMemory(self._quota, caller.organization_id)
        try:
            data = await self._receive(body, body.memory, caller)
            metrics.body_read(len(data))
            if len(data) <= _ON_LOOP_UNCOUNTED_BYTES_MAX or (
                not body.is_counted_large and decoding.elements_bound(data) <= ON_LOOP_ELEMENTS_MAX
            ):
                return _typed(data, decoding.structure(data), type_)
            self._count_large(body, caller)
            return await self._parse_in_thread(data, type_, body, body.memory)
        finally:
            if body.is_counted_large:
                self._discount_large(body, caller)

    async def _receive(self, body: Body, memory: BodyMemory, caller: Caller) -> Document:
        data: Document = b""
        if body.is_finished:
            return data
        arrived = body.take_arrived()
        if arrived is not None:
            body.is_finished = True
            self._count_piece(arrived, body, memory, caller)
            return arrived
        try:
            async with asyncio.timeout(self.bounds.seconds):
                while not body.is_finished:
                    piece = await body.next_piece()
                    self._count_piece(piece, body, memory, caller)
                    # A bytearray grows in place, so that no byte is in memory twice.
                    data = _joined(data, piece) if data else piece
        except TimeoutError:
            body.has_timed_out = True
            raise BodyTimedOut from None
        return data

    def _count_piece(self, piece: bytes, body: Body, memory: BodyMemory, caller: Caller) -> None:
        body.size_bytes += len(piece)
        if body.size_bytes > self.bounds.bytes_max:
            raise BodyTooLarge(bytes_max=self.bounds.bytes_max)
        memory.count_received(body.size_bytes)
        if body.size_bytes > ON_LOOP_BYTES_MAX:
            self._count_large(body, caller)

    async def _parse_in_thread(
        self, data: Document, type_: type[BodyT], body: Body, memory: BodyMemory
    ) -> tuple[Any, BodyT]:
        run = asyncio.get_running_loop().run_in_executor
        body.charged_to = memory.organization_id
        async with self._turns.one(memory.organization_id):
            found, cost = await run(self._pool, _measure, data)
            memory.count_parsed(cost)
            if not is_costly(size_bytes=len(data), elements=len(found)):
                return await run(self._pool, _typed, data, found, type_)
            body.is_costly = True
            async with self._turns.costly(memory.organization_id):
                return await run(self._pool, _typed, data, found, type_)

    def charge(self, body: Body, busy_seconds: float) -> None:
        """Delay the organization's next large body if this one was large.

        `busy_seconds` is the time for which this body occupied the event loop after parsing.
        """
        if body.charged_to is not None:
            body.busy_seconds += busy_seconds
            self._turns.charge(body.charged_to, body.busy_seconds, is_costly=body.is_costly)

    def _count_large(self, body: Body, caller: Caller) -> None:
        """Count the body as large, once. Raises if its key or organization sends too many."""
        if body.is_counted_large:
            return
        if self._large_bodies[caller.key_id] >= self.bounds.per_key_max:
            bound_metrics.body_refused(BodyBound.KEY_BODIES)
            raise TooManyBodies(sender="key", bodies_max=self.bounds.per_key_max)
        if self._large_bodies[caller.organization_id] >= self.bounds.per_organization_max:
            bound_metrics.body_refused(BodyBound.ORGANIZATION_BODIES)
            raise TooManyBodies(sender="organization", bodies_max=self.bounds.per_organization_max)
        self._large_bodies.update((caller.key_id, caller.organization_id))
        body.is_counted_large = True

    def _discount_large(self, body: Body, caller: Caller) -> None:
        body.is_counted_large = False
        for sender in (caller.key_id, caller.organization_id):
            self._large_bodies[sender] -= 1
            if not self._large_bodies[sender]:
                del self._large_bodies[sender]


def _nothing_arrived() -> bytes | None:
    """Replace `TAKE_ARRIVED_BODY` on servers that do not have it: the body is received."""
    return None


def _joined(data: Document, piece: bytes) -> bytearray:
    joined = data if isinstance(data, bytearray) else bytearray(data)
    joined += piece
    return joined


def _measure(data: Document) -> tuple[bytes, int]:
    """Return the structure of a body, and the memory that it will need."""
    found = decoding.structure(data)
    return found, parsed_cost(
        len(data), character_bytes=decoding.character_bytes(data), elements=len(found)
    )


def _typed(data: Document, found: bytes, type_: type[BodyT]) -> tuple[Any, BodyT]:
    tree = decoding.parse(data, found)
    return tree, decoding.decode(tree, type_)
