"""A worker in a process of its own, which admits and settles on command and dies where told."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from tests.ledger.money import WAIT_MAX, Payer, voided
from tests.storage.processes import ended, next_word, running
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Hold, Resolution
from tollhouse.storage import instances

DIED_ON_COMMAND = 86


class Point(StrEnum):
    """Where a worker dies; in between only a lock or a proxy can stop it."""

    BEFORE_ADMISSION = "before_admission"
    ADMITTED = "admitted"
    BEFORE_SETTLEMENT = "before_settlement"
    SETTLED = "settled"


def work(line: Connection, database_url: str, instance_id: InstanceId) -> None:
    """A hold is admitted, a resolution resolved, and the answer told; nothing means to die now."""
    asyncio.run(_work(line, database_url, instance_id))


async def _work(line: Connection, database_url: str, instance_id: InstanceId) -> None:
    database = await connect(settings_for(database_url))
    async with database.transaction() as tx:
        await instances.heartbeat(tx, instance_id)
    tasks = Tasks()
    batcher = Batcher(database, tasks, instance_id, own_batches_max=6)
    last_point: Point | None = None
    line.send("ready")
    while (word := await asyncio.to_thread(line.recv)) is not None:
        if isinstance(word, Point):
            last_point = word
        elif isinstance(word, Hold):
            tasks.start("admit", _admit(line, batcher, word, last_point))
        else:
            assert isinstance(word, Resolution)
            tasks.start("settle", _settle(line, batcher, word, last_point))
    os._exit(DIED_ON_COMMAND)


async def _admit(line: Connection, batcher: Batcher, hold: Hold, last_point: Point | None) -> None:
    _die_at(Point.BEFORE_ADMISSION, last_point)
    try:
        await batcher.admit(hold, wait_max=WAIT_MAX)
    except GatewayError as refusal:
        line.send(refusal.code)
        return
    _die_at(Point.ADMITTED, last_point)
    line.send("admitted")


async def _settle(
    line: Connection, batcher: Batcher, resolution: Resolution, last_point: Point | None
) -> None:
    _die_at(Point.BEFORE_SETTLEMENT, last_point)
    outcome = await batcher.resolve(resolution)
    _die_at(Point.SETTLED, last_point)
    line.send(outcome)


def _die_at(point: Point, last_point: Point | None) -> None:
    if point is last_point:
        os._exit(DIED_ON_COMMAND)


@dataclass(frozen=True)
class Worker:
    process: ForkServerProcess
    line: Connection
    instance_id: InstanceId

    def begin(self, word: Hold | Resolution) -> None:
        """Let it admit or settle; the answer comes later, if ever."""
        self.line.send(word)

    async def answer(self) -> object:
        return await next_word(self.line)

    async def do(self, word: Hold | Resolution) -> object:
        self.begin(word)
        return await self.answer()

    async def warm_up(self, payer: Payer) -> None:
        """Prepare the statement, so that the next one is a single round trip."""
        hold = payer.hold(1)
        await self.do(hold)
        await self.do(voided(hold))

    def must_die_at(self, point: Point) -> None:
        self.line.send(point)

    async def die(self) -> None:
        self.line.send(None)
        await self.has_died()

    async def has_died(self) -> None:
        assert await ended(self.process) == DIED_ON_COMMAND

    def pause(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)


@asynccontextmanager
async def working(database_url: str) -> AsyncGenerator[Worker]:
    """A worker that has said that it lives."""
    instance_id = InstanceId(time_ordered_uuid())
    async with running(work, database_url, instance_id) as (process, line):
        assert await next_word(line) == "ready"
        yield Worker(process, line, instance_id)
