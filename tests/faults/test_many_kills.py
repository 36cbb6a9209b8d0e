"""Random kills in one long run: of a worker, of a server's process, of the whole server.

`TOLLHOUSE_KILLS` says how many.
"""

import os
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.faults.nursery import Nursery, nursery
from tests.faults.server import kill_a_backend, own_server
from tests.identity.waiting import until
from tests.ledger.invariants import assert_conserved
from tests.ledger.money import Payer, give, new_payer
from tests.storage.cluster import Cluster
from tests.support import seeds
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.ledger import reaper
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

KILLS = int(os.environ.get("TOLLHOUSE_KILLS", "6"))
WORKERS = 3
ORGANIZATIONS = 12
CREDIT = 1_000
"""A few holds at once, so that most of the time somebody is refused."""
ENTRIES_BETWEEN = 40


@pytest.mark.nightly
@pytest.mark.guarantee("T2", "I9")
async def test_random_kills_lose_nothing_and_overspend_nothing() -> None:
    async with own_server() as cluster:
        database = await connect(settings_for(cluster.url))
        payers = [await new_payer(database, credit=CREDIT) for _ in range(ORGANIZATIONS)]
        async with nursery(cluster.url, payers) as workers:
            await Run(cluster, database, payers, workers).run()
            assert not workers.line.poll(), workers.line.recv()
        # What a dead worker has sent may still be carried out by the server.
        await stop_and_start(cluster)

        await insist(lambda: reap(database))
        assert await open_and_unmarked(database) == 0
        assert await overspent(database) == []
        await assert_conserved(database)
        await insist(lambda: decide(database))
        assert await reserved(database) == 0
        await assert_conserved(database)
        await database.close()


class Run:
    def __init__(
        self, cluster: Cluster, database: Database, payers: Sequence[Payer], workers: Nursery
    ) -> None:
        self._cluster = cluster
        self._database = database
        self._payers = payers
        self._workers = workers
        self._chance = seeds.chance()

    async def run(self) -> None:
        for _ in range(WORKERS):
            await self._bear()
        kinds = (self._kill_a_worker, self._kill_a_backend, self._stop_the_server)
        for number in range(KILLS):
            await self._go_on()
            # Each kind has its turn, also in a short run.
            await (kinds[number] if number < len(kinds) else self._chance.choice(kinds))()
        await self._go_on()

    async def _bear(self) -> None:
        await self._workers.bear(self._chance.randrange(2**32))

    async def _kill_a_worker(self) -> None:
        dead = self._chance.choice(list(self._workers.living))
        self._workers.kill(dead)
        await self._bear()
        await insist(lambda: reap(self._database, living=self._workers))
        # Else the dead would soon hold all credit, and nobody could be admitted.
        await insist(lambda: decide(self._database))

    async def _kill_a_backend(self) -> None:
        await kill_a_backend(self._cluster, self._database)

    async def _stop_the_server(self) -> None:
        await stop_and_start(self._cluster)

    async def _go_on(self) -> None:
        """Give somebody credit, and wait until more was admitted and settled."""
        payer = self._chance.choice(self._payers)
        await insist(lambda: give(self._database, payer, CREDIT // 10))
        before = await self._entries()

        async def is_so() -> bool:
            return await self._entries() >= before + ENTRIES_BETWEEN

        await until(is_so)

    async def _entries(self) -> int:
        counted: list[int] = []

        async def count() -> None:
            rows = await self._database.fetch_all("SELECT count(*) FROM ledger_entries")
            counted.append(rows[0]["count"])

        await insist(count)
        return counted[-1]


async def insist(action: Callable[[], Awaitable[None]]) -> None:
    """Again and again, while the server recovers."""

    async def is_done() -> bool:
        try:
            await action()
        except DatabaseUnavailable:
            return False
        return True

    await until(is_done)


async def stop_and_start(cluster: Cluster) -> None:
    await cluster.kill()
    await cluster.start()


async def reap(database: Database, *, living: Nursery | None = None) -> None:
    """The living have just said so, all others are silent for long; and the reaper comes."""
    async with database.transaction() as tx:
        await tx.execute(
            """
            UPDATE instances
               SET heartbeat_at = clock_timestamp()
                   - CASE WHEN id = ANY($1) THEN interval '0' ELSE interval '45 seconds' END
            """,
            list(living.living) if living is not None else [],
        )
        # So that a statement that the server carried out after its worker's death is found as well.
        await tx.execute("UPDATE reaped_instances SET reaped_at = reaped_at - interval '1 minute'")
    await reaper.run(database)


async def decide(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute("UPDATE unsettled_holds SET decide_at = clock_timestamp()")
    await reaper.run(database)


async def open_and_unmarked(database: Database) -> int:
    """Holds that are neither resolved nor unsettled."""
    rows = await database.fetch_all(
        """
        SELECT count(*)
          FROM ledger_entries hold
         WHERE phase = 0
           AND NOT EXISTS (SELECT FROM ledger_entries e
                            WHERE e.organization_id = hold.organization_id
                              AND e.admitted_day = hold.admitted_day
                              AND e.reservation_id = hold.reservation_id
                              AND e.phase = 1)
           AND NOT EXISTS (SELECT FROM unsettled_holds u
                            WHERE u.organization_id = hold.organization_id
                              AND u.admitted_day = hold.admitted_day
                              AND u.reservation_id = hold.reservation_id)
        """
    )
    return rows[0]["count"]


async def overspent(database: Database) -> list[object]:
    """Organizations whose grants do not cover what was posted and is held, by the entries."""
    rows = await database.fetch_all(
        """
        SELECT organization_id
          FROM (SELECT organization_id,
                       sum(CASE phase WHEN 0 THEN held_pico ELSE posted_pico - held_pico END)
                           AS used
                  FROM ledger_entries
                 GROUP BY 1) spent
          JOIN (SELECT organization_id, sum(amount_pico) AS credit
                  FROM credit_grants
                 GROUP BY 1) granted USING (organization_id)
         WHERE used > credit
        """
    )
    return [row["organization_id"] for row in rows]


async def reserved(database: Database) -> int:
    rows = await database.fetch_all("SELECT sum(reserved_pico) FROM accounts")
    return int(rows[0]["sum"])
