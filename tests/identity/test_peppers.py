"""Rolling out a pepper: no key is made with it before every worker accepts it."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.identity.creations import create, keys_path
from tests.identity.waiting import until_a_lock_is_awaited
from tests.support import databases
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.organization_fixture import (
    HeldAdminKey,
    OrganizationFixture,
    new_organization_fixture,
)
from tollhouse.app import Application, connect
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.keys import pepper_versions
from tollhouse.keys.pepper_versions import PepperMismatch
from tollhouse.keys.secrets import Peppers
from tollhouse.projects.types import Project
from tollhouse.settings import Settings
from tollhouse.storage import instances
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

LET_IN = 200


@pytest_asyncio.fixture(loop_scope="module")
async def settings(migrated_template: str) -> AsyncIterator[Settings]:
    """A deployment of the test's own, at pepper version 1: peppers are nobody's but its."""
    async with databases.temporary(template=migrated_template) as url:
        yield settings_for(url)


@pytest_asyncio.fixture(loop_scope="module")
async def database(settings: Settings) -> AsyncIterator[Database]:
    opened = await connect(settings)
    yield opened
    await opened.close()


@pytest.fixture
def both(settings: Settings) -> Settings:
    """The same deployment after version 2 was added."""
    return _with_peppers(settings, {**settings.secrets.peppers, "2": secrets.token_urlsafe(48)})


def _with_peppers(settings: Settings, peppers: dict[str, str]) -> Settings:
    return replace(settings, secrets=replace(settings.secrets, peppers=peppers))


@pytest_asyncio.fixture(loop_scope="module")
async def org(database: Database, settings: Settings) -> OrganizationFixture:
    return await new_organization_fixture(database, Peppers(settings.secrets.pepper_bytes()))


@pytest_asyncio.fixture(loop_scope="module")
async def admin(org: OrganizationFixture) -> HeldAdminKey:
    return await org.admin_key()


async def _new_key(gateway: Gateway, admin: HeldAdminKey, project: Project) -> str:
    async with gateway.client(admin.value) as client:
        answer = await create(client, keys_path(project.id), secrets.token_hex(8))
    assert answer.status_code == 200, answer.text
    return answer.json()["value"]


async def _use(gateway: Gateway, key: str) -> int:
    async with gateway.client(key) as client:
        return (await client.get("/v1/models")).status_code


async def _versions(database: Database) -> list[int]:
    """Of the secrets of project keys, in the order of creation."""
    async with database.transaction() as tx:
        rows = await tx.fetch_all(
            "SELECT pepper_version FROM key_directory WHERE key_kind = 'project' ORDER BY key_id"
        )
    return [row["pepper_version"] for row in rows]


async def test_a_new_pepper_is_used_once_every_worker_accepts_it(
    settings: Settings, both: Settings, database: Database, admin: HeldAdminKey, project: Project
) -> None:
    async with AsyncExitStack() as stack, AsyncExitStack() as old_life:
        old = await old_life.enter_async_context(running_gateway(settings))
        new = await stack.enter_async_context(running_gateway(both))
        early = [await _new_key(gateway, admin, project) for gateway in (old, new)]
        assert await _versions(database) == [1, 1]
        for gateway in (old, new):
            assert [await _use(gateway, key) for key in early] == [LET_IN, LET_IN]

        await old_life.aclose()
        replaced = await stack.enter_async_context(running_gateway(both))
        late = [await _new_key(gateway, admin, project) for gateway in (replaced, new)]
        assert await _versions(database) == [1, 1, 2, 2]
        for gateway in (replaced, new):
            assert [await _use(gateway, key) for key in early + late] == 4 * [LET_IN]


async def test_a_worker_that_stopped_beating_holds_the_new_pepper_up_no_longer(
    settings: Settings, both: Settings, database: Database, admin: HeldAdminKey, project: Project
) -> None:
    """Killed, it could not say goodbye. The database's clock decides that it is dead."""
    peppers = Peppers(settings.secrets.pepper_bytes())
    async with database.transaction() as tx:
        await pepper_versions.register(tx, peppers)
        await instances.heartbeat(
            tx, InstanceId(time_ordered_uuid()), pepper_versions=peppers.versions
        )
    async with running_gateway(both) as new:
        await _new_key(new, admin, project)
        async with database.transaction() as tx:
            await tx.execute(
                """
                UPDATE instances SET heartbeat_at = heartbeat_at - interval '31 seconds'
                 WHERE pepper_versions = '{1}'
                """
            )
        await _new_key(new, admin, project)

    assert await _versions(database) == [1, 2]


async def test_a_worker_that_starts_meanwhile_is_not_left_behind(
    settings: Settings, both: Settings, database: Database, admin: HeldAdminKey, project: Project
) -> None:
    """It has read the known peppers and is not counted yet when version 2 appears."""
    peppers = Peppers(settings.secrets.pepper_bytes())
    async with running_gateway(settings):
        pass

    async def roll_out() -> None:
        async with running_gateway(both) as new:
            await _new_key(new, admin, project)

    async with database.transaction() as tx:
        await pepper_versions.register(tx, peppers)
        rolling_out = asyncio.ensure_future(roll_out())
        held_up = asyncio.ensure_future(until_a_lock_is_awaited(settings.database.url))
        await asyncio.wait({rolling_out, held_up}, return_when=asyncio.FIRST_COMPLETED)
        held_up.cancel()
        await instances.heartbeat(
            tx, InstanceId(time_ordered_uuid()), pepper_versions=peppers.versions
        )
    await rolling_out

    assert await _versions(database) == [1]


async def test_another_secret_under_a_known_version_does_not_start(
    settings: Settings, admin: HeldAdminKey
) -> None:
    async with running_gateway(settings):
        pass
    wrong = _with_peppers(settings, {"1": secrets.token_urlsafe(48)})

    with pytest.raises(PepperMismatch, match=r"secrets\.peppers\.1 is not the secret"):
        await Application(wrong).startup()


async def test_a_known_version_that_is_missing_does_not_start(
    settings: Settings, both: Settings
) -> None:
    async with running_gateway(both):
        pass

    with pytest.raises(PepperMismatch, match=r"secrets\.peppers\.2 is missing"):
        await Application(settings).startup()


async def test_a_worker_that_did_not_start_leaves_nothing_behind(
    settings: Settings, both: Settings, database: Database
) -> None:
    """Neither in the list of workers nor as an open connection."""
    async with running_gateway(both):
        pass
    connections_before = await _connections(database)
    with pytest.raises(PepperMismatch):
        await Application(settings).startup()

    async with database.transaction() as tx:
        assert await tx.fetch_all("SELECT id FROM instances") == []
    assert await _connections(database) == connections_before


async def _connections(database: Database) -> int:
    async with database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        )


async def test_a_retired_pepper_ends_its_keys_and_is_no_longer_needed(
    settings: Settings, both: Settings, database: Database, admin: HeldAdminKey, project: Project
) -> None:
    async with running_gateway(settings) as gateway:
        old = await _new_key(gateway, admin, project)
    async with running_gateway(both) as gateway:
        new = await _new_key(gateway, admin, project)
    async with database.transaction() as tx:
        before = await pepper_versions.count_secrets(tx)
        ended = await pepper_versions.retire(tx, 1)
    only_new = _with_peppers(both, {"2": both.secrets.peppers["2"]})
    async with running_gateway(only_new) as gateway:
        statuses = [await _use(gateway, key) for key in (old, new)]

    assert before == {1: 2, 2: 1}
    assert ended == 2, "the project key and the Admin key"
    assert statuses == [401, LET_IN]
