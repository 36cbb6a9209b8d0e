"""`python -m bench.support.streams PORT`: an upstream whose streams never change.

Written on bare protocols with all bytes made beforehand, so that it costs as little as an upstream
in Python can: 50 chunks, one write each, 10 ms apart.
"""

import asyncio
import json
import re
import sys
from typing import Final, cast

import uvloop

CHUNKS: Final = 50
CHUNK_SECONDS: Final = 0.01
PROMPT_TOKENS: Final = 12
_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_WELL: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def _framed(text: str) -> bytes:
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


def _record(number: int) -> str:
    chunk = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "upstream-name",
        "choices": [
            {
                "index": 0,
                "delta": {"content": " words"},
                "logprobs": None,
                "finish_reason": "stop" if number == CHUNKS else None,
            }
        ],
        "usage": {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": number,
            "total_tokens": PROMPT_TOKENS + number,
        },
    }
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"


_WRITES: Final = [_framed(_record(number)) for number in range(1, CHUNKS + 1)]
_WRITES[0] = _HEAD + _WRITES[0]
_WRITES[-1] += _framed("data: [DONE]\n\n") + b"0\r\n\r\n"


class Stream(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it to write to."""
        # uvloop's is none of asyncio's by name.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """A POST begins a stream once it is whole; whatever else is a question of health."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < int(length[1] if length else 0):
            return
        self._received = b""
        if head.startswith(b"POST"):
            self._write(0)
        else:
            self._transport.write(_WELL)

    def _write(self, position: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_WRITES[position])
        if position + 1 < CHUNKS:
            self._loop.call_later(CHUNK_SECONDS, self._write, position + 1)


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Stream, "127.0.0.1", port, backlog=1024)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
