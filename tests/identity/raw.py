"""HTTP/1.1 by hand: sends what a polite client would not, and thousands of requests fast."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

Headers = Iterable[tuple[str, str]]

ANSWER_SECONDS_MAX = 120.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for header, value in self.headers if header == name]
        assert len(found) <= 1, f"{name} stands {len(found)} times"
        return found[0] if found else None


@dataclass(frozen=True)
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, method: str, path: str, headers: Headers = (), body: bytes = b"") -> None:
        """Headers go out as they are: nothing is added but Host and the length of a body."""
        lines = [f"{method} {path} HTTP/1.1", "host: gateway"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body:
            lines += [f"content-length: {len(body)}", "content-type: application/json"]
        self.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    async def answer(self, *, has_content: bool = True) -> Answer:
        """The next answer, whole."""
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status_line, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
            pairs = [line.partition(":") for line in lines]
            headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
            length = int(dict(headers).get("content-length", "0")) if has_content else 0
            body = await self.reader.readexactly(length)
        return Answer(status=int(status_line.split(" ")[1]), headers=headers, body=body)

    async def ask(self, method: str, path: str, headers: Headers = (), body: bytes = b"") -> Answer:
        self.send(method, path, headers, body)
        return await self.answer(has_content=method != "HEAD")


@asynccontextmanager
async def connected(host: str, port: int) -> AsyncGenerator[Connection]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.transport.abort()


def bearer(key: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {key}")
