"""8: the database server crashes under requests, whole or by the death of one of its processes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.faults.recovery import Money, money
from tests.faults.server import kill_a_backend, own_server
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import WAIT_MAX, Payer, new_batcher, new_payer, posted
from tests.storage.cluster import Cluster
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.tasks import Tasks
from tollhouse.ledger import reaper
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import ResolutionResult
from tollhouse.storage.database import Database

Crash = Callable[[Cluster, Database], Awaitable[None]]

CLIENTS = 8
SERVED_BETWEEN = 20


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with own_server() as running:
        yield running


@pytest.fixture
async def database(cluster: Cluster) -> AsyncIterator[Database]:
    """In the place of the usual one."""
    opened = await connect(settings_for(cluster.url))
    yield opened
    await opened.close()


class Clients:
    """Send requests without pause, each admitted at 10 and charged 3."""

    def __init__(self, batcher: Batcher, payer: Payer) -> None:
        self._batcher = batcher
        self._payer = payer
        self._is_over = False
        self.served = 0
        self._running = [asyncio.create_task(self._send()) for _ in range(CLIENTS)]

    async def _send(self) -> None:
        while not self._is_over:
            hold = self._payer.hold(10)
            await self._batcher.admit(hold, wait_max=WAIT_MAX)
            outcome = await self._batcher.resolve(posted(hold, 3))
            # Settled before: the crash took only the answer.
            assert outcome in {ResolutionResult.NOW, ResolutionResult.BEFORE}
            self.served += 1

    async def go_on(self) -> None:
        """Until some more were served."""
        before = self.served

        async def is_so() -> bool:
            assert not any(task.done() for task in self._running)
            return self.served >= before + SERVED_BETWEEN

        await until(is_so)

    async def stop(self) -> int:
        self._is_over = True
        await asyncio.gather(*self._running)
        return self.served


async def stop_the_server(cluster: Cluster, _database: Database) -> None:
    await cluster.kill()
    await cluster.start()


@pytest.mark.guarantee("T42")
@pytest.mark.parametrize("crash", [stop_the_server, kill_a_backend])
async def test_every_request_is_charged_once_across_a_crash_of_the_server(
    cluster: Cluster, database: Database, crash: Crash
) -> None:
    payer = await new_payer(database, credit=10**9)
    tasks = Tasks()
    clients = Clients(new_batcher(database, tasks), payer)
    await clients.go_on()

    await crash(cluster, database)
    await clients.go_on()
    await crash(cluster, database)
    await clients.go_on()
    served = await clients.stop()

    assert await money(database, payer) == Money(settled=3 * served)
    await reaper.run(database)
    await assert_conserved(database)
