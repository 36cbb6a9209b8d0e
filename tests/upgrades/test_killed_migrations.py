"""Migrations that start from every older revision with rows, and are killed on their way."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from multiprocessing.connection import Connection
from random import Random

import asyncpg
import pytest

from tests.identity.waiting import until
from tests.storage.catalogs import catalog_of
from tests.storage.processes import KilledStep, next_word, run_steps_in_forks, running
from tests.support import databases, seeds
from tests.upgrades.older_databases import Contents, build, contents_of, insert_rows
from tests.upgrades.older_rows import ROWS
from tollhouse.storage import revisions, schema
from tollhouse.storage.schema import Progress

pytestmark = pytest.mark.nightly

KILLS = int(os.environ.get("TOLLHOUSE_UPGRADE_KILLS", "1"))
"""How often each of the two steps is killed, for each revision to start from."""
TIMED = -signal.SIGALRM


async def test_every_table_has_rows() -> None:
    """A revision that adds a table must say what to write into it."""
    async with databases.temporary() as url:
        await build(url, revisions.head())

        rows = (await contents_of(url)).rows

    assert [table for table, lines in rows.items() if not lines] == []
    assert set(ROWS) <= set(revisions.known())


async def test_a_killed_migration_is_finished_by_the_next_one(database_url: str) -> None:
    random = seeds.chance("killed upgrades")
    newest = await catalog_of(database_url)
    async with databases.temporary() as older, running(run_steps_in_forks) as (_, line):
        for revision in revisions.known()[:-1]:
            await schema.migrate(older, to=revision)
            await insert_rows(older, revision)
            contracted = await _upgrade_with_kills(older, line, random)
            assert contracted.catalog == newest


async def _upgrade_with_kills(older: str, line: Connection, random: Random) -> Contents:
    """Upgrade two copies of a database, one of them with kills, and compare them."""
    async with AsyncExitStack() as stack:
        whole, killed = [
            await stack.enter_async_context(databases.temporary(template=_name(older)))
            for _ in range(2)
        ]
        before = await contents_of(killed)
        for is_contract in (False, True):
            shown: list[Progress] = []
            begun = time.monotonic()
            run = schema.contract if is_contract else schema.migrate
            applied = await run(whole, show=shown.append)
            seconds = time.monotonic() - begun
            after = await contents_of(whole)
            assert applied
            assert after != before

            step = KilledStep(url=killed, is_contract=is_contract)
            for kill in _kills(step, random, len(shown), seconds):
                if await _survives(line, kill, before, after):
                    break
            else:
                assert await run(killed) == applied
            assert await contents_of(killed) == after
            before = after
        return before


def _kills(
    step: KilledStep, random: Random, statements: int, seconds: float
) -> Iterator[KilledStep]:
    """By turns before a statement and after a time, in an order that the seed begins."""
    first = random.randrange(2)
    for turn in range(first, first + KILLS):
        if turn % 2:
            yield replace(step, seconds=random.uniform(0.001, seconds))
        else:
            yield replace(step, statement=random.randint(1, statements))


async def _survives(line: Connection, kill: KilledStep, before: Contents, after: Contents) -> bool:
    """Kill a step. It must have done nothing; one that is killed after a time may have ended."""
    line.send(kill)
    status = await next_word(line)
    await _until_alone(kill.url)
    found = await contents_of(kill.url)
    if kill.statement:
        assert status == -signal.SIGKILL
        assert found == before
        return False
    assert status in (0, TIMED)
    assert found in (before, after)
    return found == after


async def _until_alone(url: str) -> None:
    """Wait until the server has noticed that the process died."""
    connection = await asyncpg.connect(url)

    async def is_alone() -> bool:
        others = await connection.fetchval(
            """
            SELECT count(*)
              FROM pg_stat_activity
             WHERE datname = current_database()
               AND backend_type = 'client backend'
               AND pid <> pg_backend_pid()
            """
        )
        return others == 0

    try:
        await until(is_alone)
    finally:
        await connection.close()


def _name(url: str) -> str:
    return url.rpartition("/")[2]
