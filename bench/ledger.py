"""`python -m bench.ledger [--json]`: what batches are worth, and what they cost the others.

Every figure is a ratio of two things that were measured in turns: one row lock per request
against batches, inside the database (by pgbench) and through the batcher; a young partition
against a warm one; and what organizations that ask seldom wait for while one saturates the
ledger, against the same load spread over a thousand. Durability is on throughout.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from tests.ledger.money import WAIT_MAX, Payer, new_batcher, new_payer, posted
from tests.ledger.sending import send
from tests.support import databases
from tests.support.gateway import settings_for
from tollhouse.app import connect
from tollhouse.base.tasks import Tasks
from tollhouse.ledger.batcher import Batcher
from tollhouse.storage import migrate
from tollhouse.storage.database import SESSION_SETTINGS, Database

ROUNDS = 5
ROUND_SECONDS = 3
BATCH = 64
RIVALS = 32
CALLERS = 256
HOT_CALLERS = 48
COLD_ORGANIZATIONS = 50
COLD_PAUSE_SECONDS = 0.05
SPREAD_ORGANIZATIONS = 1_000
PLENTY = 10**30
AMOUNT = 1_000

ADMIT = """
SELECT count(*) FROM ledger_admit_batch(
    (SELECT array_agg(ROW('{organization}', gen_random_uuid(), now(), now() + interval '5 min',
                          1000, '{project}', '{key}', 'a-model', 1, false)::ledger_hold)
       FROM generate_series(1, {size})),
    '{organization}', false, false);
"""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two rates or times, medians of interleaved rounds, and what the first is of the second."""

    first: float
    second: float
    ratio: float


def compared(first: list[float], second: list[float]) -> Compared:
    """The medians, and their ratio."""
    one, other = median(first), median(second)
    return Compared(first=round(one, 2), second=round(other, 2), ratio=round(one / other, 2))


