"""What an application may send, and what a server makes of the rest."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.serving.raw import TIMEOUT_SECONDS
from tests.support.gateway import running_server
from tollhouse.serving.cycle import Cycle
from tollhouse.serving.server import http_server
from tollhouse.settings import ServerSettings

Send = Callable[[dict[str, Any]], Awaitable[None]]
Talk = Callable[[Send], Awaitable[None]]
FIVE = (b"content-length", b"5")


async def answered(talk: Talk, *, method: str = "GET") -> bytes:
    """All bytes that come back for one request, until the server closes."""

    async def application(_scope: object, _receive: object, send: Any) -> None:  # noqa: ANN401
        await talk(send)

    server = http_server(application, ServerSettings())
    async with asyncio.timeout(TIMEOUT_SECONDS), running_server(server) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(f"{method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = await reader.read()
        writer.close()
    return received


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(content: bytes, *, more_body: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more_body}


def said(*messages: dict[str, Any]) -> Talk:
    async def talk(send: Send) -> None:
        for message in messages:
            await send(message)

    return talk


async def test_a_body_of_known_length_follows_its_head() -> None:
    received = await answered(said(start(FIVE), body(b"he", more_body=True), body(b"llo")))

    head, _, content = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\ncontent-length: 5" in head
    assert head.count(b"connection: close") == 1
    assert b"transfer-encoding" not in head
    assert content == b"hello"


async def test_a_body_without_a_length_is_sent_in_chunks() -> None:
    received = await answered(
        said(start(), body(b"he", more_body=True), body(b"", more_body=True), body(b"llo"))
    )

    head, _, content = received.partition(b"\r\n\r\n")
    assert b"\r\ntransfer-encoding: chunked" in head
    assert content == b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_some_answers_have_a_head_alone(method: str, status: int) -> None:
    received = await answered(said(start(status=status), body(b"")), method=method)

    assert received.endswith(b"\r\n\r\n")
    assert b"transfer-encoding" not in received


async def test_the_head_of_a_head_request_is_that_of_its_get() -> None:
    received = await answered(said(start(FIVE), body(b"hello")), method="HEAD")

    assert b"\r\ncontent-length: 5\r\n" in received
    assert received.endswith(b"\r\n\r\n")


async def test_an_application_may_close_by_itself() -> None:
    received = await answered(said(start((b"connection", b"close"), FIVE), body(b"hello")))

    assert received.count(b"connection: close") == 1


@pytest.mark.guarantee("T30")
@pytest.mark.parametrize("bad", [b"a\r\nx: y", b"a\nx: y", b"a\rb", b"a\0b", b"\x7f"])
@pytest.mark.parametrize("place", [0, 1])
async def test_no_header_begins_another_line(bad: bytes, place: int) -> None:
    header = (bad, b"value") if place == 0 else (b"name", bad)

    received = await answered(said(start(header, FIVE), body(b"hello")))

    assert received == b"", "nothing was sent under a head that is none"


@pytest.mark.parametrize(
    "messages",
    [
        (start(FIVE), body(b"hello there")),
        (start(FIVE), body(b"hell", more_body=True), body(b"oops")),
        (start(FIVE), body(b"hell")),
    ],
)
async def test_a_body_is_never_longer_than_its_header_says(
    messages: tuple[dict[str, Any], ...],
) -> None:
    received = await answered(said(*messages))

    assert len(received.partition(b"\r\n\r\n")[2]) < 5


@pytest.mark.parametrize(
    "messages",
    [(start(FIVE), start(FIVE)), (start(FIVE), body(b"hello"), body(b"again"))],
)
async def test_one_answer_for_one_request(messages: tuple[dict[str, Any], ...]) -> None:
    """A head is sent with its body: none, if the application fails before that."""
    received = await answered(said(*messages))

    assert received.count(b"HTTP/1.1") == messages.count(body(b"hello"))
    assert b"again" not in received


async def test_a_body_before_its_head_is_a_failure_of_ours() -> None:
    assert (await answered(said(body(b"hello")))).startswith(b"HTTP/1.1 500 ")


async def test_a_request_does_not_refer_to_itself() -> None:
    """Memory of a request is then free at its end, and not when the collector runs next."""
    found: list[object] = []

    async def talk(send: Any) -> None:  # noqa: ANN401 - a method of the cycle
        await said(start(FIVE), body(b"hello"))(send)
        found.append(send.__self__.scope)

    await answered(talk)

    (scope,) = found
    assert [type(held) for held in gc.get_referents(*_held_by(scope)) if _is_cycle(held)] == []


def _held_by(scope: Any) -> list[object]:  # noqa: ANN401 - one of ASGI's
    return [scope, *scope.values(), *scope["extensions"].values()]


def _is_cycle(held: object) -> bool:
    return isinstance(held, Cycle)
