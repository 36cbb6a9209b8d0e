"""A receiver of webhooks on loopback: keeps what came, and answers as a test says."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        return msgspec.json.decode(self.body)


def accept(_: Received) -> bytes:
    return b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Receiver:
    port: int = 0
    answer: Callable[[Received], bytes | None] = accept
    received: list[Received] = field(default_factory=list[Received])
    accepted: list[Received] = field(default_factory=list[Received])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/alerts?team=1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = [line.split(": ", 1) for line in head.splitlines()[1:] if line]
            headers = {name.lower(): value for name, value in lines}
            body = await reader.readexactly(int(headers["content-length"]))
            message = Received(headers, body)
            self.received.append(message)
            answer = self.answer(message)
            if answer is None:
                await reader.read()
            else:
                if answer.startswith(b"HTTP/1.1 2"):
                    self.accepted.append(message)
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running_receiver(
    answer: Callable[[Received], bytes | None] = accept,
) -> AsyncGenerator[Receiver]:
    receiver = Receiver(answer=answer)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
