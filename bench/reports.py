"""`python -m bench.reports [--json]`: what a page of a report costs, by how it is asked.

The largest page that there is: 180 days, all three groupings, over a year of events. Beside it
the same page with a bound that cuts an hour, for which the entries of that hour are looked for.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from statistics import median

import asyncpg
import httpx2

from tests.reports import events
from tests.reports.past import COSTS, USAGE, opened
from tests.support import databases
from tests.support.gateway import running_gateway, settings_for
from tests.support.organization_fixture import new_organization_fixture
from tollhouse.app import connect
from tollhouse.storage import migrate

DAY = 86_400
BUCKETS = 180
FILLING_SECONDS_MAX = 3_600


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of one page, from the request to the last byte."""

    page: str
    results: int
    kilobytes: int
    median_ms: float
    worst_ms: float


@asynccontextmanager
async def prepared(count: int) -> AsyncGenerator[httpx2.AsyncClient]:
    """A gateway on a database of its own with so many events, gone afterwards."""
    async with databases.temporary() as url:
        await migrate.migrate(url)
        settings = settings_for(f"{url}?options=-csynchronous_commit%3Doff")
        database = await connect(settings)
        connection = await asyncpg.connect(settings.database.url)
        try:
            org = await new_organization_fixture(database)
            async with (
                running_gateway(settings) as gateway,
                opened(org, gateway, connection) as past,
            ):
                await events.make_partitions(connection, events.FIRST_DAY, events.LAST_DAY)
                since = events.midnight(events.FIRST_DAY)
                await events.hold(
                    *(connection, org.organization_id, past.keys, count),
                    since=since,
                    until=since + timedelta(days=events.DAYS),
                )
                await events.resolve(connection, org.organization_id)
                await connection.execute("VACUUM ANALYZE", timeout=FILLING_SECONDS_MAX)
                yield past.client
        finally:
            await connection.close()
            await database.close()


async def cost(client: httpx2.AsyncClient, name: str, query: str, *, rounds: int) -> Cost:
    """The median of several; the first, which plans and warms, does not count."""
    taken: list[float] = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        answer = await client.get(query)
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == httpx2.codes.OK, answer.text
    page = answer.json()
    return Cost(
        page=name,
        results=sum(len(bucket["results"]) for bucket in page["data"]),
        kilobytes=len(answer.content) // 1024,
        median_ms=round(median(taken[1:]), 1),
        worst_ms=round(max(taken[1:]), 1),
    )


def questions() -> dict[str, str]:
    """By name; all begin on the same day."""
    start = int(events.midnight(events.FIRST_DAY).timestamp()) + 100 * DAY
    end = start + BUCKETS * DAY
    whole = f"start_time={start}&end_time={end}&limit={BUCKETS}"
    cut = f"start_time={start + 1}&end_time={end - 1}&limit={BUCKETS}"
    by_three = "group_by=project_id,api_key_id,line_item"
    return {
        "180 days, not grouped": f"{COSTS}?{whole}",
        "180 days, three groupings": f"{COSTS}?{whole}&{by_three}",
        "180 days, three groupings, both ends cut to the second": f"{COSTS}?{cut}&{by_three}",
        "180 hours of usage, three groupings": (
            f"{USAGE}?{whole}&bucket_width=1h&group_by=project_id,api_key_id,model"
        ),
    }


async def measure(count: int, rounds: int) -> list[Cost]:
    """All questions, one after the other."""
    async with prepared(count) as client:
        return [
            await cost(client, name, query, rounds=rounds) for name, query in questions().items()
        ]


def main() -> int:
    """Print a line per page, and with `--json` one object at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    wanted = parser.parse_args()
    costs = asyncio.run(measure(wanted.events, wanted.rounds))
    for found in costs:
        print(  # noqa: T201 - a command speaks by printing
            f"{found.page}: {found.median_ms} ms (worst {found.worst_ms}),"
            f" {found.results} results, {found.kilobytes} kB"
        )
    if wanted.json:
        figures = {"events": wanted.events, "pages": [asdict(found) for found in costs]}
        print(json.dumps(figures))  # noqa: T201 - a command speaks by printing
    return 0


if __name__ == "__main__":
    sys.exit(main())
