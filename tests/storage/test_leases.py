"""Leases: one worker does a job, another one takes over, and the database's clock decides."""

import asyncio
from dataclasses import dataclass, field

import asyncpg

from tests.storage.processes import next_word, running, work_while_held
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.storage.database import Database
from tollhouse.storage.leases import Job, hold, run_while_held

JOB = "a job"
LONG_SECONDS = 600.0
PATIENCE_SECONDS = 30.0


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
    """Notes who is at work, and complains when two are."""

    at_work: set[int] = field(default_factory=set[int])
    runs: list[int] = field(default_factory=list[int])
    together: list[set[int]] = field(default_factory=list[set[int]])
    has_run_enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, worker: int, *, seconds: float, enough_runs: int) -> None:
        self.at_work.add(worker)
        if len(self.at_work) > 1:
            self.together.append(set(self.at_work))
        await asyncio.sleep(seconds)
        self.at_work.discard(worker)
        self.runs.append(worker)
        if len(self.runs) >= enough_runs:
            self.has_run_enough.set()


async def test_two_workers_are_never_at_work_together_while_leases_last(
    database: Database,
) -> None:
    workplace = Workplace()

    def job(worker: int) -> Job:
        async def run() -> None:
            await workplace.work(worker, seconds=0.02, enough_runs=10)

        return Job(name=JOB, every_seconds=0.2, run=run)

    workers = [
        asyncio.create_task(run_while_held(database, job(worker), fresh_holder()))
        for worker in range(4)
    ]
    async with asyncio.timeout(PATIENCE_SECONDS):
        await workplace.has_run_enough.wait()
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)

    assert workplace.together == []


async def test_a_job_that_fails_in_whatever_way_is_done_again(database: Database) -> None:
    runs: list[int] = []
    has_recovered = asyncio.Event()

    async def run() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            message = "a bug of ours"
            raise ZeroDivisionError(message)
        has_recovered.set()

    job = Job(name=JOB, every_seconds=0.05, run=run)
    worker = asyncio.create_task(run_while_held(database, job, fresh_holder()))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await has_recovered.wait()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)

    assert worker.cancelled()


async def test_a_worker_that_is_killed_is_replaced_within_three_periods(
    database: Database, database_url: str
) -> None:
    every_seconds = 0.8
    loop = asyncio.get_running_loop()
    has_run = asyncio.Event()

    async def run() -> None:
        has_run.set()

    successor = Job(name=JOB, every_seconds=every_seconds, run=run)
    arguments = (database_url, fresh_holder(), JOB, every_seconds)
    async with running(work_while_held, *arguments) as (process, line):
        assert [await next_word(line), await next_word(line)] == ["ran", "ran"]
        killed_at = loop.time()
        process.kill()
        # So that the successor also asks shortly before the lease runs out, which is the worst.
        await asyncio.sleep(0.7 * every_seconds)
        waiting = asyncio.create_task(run_while_held(database, successor, fresh_holder()))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await has_run.wait()
        vacant_periods = (loop.time() - killed_at) / every_seconds
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert 1.5 < vacant_periods < 3.35
