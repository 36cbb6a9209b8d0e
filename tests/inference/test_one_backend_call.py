"""A backend that bills without an answer is called once, also if an answer breaks off early."""

import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest
import pytest_asyncio

from tests.identity.waiting import until
from tests.support.deployment import Deployment, offering
from tests.support.judged_deployment import BODIES, CHAT, RESPONSES
from tests.support.shared_deployment import deployment
from tests.support.upstream import running_upstream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.ledger import write_offs
from tollhouse.settings import Settings

__all__ = ["deployment"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = 4
EVENTS = TOKENS + 3
"""The role, the tokens, the end and the usage, before `[DONE]`."""
POSITIONS = [*product(range(EVENTS), (False, True))]
"""After so many events, and whether half of the next one leaves as well."""
IDLE_SECONDS = 0.5
"""A stall of the backend breaks an answer off after this time."""
ERROR = {"message": "The engine failed."}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def other_upstream() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture(scope="module")
def offered(
    settings: Settings, upstream: ScriptedUpstream, other_upstream: ScriptedUpstream
) -> Settings:
    """A second replica, which could take a call over."""
    replicas = (upstream.base_url, other_upstream.base_url)
    return offering(settings, *replicas, idle_seconds=IDLE_SECONDS, bills_without_answer=True)


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def decided(deployment: Deployment) -> AsyncIterator[None]:
    """At the end, decide at once about the calls that may have been billed."""
    yield
    database = deployment.org.database

    async def is_decided() -> bool:
        async with database.transaction() as tx:
            await tx.execute("UPDATE unsettled_holds SET decide_at = clock_timestamp()")
        await write_offs.write_off_due(database)
        rows = await database.fetch_all("SELECT sum(1 - 2 * phase) AS open FROM ledger_entries")
        return rows[0]["open"] == 0

    await until(is_decided)


def cuts(how: str) -> list[dict[str, Any]]:
    return [{"cut": {"how": how, "after": after, "inside": inside}} for after, inside in POSITIONS]


def errors() -> list[dict[str, Any]]:
    return [{"error": ERROR, "error_after_events": after} for after in range(1, EVENTS)]


def garbage() -> list[dict[str, Any]]:
    inserted = "data: {no JSON\n\n"
    return [
        {"inserted": inserted, "inserted_after_events": after} for after in range(1, TOKENS + 1)
    ]


async def broken_off(
    deployment: Deployment, path: str, script: dict[str, Any], *, is_stream: bool
) -> str:
    """Return the answer; a sound answer of the same replica then forgives it."""
    brought = json.dumps({"script": {"tokens": TOKENS, **script}})
    async with deployment.customer() as client:
        client.headers["x-service-session-id"] = "drawn to one replica"
        answer = await client.post(path, json=BODIES[path](brought, stream=is_stream))
        sound = await client.post(path, json=BODIES[path]("Hi"))
    assert sound.status_code == 200
    return answer.text


def calls(*upstreams: ScriptedUpstream) -> int:
    """How many calls came since the last count, without that of the sound answer."""
    count = sum(len(each.seen) for each in upstreams) - 1
    for each in upstreams:
        each.seen.clear()
    return count


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    "scripts",
    [
        pytest.param(cuts("close"), id="close"),
        pytest.param(cuts("reset"), id="reset"),
        pytest.param(cuts("stall")[2:8:3], id="stall"),
        pytest.param(errors(), id="error"),
        pytest.param(garbage(), id="garbage"),
    ],
)
async def test_a_stream_that_breaks_off_is_asked_for_once(
    deployment: Deployment,
    other_upstream: ScriptedUpstream,
    path: str,
    scripts: list[dict[str, Any]],
) -> None:
    for script in scripts:
        await broken_off(deployment, path, script, is_stream=True)

        assert calls(deployment.upstream, other_upstream) == 1, script


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_whole_answer_that_breaks_off_is_asked_for_once(
    deployment: Deployment, other_upstream: ScriptedUpstream, path: str, how: str
) -> None:
    script = {"cut": {"how": how, "after": 0, "inside": True}}

    answer = await broken_off(deployment, path, script, is_stream=False)

    assert '"error":{' in answer
    assert calls(deployment.upstream, other_upstream) == 1
