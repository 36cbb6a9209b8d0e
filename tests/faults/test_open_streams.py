"""Workers that stop or are replaced while answers are being streamed."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.ledger.invariants import assert_conserved
from tests.support.deployment import MODEL, Deployment, chat, customer_of, offering
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service, running_service
from tests.support.raw_streams import CHAT, RESPONSES, Stream, idle_connection, open_stream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

STREAMS = int(os.environ.get("TOLLHOUSE_STREAMS", "60"))
"""Across a rolling restart; the full run has five hundred."""
OPENED_AT_ONCE = 50
"""Fewer than a worker takes for an overload."""
ENDED_BY_STOP = 10
DRAIN_SECONDS_LONG = 600.0
STALL = json.dumps({"script": {"cut": {"how": "stall", "after": 5}}})
BODIES: dict[str, dict[str, Any]] = {
    CHAT: chat(STALL, max_tokens=100),
    RESPONSES: {"model": MODEL, "input": STALL, "max_output_tokens": 100},
}


@asynccontextmanager
async def serving(
    settings: Settings, upstream: ScriptedUpstream, folder: Path, **server: object
) -> AsyncGenerator[Service]:
    offered = offering(settings, upstream.base_url, idle_seconds=600.0, total_seconds=3600.0)
    changed = msgspec.structs.replace(offered.server, **server)
    async with running_service(msgspec.structs.replace(offered, server=changed), folder) as service:
        yield service


async def opened(service: Service, deployment: Deployment, count: int) -> list[Stream]:
    """So many that stand in the middle of their answers, on both surfaces in turns."""
    turns = asyncio.Semaphore(OPENED_AT_ONCE)

    async def open_one(path: str) -> Stream:
        async with turns:
            return await open_stream(service.address, deployment.key.value, path, BODIES[path])

    paths = [(CHAT, RESPONSES)[number % 2] for number in range(count)]
    streams = await asyncio.gather(*map(open_one, paths))
    assert {stream.status for stream in streams} == {200}
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await asyncio.gather(*(exchange.stall() for exchange in deployment.upstream.seen))
    return streams


def release(upstream: ScriptedUpstream) -> None:
    for exchange in upstream.seen:
        exchange.release()


def is_whole(payloads: list[str]) -> bool:
    return payloads[-1] == "[DONE]" or '"response.completed"' in payloads[-1]


@pytest.mark.guarantee("T43")
async def test_a_rolling_restart_cuts_no_stream_within_the_drain_time(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, tmp_path: Path
) -> None:
    """One worker, so that all of them are with the one that is replaced."""
    async with serving(
        settings, upstream, tmp_path, workers=1, drain_seconds=DRAIN_SECONDS_LONG
    ) as service:
        deployment = await customer_of(service, upstream, org)
        streams = await opened(service, deployment, STREAMS)
        (old,) = service.started_workers()
        idle = await idle_connection(service.address)

        service.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            # A worker that stops lets idle connections go: its streams are open meanwhile.
            await idle
        assert "worker_retired" not in service.log()
        fresh = await open_stream(service.address, deployment.key.value, CHAT, chat())
        served_meanwhile = await fresh.payloads()
        release(upstream)
        told = await asyncio.gather(*(stream.payloads() for stream in streams))
        await service.wait_for_event("reloaded")
        assert await service.stop() == 0
        assert [old] != service.started_workers()

    assert is_whole(served_meanwhile)
    assert [is_whole(payloads) for payloads in told] == [True] * STREAMS
    await deployment.settled(STREAMS + 1)
    await assert_conserved(org.database)


async def test_a_stop_ends_by_an_event_what_its_drain_did_not_see_end(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, tmp_path: Path
) -> None:
    """Half of them go on and come to their end; the others stand still."""
    async with serving(settings, upstream, tmp_path, workers=1, drain_seconds=1.0) as service:
        deployment = await customer_of(service, upstream, org)
        streams = await opened(service, deployment, 2 * ENDED_BY_STOP)
        for exchange in list(upstream.seen)[:ENDED_BY_STOP]:
            exchange.release()

        exit_code = await service.stop()
        told = await asyncio.gather(*(stream.payloads() for stream in streams))

    broken = [payloads[-1] for payloads in told if not is_whole(payloads)]
    assert exit_code == 0
    assert len(broken) == ENDED_BY_STOP
    for last in broken:
        error = error_in(json.loads(last))
        assert error["message"] == "The gateway is shutting down. Try again."
    credit = await deployment.settled(2 * ENDED_BY_STOP)
    assert credit.settled_pico_usd > 0
    await assert_conserved(org.database)


def error_in(event: dict[str, Any]) -> dict[str, Any]:
    """Of either surface."""
    if "response" in event:
        assert event["type"] == "response.failed"
        return event["response"]["error"]
    assert event["error"]["code"] == "service_unavailable"
    return event["error"]


async def test_a_stop_refuses_by_its_status_what_has_not_begun(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, tmp_path: Path
) -> None:
    """The backend has said nothing yet, so that no head has left."""
    body = chat(json.dumps({"script": {"cut": {"how": "stall"}}}))
    async with serving(settings, upstream, tmp_path, workers=1, drain_seconds=1.0) as service:
        deployment = await customer_of(service, upstream, org)
        asked = asyncio.create_task(open_stream(service.address, deployment.key.value, CHAT, body))
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await (await upstream.seen.arrival()).stall()

        exit_code = await service.stop()
        refused = await asked
        told = json.loads(await refused.reader.read())
        refused.writer.close()

    assert exit_code == 0
    assert refused.status == 503
    assert told["error"]["code"] == "service_unavailable"
    assert (await deployment.settled(1)).settled_pico_usd == 0
