"""Background jobs that run on one worker at a time, by a lease row and the database's clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from tollhouse.base.ids import InstanceId
from tollhouse.base.tasks import repeated
from tollhouse.observability import metrics
from tollhouse.observability.metrics import JobOutcome
from tollhouse.storage.database import Database


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Work that some worker does every so often. It must bear being run twice."""

    name: str
    every_seconds: float
    run: Callable[[], Awaitable[None]]


async def hold(database: Database, name: str, holder: InstanceId, *, lease_seconds: float) -> bool:
    """Take or renew the lease; false while somebody else's has not run out."""
    async with database.transaction() as tx:
        held_by = await tx.fetch_value(
            """
            INSERT INTO job_leases AS lease (name, holder, expires_at)
            VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
            ON CONFLICT (name) DO UPDATE
               SET holder = EXCLUDED.holder, expires_at = EXCLUDED.expires_at
             WHERE lease.holder = EXCLUDED.holder OR lease.expires_at <= clock_timestamp()
            RETURNING holder
            """,
            name,
            holder,
            lease_seconds,
        )
    return held_by == holder


async def run_while_held(database: Database, job: Job, holder: InstanceId) -> None:
    """Keep trying for the lease, and do the job whenever it is held; runs until cancelled.

    The lease outlives a missed renewal, so a worker that dies is replaced after at most
    three periods.
    """
    turn = partial(_run_if_held, database, job, holder)
    await repeated(f"job-{job.name}", turn, every_seconds=job.every_seconds)


async def _run_if_held(database: Database, job: Job, holder: InstanceId) -> None:
    try:
        if await hold(database, job.name, holder, lease_seconds=2 * job.every_seconds):
            await job.run()
            metrics.job_ran(job.name, JobOutcome.DONE)
    except asyncio.CancelledError:
        raise
    except BaseException:
        metrics.job_ran(job.name, JobOutcome.FAILED)
        raise
