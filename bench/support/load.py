"""Load: wrk for as much as there can be, and bare connections for paced requests and streams."""

import asyncio
import json
import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.support.streams import CHUNKS

CONNECTIONS: Final = 64
REQUESTS_PER_SECOND: Final = 150
TIMEOUT_SECONDS: Final = 120.0
STARTED: Final = b"HTTP/1.1 200"
_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"

_SCRIPT: Final = """
wrk.method = "POST"
wrk.body = [==[{body}]==]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer {key}"
{headers}
done = function(summary, latency, requests)
    local e = summary.errors
    local failed = e.connect + e.read + e.write + e.status + e.timeout
    io.write(string.format('\\n{{"answered":%d,"failed":%d,"microseconds":%d}}\\n',
                           summary.requests, failed, summary.duration))
end
"""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Something that answers chat completions on loopback."""

    port: int
    key: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """Sent beside the usual ones."""

    @property
    def request(self) -> bytes:
        """One request as it goes over the wire."""
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Authorization: Bearer {self.key}\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


async def saturate(target: Target, folder: Path, *, seconds: float) -> tuple[int, float]:
    """Requests that were answered, and in how many seconds, on 64 connections without a pause."""
    script = folder / f"{target.port}.lua"
    headers = "\n".join(
        f'wrk.headers["{name}"] = [==[{value}]==]' for name, value in target.headers
    )
    text = _SCRIPT.format(body=target.body.decode(), key=target.key, headers=headers)
    script.write_text(text, encoding="utf-8")
    answered, taken_seconds = 0, 0.0
    async with asyncio.timeout(TIMEOUT_SECONDS):
        # A machine that stands still may answer nothing in so short a time: take longer then.
        while not answered:
            counted = await _wrk(target, script, seconds=seconds)
            assert counted["failed"] == 0, f"wrk counted failures: {counted}"
            answered += counted["answered"]
            taken_seconds += counted["microseconds"] / 1e6
            seconds *= 2
    return answered, taken_seconds


async def _wrk(target: Target, script: Path, *, seconds: float) -> dict[str, int]:
    program = shutil.which("wrk")
    assert program is not None, "wrk is not installed: apt-get install wrk"
    process = await asyncio.create_subprocess_exec(
        *(program, "--threads", "1", "--connections", str(CONNECTIONS)),
        *("--duration", f"{max(1, round(seconds))}s", "--timeout", f"{TIMEOUT_SECONDS:.0f}s"),
        *("--script", str(script), f"http://127.0.0.1:{target.port}/v1/chat/completions"),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    line = next(line for line in output.splitlines() if line.startswith(b"{"))
    return json.loads(line)  # noqa: TID251 - what the script above has written


async def paced_ms(
    target: Target, *, seconds: float, per_second: int = REQUESTS_PER_SECOND
) -> list[float]:
    """Milliseconds from when each request was due, sent on a beat that nothing can slow down."""
    loop = asyncio.get_running_loop()
    idle: deque[Connection] = deque()
    opened: list[Connection] = []

    async def one(due_seconds: float) -> float:
        # Without an idle one it opens one more, so that a slow answer delays no other.
        connection = _open_one(idle) or await _connected(target, opened)
        await connection.exchange(target.request)
        idle.append(connection)
        return (loop.time() - due_seconds) * 1000

    for _ in range(CONNECTIONS):
        idle.append(await _connected(target, opened))
    begun_seconds, sent = loop.time(), list[asyncio.Task[float]]()
    for number in range(round(seconds * per_second)):
        due_seconds = begun_seconds + number / per_second
        await asyncio.sleep(due_seconds - loop.time())
        sent.append(asyncio.ensure_future(one(due_seconds)))  # noqa: TID251 - all are awaited below
    taken = await asyncio.gather(*sent)
    _close(opened)
    return taken


async def stream(target: Target, *, seconds: float) -> int:
    """Chunks that arrived over 64 streams at once, in as many turns as begin in this time."""
    loop = asyncio.get_running_loop()
    opened: list[Connection] = []
    for _ in range(CONNECTIONS):
        await _connected(target, opened)
    until_seconds = loop.time() + seconds

    async def turns(connection: Connection) -> int:
        chunks = 0
        while True:
            answer = await connection.exchange(target.request)
            assert answer.count(b'"delta":') >= CHUNKS, "a stream was cut"
            chunks += CHUNKS
            if loop.time() >= until_seconds:
                return chunks

    counts = await asyncio.gather(*map(turns, opened))
    _close(opened)
    return sum(counts)


async def send_all(port: int, requests: Sequence[bytes], *, at_once: int) -> None:
    """Every request once, on so many connections; anything but 200 ends the measurement."""
    loop = asyncio.get_running_loop()
    left = deque(requests)

    async def some() -> None:
        _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        while left:
            await connection.exchange(left.popleft())
        connection.close()

    await asyncio.gather(*(some() for _ in range(at_once)))


class Connection(asyncio.Protocol):
    """One at a time: a request out, its whole answer back."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._length: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    async def exchange(self, request: bytes) -> bytes:
        """The answer with its head; anything but 200 ends the measurement."""
        answer = await self.answer(request)
        assert answer.startswith(STARTED), answer.decode()
        return answer

    async def answer(self, request: bytes) -> bytes:
        """Return the answer with its head, whatever its status."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await self._answer

    def data_received(self, data: bytes) -> None:
        """Gather until the answer is whole."""
        self._received += data
        if self._answer is None or not self._is_whole():
            return
        whole, self._received, self._length = bytes(self._received), bytearray(), None
        self._answer.set_result(whole)

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for an answer shall not wait in vain."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or EOFError("the other side has hung up"))

    @property
    def is_open(self) -> bool:
        """False once either side has closed it."""
        return not self._transport.is_closing()

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _is_whole(self) -> bool:
        if self._length is None:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return False
            self._length = _length(bytes(self._received[:end]).lower(), end)
        if self._length < 0:
            return self._received.endswith(_LAST_CHUNK)
        return len(self._received) >= self._length


def _length(head: bytes, end: int) -> int:
    """Of the whole answer; negative, if only its last chunk will tell."""
    _, found, rest = head.partition(b"\r\ncontent-length:")
    return end + len(b"\r\n\r\n") + int(rest.partition(b"\r\n")[0]) if found else -1


async def _connected(target: Target, opened: list[Connection]) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", target.port)
    opened.append(connection)
    return connection


def _open_one(idle: deque[Connection]) -> Connection | None:
    """Return the connection that was used last; a server may have closed those that rested."""
    while idle:
        if (connection := idle.pop()).is_open:
            return connection
    return None


def _close(opened: Sequence[Connection]) -> None:
    for connection in opened:
        connection.close()
