"""Callers who leave in mid-answer pay for what was generated; never is it a silent zero."""

import asyncio
import json
import os
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import pytest_asyncio

from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MESSAGES_MODEL,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
    chat,
    model,
    offering,
)
from tests.support.judged_deployment import BODIES, CHAT, MESSAGES, RESPONSES
from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway
from tests.support.shared_gateway import database, database_url, org, settings
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "deployment", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

DISCONNECTS = int(os.environ.get("TOLLHOUSE_DISCONNECTS", "60"))
"""Over all tests here; the full run has a thousand."""
DISCONNECTS_EACH = DISCONNECTS // 6
"""Of the tests that have a part; the first one has the rest, on all endpoints."""
REQUEST_ID = re.compile(rb"x-request-id: ([0-9a-f-]{36})\r\n", re.IGNORECASE)
SAID = {
    CHAT: re.compile(rb'"content":"[^"]'),
    RESPONSES: re.compile(rb'"type":"response.output_text.delta"'),
    MESSAGES: re.compile(rb'"type":"text_delta"'),
}
"""What a piece of text has in it, in the stream of each endpoint."""
AT_ONCE = 8
TOKENS = 40
DRAINING = "example/draining"
"""Whose backend bills to the end, whoever listens."""
LATE_USAGE = "example/late-usage"
"""Whose backend tells the usage only at the end."""
PROMPT_FIRST = "example/prompt-first"
"""Whose backend tells the prompt at the beginning, and the output only at the end."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    """Slow enough to be left in the middle."""
    async with running_upstream(tokens=TOKENS, chunk_delay_ms=2) as running:
        yield running


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    base = {"replicas": [upstream.base_url]}
    offered = offering(
        settings,
        upstream.base_url,
        models={
            MODEL: model(),
            DRAINING: model(backend="draining", features=[]),
            LATE_USAGE: model(backend="late", features=[]),
            PROMPT_FIRST: model(backend="messages", **MESSAGES_MODEL),
        },
    )
    draining = base | {"stops_when_cancelled": False, "takes": ["continuous_usage_stats"]}
    messages = base | {"stops_when_cancelled": True, "dialect": "anthropic"}
    others = {"draining": draining, "late": base, "messages": messages}
    return msgspec.structs.replace(offered, backends=offered.backends | others)


async def ask(
    deployment: Deployment, body: dict[str, Any], path: str = CHAT
) -> tuple[StreamReader, StreamWriter]:
    address = urlsplit(deployment.gateway.base_url)
    assert address.hostname is not None
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n"
        f"authorization: Bearer {deployment.key.value}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    return reader, writer


async def leave(
    deployment: Deployment, body: dict[str, Any], path: str = CHAT, *, after_bytes: int
) -> bytes:
    """Ask, read so much of the answer, cut the connection, and return what was read."""
    reader, writer = await ask(deployment, body, path)
    read = b""
    while len(read) < after_bytes and (piece := await reader.read(after_bytes - len(read))):
        read += piece
    writer.transport.abort()
    return read


async def crowd(
    deployment: Deployment, body: dict[str, Any], count: int, path: str = CHAT
) -> list[bytes]:
    """So many callers, each leaving after a random number of bytes of the answer."""
    choices = seeds.chance()
    room = asyncio.Semaphore(AT_ONCE)

    async def one(after_bytes: int) -> bytes:
        async with room:
            return await leave(deployment, body, path, after_bytes=after_bytes)

    return await asyncio.gather(*(one(choices.randrange(1, 9_000)) for _ in range(count)))


def delivered(read: list[bytes], path: str) -> dict[str, int]:
    """Tokens that each caller has read, by the ID of its request; who read no ID is left out."""
    found = ((REQUEST_ID.search(each), len(SAID[path].findall(each))) for each in read)
    return {each[1].decode(): tokens for each, tokens in found if each}


async def charges(deployment: Deployment) -> list[tuple[int, int, int]]:
    """Input tokens, output tokens and cost of everything that was posted; all of it is sound."""
    await assert_conserved(deployment.org.database)
    rows = await deployment.org.database.fetch_all(
        """
        SELECT input_tokens + cached_input_tokens AS input, output_tokens, posted_pico AS cost
          FROM ledger_entries
         WHERE organization_id = $1 AND phase = 1
        """,
        deployment.org.organization_id,
    )
    return [(row["input"], row["output_tokens"], int(row["cost"])) for row in rows]


async def output_tokens(deployment: Deployment) -> dict[str, int]:
    """What was charged for, by the ID of the request."""
    rows = await deployment.org.database.fetch_all(
        """
        SELECT reservation_id::text AS id, output_tokens FROM ledger_entries
         WHERE organization_id = $1 AND phase = 1
        """,
        deployment.org.organization_id,
    )
    return {row["id"]: row["output_tokens"] for row in rows}


@pytest.mark.guarantee("T3")
@pytest.mark.parametrize("path", BODIES)
async def test_a_backend_that_stops_bills_what_it_said_last(
    deployment: Deployment, path: str
) -> None:
    count = (DISCONNECTS - 4 * DISCONNECTS_EACH) // len(BODIES)
    read = delivered(await crowd(deployment, BODIES[path](stream=True), count, path), path)

    await deployment.settled(count)
    paid = await charges(deployment)
    assert len({completion for _, completion, _ in paid}) > 1, "nobody left in the middle"
    for prompt, completion, cost in paid:
        assert prompt > 0
        assert completion <= TOKENS
        assert cost == prompt * PROMPT_PICO_USD + completion * COMPLETION_PICO_USD
    charged = await output_tokens(deployment)
    assert max(read.values()) > 0
    assert {each: tokens for each, tokens in read.items() if charged[each] < tokens} == {}


@pytest.mark.guarantee("T3")
@pytest.mark.parametrize("name", [DRAINING, LATE_USAGE, PROMPT_FIRST])
async def test_a_call_that_is_drained_is_paid_to_its_end(deployment: Deployment, name: str) -> None:
    count = DISCONNECTS_EACH
    await crowd(deployment, chat(stream=True) | {"model": name}, count)

    await deployment.settled(count)
    paid = await charges(deployment)
    assert {completion for _, completion, _ in paid} == {TOKENS}
    assert all(prompt > 0 for prompt, _, _ in paid)


@pytest.mark.guarantee("T3")
async def test_who_leaves_before_a_whole_answer_pays_for_it(deployment: Deployment) -> None:
    count = DISCONNECTS_EACH
    script = json.dumps({"script": {"cut": {"how": "stall", "after": "request"}}})
    for number in range(count):
        _, writer = await ask(deployment, chat(script))
        exchange = await deployment.upstream.seen.arrival(nth=number + 1)
        await exchange.stall()
        writer.transport.abort()
        exchange.release()

    await deployment.settled(count)
    assert {completion for _, completion, _ in await charges(deployment)} == {TOKENS}
