"""A worker that stands still in the middle of an answer is killed; its hold is decided."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.faults.recovery import decide, reap
from tests.faults.test_open_streams import BODIES, serving
from tests.support.deployment import chat, customer_of
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.organization_fixture import OrganizationFixture
from tests.support.raw_streams import CHAT, open_stream
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings


@pytest.mark.nightly
@pytest.mark.guarantee("I9")
async def test_the_hold_of_a_stuck_worker_is_decided_after_it_was_killed(
    settings: Settings, upstream: ScriptedUpstream, org: OrganizationFixture, tmp_path: Path
) -> None:
    async with serving(
        settings, upstream, tmp_path, workers=1, worker_silence_seconds=6.0
    ) as service:
        deployment = await customer_of(service, upstream, org)
        cut = await open_stream(service.address, deployment.key.value, CHAT, BODIES[CHAT])
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await (await upstream.seen.arrival()).stall()
        stuck = [row["id"] for row in await org.database.fetch_all("SELECT id FROM instances")]
        os.kill(service.started_workers()[0], signal.SIGSTOP)

        fresh = await open_stream(service.address, deployment.key.value, CHAT, chat())
        answer = await fresh.payloads()
        await service.wait_for_event("worker_silent")
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await cut.reader.read()
        cut.writer.close()
        held = await _reserved(org)
        await reap(org.database, *stuck)
        await decide(org.database)
        credit = await deployment.settled(2)

    assert answer[-1] == "[DONE]"
    assert held > 0
    assert credit.reserved_pico_usd == 0


async def _reserved(org: OrganizationFixture) -> int:
    rows = await org.database.fetch_all("SELECT sum(reserved_pico) FROM accounts")
    return int(rows[0]["sum"])
