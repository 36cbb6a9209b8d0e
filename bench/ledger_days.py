"""`python -m bench.ledger_days [--json]`: what a kept day costs each admission and settlement.

Figures in microseconds are CPU time of the PostgreSQL backend per item, as the kernel counts it,
with few and with many daily partitions. Those in milliseconds are what the caller waits, as medians
of turns in which a bare insert with its commit stands beside a single admission and settlement. It
needs a PostgreSQL on this machine.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from pathlib import Path
from statistics import median

from tests.ledger.money import Payer, new_payer, posted
from tests.ledger.sending import Form, send
from tests.support import databases
from tollhouse.ledger.types import Hold, Resolution
from tollhouse.storage import migrate, partitions
from tollhouse.storage.database import Database
from tollhouse.storage.partitions import DailyTable

DAYS = (9, 408)
MADE_AT_ONCE = 20
BATCH = 64
BATCHES = 10
WARM_BATCHES = 2
PLENTY = 10**30
AMOUNT = 1_000
INSERTS_MAX = 3


async def kept(database: Database, days: int) -> None:
    """Make partitions of past days until there are so many; a new database has nine."""
    async with database.transaction() as tx:
        last = await partitions.today(tx) - timedelta(days=2)
    first = last - timedelta(days=days - 10)
    while first <= last:
        async with database.transaction(statement_seconds=60) as tx:
            until = min(last, first + timedelta(days=MADE_AT_ONCE - 1))
            await partitions.make(tx, DailyTable.LEDGER_ENTRIES, first_day=first, last_day=until)
        first = until + timedelta(days=1)


async def measured(days: int) -> dict[str, float]:
    """Microseconds of CPU per item: one organization alone, batched, and many organizations."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        database = await Database.connect(url, pool_size=1, acquire_seconds=5, statement_seconds=60)
        try:
            await kept(database, days)
            payers = [await new_payer(database, credit=PLENTY) for _ in range(BATCH)]
            return {
                **await one_by_one(database, payers[0]),
                **await in_batches(database, payers[0]),
                **await mixed(database, payers),
                **await beside_a_bare_insert(database, payers[0]),
            }
        finally:
            await database.close()


async def one_by_one(database: Database, payer: Payer) -> dict[str, float]:
    """Each item in a statement of its own."""
    admitting = settling = 0
    for number in range(BATCHES + WARM_BATCHES):
        holds = [payer.hold(AMOUNT) for _ in range(BATCH)]
        before = await cpu_ns(database)
        for hold in holds:
            await send(database, [], [hold], Form.ALONE)
        between = await cpu_ns(database)
        for hold in holds:
            await send(database, [posted(hold, AMOUNT)], [], Form.ALONE)
        if number >= WARM_BATCHES:
            admitting += between - before
            settling += await cpu_ns(database) - between
    return {"admit_alone_us": per_item(admitting), "settle_alone_us": per_item(settling)}


async def in_batches(database: Database, payer: Payer) -> dict[str, float]:
    """All items of one organization in one statement."""
    admitting = settling = 0
    for number in range(BATCHES + WARM_BATCHES):
        holds = [payer.hold(AMOUNT) for _ in range(BATCH)]
        before = await cpu_ns(database)
        await apply(database, [], holds)
        between = await cpu_ns(database)
        await apply(database, [posted(hold, AMOUNT) for hold in holds], [])
        if number >= WARM_BATCHES:
            admitting += between - before
            settling += await cpu_ns(database) - between
    return {"admit_batched_us": per_item(admitting), "settle_batched_us": per_item(settling)}


async def mixed(database: Database, payers: Sequence[Payer]) -> dict[str, float]:
    """One item of each of many organizations in one statement."""
    admitting = settling = 0
    for number in range(BATCHES + WARM_BATCHES):
        holds = [payer.hold(AMOUNT) for payer in payers]
        before = await cpu_ns(database)
        await apply_mixed(database, [], holds)
        between = await cpu_ns(database)
        await apply_mixed(database, [posted(hold, AMOUNT) for hold in holds], [])
        if number >= WARM_BATCHES:
            admitting += between - before
            settling += await cpu_ns(database) - between
    return {"admit_mixed_us": per_item(admitting), "settle_mixed_us": per_item(settling)}


async def beside_a_bare_insert(database: Database, payer: Payer) -> dict[str, float]:
    """What a caller waits for a bare insert, an admission and a settlement, in turns."""
    await database.fetch_all("CREATE TABLE bare_insert (id uuid PRIMARY KEY, amount bigint)")
    inserting, inserted = 0, list[float]()
    admitted, settled = list[float](), list[float]()
    for _ in range(BATCHES * BATCH):
        hold = payer.hold(AMOUNT)
        before = await cpu_ns(database)
        inserted.append(
            await _waited_ms(
                database.fetch_all(
                    "INSERT INTO bare_insert VALUES ($1, $2)", hold.reservation_id, AMOUNT
                )
            )
        )
        inserting += await cpu_ns(database) - before
        admitted.append(await _waited_ms(send(database, [], [hold], Form.ALONE)))
        settled.append(await _waited_ms(send(database, [posted(hold, AMOUNT)], [], Form.ALONE)))
    return {
        "bare_insert_us": per_item(inserting),
        "bare_insert_ms": round(median(inserted), 3),
        "admit_alone_ms": round(median(admitted), 3),
        "settle_alone_ms": round(median(settled), 3),
    }


async def _waited_ms(sent: Awaitable[object]) -> float:
    begun_seconds = time.perf_counter()
    await sent
    return (time.perf_counter() - begun_seconds) * 1000


async def apply(database: Database, ends: list[Resolution], holds: list[Hold]) -> None:
    """Send one batch of one organization."""
    await send(database, ends, holds, Form.OWN)


async def apply_mixed(database: Database, ends: list[Resolution], holds: list[Hold]) -> None:
    """Send one batch of many organizations."""
    await send(database, ends, holds, Form.MIXED)


async def cpu_ns(database: Database) -> int:
    """What the only connection's backend has used since it began."""
    rows = await database.fetch_all("SELECT pg_backend_pid() AS pid")
    counted = Path(f"/proc/{rows[0]['pid']}/schedstat").read_text()  # noqa: ASYNC240 - no disk
    return int(counted.split()[0])


def per_item(nanoseconds: int) -> float:
    """The mean, in microseconds."""
    return round(nanoseconds / (BATCHES * BATCH) / 1000, 1)


async def _measure(arguments: argparse.Namespace) -> None:
    few, many = [await measured(days) for days in DAYS]
    for name, value in few.items():
        sys.stdout.write(f"{name:>18} {value:>8.2f} with {DAYS[0]} days")
        sys.stdout.write(f" {many[name]:>8.2f} with {DAYS[1]} days\n")
    if arguments.json:
        told = {f"days_{days}": found for days, found in zip(DAYS, (few, many), strict=True)}
        ratio = many["admit_alone_ms"] / many["bare_insert_ms"]
        bars = {f"admission at most {INSERTS_MAX} times a bare insert": ratio <= INSERTS_MAX}
        sys.stdout.write(
            json.dumps({"python": sys.version.split()[0], **told, "bars": bars}) + "\n"
        )


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_days")
    parser.add_argument("--json", action="store_true")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
