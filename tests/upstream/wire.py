"""A client that keeps every byte it gets, and how the connection ended."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.gateway import TIMEOUT_SECONDS
from tests.upstream.upstream import ScriptedUpstream

HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "Good day to you"}]}
HELLO_TOKENS = 5
STREAM: dict[str, Any] = HELLO | {"stream": True, "stream_options": {"include_usage": True}}

EITHER = pytest.mark.parametrize("body", [HELLO, STREAM], ids=["json", "stream"])


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What came. `chunks` are whole ones; `is_whole` says whether the body came to its end."""

    raw: bytes
    was_reset: bool
    status: int
    headers: dict[str, str]
    chunks: list[bytes]
    body: bytes
    is_whole: bool

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.body)

    def payloads(self) -> list[str]:
        """What stands behind `data:`."""
        lines = self.body.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(payload) for payload in self.payloads() if payload != "[DONE]"]

    def deltas(self, choice: int = 0) -> list[dict[str, Any]]:
        choices = [choice for record in self.records() for choice in record["choices"]]
        return [found["delta"] for found in choices if found["index"] == choice]

    def said(self, name: str = "content", choice: int = 0) -> str:
        return "".join(delta.get(name) or "" for delta in self.deltas(choice))


def with_script(script: dict[str, Any], body: dict[str, Any] = HELLO) -> dict[str, Any]:
    text = json.dumps({"script": script}) + "\nGood day to you"
    return body | {"messages": [{"role": "user", "content": text}]}


async def ask(
    upstream: ScriptedUpstream,
    body: dict[str, Any] | bytes = HELLO,
    *,
    path: str = "/v1/chat/completions",
    method: str = "POST",
) -> Wire:
    """Ask once and read until the connection ends."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    reader, writer = await connect(upstream)
    writer.write(request(sent, path=path, method=method, is_last=True))
    raw, was_reset = b"", False
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while piece := await reader.read(65_536):
                raw += piece
    except ConnectionResetError:
        was_reset = True
    writer.transport.abort()
    return parse(raw, was_reset=was_reset)


async def connect(
    upstream: ScriptedUpstream,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = upstream.origin.removeprefix("http://").partition(":")
    return await asyncio.open_connection(host, int(port))


def request(
    body: bytes,
    *,
    path: str = "/v1/chat/completions",
    method: str = "POST",
    is_last: bool = False,
) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        "Authorization: Bearer a-key",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if is_last else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def parse(raw: bytes, *, was_reset: bool) -> Wire:
    head, _, rest = raw.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    is_chunked = headers.get("transfer-encoding") == "chunked"
    chunks, is_whole = dechunked(rest) if is_chunked else ([rest], False)
    if "content-length" in headers:
        is_whole = len(rest) == int(headers["content-length"])
    return Wire(
        raw=raw,
        was_reset=was_reset,
        status=int(status_line.split(" ")[1]) if status_line else 0,
        headers=headers,
        chunks=chunks,
        body=b"".join(chunks),
        is_whole=is_whole,
    )


def dechunked(data: bytes) -> tuple[list[bytes], bool]:
    """The whole chunks, and whether the last one has come."""
    chunks: list[bytes] = []
    while b"\r\n" in data:
        size_text, _, data = data.partition(b"\r\n")
        size = int(size_text, 16)
        if size == 0:
            return chunks, data == b"\r\n"
        if len(data) < size + 2:
            break
        chunks.append(data[:size])
        data = data[size + 2 :]
    return chunks, False
