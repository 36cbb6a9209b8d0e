"""A client without opinions: it sends the bytes of a case and reports what came back."""

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any

QUIET_SECONDS = 0.2
"""After an answer, how long to wait, twice, for a second one that must not come.

Twice, because a machine that stood still finds the first wait over before it has read anything.
"""

AFTER_THE_ANSWER = b"(after the answer)"
"""In the place of a segment: go on when there is an answer."""

PAUSE_SECONDS = 0.005
"""Between two segments."""

TIMEOUT_SECONDS = 60.0
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
    address: tuple[str, int], *segments: bytes, is_half_closed: bool = False, answers: int = 1
) -> Observation:
    """Send the segments one after the other and read until the peer closes or falls silent.

    A peer that owes one of so many answers is not silent but slow.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    reader, writer = await asyncio.open_connection(*address)
    received = Received()
    sending = asyncio.create_task(_send(writer, segments, received, is_half_closed=is_half_closed))
    is_closed = await _receive(reader, received, sending, answers=answers)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.transport.abort()
    responses, leftover = parse(received.data)
    return Observation(
        responses=responses,
        is_closed=is_closed,
        leftover=leftover,
        seconds=loop.time() - began,
    )


class Received:
    """What has come back so far."""

    def __init__(self) -> None:
        self.data = b""
        self.is_answered = asyncio.Event()

    def add(self, data: bytes) -> None:
        self.data += data
        if not self.is_answered.is_set() and self.answers():
            self.is_answered.set()

    def answers(self) -> int:
        return sum(response.status >= 200 for response in parse(self.data)[0])


async def _send(
    writer: asyncio.StreamWriter,
    segments: tuple[bytes, ...],
    received: Received,
    *,
    is_half_closed: bool,
) -> None:
    with contextlib.suppress(ConnectionError):
        for segment in segments:
            if segment == AFTER_THE_ANSWER:
                await received.is_answered.wait()
                continue
            writer.write(segment)
            await writer.drain()
            # Lets the peer see the segments one by one, which is what they are for.
            await asyncio.sleep(PAUSE_SECONDS)
        if is_half_closed:
            writer.write_eof()


async def _receive(
    reader: asyncio.StreamReader, received: Received, sending: asyncio.Task[None], *, answers: int
) -> bool:
    """Read on; whether the peer has closed."""
    clock = asyncio.get_running_loop().time
    gives_up_at = clock() + TIMEOUT_SECONDS
    quiet_waits = 0
    while quiet_waits < 2 and clock() < gives_up_at:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                data = await reader.read(65_536)
        except TimeoutError:
            is_over = sending.done() and received.answers() >= max(answers, 1)
            quiet_waits = quiet_waits + 1 if is_over else 0
            continue
        except ConnectionError:
            return True
        if not data:
            return True
        quiet_waits = 0
        received.add(data)
    return False


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
