"""The way of the bytes: nothing is taken from the environment, and nothing is left open."""

import asyncio
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.wire import (
    EVENTS_HEAD,
    STREAM,
    Answer,
    Upstream,
    chunked,
    cut_answer,
    json_answer,
    raw_answer,
    reset_answer,
    running_upstream,
    stalled_answer,
    whole,
)
from tests.support import seeds
from tests.support.certificates import make_certificates
from tests.support.gateway import TIMEOUT_SECONDS
from tollhouse.backends.errors import (
    ConnectionBroken,
    NotConnected,
    NotHttp,
    TransportError,
    UpstreamBodyTooLarge,
)
from tollhouse.backends.transport import Response, Transport

REPOSITORY = Path(__file__).parents[2]
FAULTS = int(os.environ.get("TOLLHOUSE_FAULTS", "200"))


async def sent(
    transport: Transport,
    url: str,
    body: bytes = b"{}",
    *,
    connect_seconds: float = TIMEOUT_SECONDS,
) -> Response:
    return await transport.send(
        "POST",
        url,
        headers={"authorization": "Bearer x"},
        body=body,
        connect_seconds=connect_seconds,
    )


def sockets() -> int:
    """How many this process has open."""
    return sum(link.is_socket() for link in Path("/proc/self/fd").iterdir())


async def until_sockets(count: int) -> None:
    """Closing takes a few turns of the loop."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while sockets() > count:  # noqa: ASYNC110 - the kernel has no event for it
            await asyncio.sleep(0)


async def test_a_body_is_read_up_to_its_bound(transport: Transport, upstream: Upstream) -> None:
    upstream.answers(raw_answer(whole(b"x" * 1_000)))

    exact = await sent(transport, upstream.url)
    assert await exact.read(1_000) == b"x" * 1_000
    exact.close()
    over = await sent(transport, upstream.url)
    with pytest.raises(UpstreamBodyTooLarge):
        await over.read(999)
    over.close()


async def test_what_was_set_as_a_cookie_is_not_sent_back(
    transport: Transport, upstream: Upstream
) -> None:
    upstream.answers(json_answer({}, headers="set-cookie: tenant=1; Path=/\r\n"))

    for _ in range(2):
        (await sent(transport, upstream.url)).close()

    assert "cookie" not in upstream.received[1].headers


async def test_each_failure_on_the_way_has_its_class(
    transport: Transport, upstream: Upstream
) -> None:
    upstream.answers(cut_answer(), raw_answer(b"\x16\x03\x01\x00\xa5\r\n\r\n"), json_answer({}))

    with pytest.raises(ConnectionBroken):
        await sent(transport, upstream.url)
    with pytest.raises(NotHttp):
        await sent(transport, upstream.url)
    with pytest.raises(NotConnected):
        # A server that does not understand the greeting waits for the rest of it.
        await sent(transport, upstream.url.replace("http:", "https:"), connect_seconds=0.05)
    with pytest.raises(NotConnected):
        await sent(transport, "http://no-such-host.invalid/v1")
    await upstream.stop()
    with pytest.raises(NotConnected):
        await sent(transport, upstream.url)


async def test_failures_carry_nothing_of_the_request(
    transport: Transport, upstream: Upstream
) -> None:
    upstream.answers(cut_answer())

    with pytest.raises(TransportError) as caught:
        await sent(transport, upstream.url)

    assert caught.value.args == ()
    assert caught.value.__suppress_context__


ONE_CALL = """
import asyncio, sys
from tollhouse.backends.transport import Transport
from tollhouse.backends.errors import TransportError

async def main():
    transport = Transport()
    try:
        response = await transport.send(
            "POST", sys.argv[1], headers={}, body=b"", connect_seconds=60.0
        )
        print(response.status)
        response.close()
    except TransportError as failure:
        print(type(failure).__name__)
    await transport.close()

asyncio.run(main())
"""


async def in_an_environment(url: str, **variables: str) -> str:
    """What a process makes of a call that was started with these variables."""
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", ONE_CALL, url],
        env={"PYTHONPATH": str(REPOSITORY / "src"), **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


async def test_proxy_variables_are_not_believed(
    upstream: Upstream, other_upstream: Upstream
) -> None:
    proxy = other_upstream.url.removesuffix("/v1")
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY")

    assert await in_an_environment(upstream.url, **dict.fromkeys(names, proxy)) == "200"

    assert other_upstream.connections == 0


async def test_a_certificate_must_be_trusted(tmp_path: Path) -> None:
    """A private authority is trusted as everywhere, by OpenSSL's own variable."""
    certificates = make_certificates(tmp_path)
    async with running_upstream(certificates.server_context()) as upstream:
        stranger = await in_an_environment(upstream.url)
        trusted = await in_an_environment(upstream.url, SSL_CERT_FILE=str(certificates.authority))

    assert stranger == "NotTrusted"
    assert trusted == "200"


@pytest.mark.parametrize("body_bytes", [600_000, 20_000_000])
async def test_an_upstream_that_does_not_read_cannot_hold_a_connection(
    transport: Transport, body_bytes: int
) -> None:
    """Closing would wait until it has read what was already written."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        before = sockets()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        sending = asyncio.create_task(sent(transport, url, b"x" * body_bytes))
        listener.setblocking(False)  # noqa: FBT003 - the library's own signature
        accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
        with accepted:
            first = await asyncio.get_running_loop().sock_recv(accepted, 1)
            assert first == b"P"

            sending.cancel()

            await until_sockets(before + 1)
            with pytest.raises(asyncio.CancelledError):
                await sending


async def test_closing_ends_unfinished_answers_too(upstream: Upstream) -> None:
    upstream.answers(stalled_answer(EVENTS_HEAD + b"\r\n"))
    transport = Transport()
    response = await sent(transport, upstream.url)

    await transport.close()

    await upstream.no_connection()
    response.close()


def anything(draws: random.Random) -> Answer:
    """Some answer, whole or cut or torn, with or without noise."""
    base = draws.choice([whole(b"{}"), chunked(STREAM), b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
    piece = bytearray(base[: draws.randint(0, len(base))])
    for _ in range(draws.choice([0, 0, 1, 5])):
        piece.insert(draws.randint(0, len(piece)), draws.randrange(256))
    end = draws.choice([raw_answer, cut_answer, reset_answer, stalled_answer])
    return end(bytes(piece))


@pytest.mark.guarantee("T41")
async def test_whatever_an_upstream_does_nothing_is_left_open(upstream: Upstream) -> None:
    draws = seeds.chance()
    before = sockets()
    transport = Transport()
    upstream.answers(*[anything(draws) for _ in range(FAULTS)], json_answer({}))

    async def one() -> None:
        try:
            # Some answers never end; leaving is part of what is tried.
            async with asyncio.timeout(draws.choice([0.001, 0.01, 0.05])):
                response = await sent(transport, upstream.url)
                try:
                    await response.read(1_000_000)
                finally:
                    response.close()
        except (TimeoutError, TransportError):
            pass

    for _ in range(FAULTS // 10):
        await asyncio.gather(*(one() for _ in range(10)))

    await transport.close()
    await upstream.no_connection()
    await until_sockets(before)
