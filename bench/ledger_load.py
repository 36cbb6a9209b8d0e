"""`python -m bench.ledger_load [--json]`: what a request costs PostgreSQL, and how many it bears.

Workers admit and settle through their batchers as fast as they can, with 408 daily partitions, for
one organization and for a thousand. Told for each: requests per second, CPU of the workers' own
sessions and bytes of WAL per request. The last load is of one organization while another session
keeps a snapshot open, so that no old version of its rows can be removed.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection

import asyncpg

from bench.ledger_days import kept
from bench.support import processes
from tests.ledger.money import WAIT_MAX, Payer, new_batcher, new_payer, posted
from tests.support import databases
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.storage import migrate

DAYS = 408
ORGANIZATIONS = 1_000
WORKERS = (1, 4)
CALLERS = 64
WARM_REQUESTS = 200
PLENTY = 10**30
AMOUNT = 1_000


@dataclass(frozen=True, kw_only=True)
class Load:
    """So many requests of these organizations, in turns, by one worker."""

    payers: Sequence[Payer]
    requests: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What all workers together got done, and what each request cost."""

    requests_per_second: float
    postgresql_cpu_us: float
    wal_bytes: float


def work(line: Connection, url: str) -> None:
    """Carry out every load that comes in, and tell when it is done."""
    asyncio.run(_work(line, url))


async def _work(line: Connection, url: str) -> None:
    database = await connect(settings_for(url))
    tasks = Tasks()
    batcher = new_batcher(database, tasks)
    line.send("ready")
    while (load := await asyncio.to_thread(line.recv)) is not None:
        assert isinstance(load, Load)
        left = iter(range(load.requests))
        await asyncio.gather(*(_caller(batcher, load.payers, left) for _ in range(CALLERS)))
        line.send("done")
    await database.close()


async def _caller(batcher: Batcher, payers: Sequence[Payer], left: Iterator[int]) -> None:
    for number in left:
        hold = payers[number % len(payers)].hold(AMOUNT)
        await batcher.admit(hold, wait_max=WAIT_MAX)
        await batcher.resolve(posted(hold, AMOUNT))


class Workers:
    """Processes with a batcher each, and the session that watches the server."""

    def __init__(self, lines: Sequence[Connection], watching: asyncpg.Connection) -> None:
        self._lines = lines
        self._watching = watching

    async def carry_out(self, payers: Sequence[Payer], requests: int) -> Cost:
        """Share the requests among the workers; each has its own part of many organizations."""
        cpu, wal, began = await self._cpu(), await self._wal(), time.perf_counter()
        count = len(self._lines)
        for number, line in enumerate(self._lines):
            own = payers if len(payers) < count else payers[number::count]
            line.send(Load(payers=own, requests=requests // count))
        for line in self._lines:
            assert await asyncio.to_thread(line.recv) == "done"
        seconds = time.perf_counter() - began
        return Cost(
            requests_per_second=round(requests / seconds, 1),
            postgresql_cpu_us=round((await self._cpu() - cpu) / requests * 1e6, 1),
            wal_bytes=round((await self._wal() - wal) / requests, 1),
        )

    async def _cpu(self) -> float:
        rows = await self._watching.fetch(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return sum(processes.cpu_seconds(row["pid"]) for row in rows)

    async def _wal(self) -> int:
        return await self._watching.fetchval("SELECT (pg_current_wal_lsn() - '0/0')::bigint")


@asynccontextmanager
async def running(url: str, count: int) -> AsyncGenerator[Workers]:
    """Start so many workers, and end them."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(count)]
    started = [context.Process(target=work, args=(theirs, url)) for _, theirs in pipes]
    for process in started:
        process.start()
    lines = [ours for ours, _ in pipes]
    for line in lines:
        assert await asyncio.to_thread(line.recv) == "ready"
    watching = await asyncpg.connect(url)
    try:
        yield Workers(lines, watching)
    finally:
        await watching.close()
        for line in lines:
            line.send(None)
        for process in started:
            await asyncio.to_thread(process.join)


async def measured(requests: int, days: int, organizations: int) -> dict[str, Cost]:
    """Every load, one after the other."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        database = await connect(settings_for(url))
        await kept(database, days)
        hot = await new_payer(database, credit=PLENTY)
        spread = [await new_payer(database, credit=PLENTY) for _ in range(organizations)]
        await database.close()
        found: dict[str, Cost] = {}
        for count in WORKERS:
            async with running(url, count) as workers:
                for payers in ([hot], spread):
                    warm = max(WARM_REQUESTS, 2 * len(payers))
                    await workers.carry_out(payers, warm)
                    name = f"organizations_{len(payers)}_workers_{count}"
                    found[name] = await workers.carry_out(payers, requests)
        async with running(url, 1) as workers, snapshot(url):
            await workers.carry_out([hot], WARM_REQUESTS)
            found["snapshot_first_tenth"] = await workers.carry_out([hot], requests // 10)
            await workers.carry_out([hot], requests - 2 * (requests // 10))
            found["snapshot_last_tenth"] = await workers.carry_out([hot], requests // 10)
        return found


@asynccontextmanager
async def snapshot(url: str) -> AsyncGenerator[None]:
    """Keep a snapshot open, as a dump does."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM accounts")
            yield
    finally:
        await connection.close()


async def _measure(arguments: argparse.Namespace) -> None:
    found = await measured(arguments.requests, arguments.days, arguments.organizations)
    for name, cost in found.items():
        sys.stdout.write(
            f"{name:>32} {cost.requests_per_second:>9.1f} per second"
            f" {cost.postgresql_cpu_us:>8.1f} us {cost.wal_bytes:>9.1f} bytes of WAL\n"
        )
    if arguments.json:
        told = {name: asdict(cost) for name, cost in found.items()}
        sys.stdout.write(json.dumps({"python": sys.version.split()[0], **told}) + "\n")


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_load")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=10_000, help="of each load")
    parser.add_argument("--days", type=int, default=DAYS, help="daily partitions")
    parser.add_argument("--organizations", type=int, default=ORGANIZATIONS)
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
