"""`python -m bench.policies [--json]`: what few policies in effect cost, and what many do.

One database holds many policies. Two of its organizations are asked in turns, so that a busy
moment of the machine meets both. Measured are the reading of the effective list, the reload of
a snapshot after a change, and the check of a snapshot that a request on its way to a model pays.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from statistics import median, quantiles

import asyncpg

from bench.support.policies import fill
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.base.tasks import Tasks
from tollhouse.policies import service
from tollhouse.policies.snapshots import PolicySnapshots
from tollhouse.projects.types import Project
from tollhouse.storage import migrate
from tollhouse.storage.database import Database

ROUNDS = 10
CHECKS_PER_READING = 1_000
RULE = "x" * 199 + "?"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Microseconds of one reading, one reload, and one check of what is held."""

    in_effect: int
    list_p50_us: float
    list_p99_us: float
    reload_p50_us: float
    reload_p99_us: float
    check_p50_us: float
    check_p99_us: float


class Side:
    """An organization with so many policies in effect, and what was measured of it."""

    def __init__(
        self, org: OrganizationFixture, project: Project, in_effect: int, tasks: Tasks
    ) -> None:
        self._world = org
        self._project = project
        self._in_effect = in_effect
        self._snapshots = PolicySnapshots(org.database, tasks)
        self._number = 0
        self._list_us: list[float] = []
        self._reload_us: list[float] = []
        self._check_us: list[float] = []

    async def measure(self, readings: int) -> None:
        """A share of the readings, each with its reload and its checks."""
        for _ in range(readings):
            self._list_us.append(await _timed_us(self._list))
            await self._raise_number()
            self._reload_us.append(await _timed_us(self._check))
            checks_us = await _timed_us(self._check_often)
            self._check_us.append(checks_us / CHECKS_PER_READING)

    async def _list(self) -> None:
        async with self._world.database.transaction() as tx:
            found = await service.effective(tx, self._world.organization_id, self._project.id)
        assert len(found) == self._in_effect

    async def _raise_number(self) -> None:
        self._number += 1
        async with self._world.database.transaction() as tx:
            await tx.execute(
                "UPDATE organizations SET policy_version = $2 WHERE id = $1",
                self._world.organization_id,
                self._number,
            )

    async def _check(self) -> None:
        snapshot = await self._snapshots.find(
            self._world.organization_id, self._project.id, policy_version=self._number
        )
        assert len(snapshot.policies) == self._in_effect

    async def _check_often(self) -> None:
        for _ in range(CHECKS_PER_READING):
            await self._check()

    def cost(self) -> Cost:
        """All that was measured, in short."""
        return Cost(
            in_effect=self._in_effect,
            list_p50_us=round(median(self._list_us), 1),
            list_p99_us=_p99(self._list_us),
            reload_p50_us=round(median(self._reload_us), 1),
            reload_p99_us=_p99(self._reload_us),
            check_p50_us=round(median(self._check_us), 3),
            check_p99_us=_p99(self._check_us),
        )


async def _timed_us(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1e6


def _p99(taken_us: list[float]) -> float:
    return round(quantiles(taken_us, n=100)[98], 3)


@asynccontextmanager
async def prepared(url: str) -> AsyncGenerator[Database]:
    """A pool on a schema that is up to date."""
    await migrate.migrate(url)
    settings = settings_for(f"{url}?options=-csynchronous_commit%3Doff")
    database = await connect(settings)
    try:
        yield database
    finally:
        await database.close()


async def _tidy(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE", timeout=600)
    finally:
        await connection.close()


async def costs(few: int, many: int, total: int, readings: int) -> list[Cost]:
    """Few and many in effect, with all other policies in effect elsewhere."""
    tasks = Tasks()
    async with databases.temporary() as url, prepared(url) as database:
        sides: list[Side] = []
        for count in (few, many):
            org = await new_organization_fixture(database)
            await fill(url, org.organization_id, count, rule=RULE)
            sides.append(Side(org, await org.project(), count, tasks))
        elsewhere = total - few - many
        while elsewhere > 0:
            others = await new_organization_fixture(database)
            await fill(url, others.organization_id, min(many, elsewhere), rule=RULE)
            elsewhere -= many
        await _tidy(url)
        for _ in range(ROUNDS):
            for side in sides:
                await side.measure(readings // ROUNDS)
        return [side.cost() for side in sides]


def _table(measured: list[Cost]) -> str:
    lines = [f"{'in effect':>9} {'list p50':>11} {'p99':>11} {'reload p50':>11} {'check p50':>10}"]
    lines += [
        f"{cost.in_effect:>9} {cost.list_p50_us:>8.0f} us {cost.list_p99_us:>8.0f} us "
        f"{cost.reload_p50_us:>8.0f} us {cost.check_p50_us:>7.2f} us"
        for cost in measured
    ]
    return "\n".join(lines)


async def _measure(arguments: argparse.Namespace) -> None:
    measured = await costs(arguments.few, arguments.many, arguments.total, arguments.readings)
    sys.stdout.write(_table(measured) + "\n")
    if arguments.json:
        figures = {
            "policies": arguments.total,
            "costs": [asdict(cost) for cost in measured],
            "check_ratio": round(measured[1].check_p50_us / measured[0].check_p50_us, 3),
        }
        sys.stdout.write(json.dumps(figures) + "\n")


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.policies")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--few", type=int, default=10, help="in effect in the one organization")
    parser.add_argument("--many", type=int, default=1_000, help="in effect in the other")
    parser.add_argument("--total", type=int, default=100_000, help="policies in the database")
    parser.add_argument("--readings", type=int, default=500, help="of each organization")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
