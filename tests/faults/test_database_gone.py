"""PostgreSQL lost while answers are being made: they go on, and each is settled once afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.faults.server import own_server
from tests.identity.waiting import until
from tests.inference.test_chat import PATH, cost, records
from tests.ledger.invariants import assert_conserved
from tests.storage.cluster import Cluster
from tests.support.deployment import Deployment, chat, offering, open_deployment
from tests.support.gateway import TIMEOUT_SECONDS, settings_for
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.storage.errors import DatabaseUnavailable

STREAMS, WHOLE, BROKEN = 8, 4, 2
USAGE = {"include_usage": True}


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with own_server() as running:
        yield running


@pytest.fixture
def settings(cluster: Cluster) -> Settings:
    """In the place of the usual ones: everything else follows from them."""
    return settings_for(cluster.url)


@pytest.fixture
async def deployment(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture
) -> AsyncIterator[Deployment]:
    async with open_deployment(offering(settings, upstream.base_url), upstream, org) as opened:
        yield opened


def stalling(after: int | str, **script: object) -> str:
    return json.dumps({"script": {"cut": {"how": "stall", "after": after}, **script}})


async def under_way(
    deployment: Deployment, client: httpx2.AsyncClient
) -> "list[asyncio.Task[Any]]":
    """Streams in their middle, whole answers, and streams that will break; all stand still."""
    bodies = [chat(stalling(3), stream=True, stream_options=USAGE)] * STREAMS
    bodies += [chat(stalling("request"))] * WHOLE
    breaking = stalling(3, error={"message": "out of memory"}, error_after_events=5)
    bodies += [chat(breaking, stream=True)] * BROKEN
    asked = [asyncio.create_task(client.post(PATH, json=body)) for body in bodies]
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for number in range(len(bodies)):
            exchange = await deployment.upstream.seen.arrival(nth=number + 1)
            await exchange.stall()
    return asked


async def is_back(deployment: Deployment) -> bool:
    try:
        await deployment.admitted()
    except DatabaseUnavailable:
        return False
    return True


@pytest.mark.guarantee("T42")
async def test_what_was_admitted_goes_on_and_is_settled_once_when_the_database_is_back(
    deployment: Deployment, cluster: Cluster
) -> None:
    stranger = await deployment.org.project_key(deployment.project)
    async with deployment.customer() as client, deployment.gateway.client(stranger.value) as other:
        asked = await under_way(deployment, client)

        await cluster.kill()
        refused = [await client.post(PATH, json=chat()), await other.post(PATH, json=chat())]
        for exchange in deployment.upstream.seen:
            exchange.release()
        answers = await asyncio.gather(*asked)
        await cluster.start()
        await until(lambda: is_back(deployment))
        # Whose key was still believed was on the way to be admitted, and is then given back.
        undecided = "could not be admitted in time" in refused[0].text
        credit = await deployment.settled(len(asked) + undecided)

        served = await client.post(PATH, json=chat())

    assert {answer.status_code for answer in refused} == {503}
    assert {answer.json()["error"]["code"] for answer in refused} == {"service_unavailable"}
    assert {answer.status_code for answer in answers} == {200}
    streamed = [records(answer.text) for answer in answers[:STREAMS]]
    whole = [answer.json() for answer in answers[STREAMS : STREAMS + WHOLE]]
    broken = [records(answer.text) for answer in answers[-BROKEN:]]
    assert all(told[-1] == "[DONE]" for told in streamed)
    assert all(told[-1]["error"]["code"] == "backend_error" for told in broken)
    known = sum(cost(told[-2]["usage"]) for told in streamed)
    known += sum(cost(body["usage"]) for body in whole)
    of_broken = credit.settled_pico_usd - known
    assert of_broken > 0
    assert of_broken % BROKEN == 0, "both broke at the same place"
    assert served.is_success
    await deployment.settled(len(asked) + undecided + 1)
    await assert_conserved(deployment.org.database)
