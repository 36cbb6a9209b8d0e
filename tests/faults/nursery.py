"""Workers by the dozen, each in a process of its own that may be killed at any moment."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import NoReturn

from tests.ledger.money import WAIT_MAX, Payer, posted, voided
from tests.storage.processes import next_word, running
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import AdmissionUndecided, Uncovered
from tollhouse.ledger.types import ResolutionResult
from tollhouse.storage import instances
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

REQUESTS_AT_ONCE = 8
HOLD_MAX = 400
CHARGE_MAX = 3
SECONDS_UPSTREAM_MAX = 0.02


@dataclass(frozen=True)
class Birth:
    instance_id: InstanceId
    seed: int


def give_birth(line: Connection, database_url: str, payers: Sequence[Payer]) -> None:
    """For every birth that comes in: one fork, whose process ID is told.

    Forks spare the importing, which takes longer than a short life.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        birth = line.recv()
        line.send(os.fork() or _live(line, database_url, payers, birth))


def _live(line: Connection, database_url: str, payers: Sequence[Payer], birth: Birth) -> NoReturn:
    asyncio.run(_serve_until_orphaned(line, database_url, payers, birth))
    os._exit(0)


async def _serve_until_orphaned(
    line: Connection, database_url: str, payers: Sequence[Payer], birth: Birth
) -> None:
    parent = os.getppid()
    batcher = Batcher(
        await _announced(database_url, birth.instance_id),
        Tasks(),
        birth.instance_id,
        own_batches_max=4,
    )
    chance = random.Random(birth.seed)  # noqa: S311 - a seed that can be repeated

    async def serve() -> None:
        while os.getppid() == parent:
            await _serve(line, batcher, chance.choice(payers), chance)

    await asyncio.gather(*(serve() for _ in range(REQUESTS_AT_ONCE)))


async def _announced(database_url: str, instance_id: InstanceId) -> Database:
    """A pool, once the server is there and knows of this worker."""
    while True:
        with suppress(DatabaseUnavailable):
            database = await connect(settings_for(database_url))
            async with database.transaction() as tx:
                await instances.heartbeat(tx, instance_id)
            return database
        await asyncio.sleep(SECONDS_UPSTREAM_MAX)


async def _serve(line: Connection, batcher: Batcher, payer: Payer, chance: random.Random) -> None:
    hold = payer.hold(chance.randrange(CHARGE_MAX, HOLD_MAX))
    try:
        await batcher.admit(hold, wait_max=WAIT_MAX)
    except (Uncovered, AdmissionUndecided):
        return
    await asyncio.sleep(chance.random() * SECONDS_UPSTREAM_MAX)
    is_void = chance.random() < 1 / 3
    end = voided(hold) if is_void else posted(hold, chance.randrange(CHARGE_MAX + 1))
    if await batcher.resolve(end) is ResolutionResult.NO_HOLD:
        line.send(f"{hold.reservation_id} was admitted and is lost")


@dataclass(frozen=True)
class Nursery:
    line: Connection
    living: dict[InstanceId, int] = field(default_factory=dict[InstanceId, int])

    async def bear(self, seed: int) -> None:
        instance_id = InstanceId(time_ordered_uuid())
        self.line.send(Birth(instance_id, seed))
        pid = await next_word(self.line)
        assert isinstance(pid, int), pid
        self.living[instance_id] = pid

    def kill(self, instance_id: InstanceId) -> None:
        os.kill(self.living.pop(instance_id), signal.SIGKILL)

    def kill_all(self) -> None:
        for instance_id in list(self.living):
            self.kill(instance_id)


@asynccontextmanager
async def nursery(database_url: str, payers: Sequence[Payer]) -> AsyncGenerator[Nursery]:
    async with running(give_birth, database_url, payers) as (_, line):
        born = Nursery(line)
        try:
            yield born
        finally:
            born.kill_all()
