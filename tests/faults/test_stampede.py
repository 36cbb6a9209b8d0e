"""Five hundred callers at once before four real workers, with credit for a hundred of them."""

import asyncio
import json
import os
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.support.deployment import Deployment, chat, customer_of, offering
from tests.support.organization_fixture import new_organization_fixture
from tests.support.processes import Service, running_service
from tests.support.raw_streams import CHAT, Stream, open_stream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

STAMPEDES = int(os.environ.get("TOLLHOUSE_STAMPEDES", "1"))
WORKERS = 4
CALLERS = 500
COVERED = 100
STALL = json.dumps({"script": {"cut": {"how": "stall", "after": 2}}})


async def held_for_one(deployment: Deployment) -> int:
    """What is held for a request, as the ledger says of one that has ended."""
    async with deployment.customer() as client:
        assert (await client.post(CHAT, json=chat(STALL.replace("stall", "close")))).is_success
    rows = await deployment.org.database.fetch_all(
        "SELECT held_pico FROM ledger_entries WHERE organization_id = $1 AND phase = 0",
        deployment.org.organization_id,
    )
    return int(rows[0][0])


async def ask(service: Service, deployment: Deployment) -> Stream:
    """Open a stream. A request that an overloaded worker refused unread is sent again."""
    while True:
        stream = await open_stream(service.address, deployment.key.value, CHAT, chat(STALL))
        if stream.status != 503:
            return stream
        refused = json.loads(await stream.whole_body())
        stream.writer.close()
        assert refused["error"]["code"] == "server_is_overloaded"


async def stampede(service: Service, deployment: Deployment, one: int) -> None:
    """Nobody's hold ends before everybody has a status."""
    upstream = deployment.upstream
    await deployment.leave_credit(COVERED * one + one - 1)

    streams = await asyncio.gather(*(ask(service, deployment) for _ in range(CALLERS)))

    assert Counter(stream.status for stream in streams) == {200: COVERED, 402: CALLERS - COVERED}
    assert len(upstream.seen) == COVERED
    assert (await deployment.credit()).reserved_pico_usd == COVERED * one
    for exchange in upstream.seen:
        exchange.release()
    await asyncio.gather(*(stream.payloads() for stream in streams if stream.status == 200))
    for stream in streams:
        stream.writer.close()
    await deployment.settled(COVERED)


async def all_workers_run(database: Database) -> bool:
    rows = await database.fetch_all("SELECT count(*) FROM instances")
    return rows[0][0] == WORKERS


@pytest.mark.guarantee("T1")
async def test_of_500_callers_100_are_served_and_400_get_402(
    settings: Settings,
    upstream: ScriptedUpstream,
    database: Database,
    tmp_path: Path,
) -> None:
    offered = offering(settings, upstream.base_url, idle_seconds=600.0, total_seconds=3600.0)
    server = msgspec.structs.replace(offered.server, workers=WORKERS)
    async with running_service(
        msgspec.structs.replace(offered, server=server), tmp_path
    ) as service:
        await until(lambda: all_workers_run(database))
        org = await new_organization_fixture(database)
        one = await held_for_one(await customer_of(service, upstream, org))
        for _ in range(STAMPEDES):
            upstream.seen.clear()
            org = await new_organization_fixture(database)
            await stampede(service, await customer_of(service, upstream, org), one)
        assert await service.stop() == 0

    await assert_conserved(database)
