"""Many keys: those that begin alike are never taken for each other, and none has a metric."""

import asyncio
import os
from datetime import UTC, datetime
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.identity.raw import bearer, connected
from tests.support import seeds
from tests.support.credentials import ALPHABET, PROJECT_PREFIX, RANDOM_LENGTH, checksum, unknown_key
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.base.tasks import Tasks
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.secrets import digest
from tollhouse.observability import registry
from tollhouse.storage.database import Database

KEYS = int(os.environ.get("TOLLHOUSE_SIMILAR_KEYS", "4000"))
BEGINNING = f"{PROJECT_PREFIX}0123456789ABCDEF"
"""Twenty characters."""
AT_ONCE = 2_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


NEW_KEYS = """
    INSERT INTO project_keys
    SELECT (jsonb_populate_record(one, jsonb_build_object('id', new.id))).*
      FROM project_keys one, unnest($1::uuid[]) new (id)
     WHERE one.id = $2
"""
NEW_DIGESTS = """
    INSERT INTO key_directory
    SELECT (jsonb_populate_record(one, jsonb_build_object(
                'key_id', new.id, 'digest', new.digest::text))).*
      FROM key_directory one, unnest($1::uuid[], $3::bytea[]) new (id, digest)
     WHERE one.key_id = $2
"""


async def insert(connection: asyncpg.Connection, like: UUID, keys: dict[str, UUID]) -> None:
    """Store keys that have everything but their ID and secret from another one."""
    digests = [digest(value) for value in keys]
    await connection.execute(NEW_KEYS, list(keys.values()), like)
    await connection.execute(NEW_DIGESTS, list(keys.values()), like, digests)


@pytest.mark.guarantee("T17")
async def test_keys_with_a_common_beginning_are_told_apart(
    database: Database,
    database_url: str,
    org: OrganizationFixture,
    other_org: OrganizationFixture,
) -> None:
    """Each beside a twin that was never made."""
    chance, tasks = seeds.chance(), Tasks()
    directory = KeyDirectory(database, HeldClock(datetime.now(UTC)), tasks, cache_size=1_000)
    likes = [(await each.project_key(await each.project())).key.id for each in (org, other_org)]
    connection = await asyncpg.connect(database_url)
    for start in range(0, KEYS, AT_ONCE):
        values: dict[str, UUID] = {}
        twins: list[str] = []
        while len(values) < AT_ONCE:
            rest = "".join(chance.choices(ALPHABET, k=RANDOM_LENGTH - len(BEGINNING) + 3))
            body = BEGINNING + rest
            values[body + "x" + checksum(body + "x")] = uuid4()
            twins.append(body + "y" + checksum(body + "y"))
        await insert(connection, likes[start // AT_ONCE % 2], values)

        found = await asyncio.gather(*map(directory.find, values))
        assert [None if key is None else key.project_key_id for key in found] == list(
            values.values()
        )
        assert not any(await asyncio.gather(*map(directory.find, twins)))
    await connection.close()
    await tasks.drain(deadline_seconds=5)


@pytest.mark.guarantee("T39")
async def test_a_thousand_keys_make_no_series_of_their_own(
    gateway: Gateway, database_url: str, org: OrganizationFixture
) -> None:
    held = await org.project_key(await org.project())
    keys = {each: uuid4() for each in (unknown_key(PROJECT_PREFIX) for _ in range(1_000))}
    connection = await asyncpg.connect(database_url)
    await insert(connection, held.key.id, keys)
    await connection.close()

    async def ask(key: str) -> None:
        assert (await caller.ask("GET", "/v1/models", [bearer(key)])).status == 200

    async with connected(gateway.host, gateway.port) as caller:
        await ask(held.value)
        lines_before = registry.exposition(None).count(b"\n")
        for key in keys:
            await ask(key)

    assert registry.exposition(None).count(b"\n") == lines_before < 10_000
