"""The backend's own log against the ledger: nothing was asked unheld, every answer is entered once.

A request says `words` that no other one says, so that its prompt has a length of its own: by it
an exchange of the backend and an entry of the ledger find each other.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.ledger.invariants import assert_conserved
from tests.support import seeds
from tests.support.deployment import MESSAGES_MODEL, MODEL, Deployment, chat, model, offering
from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway
from tests.support.shared_gateway import database, database_url, org, settings
from tests.support.upstream import running_upstream
from tests.upstream.asked import ChatAsked
from tests.upstream.exchanges import RecordedExchange
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.trial.chat import prompt_tokens

__all__ = ["database", "database_url", "deployment", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

REQUESTS = int(os.environ.get("TOLLHOUSE_JOINED_REQUESTS", "80"))
AT_ONCE = 8
TOKENS = 20
BILLS_TO_THE_END = "example/draining"
TELLS_USAGE_LAST = "example/late-usage"
SPEAKS_MESSAGES = "example/messages"
MODELS = (MODEL, BILLS_TO_THE_END, TELLS_USAGE_LAST, SPEAKS_MESSAGES)
PROMPT_TOKENS = 2
"""Of the message itself and of its script, beside its words."""
SCRIPTS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"status": 500},
    {"cut": {"how": "close", "after": 7}},
)
PATHS = {
    "/v1/chat/completions": "messages",
    "/v1/responses": "input",
    "/compat/anthropic/v1/messages": "messages",
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    """Slow enough to be left in the middle."""
    async with running_upstream(tokens=TOKENS, chunk_delay_ms=2) as running:
        yield running


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    models = {
        MODEL: model(),
        BILLS_TO_THE_END: model(backend="draining", features=[]),
        TELLS_USAGE_LAST: model(backend="late", features=[]),
        SPEAKS_MESSAGES: model(backend="messages", **MESSAGES_MODEL),
    }
    offered = offering(settings, upstream.base_url, models=models)
    base = {"replicas": [upstream.base_url]}
    others = {
        "draining": base | {"stops_when_cancelled": False, "takes": ["continuous_usage_stats"]},
        "late": base,
        "messages": base | {"dialect": "anthropic"},
    }
    return msgspec.structs.replace(offered, backends=offered.backends | others)


async def send(client: httpx2.AsyncClient, chance: Random, words: int) -> bool:
    """Send a request of a random kind; return whether its caller stayed to the end."""
    path, name = chance.choice(list(PATHS)), chance.choice(MODELS)
    # Where usage comes last, a cut answer has none that could be compared.
    scripts = SCRIPTS[:-1] if name == TELLS_USAGE_LAST else SCRIPTS
    script = json.dumps({"script": chance.choice(scripts)}, separators=(",", ":"))
    body = {
        "model": name,
        PATHS[path]: [{"role": "user", "content": "\n".join([script, *["word"] * words])}],
        "stream": chance.random() < 0.7,
        "max_output_tokens" if path == "/v1/responses" else "max_tokens": 100,
    }
    stays_seconds = chance.uniform(0.002, 0.08) if chance.random() < 0.5 else 60.0
    try:
        async with asyncio.timeout(stays_seconds):
            await client.post(path, json=body)
    except TimeoutError:
        return False
    return True


def prompt_of(exchange: RecordedExchange) -> int:
    """The length of the prompt, as the backend counts it."""
    return prompt_tokens(msgspec.json.decode(exchange.body, type=ChatAsked).messages)


def output_of(exchange: RecordedExchange) -> int:
    """The output tokens that the backend has told of; each record but the first ones has one."""
    if b'"stream":true' not in exchange.body:
        return TOKENS
    records_before = 3 if exchange.path.endswith("/messages") else 1
    return min(max(exchange.events_sent - records_before, 0), TOKENS)


async def charged(deployment: Deployment) -> dict[int, list[int]]:
    """Output tokens of all that was posted, by the prompt tokens."""
    rows = await deployment.org.database.fetch_all(
        """
        SELECT input_tokens + cached_input_tokens AS prompt, array_agg(output_tokens) AS outputs
          FROM ledger_entries
         WHERE organization_id = $1 AND phase = 1 AND kind = 'post'
         GROUP BY 1
        """,
        deployment.org.organization_id,
    )
    return {row["prompt"]: row["outputs"] for row in rows}


@pytest.mark.guarantee("I4", "T3")
async def test_every_answer_of_a_backend_has_one_entry_with_its_usage(
    deployment: Deployment,
) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(words: int) -> tuple[int, bool]:
        async with room:
            return PROMPT_TOKENS + words, await send(client, seeds.chance(words), words)

    async with deployment.customer() as client:
        stayed = dict(await asyncio.gather(*map(one, range(1, REQUESTS + 1))))
    await deployment.settled(await deployment.admitted())

    entries = await charged(deployment)
    answers = {
        prompt_of(each): each for each in deployment.upstream.seen if b"status" not in each.body
    }
    assert len(deployment.upstream.seen) <= await deployment.admitted()
    assert set(entries) == set(answers)
    for prompt, exchange in answers.items():
        (output,) = entries[prompt]
        assert output == output_of(exchange) or (
            output < output_of(exchange) and not stayed[prompt]
        ), (prompt, output, exchange.shown())
    await assert_conserved(deployment.org.database)


@pytest.mark.guarantee("I4")
@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_is_asked_of_a_backend_before_its_hold_is_committed(
    deployment: Deployment, database_url: str, *, stream: bool
) -> None:
    async with deployment.customer() as client:
        async with holding(database_url, "LOCK TABLE ledger_entries IN EXCLUSIVE MODE"):
            asked = asyncio.ensure_future(
                client.post("/v1/chat/completions", json=chat(stream=stream))
            )
            await until_a_lock_is_awaited(database_url)
            assert len(deployment.upstream.seen) == 0
        assert (await asked).status_code == 200

    assert len(deployment.upstream.seen) == 1
