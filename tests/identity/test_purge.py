"""A sealed secret is gone after a day and its data key after two: from the API and from dumps."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import httpx2
import pytest
import pytest_asyncio

from tests.identity.creations import REPLAYED, create, keys_path
from tests.identity.dumps import dump
from tests.support import databases
from tests.support.gateway import Gateway, run_jobs, running_gateway, settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.app import connect
from tollhouse.base.clock import HeldClock
from tollhouse.keys import service as keys
from tollhouse.storage import idempotency

pytestmark = pytest.mark.asyncio(loop_scope="module")

A_DAY = timedelta(hours=24, seconds=1)
HOURS_49 = timedelta(hours=49)
STARTS = {
    "the first instant of a day": datetime(2031, 5, 4, tzinfo=UTC),
    "noon": datetime(2031, 5, 4, 12, tzinfo=UTC),
    "the last second of a day": datetime(2031, 5, 4, 23, 59, 59, tzinfo=UTC),
}


@dataclass(frozen=True)
class Deployment:
    """A database of its own: purging spares nobody."""

    url: str
    org: OrganizationFixture
    gateway: Gateway
    clock: HeldClock
    client: httpx2.AsyncClient
    path: str

    async def create(self) -> httpx2.Response:
        """The first time a creation, from then on its replay."""
        return await create(self.client, self.path, "creation-1")

    async def column(self, statement: str) -> str:
        """A value of the only row, in the form of a dump: hexadecimal."""
        async with self.org.database.transaction() as tx:
            found: bytes = await tx.fetch_value(statement)  # pyright: ignore[reportArgumentType] - two literals of this module
        return found.hex()


SEALED = "SELECT sealed FROM idempotency_records"
WRAPPED = "SELECT wrapped FROM data_keys"


@asynccontextmanager
async def _deployed(template: str, start: datetime) -> AsyncGenerator[Deployment]:
    async with databases.temporary(template=template) as url:
        settings = settings_for(url)
        database = await connect(settings)
        org = await new_organization_fixture(database)
        path = keys_path((await org.project()).id)
        admin = await org.admin_key()
        clock = HeldClock(start)
        async with (
            running_gateway(settings, clock) as gateway,
            gateway.client(admin.value) as client,
        ):
            yield Deployment(url, org, gateway, clock, client, path)
        await database.close()


@pytest_asyncio.fixture(loop_scope="module", params=STARTS.values(), ids=STARTS)
async def deployment(
    migrated_template: str, request: pytest.FixtureRequest
) -> AsyncIterator[Deployment]:
    async with _deployed(migrated_template, request.param) as deployed:
        yield deployed


@pytest.mark.guarantee("T10")
async def test_purging_runs_every_ten_minutes(deployment: Deployment) -> None:
    (job,) = [job for job in deployment.gateway.application.jobs if job.name == "purge"]

    assert job.every_seconds == 600


@pytest.mark.guarantee("T10")
async def test_purging_takes_the_secret_after_a_day_and_its_data_key_after_two(
    deployment: Deployment,
) -> None:
    value = (await deployment.create()).json()["value"]
    sealed, wrapped = await deployment.column(SEALED), await deployment.column(WRAPPED)
    fresh = await dump(deployment.url)
    assert sealed in fresh
    assert wrapped in fresh

    deployment.clock.advance(A_DAY)
    await run_jobs(deployment.gateway.application, "purge")
    after_a_day = await dump(deployment.url)
    assert sealed not in after_a_day

    deployment.clock.advance(HOURS_49 - A_DAY)
    await run_jobs(deployment.gateway.application, "purge")
    after_two_days = await dump(deployment.url)
    assert sealed not in after_two_days
    assert wrapped not in after_two_days

    replay = await deployment.create()
    assert replay.headers[REPLAYED] == "true"
    assert "value" not in replay.json()
    for text in (fresh, after_a_day, after_two_days):
        assert value not in text
        assert value.encode().hex() not in text


async def test_while_the_value_is_shown_purging_keeps_what_it_needs(
    deployment: Deployment,
) -> None:
    value = (await deployment.create()).json()["value"]
    deployment.clock.advance(timedelta(hours=24, seconds=-1))
    await run_jobs(deployment.gateway.application, "purge")

    replay = await deployment.create()

    assert replay.json()["value"] == value


@pytest.mark.guarantee("T10", "I10")
async def test_without_any_purge_the_api_does_not_show_the_value_either(
    deployment: Deployment,
) -> None:
    await deployment.create()
    sealed = await deployment.column(SEALED)
    for step in (A_DAY, HOURS_49 - A_DAY, timedelta(days=20)):
        deployment.clock.advance(step)

        replay = await deployment.create()

        assert replay.headers[REPLAYED] == "true"
        assert "value" not in replay.json()
    assert sealed == await deployment.column(SEALED), "nothing has purged it"


FILLED = 12_000
ROWS_AT_ONCE = 5_000
NOTE_TRANSACTIONS = """
    CREATE TABLE notes (transaction xid8, of_table text, touched bigint);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO notes SELECT pg_current_xact_id(), TG_TABLE_NAME, count(*) FROM touched;
        RETURN NULL;
    END
    $$;
    CREATE TRIGGER note_updates AFTER UPDATE ON idempotency_records
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note();
    CREATE TRIGGER note_removals AFTER DELETE ON idempotency_records
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note();
    CREATE TRIGGER note_secrets AFTER DELETE ON key_directory
    REFERENCING OLD TABLE AS touched FOR EACH STATEMENT EXECUTE FUNCTION note();
"""
FILL = """
    INSERT INTO idempotency_records (organization_id, idempotency_key, fingerprint, resource_id,
                                     creator_id, created_at, sealed, sealed_day)
    SELECT gen_random_uuid(), 'creation-' || number, '', gen_random_uuid(), gen_random_uuid(),
           '2031-01-01Z', 'sealed', '2031-01-01'
      FROM generate_series(1, 12000) AS number;
    INSERT INTO key_directory (digest, organization_id, key_kind, key_id, expires_at)
    SELECT number::text::bytea, gen_random_uuid(), 'project', gen_random_uuid(), '2031-01-01Z'
      FROM generate_series(1, 12000) AS number;
"""


async def test_purging_takes_many_rows_in_short_transactions(migrated_template: str) -> None:
    """Without a gateway, whose own job would help."""
    now = STARTS["noon"]
    async with databases.temporary(template=migrated_template) as url:
        connection = await asyncpg.connect(url)
        await connection.execute(NOTE_TRANSACTIONS)
        await connection.execute(FILL)
        database = await connect(settings_for(url))

        records = await idempotency.purge(database, now, record_days=30)
        secrets = await keys.purge_expired_secrets(database, now)

        notes = await connection.fetch("SELECT * FROM notes")
        await database.close()
        await connection.close()

    assert (records, secrets) == (2 * FILLED, FILLED)
    assert sum(note["touched"] for note in notes) == 3 * FILLED
    assert max(note["touched"] for note in notes) <= ROWS_AT_ONCE
    assert len({note["transaction"] for note in notes}) == len(notes)