@asynccontextmanager
async def setup() -> AsyncGenerator[tuple[str, Database]]:
    """A fresh database and a pool as the gateway would have it."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        database = await connect(settings_for(url))
        try:
            yield url, database
        finally:
            await database.close()


async def inside(url: str, payer: Payer) -> Compared:
    """Admissions per second: batches from one connection, single ones from many rivals."""
    batched: list[float] = []
    single: list[float] = []
    for _ in range(ROUNDS):
        batched.append(BATCH * await pgbench(url, payer, size=BATCH, clients=1))
        single.append(await pgbench(url, payer, size=1, clients=RIVALS))
    return compared(batched, single)


async def pgbench(url: str, payer: Payer, *, size: int, clients: int) -> float:
    """Transactions per second of the very function that the gateway calls."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(
            ADMIT.format(
                organization=payer.organization_id,
                project=payer.project_id,
                key=payer.api_key_id,
                size=size,
            ).replace("\n", " ")
        )
        script.flush()
        binaries = subprocess.check_output(["pg_config", "--bindir"], text=True).strip()  # noqa: ASYNC221, S607
        options = " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items())
        process = await asyncio.create_subprocess_exec(
            Path(binaries) / "pgbench",
            *("--no-vacuum", "--protocol=prepared", "--jobs=1"),
            *(f"--client={clients}", f"--time={ROUND_SECONDS}", f"--file={script.name}", url),
            env={"PGOPTIONS": options},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
    rates = [line for line in output.decode().splitlines() if line.startswith("tps = ")]
    return float(rates[0].split()[2])


async def through_python(database: Database, payer: Payer) -> Compared:
    """Admissions per second: the batcher, and one statement per request on as many connections."""
    tasks = Tasks()
    batcher = new_batcher(database, tasks)

    async def by_batcher() -> None:
        await batcher.admit(payer.hold(AMOUNT), wait_max=WAIT_MAX)

    async def alone() -> None:
        await send(database, [], [payer.hold(AMOUNT)])

    batched: list[float] = []
    single: list[float] = []
    for _ in range(ROUNDS):
        batched.append(await rate(by_batcher, callers=CALLERS))
        single.append(await rate(alone, callers=RIVALS))
    await tasks.drain(deadline_seconds=30)
    return compared(batched, single)


async def rate(work: Callable[[], Awaitable[None]], *, callers: int) -> float:
    """How often per second `callers` together get it done."""
    began = time.perf_counter()
    until = began + ROUND_SECONDS
    done = 0

    async def caller() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await work()
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    return done / (time.perf_counter() - began)


async def young_partition() -> Compared:
    """Milliseconds per batch of admissions with their settlements: a new database, a warm one."""
    young: list[float] = []
    warm: list[float] = []
    async with setup() as (_, warm_database):
        warm_payer = await new_payer(warm_database, credit=PLENTY)
        await batch_ms(warm_database, warm_payer, batches_sent=150)
        await warm_database.fetch_all("ANALYZE")
        await batch_ms(warm_database, warm_payer, batches_sent=20)
        for _ in range(ROUNDS):
            warm.append(await batch_ms(warm_database, warm_payer, batches_sent=20))
            async with setup() as (_, young_database):
                young_payer = await new_payer(young_database, credit=PLENTY)
                young.append(await batch_ms(young_database, young_payer, batches_sent=20))
    return compared(young, warm)


async def batch_ms(database: Database, payer: Payer, *, batches_sent: int) -> float:
    """Median time of a batch that settles the last batch's holds and admits as many."""
    taken: list[float] = []
    before = [payer.hold(AMOUNT) for _ in range(BATCH)]
    await send(database, [], before)
    for _ in range(batches_sent):
        holds = [payer.hold(AMOUNT) for _ in range(BATCH)]
        settled = [posted(hold, AMOUNT) for hold in before]
        began = time.perf_counter()
        await send(database, settled, holds)
        taken.append((time.perf_counter() - began) * 1000)
        before = holds
    return median(taken)


async def cold_p99(database: Database) -> Compared:
    """Milliseconds that seldom callers wait at worst: beside one busy organization, or many."""
    hot = await new_payer(database, credit=PLENTY)
    spread = [await new_payer(database, credit=PLENTY) for _ in range(SPREAD_ORGANIZATIONS)]
    cold = [await new_payer(database, credit=PLENTY) for _ in range(COLD_ORGANIZATIONS)]
    beside_one: list[float] = []
    beside_many: list[float] = []
    for _ in range(ROUNDS):
        beside_one.append(await _cold_p99(database, [hot], cold))
        beside_many.append(await _cold_p99(database, spread, cold))
    return compared(beside_one, beside_many)


async def _cold_p99(database: Database, busy: list[Payer], cold: list[Payer]) -> float:
    tasks = Tasks()
    batcher = new_batcher(database, tasks)
    until = time.perf_counter() + ROUND_SECONDS
    waited: list[float] = []

    async def saturate(number: int) -> None:
        turn = number
        while time.perf_counter() < until:
            await _admit_and_settle(batcher, busy[turn % len(busy)])
            turn += HOT_CALLERS

    async def ask_seldom(payer: Payer) -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            await _admit_and_settle(batcher, payer)
            waited.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(COLD_PAUSE_SECONDS)

    await asyncio.gather(
        *(saturate(number) for number in range(HOT_CALLERS)),
        *(ask_seldom(payer) for payer in cold),
    )
    await tasks.drain(deadline_seconds=30)
    return quantiles(waited, n=100)[98]


async def _admit_and_settle(batcher: Batcher, payer: Payer) -> None:
    hold = payer.hold(AMOUNT)
    await batcher.admit(hold, wait_max=WAIT_MAX)
    batcher.resolve(posted(hold, AMOUNT))


async def _measure(arguments: argparse.Namespace) -> None:
    figures: dict[str, Compared] = {}
    async with setup() as (url, database):
        payer = await new_payer(database, credit=PLENTY)
        figures["inside_the_database"] = await inside(url, payer)
        figures["through_the_batcher"] = await through_python(database, payer)
        figures["cold_p99_ms"] = await cold_p99(database)
    figures["young_partition_ms"] = await young_partition()
    for name, figure in figures.items():
        sys.stdout.write(
            f"{name:>22} {figure.first:>10.2f} against {figure.second:>10.2f}: {figure.ratio:.2f}\n"
        )
    if arguments.json:
        told = {name: asdict(figure) for name, figure in figures.items()}
        sys.stdout.write(json.dumps({"python": sys.version.split()[0], **told}) + "\n")


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.ledger")
    parser.add_argument("--json", action="store_true")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
