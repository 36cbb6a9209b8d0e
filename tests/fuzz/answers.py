"""The parser of backends' answers, in pieces and whole, beside aiohttp's own in Python."""

import asyncio
from dataclasses import dataclass

from aiohttp import ClientPayloadError
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParserPy

from tests.fuzz.pieces import cut
from tollhouse.backends.errors import ConnectionBroken, NotHttp
from tollhouse.backends.http1 import AnswerParser

SEEDS = (
    b"\x05HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Kind: a\r\n\r\nhello",
    b"\x00HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;n=v\r\nhe\r\n0\r\nX: t\r\n\r\n",
    b"\x20HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 503 No\r\nConnection: close\r\n\r\nbody",
    b"\x01HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    b"\x07HTTP/1.1 204 None\r\n\r\n",
)


@dataclass(frozen=True)
class Answer:
    """What a caller would be given."""

    status: int
    body: bytes


def check(data: bytes) -> None:
    """Compare the answer of all pieces with that of the whole, and with that of aiohttp."""
    whole, pieces = cut(data)
    found = _answer(pieces)

    assert found == _answer([whole]), "pieces change nothing"
    if found is not None:
        other = _of_aiohttp(whole)
        assert other is None or other == found, f"{found} is not {other}"


def _answer(pieces: list[bytes]) -> Answer | None:
    """Return the whole answer of a connection that ends after the pieces, or None."""
    parser = AnswerParser()
    try:
        for piece in pieces:
            parser.feed(piece)
            if parser.is_whole:
                break
        else:
            parser.end()
    except (NotHttp, ConnectionBroken):
        return None
    assert 200 <= parser.status <= 999
    return Answer(parser.status, parser.take())


def _of_aiohttp(data: bytes) -> Answer | None:
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_read_by_aiohttp(loop, data))
    finally:
        loop.close()


async def _read_by_aiohttp(loop: asyncio.AbstractEventLoop, data: bytes) -> Answer | None:
    """Return the first final answer, or None where aiohttp refuses."""
    parser = HttpResponseParserPy(BaseProtocol(loop), loop, 2**16, read_until_eof=True)
    try:
        messages, _, _ = parser.feed_data(data)
        parser.feed_eof()
        for head, payload in messages:
            if head.code >= 200:
                return Answer(head.code, await payload.read())
    except (ClientPayloadError, HttpProcessingError, ValueError):
        return None
    return None
