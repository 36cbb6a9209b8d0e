"""Callers who send slowly, or leave before they are answered."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from time import monotonic

import pytest

from tests.hostile.answers import long_answer
from tests.hostile.clients import Caller, open_ports, request_bytes, request_head
from tests.hostile.deployment import MEGABYTE, SERVER, SLACK_SECONDS, STEADY, Customer, Deployment
from tests.support import seeds
from tests.support.deployment import chat
from tests.support.raw_streams import CHAT, RESPONSES
from tollhouse.base.policies import Mode

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock]

SENDERS = 20
PIECE_SECONDS = 0.1
BODY = json.dumps(chat(max_tokens=8) | {"model": STEADY}).encode()
LARGE = SERVER["body_bytes_max"] - MEGABYTE
BODY_SECONDS_MAX = SERVER["body_seconds"] + SLACK_SECONDS
HEAD_SECONDS_MAX = SERVER["header_seconds"] + SLACK_SECONDS

Pieces = Callable[[str], AsyncIterator[bytes]]


async def one_byte_of_the_head_at_a_time(key: str) -> AsyncIterator[bytes]:
    for byte in request_head(CHAT, key, len(BODY)):
        yield bytes([byte])
        await asyncio.sleep(PIECE_SECONDS)


async def half_a_head(key: str) -> AsyncIterator[bytes]:
    yield request_head(CHAT, key, len(BODY))[:80]


async def one_byte_of_the_body_at_a_time(key: str) -> AsyncIterator[bytes]:
    yield request_head(CHAT, key, len(BODY))
    for byte in BODY:
        yield bytes([byte])
        await asyncio.sleep(PIECE_SECONDS)


async def half_a_body(key: str) -> AsyncIterator[bytes]:
    yield request_bytes(CHAT, key, BODY)[: -len(BODY) // 2]


async def half_of_a_large_body(key: str) -> AsyncIterator[bytes]:
    yield request_head(CHAT, key, LARGE) + b" " * (LARGE // 2)


async def one_chunk_at_a_time(key: str) -> AsyncIterator[bytes]:
    head = request_head(CHAT, key, 0)
    yield head.replace(b"content-length: 0", b"transfer-encoding: chunked")
    for byte in BODY:
        yield b"1\r\n%c\r\n" % byte
        await asyncio.sleep(PIECE_SECONDS)


SECONDS_MAX: dict[Pieces, float] = {
    half_a_head: HEAD_SECONDS_MAX,
    one_byte_of_the_head_at_a_time: HEAD_SECONDS_MAX,
    half_a_body: BODY_SECONDS_MAX,
    half_of_a_large_body: BODY_SECONDS_MAX,
    one_byte_of_the_body_at_a_time: BODY_SECONDS_MAX,
    one_chunk_at_a_time: BODY_SECONDS_MAX,
}


@pytest.mark.parametrize("pieces", seeds.partly_nightly(SECONDS_MAX, at_landings=1))
async def test_slow_senders_are_refused_in_time(
    deployment: Deployment,
    pieces: Pieces,
    record_property: Callable[[str, object], None],
) -> None:
    customer = await deployment.customer()

    async with deployment.attacked(record_property, budget_bytes=SERVER["bodies_bytes_max"]):
        ends = await asyncio.gather(
            *(send_slowly(deployment, customer.key, pieces) for _ in range(SENDERS))
        )

    record_property("slowest_seconds", max(seconds for seconds, _ in ends))
    assert max(seconds for seconds, _ in ends) <= SECONDS_MAX[pieces]
    assert {status for _, status in ends} <= {408, 429, 503}
    assert await customer.admitted() == 0


async def send_slowly(deployment: Deployment, key: str, pieces: Pieces) -> tuple[float, int | None]:
    """Send until an answer comes; return after how long it came, and its status."""
    caller = await Caller.connect(deployment.address)
    began = monotonic()

    async def send() -> None:
        async for piece in pieces(key):
            await caller.send(piece)

    sending = asyncio.create_task(send())
    await caller.read_to_end()
    sending.cancel()
    await asyncio.wait([sending])
    caller.close()
    return monotonic() - began, caller.status


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A request that its caller does not wait for."""

    after: str
    path: str = CHAT
    is_stream: bool = True
    mode: Mode | None = None

    def __str__(self) -> str:
        operation = "chat" if self.path == CHAT else "responses"
        form = "stream" if self.is_stream else "JSON"
        policy = f", {self.mode.value} policy" if self.mode else ""
        return f"{operation} {form}, {self.after}{policy}"


DEPARTURES = [
    Departure(after="connecting"),
    Departure(after="the head"),
    Departure(after="half the body"),
    *(
        Departure(after="the request", path=path, is_stream=is_stream, mode=mode)
        for path, is_stream, mode in (
            (CHAT, True, Mode.ENFORCING),
            (CHAT, False, None),
            (RESPONSES, False, Mode.ENFORCING),
        )
    ),
    *(Departure(after="the first event", path=path) for path in (CHAT, RESPONSES)),
]


@pytest.mark.parametrize("departure", seeds.partly_nightly(DEPARTURES, at_landings=1), ids=str)
async def test_callers_who_leave_pay_for_what_they_received(
    deployment: Deployment, departure: Departure, record_property: Callable[[str, object], None]
) -> None:
    customer = await deployment.customer(mode=departure.mode)

    async with deployment.attacked(record_property, budget_bytes=SERVER["bodies_bytes_max"]):
        callers = await asyncio.gather(
            *(leave(deployment, customer, departure) for _ in range(SENDERS))
        )

    await customer.assert_settled([caller.tokens for caller in callers])
    assert await deployment.is_idle()
    assert not {caller.port for caller in callers} & open_ports(deployment.port)


async def leave(deployment: Deployment, customer: Customer, departure: Departure) -> Caller:
    """Connect, come as far as the departure says, and reset the connection."""
    caller = await Caller.connect(deployment.address, departure.path)
    body = json.dumps(long_answer(departure.path, STEADY, 500, is_stream=departure.is_stream))
    request = request_bytes(departure.path, customer.key, body.encode())
    match departure.after:
        case "connecting":
            pass
        case "the head":
            await caller.send(request[: request.index(b"\r\n\r\n") + 4])
        case "half the body":
            await caller.send(request[: -len(body) // 2])
        case "the request":
            await caller.send(request)
        case _:
            await caller.send(request)
            await caller.read_tokens(1)
    caller.reset()
    return caller
