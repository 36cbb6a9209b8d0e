"""Reading a body: as many bytes as are allowed, in the time that is allowed, to its true end."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor
from typing import Any, TypeVar

from msgspec import Struct

from tollhouse.api.edge_errors import BodyTimedOut, BodyTooLarge, Disconnected
from tollhouse.contract import decoding

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
BodyT = TypeVar("BodyT", bound=Struct)

PARSED_ON_LOOP_BYTES_MAX = 256 * 1024


class Body:
    """The bytes of one request, read at most once. A disconnect is not an end."""

    def __init__(
        self, receive: Receive, *, bytes_max: int, seconds: float, is_announced: bool
    ) -> None:
        self._receive = receive
        self._bytes_max = bytes_max
        self._seconds = seconds
        self.is_finished = not is_announced
        self.has_timed_out = False

    async def read(self) -> bytes:
        """All of it, counted as it arrives."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read()
        except TimeoutError:
            self.has_timed_out = True
            raise BodyTimedOut from None

    async def _read(self) -> bytes:
        pieces: list[bytes] = []
        size_bytes = 0
        while not self.is_finished:
            piece = await self._next()
            size_bytes += len(piece)
            if size_bytes > self._bytes_max:
                raise BodyTooLarge(self._bytes_max)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def discard(self) -> None:
        """Swallow what is left, within the same bounds, so that a refusal can be read.

        Closing a connection with unread bytes resets it, and the caller would see the reset
        instead of our answer.
        """
        size_bytes = 0
        try:
            async with asyncio.timeout(self._seconds):
                while not self.is_finished and size_bytes <= self._bytes_max:
                    size_bytes += len(await self._next())
        except (TimeoutError, Disconnected):
            return

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self.is_finished = not message.get("more_body", False)
        return message.get("body", b"")


async def parse(data: bytes, type_: type[BodyT], pool: Executor) -> tuple[Any, BodyT]:
    """The parsed tree and the typed value; large bodies are parsed beside the event loop."""
    if len(data) <= PARSED_ON_LOOP_BYTES_MAX:
        return _parse(data, type_)
    return await asyncio.get_running_loop().run_in_executor(pool, _parse, data, type_)


def _parse(data: bytes, type_: type[BodyT]) -> tuple[Any, BodyT]:
    tree = decoding.screen(data)
    return tree, decoding.decode(tree, type_)
