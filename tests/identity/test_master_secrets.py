"""Rotating the master secret: no worker ever writes what another one cannot read."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import httpx2
import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.identity.creations import REPLAYED, create, keys_path, rotate_path
from tests.identity.waiting import until_a_lock_is_awaited
from tests.support import databases
from tests.support.gateway import Gateway, run_jobs, running_gateway, settings_for
from tests.support.organization_fixture import (
    HeldAdminKey,
    OrganizationFixture,
    new_organization_fixture,
)
from tollhouse.app import Application, connect
from tollhouse.base.ids import InstanceId, time_ordered_uuid
from tollhouse.projects.types import Project
from tollhouse.settings import Settings
from tollhouse.storage import instances, master_secrets
from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecretMismatch, MasterSecrets
from tollhouse.storage.sealing import Sealer

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPORT = "/v1/organization/costs?start_time=86400&end_time=345600&limit=1"
ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"


@pytest_asyncio.fixture(loop_scope="module")
async def before(migrated_template: str) -> AsyncIterator[Settings]:
    """A deployment of the test's own, before its master secret is rotated."""
    async with databases.temporary(template=migrated_template) as url:
        yield settings_for(url)


@pytest.fixture
def settings(before: Settings) -> Settings:
    return before


@pytest.fixture
def during(before: Settings) -> Settings:
    """With a new master secret, and the old one still accepted."""
    return _with_masters(before, secrets.token_urlsafe(48), [before.secrets.master])


@pytest.fixture
def after(during: Settings) -> Settings:
    """With the new one alone."""
    return _with_masters(during, during.secrets.master, [])


def _with_masters(settings: Settings, master: str, previous: list[str]) -> Settings:
    changed = replace(settings.secrets, master=master, previous_masters=previous)
    return replace(settings, secrets=changed)


@pytest_asyncio.fixture(loop_scope="module")
async def database(before: Settings) -> AsyncIterator[Database]:
    opened = await connect(before)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="module")
async def org(database: Database, before: Settings) -> OrganizationFixture:
    return await new_organization_fixture(database)


@pytest_asyncio.fixture(loop_scope="module")
async def admin(org: OrganizationFixture) -> HeldAdminKey:
    return await org.admin_key()


async def _creation(
    gateway: Gateway, admin: HeldAdminKey, project: Project, idempotency_key: str = "creation-1"
) -> httpx2.Response:
    async with gateway.client(admin.value) as client:
        answer = await create(client, keys_path(project.id), idempotency_key)
    assert answer.status_code == 200, answer.text
    return answer


async def _report(gateway: Gateway, admin: HeldAdminKey, cursor: str = "") -> httpx2.Response:
    async with gateway.client(admin.value) as client:
        return await client.get(f"{REPORT}&page={cursor}" if cursor else REPORT)


async def _cursor(gateway: Gateway, admin: HeldAdminKey) -> str:
    return (await _report(gateway, admin)).json()["next_page"]


async def _opened_by(database: Database, settings: Settings) -> list[bool]:
    """Whether the newest master secret of these settings opens each day's data key."""
    masters = MasterSecrets([settings.secrets.master.encode()])
    return [
        opened is not None for opened in (await Sealer(database, masters).opening_ids()).values()
    ]


async def test_what_was_sealed_and_signed_before_a_rotation_can_be_used_after_it(
    before: Settings, during: Settings, admin: HeldAdminKey, project: Project
) -> None:
    async with running_gateway(before) as gateway:
        first = await _creation(gateway, admin, project)
        cursor = await _cursor(gateway, admin)

    async with running_gateway(during) as gateway:
        replay = await _creation(gateway, admin, project)
        page = await _report(gateway, admin, cursor)

    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == first.json()
    assert page.status_code == 200


async def test_rotations_of_keys_and_admin_keys_are_replayed_after_it_too(
    before: Settings, during: Settings, admin: HeldAdminKey, project: Project
) -> None:
    """All creations that show a value: the sealed value is of one kind."""
    body = {"name": "reader", "permissions": ["admin_api_keys:read"]}
    overlap = {"overlap_seconds": 60}
    async with running_gateway(before) as gateway:
        created = await _creation(gateway, admin, project)
        path = rotate_path(project.id, created.json()["id"])
        async with gateway.client(admin.value) as client:
            rotated = await create(client, path, "rotation-1", overlap)
            admin_key = await create(client, ADMIN_KEYS, "creation-2", body)

    async with running_gateway(during) as gateway, gateway.client(admin.value) as client:
        rotated_again = await create(client, path, "rotation-1", overlap)
        admin_key_again = await create(client, ADMIN_KEYS, "creation-2", body)

    assert rotated_again.json() == rotated.json()
    assert admin_key_again.json() == admin_key.json()
    assert "value" in rotated.json()
    assert "value" in admin_key.json()


