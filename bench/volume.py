"""`python -m bench.volume [--json] [--scale 0.01]`: what much data costs the request path.

One database is filled with 100,000 organizations, a million keys, a million policies and ten
million ledger entries over 400 days, all times `--scale`; another has as many daily partitions, 64
organizations and no entry. Every statement that a request causes is explained in both. It fails if
one opens more partitions, reads more rows, or touches more pages than larger indexes explain.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from statistics import median

import asyncpg

from bench.support.explaining import ExplainingDatabase
from bench.support.volume import Volume, load
from tests.ledger.money import Payer, posted
from tests.ledger.sending import Form, send
from tests.support import databases
from tollhouse.activity import store as activity
from tollhouse.activity.types import RequestRecord
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import (
    OrganizationId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    RequestId,
    time_ordered_uuid,
)
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.keys import lookup
from tollhouse.keys.directory import LastUsed
from tollhouse.keys.types import Customer
from tollhouse.policies import sets
from tollhouse.storage import migrate

FULL = Volume(organizations=100_000, requests_per_day=12_500, days=400)
ITEMS = 64
REPEATED = 9
COUNTED = 3
"""The last executions, when a statement has its generic plan."""
AMOUNT = 1_000
PAGES_MORE = 8
PAGES_MORE_PER_ITEM = 8
"""Two more levels of each of four indexes that an item is looked up in."""


@dataclass(frozen=True, kw_only=True)
class LoadedKey:
    """A key with what a request of it needs."""

    payer: Payer
    digest: bytes
    policy_ids: list[PolicyId]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Medians of one statement."""

    buffers: int
    rows_read: int
    partitions: int
    milliseconds: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One statement in the empty database and in the loaded one."""

    items: int
    empty: Cost
    loaded: Cost

    @property
    def buffers_max(self) -> int:
        """Twice the pages of the empty database, and the levels of larger indexes."""
        return 2 * self.empty.buffers + PAGES_MORE + PAGES_MORE_PER_ITEM * self.items

    @property
    def is_held(self) -> bool:
        """Whether the loaded database costs no more than its larger indexes explain."""
        return (
            self.loaded.partitions == self.empty.partitions
            and self.loaded.rows_read <= 2 * self.empty.rows_read + self.items
            and self.loaded.buffers <= self.buffers_max
        )


Statement = Callable[[ExplainingDatabase], Awaitable[None]]


async def statements(url: str) -> dict[str, tuple[int, Statement]]:
    """Return what a request sends, by name, with the number of its items."""
    keys = await _keys(url)
    found: dict[str, tuple[int, Statement]] = {}
    for name, form, chosen in (
        ("alone", Form.ALONE, keys[:1]),
        ("batch", Form.OWN, keys[:1] * ITEMS),
        ("mixed", Form.MIXED, keys),
    ):
        payers = [key.payer for key in chosen]
        found[f"admit_{name}"] = len(payers), _admitting(payers, form)
        found[f"settle_{name}"] = len(payers), _settling(payers, form)
    for name, chosen in (("alone", keys[:1]), ("mixed", keys)):
        found[f"request_records_{name}"] = len(chosen), _recording(chosen)
        found[f"key_lookup_{name}"] = len(chosen), _finding(chosen)
        found[f"last_uses_{name}"] = len(chosen), _marking(chosen)
    payer = keys[0].payer

    async def snapshot(database: ExplainingDatabase) -> None:
        assert await sets.snapshot(database, payer.organization_id, payer.project_id)

    async def selected(database: ExplainingDatabase) -> None:
        assert await sets.selected(database, payer.organization_id, keys[0].policy_ids)

    return {**found, "policy_snapshot": (1, snapshot), "policies_by_id": (1, selected)}


def _admitting(payers: list[Payer], form: Form) -> Statement:
    async def admit(database: ExplainingDatabase) -> None:
        result = await send(database, [], [payer.hold(AMOUNT) for payer in payers], form)
        assert {decision and decision.code for decision in result.decisions} == {0}

    return admit


def _settling(payers: list[Payer], form: Form) -> Statement:
    async def settle(database: ExplainingDatabase) -> None:
        holds = [payer.hold(AMOUNT) for payer in payers]
        await send(database, [], holds, form)
        database.explained.pop()
        await send(database, [posted(hold, AMOUNT) for hold in holds], [], form)

    return settle


def _recording(keys: list[LoadedKey]) -> Statement:
    async def record(database: ExplainingDatabase) -> None:
        records = [
            RequestRecord(
                organization_id=key.payer.organization_id,
                request_id=RequestId(time_ordered_uuid()),
                project_id=key.payer.project_id,
                api_key_id=key.payer.api_key_id,
                operation="createChatCompletion",
                started_at=SystemClock().now(),
                status=200,
                model="a-model",
            )
            for key in keys
        ]
        assert await activity.insert(database, records) == len(records)

    return record


def _finding(keys: list[LoadedKey]) -> Statement:
    async def find(database: ExplainingDatabase) -> None:
        digests = [key.digest for key in keys]
        assert len(await lookup.find_by_digests(database, digests)) == len(keys)

    return find


def _marking(keys: list[LoadedKey]) -> Statement:
    async def mark(database: ExplainingDatabase) -> None:
        last_used = LastUsed()
        for key in keys:
            caller = Customer(
                organization_id=key.payer.organization_id,
                project_id=key.payer.project_id,
                key_id=key.payer.api_key_id,
                allowed_models=None,
                granted_checks=frozenset(),
                policy_version=0,
                catalog_version=0,
                limits=UNLIMITED_EVERYWHERE,
            )
            last_used.mark(caller, SystemClock().now())
        await last_used.flush(database)

    return mark


async def _keys(url: str) -> list[LoadedKey]:
    """Return the first key of 64 organizations; the first of them has most entries."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            """
            SELECT chosen.id, k.id AS key_id, k.project_id, d.digest,
                   ARRAY(SELECT id FROM policies WHERE organization_id = chosen.id ORDER BY id
                          LIMIT 4) AS policy_ids
              FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number,
                           count(*) OVER () / $1 AS step
                      FROM organizations) chosen
             CROSS JOIN LATERAL (SELECT * FROM project_keys WHERE organization_id = chosen.id
                                  ORDER BY id LIMIT 1) k
              JOIN key_directory d ON d.organization_id = chosen.id AND d.key_id = k.id
             WHERE number % step = 0
             ORDER BY number
             LIMIT $1
            """,
            ITEMS,
        )
    finally:
        await connection.close()
    return [
        LoadedKey(
            payer=Payer(
                OrganizationId(row["id"]),
                ProjectId(row["project_id"]),
                ProjectKeyId(row["key_id"]),
            ),
            digest=row["digest"],
            policy_ids=[PolicyId(each) for each in row["policy_ids"]],
        )
        for row in rows
    ]


async def measured(url: str) -> dict[str, tuple[int, Cost]]:
    """Explain every statement several times on one connection."""
    database = await ExplainingDatabase.open(url)
    try:
        found: dict[str, tuple[int, Cost]] = {}
        for name, (items, statement) in (await statements(url)).items():
            database.explained.clear()
            for _ in range(REPEATED):
                await statement(database)
            assert len(database.explained) == REPEATED
            last = database.explained[-COUNTED:]
            found[name] = (
                items,
                Cost(
                    buffers=int(median(each.buffers for each in last)),
                    rows_read=int(median(each.rows_read for each in last)),
                    partitions=max(each.partitions for each in last),
                    milliseconds=round(median(each.milliseconds for each in last), 3),
                ),
            )
        return found
    finally:
        await database.close()


async def compared(volume: Volume) -> dict[str, Comparison]:
    """Fill both databases and compare every statement."""
    empty = Volume(organizations=ITEMS, requests_per_day=0, days=volume.days)
    async with AsyncExitStack() as owned:
        costs: list[dict[str, tuple[int, Cost]]] = []
        for each in (empty, volume):
            url = await owned.enter_async_context(databases.temporary())
            await migrate.migrate(url)
            began = time.perf_counter()
            connection = await asyncpg.connect(url)
            try:
                await load(connection, each)
            finally:
                await connection.close()
            sys.stdout.write(f"{each} loaded in {time.perf_counter() - began:.0f} s\n")
            costs.append(await measured(url))
        few, many = costs
        return {
            name: Comparison(items=items, empty=cost, loaded=many[name][1])
            for name, (items, cost) in few.items()
        }


async def _measure(arguments: argparse.Namespace) -> int:
    scale: float = arguments.scale
    volume = Volume(
        organizations=max(ITEMS, round(FULL.organizations * scale)),
        requests_per_day=max(1, round(FULL.requests_per_day * scale)),
        days=FULL.days,
    )
    found = await compared(volume)
    sys.stdout.write(f"{'statement':>24}  pages (bound)  rows  partitions  ms: empty, loaded\n")
    for name, each in found.items():
        few, many = each.empty, each.loaded
        sys.stdout.write(
            f"{name:>24}  {few.buffers}, {many.buffers} ({each.buffers_max})"
            f"  {few.rows_read}, {many.rows_read}  {few.partitions}, {many.partitions}"
            f"  {few.milliseconds}, {many.milliseconds}\n"
        )
    broken = [name for name, each in found.items() if not each.is_held]
    if broken:
        sys.stdout.write(f"These statements cost more with much data: {', '.join(broken)}\n")
    if arguments.json:
        told = {name: asdict(each) for name, each in found.items()}
        sys.stdout.write(json.dumps({"volume": asdict(volume), "broken": broken, **told}) + "\n")
    return 1 if broken else 0


def main() -> None:
    """Measure and tell; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.volume")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scale", type=float, default=0.01, help="share of the full volume")
    sys.exit(asyncio.run(_measure(parser.parse_args())))


if __name__ == "__main__":
    main()
