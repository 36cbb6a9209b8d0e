"""Reading a body: as many bytes as are allowed, in the time that is allowed, to its true end."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from tollhouse.api.edge_errors import BodyTimedOut, BodyTooLarge, Disconnected
from tollhouse.contract.json_scan import Document

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

ABORT = "tollhouse.abort"
"""The extension of ASGI by which an application cuts a connection that nobody reads."""

FIRST_BYTE_SECONDS_MAX: Final = 1.0
"""An operation without a body waits this long for the end of one that was announced."""


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
        self.size_bytes = 0

    async def read(self, received: Callable[[int], None]) -> Document:
        """Return all of it. `received` is told after each piece how many bytes there are."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._read(received)
        except TimeoutError:
            self.has_timed_out = True
            raise BodyTimedOut from None

    async def _read(self, received: Callable[[int], None]) -> Document:
        data: Document = b""
        while not self.is_finished:
            piece = await self._next()
            self.size_bytes += len(piece)
            if self.size_bytes > self._bytes_max:
                raise BodyTooLarge(self._bytes_max)
            received(self.size_bytes)
            if not data:
                data = piece
            elif isinstance(data, bytearray):
                data += piece
            else:
                # Grows in place, so that no byte is held twice.
                data = bytearray(data) + piece
        return data

    async def has_content(self) -> bool:
        """Wait for the first byte of content, or for the end without any."""
        try:
            async with asyncio.timeout(min(self._seconds, FIRST_BYTE_SECONDS_MAX)):
                while not self.is_finished:
                    if await self._next():
                        return True
        except TimeoutError:
            self.has_timed_out = True
            raise BodyTimedOut from None
        return False

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
