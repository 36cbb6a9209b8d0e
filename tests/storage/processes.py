"""What runs in a process of its own, so that it can be killed."""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import NoReturn

from tollhouse.base.ids import InstanceId
from tollhouse.base.tasks import Tasks
from tollhouse.storage import migrate
from tollhouse.storage.database import Database
from tollhouse.storage.leases import LeasedJob, run_while_held
from tollhouse.storage.migrate import Progress

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.gateway"])
"""Forks spare the importing, which takes longer than most of what they do."""
NEVER = 0
TIMEOUT_SECONDS = 120.0


@asynccontextmanager
async def running(
    target: Callable[..., None], *arguments: object
) -> AsyncGenerator[tuple[ForkServerProcess, Connection]]:
    """Start `target(line, *arguments)`; the process and our end of the line to it."""
    ours, theirs = FORKS.Pipe()
    process = FORKS.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        await ended(process)
        process.close()
        ours.close()


async def ended(process: ForkServerProcess) -> int | None:
    """Wait for its end; the exit code."""
    await asyncio.to_thread(process.join, TIMEOUT_SECONDS)
    return process.exitcode


async def next_word(line: Connection) -> object:
    """What the process says next."""
    is_there = await asyncio.to_thread(line.poll, TIMEOUT_SECONDS)
    assert is_there, "the process says nothing"
    return line.recv()


def migrate_in_forks(line: Connection, url: str) -> None:
    """For every list of numbers that comes in: one fork for each, all at once; tells how they end.

    A fork dies before the text of its number. One that survives ends with the number of
    revisions that it applied. Forks spare the importing, which takes longer than all the rest.
    """
    while True:
        forks = [os.fork() or _migrate(url, number) for number in line.recv()]
        statuses = [os.waitpid(fork, 0)[1] for fork in forks]
        line.send([os.waitstatus_to_exitcode(status) for status in statuses])


def _migrate(url: str, last_number: int) -> NoReturn:
    shown: list[Progress] = []

    def show(progress: Progress) -> None:
        shown.append(progress)
        if len(shown) == last_number:
            os.kill(os.getpid(), signal.SIGKILL)

    os._exit(len(asyncio.run(migrate.migrate(url, show=show))))


def work_while_held(
    line: Connection, url: str, holder: InstanceId, job_name: str, every_seconds: float
) -> None:
    """Do a job that says each of its runs, until killed."""

    async def tell() -> None:
        line.send("ran")

    async def run() -> None:
        database = await Database.connect(
            url, pool_size=1, acquire_seconds=TIMEOUT_SECONDS, statement_seconds=TIMEOUT_SECONDS
        )
        job = LeasedJob(name=job_name, every_seconds=every_seconds, run=tell)
        await run_while_held(Tasks(), database, job, holder)

    asyncio.run(run())
