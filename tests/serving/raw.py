"""A client without opinions: it sends the bytes of a case and reports what came back."""

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any

QUIET_SECONDS = 0.4
"""After an answer, how long to wait for a second one that must not come."""

PAUSE_SECONDS = 0.005
"""Between two segments."""

PATIENCE_SECONDS = 15.0
"""How long to wait for anything at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One answer as it stood on the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What a case led to. `leftover` is what followed the last whole answer."""

    responses: tuple[Response, ...]
    is_closed: bool
    leftover: bytes
    seconds: float

    @property
    def statuses(self) -> tuple[int, ...]:
        return tuple(response.status for response in self.responses if response.status >= 200)


async def exchange(
    address: tuple[str, int], *segments: bytes, is_half_closed: bool = False
) -> Observation:
    """Send the segments one after the other and read until the peer closes or falls silent."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    reader, writer = await asyncio.open_connection(*address)
    sending = asyncio.create_task(_send(writer, segments, is_half_closed=is_half_closed))
    received, is_closed = await _receive(reader, sending)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.transport.abort()
    responses, leftover = parse(received)
    return Observation(
        responses=responses,
        is_closed=is_closed,
        leftover=leftover,
        seconds=loop.time() - began,
    )


async def _send(
    writer: asyncio.StreamWriter, segments: tuple[bytes, ...], *, is_half_closed: bool
) -> None:
    with contextlib.suppress(ConnectionError):
        for segment in segments:
            writer.write(segment)
            await writer.drain()
            # Lets the peer see the segments one by one, which is what they are for.
            await asyncio.sleep(PAUSE_SECONDS)
        if is_half_closed:
            writer.write_eof()


async def _receive(reader: asyncio.StreamReader, sending: asyncio.Task[None]) -> tuple[bytes, bool]:
    received = b""
    clock = asyncio.get_running_loop().time
    gives_up_at = clock() + PATIENCE_SECONDS
    while True:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                data = await reader.read(65_536)
        except TimeoutError:
            is_answered = any(response.status >= 200 for response in parse(received)[0])
            if (is_answered and sending.done()) or clock() > gives_up_at:
                return received, False
            continue
        except ConnectionError:
            return received, True
        if not data:
            return received, True
        received += data


def parse(data: bytes) -> tuple[tuple[Response, ...], bytes]:
    """Split a stream of answers, each with a length or none at all."""
    responses: list[Response] = []
    while b"\r\n\r\n" in data:
        head, rest = data.split(b"\r\n\r\n", 1)
        status_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length or not status_line.startswith("HTTP/1."):
            break
        responses.append(
            Response(status=int(status_line.split(" ")[1]), headers=headers, body=rest[:length])
        )
        data = rest[length:]
    return tuple(responses), data