async def test_without_the_old_secret_a_replay_shows_no_value_and_a_cursor_is_refused(
    before: Settings, after: Settings, admin: HeldAdminKey, project: Project
) -> None:
    async with running_gateway(before) as gateway:
        first = await _creation(gateway, admin, project)
        cursor = await _cursor(gateway, admin)

    async with running_gateway(after) as gateway:
        replay = await _creation(gateway, admin, project)
        page = await _report(gateway, admin, cursor)
        second = await _creation(gateway, admin, project, "creation-2")
        second_again = await _creation(gateway, admin, project, "creation-2")

    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == {name: value for name, value in first.json().items() if name != "value"}
    assert (page.status_code, page.json()["error"]["param"]) == (400, "page")
    assert second_again.json() == second.json()


async def test_during_a_rolling_restart_each_worker_reads_what_the_other_wrote(
    before: Settings, during: Settings, database: Database, admin: HeldAdminKey, project: Project
) -> None:
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(running_gateway(before))
        new = await stack.enter_async_context(running_gateway(during))
        written = {
            gateway: (
                await _creation(gateway, admin, project, f"creation-{gateway.port}"),
                await _cursor(gateway, admin),
            )
            for gateway in (new, old)
        }

        for reader, writer in ((old, new), (new, old)):
            created, cursor = written[writer]
            replay = await _creation(reader, admin, project, f"creation-{writer.port}")
            assert replay.json() == created.json()
            assert (await _report(reader, admin, cursor)).status_code == 200
        await run_jobs(new.application, "purge")
        assert await _opened_by(database, before) == [True]


async def test_when_every_worker_accepts_the_new_secret_nothing_stored_needs_the_old_one(
    before: Settings,
    during: Settings,
    after: Settings,
    database: Database,
    admin: HeldAdminKey,
    project: Project,
) -> None:
    async with AsyncExitStack() as stack, AsyncExitStack() as old_life:
        old = await old_life.enter_async_context(running_gateway(before))
        first = await _creation(old, admin, project)
        new = await stack.enter_async_context(running_gateway(during))
        assert await _opened_by(database, after) == [False]

        await old_life.aclose()
        await run_jobs(new.application, "purge")
        cursor = await _cursor(new, admin)

        assert await _opened_by(database, after) == [True]
        last = await stack.enter_async_context(running_gateway(after))
        replay = await _creation(last, admin, project)
        assert replay.json() == first.json()
        assert (await _report(last, admin, cursor)).status_code == 200


async def test_a_worker_that_lacks_the_secret_in_use_does_not_start(
    before: Settings, during: Settings, after: Settings
) -> None:
    async with running_gateway(before):
        with pytest.raises(MasterSecretMismatch, match=r"secrets\.previous_masters"):
            await Application(after).startup()
    async with running_gateway(during):
        with pytest.raises(MasterSecretMismatch, match=r"secrets\.previous_masters"):
            await Application(before).startup()
        async with running_gateway(after):
            pass


async def test_a_worker_that_starts_meanwhile_can_read_what_is_written(
    before: Settings, during: Settings, database: Database
) -> None:
    """It was let in with the old secret alone and is not counted yet when another one writes."""
    old = MasterSecrets(before.secrets.master_bytes())
    new = MasterSecrets(during.secrets.master_bytes())
    now = datetime(2031, 5, 4, 12, tzinfo=UTC)
    async with database.transaction() as tx:
        await master_secrets.register(tx, old)
        sealing = asyncio.ensure_future(
            Sealer(database, new).seal(b"a value", bound_to=b"a creation", now=now)
        )
        await until_a_lock_is_awaited(before.database.url)
        await instances.heartbeat(tx, InstanceId(time_ordered_uuid()), master_ids=old.ids)
    sealed = await sealing

    opened = await Sealer(database, old).open(sealed, bound_to=b"a creation", now=now)
    assert opened == b"a value"


async def test_a_worker_that_was_killed_holds_the_new_secret_up_for_a_while_only(
    before: Settings, after: Settings, database: Database
) -> None:
    """Killed, it could not remove its row. The database's clock decides that it is dead."""
    masters = MasterSecrets(before.secrets.master_bytes())
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO instances (
                id, started_at, heartbeat_at, master_ids, newest_revision)
            VALUES (gen_random_uuid(), now(), clock_timestamp() - interval '31 seconds', $1, '9999')
            """,
            masters.ids,
        )

    async with running_gateway(after) as gateway:
        assert gateway.application.is_ready
