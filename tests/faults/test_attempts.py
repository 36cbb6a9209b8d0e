"""A failed call moves to another replica or model, visibly, and only while it is wanted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx2
import msgspec
import pytest

from tests.faults.test_upstream_faults import PATHS, body
from tests.identity.waiting import until
from tests.support.deployment import Deployment, model, open_deployment
from tests.support.organization_fixture import OrganizationFixture
from tests.support.upstream import running_upstream
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.backends import oversight
from tollhouse.settings import Settings

PRIMARY, SPARE, TWINS = "example/primary", "example/spare", "example/twins"
FAILS = msgspec.convert({"status": 500}, UpstreamScript)


@pytest.fixture
async def spare() -> AsyncIterator[ScriptedUpstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def deployment(
    settings: Settings,
    upstream: ScriptedUpstream,
    spare: ScriptedUpstream,
    org: OrganizationFixture,
) -> AsyncIterator[Deployment]:
    """The second of the twins is left out by hand."""
    backends = {
        "primary": {"replicas": [upstream.base_url]},
        "spare": {"replicas": [spare.base_url]},
        "twins": {"replicas": [upstream.base_url, spare.base_url], "replica_names": ["a", "b"]},
    }
    own: dict[str, Any] = {"features": [], "sampling_parameters": []}
    models = {
        PRIMARY: model(backend="primary", fallbacks=[SPARE], **own),
        SPARE: model(backend="spare", **own),
        TWINS: model(backend="twins", **own),
    }
    await oversight.order(org.database, "twins", "b", is_ejected=True)
    offered = msgspec.structs.replace(settings, backends=backends, models=models)
    async with open_deployment(offered, upstream, org) as opened:
        yield opened


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("endpoint", PATHS)
async def test_the_answer_and_its_record_name_who_answered(
    deployment: Deployment, endpoint: str, *, is_stream: bool
) -> None:
    deployment.upstream.queue(FAILS)

    async with deployment.customer() as client:
        asked = body(endpoint, "Hi", model_id=PRIMARY, is_stream=is_stream)
        answer = await client.post(PATHS[endpoint], json=asked)
        plain = await client.post(PATHS[endpoint], json=asked)

    assert (answer.status_code, answer.headers["x-tollhouse-model"]) == (200, SPARE)
    assert (plain.status_code, plain.headers["x-tollhouse-model"]) == (200, PRIMARY)
    record = await deployment.record(answer.headers["x-request-id"])
    failed, answered = record["attempts"]
    assert (failed["model"], failed["replica"], failed["outcome"]) == (
        *(PRIMARY, "primary-1", "failed"),
    )
    assert (answered["model"], answered["replica"], answered["outcome"]) == (
        *(SPARE, "spare-1", "answered"),
    )
    assert 0 < failed["ms"] <= record["timings"]["total_ms"]
    assert (await deployment.record(plain.headers["x-request-id"]))["attempts"] == []


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("endpoint", PATHS)
async def test_no_call_begins_for_a_caller_who_has_left(
    deployment: Deployment, spare: ScriptedUpstream, endpoint: str, *, is_stream: bool
) -> None:
    deployment.upstream.queue(
        msgspec.convert(
            {"status": 500, "cut": {"how": "stall", "after": "request"}}, UpstreamScript
        )
    )

    async with deployment.customer() as client:
        asked = body(endpoint, "Hi", model_id=PRIMARY, is_stream=is_stream)
        call = asyncio.create_task(client.post(PATHS[endpoint], json=asked))
        exchange = await deployment.upstream.seen.arrival()
        call.cancel()
        with suppress(asyncio.CancelledError, httpx2.HTTPError):
            await call
    exchange.release()

    async def is_over() -> bool:
        rows = await deployment.org.database.fetch_all("SELECT kind FROM ledger_entries")
        return len(rows) == 2

    await until(is_over)
    assert list(spare.seen) == []


async def test_a_replica_that_was_left_out_by_hand_is_not_called(
    deployment: Deployment, spare: ScriptedUpstream
) -> None:
    async def is_left_out() -> bool:
        rows = await deployment.org.database.fetch_all("SELECT * FROM replica_reports")
        return [(row["replica"], row["state"]) for row in rows] == [("b", "ejected")]

    await until(is_left_out)
    deployment.upstream.queue(FAILS)
    async with deployment.customer() as client:
        asked = body("chat", "Hi", model_id=TWINS, is_stream=False)
        statuses = [(await client.post(PATHS["chat"], json=asked)).status_code for _ in range(8)]

    assert statuses == [502, *[200] * 7]
    assert list(spare.seen) == []
