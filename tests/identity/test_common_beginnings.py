"""Keys that begin alike are never taken for each other, however many there are."""

import asyncio
import os
from datetime import UTC, datetime
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support import seeds
from tests.support.credentials import ALPHABET, PROJECT_PREFIX, RANDOM_LENGTH, checksum
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.base.tasks import Tasks
from tollhouse.keys.directory import KeyDirectory
from tollhouse.keys.secrets import Peppers
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


async def insert(
    connection: asyncpg.Connection, like: UUID, keys: dict[str, UUID], peppers: Peppers
) -> None:
    """Store keys that have everything but their ID and secret from another one."""
    digests = [peppers.digest(value, peppers.versions[0]) for value in keys]
    await connection.execute(NEW_KEYS, list(keys.values()), like)
    await connection.execute(NEW_DIGESTS, list(keys.values()), like, digests)


@pytest.mark.guarantee("T17")
async def test_keys_with_a_common_beginning_are_told_apart(
    database: Database,
    database_url: str,
    peppers: Peppers,
    org: OrganizationFixture,
    other_org: OrganizationFixture,
) -> None:
    """Each beside a twin that was never made."""
    chance, tasks = seeds.chance(), Tasks()
    directory = KeyDirectory(
        database, peppers, HeldClock(datetime.now(UTC)), tasks, cache_size=1_000
    )
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
        await insert(connection, likes[start // AT_ONCE % 2], values, peppers)

        found = await asyncio.gather(*map(directory.find, values))
        assert [None if key is None else key.project_key_id for key in found] == list(
            values.values()
        )
        assert not any(await asyncio.gather(*map(directory.find, twins)))
    await connection.close()
    await tasks.drain(deadline_seconds=5)
