"""Leases: one worker does a job, another one takes over, and the database's clock decides."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import asyncpg
import pytest

from tests.storage.processes import next_word, running, work_while_held
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob, hold, run_while_held

JOB = "a job"
LONG_AGO = datetime.min.replace(tzinfo=UTC)
LONG_SECONDS = 600.0
TIMEOUT_SECONDS = 120.0


def fresh_holder() -> InstanceId:
    return InstanceId(time_ordered_uuid())


async def expire_lease(database_url: str, offset: str) -> None:
    """Say when the lease ends, by the database's clock."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        "UPDATE job_leases SET expires_at = clock_timestamp() + $1::text::interval", offset
    )
    await connection.close()


async def test_a_lease_that_is_held_is_renewed_by_its_holder_and_refused_to_others(
    database: Database,
) -> None:
    first, second = fresh_holder(), fresh_holder()

    assert await hold(database, JOB, first, lease_seconds=LONG_SECONDS)
    assert await hold(database, JOB, first, lease_seconds=LONG_SECONDS)
    assert not await hold(database, JOB, second, lease_seconds=LONG_SECONDS)


async def test_leases_of_different_jobs_have_nothing_to_do_with_each_other(
    database: Database,
) -> None:
    first, second = fresh_holder(), fresh_holder()

    assert await hold(database, "one job", first, lease_seconds=LONG_SECONDS)
    assert await hold(database, "another job", second, lease_seconds=LONG_SECONDS)


async def test_a_lease_that_has_run_out_by_the_databases_clock_goes_to_whoever_asks(
    database: Database, database_url: str
) -> None:
    first, second = fresh_holder(), fresh_holder()
    await hold(database, JOB, first, lease_seconds=LONG_SECONDS)

    await expire_lease(database_url, "1 hour")
    assert not await hold(database, JOB, second, lease_seconds=LONG_SECONDS)

    await expire_lease(database_url, "-1 millisecond")
    assert await hold(database, JOB, second, lease_seconds=LONG_SECONDS)
    assert not await hold(database, JOB, first, lease_seconds=LONG_SECONDS)


async def test_of_many_that_ask_at_once_one_gets_the_lease(database: Database) -> None:
    holders = [fresh_holder() for _ in range(20)]

    held = await asyncio.gather(
        *(hold(database, JOB, holder, lease_seconds=LONG_SECONDS) for holder in holders)
    )

    assert sum(held) == 1


@dataclass
class Workplace:
    """Notes who is at work and until when by the database's clock, and complains of intruders."""

    database: Database
    lease: timedelta
    leases_end: dict[InstanceId, datetime] = field(default_factory=dict[InstanceId, datetime])
    runs: Counter[InstanceId] = field(default_factory=Counter[InstanceId])
    intruders: list[InstanceId] = field(default_factory=list[InstanceId])
    has_run_enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, worker: InstanceId, *, enough_runs: int) -> None:
        ends_at = await self._lease_of(worker)
        if any(other > ends_at - self.lease for other in self.leases_end.values()):
            self.intruders.append(worker)
        self.leases_end[worker] = ends_at
        await asyncio.sleep(0.02)
        del self.leases_end[worker]
        self.runs[worker] += 1
        if self.runs.total() >= enough_runs:
            self.has_run_enough.set()

    async def _lease_of(self, worker: InstanceId) -> datetime:
        """When it ends; a machine that stood still may have let it go to somebody else."""
        rows = await self.database.fetch_all("SELECT holder, expires_at FROM job_leases")
        return next((row["expires_at"] for row in rows if row["holder"] == worker), LONG_AGO)


async def test_two_workers_are_never_at_work_together_while_leases_last(
    database: Database,
) -> None:
    """Whoever takes a lease while somebody is at work has waited until that lease ran out."""
    every_seconds = 0.2
    workplace = Workplace(database, timedelta(seconds=2 * every_seconds))

    tasks = Tasks()
    for worker in [fresh_holder() for _ in range(4)]:
        run = partial(workplace.work, worker, enough_runs=10)
        job = LeasedJob(name=JOB, every_seconds=every_seconds, run=run)
        run_while_held(tasks, database, job, worker)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await workplace.has_run_enough.wait()
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)

    assert workplace.intruders == []


async def test_a_job_that_fails_in_whatever_way_is_done_again(database: Database) -> None:
    runs: list[int] = []
    has_recovered = asyncio.Event()

    async def run() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            message = "a bug of ours"
            raise ZeroDivisionError(message)
        has_recovered.set()

    job = LeasedJob(name=JOB, every_seconds=0.05, run=run)
    tasks = Tasks()
    run_while_held(tasks, database, job, fresh_holder())
    async with asyncio.timeout(TIMEOUT_SECONDS):
        await has_recovered.wait()

    assert await tasks.drain(deadline_seconds=TIMEOUT_SECONDS) == 0


@pytest.mark.nightly
@pytest.mark.clock
async def test_a_worker_that_is_killed_is_replaced_within_three_periods(
    database: Database, database_url: str
) -> None:
    every_seconds = 0.8
    loop = asyncio.get_running_loop()
    has_run = asyncio.Event()

    async def run() -> None:
        has_run.set()

    successor = LeasedJob(name=JOB, every_seconds=every_seconds, run=run)
    arguments = (database_url, fresh_holder(), JOB, every_seconds)
    async with running(work_while_held, *arguments) as (process, line):
        assert [await next_word(line), await next_word(line)] == ["ran", "ran"]
        killed_at = loop.time()
        process.kill()
        # So that the successor also asks shortly before the lease runs out, which is the worst.
        await asyncio.sleep(0.7 * every_seconds)
        waiting = run_while_held(Tasks(), database, successor, fresh_holder())
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await has_run.wait()
        vacant_periods = (loop.time() - killed_at) / every_seconds
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert 1.5 < vacant_periods < 3.35
