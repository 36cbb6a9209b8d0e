"""Every alert arrives exactly once by its ID, while the receiver fails and workers are killed.

`tollhouse serve` runs as processes. The receiver answers half of all attempts with an error, and
kills all workers with SIGKILL in the middle of an attempt. `make test-alerts` runs it with 1,000
alerts; the suite with fewer.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.alerts.receiver import Received, accept, running_receiver
from tests.alerts.subscribing import outbox, subscribe
from tests.support import seeds
from tests.support.gateway import TIMEOUT_SECONDS
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.processes import Service, running_service
from tests.support.spending import spender_of
from tollhouse.alerts.delivery import DELIVERIES_MAX, LOOK_EVERY
from tollhouse.alerts.types import AlertThresholds, DeliveryState
from tollhouse.ledger.types import CapScope, Period
from tollhouse.settings import AlertSettings, Settings
from tollhouse.storage.database import Database
from tollhouse.storage.sealing import Sealer

ALERTS = int(os.environ.get("TOLLHOUSE_ALERTS", "60"))
PERCENTS = tuple(range(10, 101, 10))
KILLS = 1 if ALERTS < 1000 else 5
FAILURE = b"HTTP/1.1 503 Busy\r\n\r\n"
WAIT_SECONDS = TIMEOUT_SECONDS + 4 * LOOK_EVERY.total_seconds() + ALERTS / 4


async def _spend(org: OrganizationFixture) -> None:
    """Cross each threshold of one cap."""
    async with spender_of(org) as spender:
        await spender.grant(10_000)
        await spender.set_cap(spender.place(CapScope.KEY, Period.MONTH), 1000)
        for _ in PERCENTS:
            await spender.spend(100)


def _kill_workers(service: Service) -> None:
    parent = service.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
    for pid in set(map(int, children)) & set(service.started_workers()):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.nightly
async def test_every_alert_arrives_exactly_once_by_its_id(
    database: Database,
    settings: Settings,
    sealer: Sealer,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    chance = seeds.chance()
    services: list[Service] = []
    kill_at = {ALERTS * (number + 1) // (KILLS + 1) for number in range(KILLS)}

    def answer(_: Received) -> bytes | None:
        if len(receiver.accepted) in kill_at:
            kill_at.discard(len(receiver.accepted))
            _kill_workers(services[0])
        return FAILURE if chance.random() < 0.5 else accept(_)

    delivering = msgspec.structs.replace(
        settings,
        server=msgspec.structs.replace(settings.server, workers=2),
        alerts=AlertSettings(
            allowed_networks=("127.0.0.0/8",),
            timeout_seconds=2,
            attempts_max=100,
            retry_seconds=0.001,
        ),
    )
    count = ALERTS // len(PERCENTS)
    orgs = [await new_organization_fixture(database) for _ in range(count)]
    async with running_receiver(answer) as receiver:
        for org in orgs:
            thresholds = AlertThresholds(cap_percents=PERCENTS)
            await subscribe(org, thresholds, url=receiver.url, sealer=sealer)
        async with running_service(delivering, tmp_path) as service:
            services.append(service)
            for org in orgs:
                await _spend(org)
            async with asyncio.timeout(WAIT_SECONDS):
                while await _delivered(database) < ALERTS:  # noqa: ASYNC110 - of other processes
                    await asyncio.sleep(0.5)

    deliveries = [delivery for org in orgs for delivery in await outbox(org)]
    arrived = Counter(message.id for message in receiver.accepted)
    assert len(deliveries) == ALERTS
    assert {delivery.state for delivery in deliveries} == {DeliveryState.DELIVERED}
    assert arrived.keys() == {str(delivery.id) for delivery in deliveries}
    assert kill_at == set()
    # Only what was under way when a worker died was sent again.
    assert arrived.total() - ALERTS <= KILLS * 2 * DELIVERIES_MAX
    failed = len(receiver.received) - arrived.total()
    record_property("alerts", f"{ALERTS}: {failed} attempts failed, {arrived.total()} accepted")
    assert failed > ALERTS / 4


async def _delivered(database: Database) -> int:
    rows = await database.fetch_all(
        "SELECT count(*) AS delivered FROM alert_deliveries WHERE state = 'delivered'"
    )
    return rows[0]["delivered"]
