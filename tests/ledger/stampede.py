"""Callers in processes of their own, who all want to be admitted at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tests.ledger.money import WAIT_MAX, Payer, new_batcher, voided
from tests.storage.processes import next_word, running
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.errors import Uncovered
from tollhouse.ledger.types import Hold

PROCESSES = 4


@dataclass(frozen=True)
class Rush:
    """So many admissions at once, of so much each; given back at once or kept."""

    payer: Payer
    admissions: int
    amount: int
    are_voided: bool = False


@dataclass(frozen=True)
class Report:
    """How a rush ended in one process."""

    admitted: int
    codes: frozenset[str]


def admit_in_rushes(line: Connection, database_url: str) -> None:
    """For every rush that comes in: tell how many were admitted, and the refusals' codes."""
    asyncio.run(_admit_in_rushes(line, database_url))


async def _admit_in_rushes(line: Connection, database_url: str) -> None:
    database = await connect(settings_for(database_url))
    tasks = Tasks()
    batcher = new_batcher(database, tasks)
    line.send("ready")
    while (rush := await asyncio.to_thread(line.recv)) is not None:
        assert isinstance(rush, Rush)
        wanted = [rush.payer.hold(rush.amount) for _ in range(rush.admissions)]
        refused = await asyncio.gather(*(_refusal(batcher, hold) for hold in wanted))
        admitted = [hold for hold, code in zip(wanted, refused, strict=True) if code is None]
        if rush.are_voided:
            await asyncio.gather(*(batcher.resolve(voided(hold)) for hold in admitted))
        codes = frozenset(code for code in refused if code is not None)
        line.send(Report(len(admitted), codes))


async def _refusal(batcher: Batcher, hold: Hold) -> str | None:
    try:
        await batcher.admit(hold, wait_max=WAIT_MAX)
    except Uncovered as refusal:
        return refusal.code
    return None


@dataclass(frozen=True)
class Crowd:
    """The processes, waiting for the next rush."""

    lines: list[Connection]

    async def rush(self, rush: Rush) -> tuple[int, set[str]]:
        """Let them all go at once; how many got in, and why the others did not."""
        for line in self.lines:
            line.send(rush)
        answers = [await next_word(line) for line in self.lines]
        reports = [answer for answer in answers if isinstance(answer, Report)]
        assert len(reports) == len(self.lines)
        codes = set[str]().union(*(report.codes for report in reports))
        return sum(report.admitted for report in reports), codes


@asynccontextmanager
async def crowd(database_url: str) -> AsyncGenerator[Crowd]:
    async with AsyncExitStack() as stack:
        lines: list[Connection] = []
        for _ in range(PROCESSES):
            _, line = await stack.enter_async_context(running(admit_in_rushes, database_url))
            lines.append(line)
        for line in lines:
            assert await next_word(line) == "ready"
        yield Crowd(lines)
