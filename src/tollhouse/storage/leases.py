"""Background jobs that run on one worker at a time, by a lease row and the database's clock."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tollhouse.base.ids import InstanceId
from tollhouse.base.tasks import Tasks
from tollhouse.observability import metrics
from tollhouse.observability.metrics import JobOutcome
from tollhouse.storage.database import Database

PURGE_EVERY_SECONDS: Final = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LeasedJob:
    """A periodic job that one worker at a time runs. It must be idempotent: it may run twice."""

    name: str
    every_seconds: float
    run: Callable[[], Awaitable[None]]


async def hold(database: Database, name: str, holder: InstanceId, *, lease_seconds: float) -> bool:
    """Acquire or renew the lease; return False while another holder's lease has not expired."""
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


def run_while_held(
    tasks: Tasks, database: Database, job: LeasedJob, holder: InstanceId
) -> asyncio.Task[None]:
    """Start to run the job periodically, whenever this worker holds its lease.

    A lease lasts two periods, so a worker that dies is replaced after at most three periods.
    """
    metrics.job_started(job.name)
    turn = partial(run_once, database, job, holder)
    return tasks.repeat(f"job-{job.name}", turn, job.every_seconds)


async def run_once(database: Database, job: LeasedJob, holder: InstanceId) -> None:
    """Run the job if this worker holds its lease."""
    try:
        if await hold(database, job.name, holder, lease_seconds=2 * job.every_seconds):
            await job.run()
            metrics.job_ran(job.name, JobOutcome.DONE)
    except asyncio.CancelledError:
        raise
    except BaseException:
        metrics.job_ran(job.name, JobOutcome.FAILED)
        raise
