"""`python -m bench.keys [--json]`: what finding a key costs with few other keys and with many.

Two databases stand side by side and are asked in turns, so that a busy moment of the machine
meets both. A lookup is cold: what was believed of the key is stale. PostgreSQL's own time and
the pages that it touched are those of the very statement that the directory sends.

The last use is counted by a trigger, over simulated minutes of 1,000 uses per second.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles
from typing import Any, cast

import asyncpg

from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.base.clock import HeldClock
from tollhouse.base.tasks import Tasks
from tollhouse.keys.directory import BATCH_KEYS_MAX, FLUSH_EVERY_SECONDS, KeyDirectory, LastUsed
from tollhouse.keys.lookup import find_by_digests
from tollhouse.keys.secrets import digest
from tollhouse.keys.types import Customer
from tollhouse.projects.types import Project
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

STALE = timedelta(seconds=1)
ROUNDS = 10
WORKERS = 2
USES_PER_SECOND = 1000
USED_KEYS = 20
USED_MINUTES = 3


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one key that is looked up alone, and of PostgreSQL for one key and for a full batch."""

    keys: int
    database: str
    median_us: float
    p99_us: float
    server_us: float
    server_pages: int
    batch_server_us: float
    batch_server_pages: int


@dataclass(frozen=True, kw_only=True)
class LastUse:
    """Rows that were written for so many uses, and the most for one key within one minute."""

    uses: int
    keys: int
    minutes: int
    updates: int
    updates_per_key_and_minute_max: int


@dataclass(frozen=True, kw_only=True)
class BenchSetup:
    """A database with a directory of a certain size, and keys in it whose values are known."""

    url: str
    database: Database
    clock: HeldClock
    directory: KeyDirectory
    values: list[str]
    size: int


FILL = """
WITH made AS (
    INSERT INTO project_keys (organization_id, id, project_id, name, redacted_value, permissions,
                              created_at)
    SELECT $1, gen_random_uuid(), $2, 'a key', 'thp_0000...0000',
           '{inference:write,models:read}', now()
      FROM generate_series(1, $3)
    RETURNING organization_id, id
)
INSERT INTO key_directory (digest, organization_id, key_kind, key_id)
SELECT sha256(id::text::bytea), organization_id, 'project', id
  FROM made
"""
COUNT_UPDATES = """
CREATE TABLE last_use_written (key_id uuid, used_at timestamptz);
CREATE FUNCTION note_last_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO last_use_written VALUES (NEW.id, NEW.last_used_at);
    RETURN NEW;
END
$$;
CREATE TRIGGER note_last_use AFTER UPDATE ON project_keys
FOR EACH ROW EXECUTE FUNCTION note_last_use();
"""


@asynccontextmanager
async def prepared(size: int, known: int, tasks: Tasks) -> AsyncGenerator[BenchSetup]:
    """A database of its own, gone afterwards."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        settings = settings_for(f"{url}?options=-csynchronous_commit%3Doff")
        database = await connect(settings)
        try:
            org = await new_organization_fixture(database)
            project = await org.project()
            await _fill(url, org, project, size - known)
            values = [(await org.project_key(project)).value for _ in range(known)]
            clock = HeldClock(datetime.now(UTC))  # noqa: TID251 - where held time begins
            yield BenchSetup(
                url=url,
                database=database,
                clock=clock,
                directory=KeyDirectory(database, clock, tasks, cache_size=100_000),
                values=values,
                size=size,
            )
        finally:
            await database.close()


async def _fill(url: str, org: OrganizationFixture, project: Project, count: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET synchronous_commit = off")
        await connection.execute(FILL, org.organization_id, project.id, count, timeout=600)
        await connection.execute("VACUUM ANALYZE", timeout=600)
    finally:
        await connection.close()


async def cold_lookups_us(setup: BenchSetup, values: list[str]) -> list[float]:
    """One after the other, as each would be the first to ask."""
    taken: list[float] = []
    for value in values:
        setup.clock.advance(STALE)
        began = time.perf_counter()
        known = await setup.directory.find(value)
        taken.append((time.perf_counter() - began) * 1e6)
        assert known is not None, "every key that is asked for exists"
    return taken


async def server_cost(setup: BenchSetup, count: int) -> tuple[float, int]:
    """PostgreSQL's own microseconds and pages, median of several, for `count` keys at once."""
    digests = [digest(value) for value in setup.values[:count]]
    digests += [digest(str(number)) for number in range(count - len(digests))]
    plans = [await _explained(setup, digests) for _ in range(ROUNDS)]
    return (
        median(plan["Execution Time"] * 1000 for plan in plans),
        plans[-1]["Plan"]["Shared Hit Blocks"] + plans[-1]["Plan"]["Shared Read Blocks"],
    )


async def _explained(setup: BenchSetup, digests: list[bytes]) -> dict[str, Any]:
    """The plan of what the directory has prepared on a connection of the pool."""
    literals = ", ".join(f"'\\x{digest.hex()}'" for digest in digests)
    is_one = len(digests) == 1
    await find_by_digests(setup.database, digests)
    async with setup.database.transaction() as tx:
        name = await tx.fetch_value(
            """
            SELECT name FROM pg_prepared_statements
             WHERE statement LIKE '%d.digest = ' || $1 || '%'
               AND statement NOT LIKE '%pg_prepared_statements%'
            """,
            "$1" if is_one else "ANY",
        )
        values = f"{literals}::bytea" if is_one else f"ARRAY[{literals}]::bytea[]"
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}({values})"
        plan = await tx.fetch_value(cast("Any", explain))
    return json.loads(plan)[0]  # noqa: TID251 - PostgreSQL's own JSON


