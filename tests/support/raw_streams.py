"""Streams over bare connections: many at once, and what was cut can be told from what ended."""

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from dataclasses import dataclass
from typing import Any

from tests.support.gateway import TIMEOUT_SECONDS

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
MESSAGES = "/compat/anthropic/v1/messages"
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Stream:
    """An answer whose head has come; `head` is all of it in lower case."""

    reader: StreamReader
    writer: StreamWriter
    head: str

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    async def payloads(self, patience_seconds: float = TIMEOUT_SECONDS) -> list[str]:
        """What stands behind each `data:`. Raises EOFError where the connection ended first."""
        body = bytearray()
        async with asyncio.timeout(patience_seconds):
            while (chunk := await self._chunk()) is not None:
                body += chunk
        self.writer.close()
        lines = body.decode().split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    async def whole_body(self) -> bytes:
        """Read a body that is not chunked, such as that of an error."""
        size = next(
            int(line.removeprefix("content-length:"))
            for line in self.head.splitlines()
            if line.startswith("content-length:")
        )
        return await self.reader.readexactly(size)

    async def _chunk(self) -> bytes | None:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2] if size else None


async def open_stream(
    address: tuple[str, int], key: str, path: str, body: dict[str, Any]
) -> Stream:
    """Ask, and wait for the head."""
    reader, writer = await asyncio.open_connection(*address)
    content = json.dumps(body | {"stream": True}).encode()
    writer.write(
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n".encode()
        + content
    )
    async with asyncio.timeout(TIMEOUT_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    return Stream(reader=reader, writer=writer, head=head.decode().lower())


async def idle_connection(address: tuple[str, int]) -> "asyncio.Task[bytes]":
    """One that has been served and is kept; it is over when its worker takes no more."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"OPTIONS /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")

    async def end() -> bytes:
        try:
            return await reader.read()
        finally:
            writer.close()

    return asyncio.create_task(end())
