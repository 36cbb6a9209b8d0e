"""Streams of a backend that speaks Anthropic's Messages: what counts as a sign of life."""

import asyncio

import msgspec
import pytest

from tests.backends.wire import EVENTS_HEAD, Connection, Upstream
from tollhouse.backends.errors import BackendTimedOut
from tollhouse.backends.messages_http import MessagesBackend
from tollhouse.backends.transport import Transport
from tollhouse.backends.types import BackendConfig, UpstreamRequest
from tollhouse.base.clock import HeldClock

ASK = UpstreamRequest(path="/messages", body=b'{"stream":true}')
HEAD = EVENTS_HEAD + b"connection: close\r\n\r\n"
PAUSE_SECONDS = 0.15
IDLE_SECONDS = 0.4


def event(kind: str, **members: object) -> bytes:
    return b"data: " + msgspec.json.encode({"type": kind, **members}) + b"\n\n"


BEGUN = event("message_start", message={})
PING = event("ping")
COMMENT = b": wait\n\n"
ENDED = event("message_delta", delta={"stop_reason": "end_turn"}) + event("message_stop")


async def read(
    upstream: Upstream, transport: Transport, clock: HeldClock, *events: bytes, **values: float
) -> bool:
    """Read a stream whose events come after a pause each; return whether it ended in time."""

    async def answer(connection: Connection) -> None:
        await connection.send(HEAD)
        for each in events:
            await connection.send(each)
            # Nothing can be awaited here: that time passes is what is tried.
            await asyncio.sleep(PAUSE_SECONDS)
        await connection.gone()

    config = BackendConfig(
        name="messages",
        replicas=(upstream.url,),
        replica_names=(upstream.name,),
        **{"idle_seconds": IDLE_SECONDS, **values},  # pyright: ignore[reportArgumentType]
    )
    upstream.answers(answer)
    try:
        async with MessagesBackend(config, transport, clock).stream(ASK) as stream:
            while await stream.next():
                pass
    except BackendTimedOut:
        return False
    return True


@pytest.mark.clock
async def test_events_without_chunks_keep_a_stream_alive(
    upstream: Upstream, transport: Transport, clock: HeldClock
) -> None:
    redacted = event("content_block_start", content_block={"type": "redacted_thinking"})

    assert await read(upstream, transport, clock, BEGUN, *[PING, redacted] * 3, ENDED)


@pytest.mark.parametrize(
    ("events", "deadline"),
    [
        ([BEGUN, *[COMMENT] * 6, ENDED], {}),
        ([BEGUN, *[PING] * 6, ENDED], {"total_seconds": 0.5}),
        ([*[PING] * 6, BEGUN, ENDED], {"first_event_seconds": 0.5}),
    ],
    ids=["comments", "all of the time", "before it begins"],
)
async def test_a_stream_still_has_its_deadlines(
    upstream: Upstream,
    transport: Transport,
    clock: HeldClock,
    events: list[bytes],
    deadline: dict[str, float],
) -> None:
    assert not await read(upstream, transport, clock, *events, **deadline)