async def lookup_costs(sizes: list[int], lookups: int) -> list[Cost]:
    """The same number of lookups in every directory, a share of each in turn."""
    tasks = Tasks()
    async with AsyncExitStack() as stack:
        grounds = [
            await stack.enter_async_context(prepared(size, min(lookups, size // 2), tasks))
            for size in sizes
        ]
        taken: dict[int, list[float]] = {setup.size: [] for setup in grounds}
        for start in range(ROUNDS):
            for setup in grounds:
                share = setup.values[start::ROUNDS]
                taken[setup.size] += await cold_lookups_us(setup, share)
        return [await _cost(setup, taken[setup.size]) for setup in grounds]


async def _cost(setup: BenchSetup, taken_us: list[float]) -> Cost:
    server_us, pages = await server_cost(setup, 1)
    batch_us, batch_pages = await server_cost(setup, BATCH_KEYS_MAX)
    return Cost(
        keys=setup.size,
        database=setup.url.rpartition("/")[2],
        median_us=round(median(taken_us), 1),
        p99_us=round(quantiles(taken_us, n=100)[98], 1),
        server_us=round(server_us, 1),
        server_pages=pages,
        batch_server_us=round(batch_us, 1),
        batch_server_pages=batch_pages,
    )


async def last_use() -> LastUse:
    """Two workers mark the same keys; each writes its marks every few simulated seconds."""
    tasks = Tasks()
    async with prepared(2 * USED_KEYS, USED_KEYS, tasks) as setup:
        callers = [await _caller(setup, value) for value in setup.values]
        connection = await asyncpg.connect(setup.url)
        await connection.execute(COUNT_UPDATES)
        await connection.close()
        workers = [LastUsed() for _ in range(WORKERS)]
        uses = 0
        for second in range(60 * USED_MINUTES):
            for use in range(USES_PER_SECOND):
                workers[use % WORKERS].mark(callers[use % USED_KEYS], setup.clock.now())
            uses += USES_PER_SECOND
            setup.clock.advance(timedelta(seconds=1))
            if second % FLUSH_EVERY_SECONDS == 0:
                for worker in workers:
                    await worker.flush(setup.database)
        return await _counted(setup, uses)


async def _caller(setup: BenchSetup, value: str) -> Customer:
    known = await setup.directory.find(value)
    assert known is not None
    assert known.project_key_id is not None
    assert known.project_id is not None
    return Customer(
        organization_id=known.organization_id,
        project_id=known.project_id,
        key_id=known.project_key_id,
        allowed_models=None,
        granted_checks=frozenset(),
        policy_version=0,
        catalog_version=0,
        limits=known.limits,
    )


async def _counted(setup: BenchSetup, uses: int) -> LastUse:
    async with setup.database.transaction() as tx:
        row = await tx.fetch_one(
            """
            SELECT count(*) AS updates, max(within_a_minute) AS most
              FROM (SELECT count(*) OVER (PARTITION BY key_id ORDER BY used_at
                                          RANGE BETWEEN CURRENT ROW
                                          AND '59.999 seconds' FOLLOWING) AS within_a_minute
                      FROM last_use_written) AS written
            """
        )
    assert row is not None
    return LastUse(
        uses=uses,
        keys=USED_KEYS,
        minutes=USED_MINUTES,
        updates=row["updates"],
        updates_per_key_and_minute_max=row["most"],
    )


def _table(costs: list[Cost], use: LastUse) -> str:
    lines = [f"{'keys':>9} {'median':>9} {'p99':>9} {'server':>9} {'pages':>6} {'256 keys':>9}"]
    lines += [
        f"{cost.keys:>9} {cost.median_us:>6.0f} us {cost.p99_us:>6.0f} us "
        f"{cost.server_us:>6.0f} us {cost.server_pages:>6} {cost.batch_server_us:>6.0f} us"
        for cost in costs
    ]
    lines.append(
        f"{use.uses} uses of {use.keys} keys in {use.minutes} minutes: {use.updates} updates, "
        f"at most {use.updates_per_key_and_minute_max} per key and minute"
    )
    return "\n".join(lines)


async def _measure(arguments: argparse.Namespace) -> None:
    costs = await lookup_costs([arguments.small, arguments.large], arguments.lookups)
    use = await last_use()
    sys.stdout.write(_table(costs, use) + "\n")
    if arguments.json:
        figures = {
            "lookups": [asdict(cost) for cost in costs],
            "ratio": round(costs[-1].median_us / costs[0].median_us, 3),
            "server_ratio": round(costs[-1].server_us / costs[0].server_us, 3),
            "last_use": asdict(use),
        }
        sys.stdout.write(json.dumps(figures) + "\n")


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.keys")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--small", type=int, default=1_000, help="keys in the one directory")
    parser.add_argument("--large", type=int, default=1_000_000, help="keys in the other")
    parser.add_argument("--lookups", type=int, default=500, help="cold lookups in each")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
