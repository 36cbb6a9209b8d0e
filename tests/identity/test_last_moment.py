"""The directory still believes a key that has just ended: its writes are refused all the same.

The clock stands still here, so that an answer of the directory is believed for as long as a
test lasts.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import httpx2
import pytest
import pytest_asyncio

from tests.identity.audit_rows import audit_rows
from tests.identity.creations import REPLAYED, START, create, managed_keys_path
from tests.identity.stage import subscription_id
from tests.identity.table import ASKING, BODIES, QUERIES, ROWS, Row
from tests.identity.waiting import holding, until_a_lock_is_awaited
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import HeldAdminKey, OrganizationFixture
from tests.support.policies import new_policy
from tollhouse.base.clock import HeldClock
from tollhouse.base.ids import policy_id_text
from tollhouse.projects.types import Project
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"
PROJECTS = "/manage/v1/organization/projects"
LIST_ADMIN_KEYS = "/v1/organization/admin_api_keys"
WRITING = [
    row
    for row in ROWS
    if not row.needs_model and row.kind == "admin" and row.method != "GET" and row.id not in ASKING
]

SECOND = timedelta(seconds=1)
CHILD = {"name": "child", "permissions": ["audit:read"]}
LOCK_DATA_KEYS = "LOCK TABLE data_keys IN ACCESS EXCLUSIVE MODE"
"""A creation with a secret waits for its data key before it begins to write."""

REVOKE: Final = "UPDATE admin_keys SET revoked_at = now() WHERE id = $1"
EXPIRE: Final = "UPDATE admin_keys SET expires_at = '2031-01-01Z' WHERE id = $1"
NARROW: Final = "UPDATE admin_keys SET permissions = '{audit:read}' WHERE id = $1"
SUSPEND: Final = """
    UPDATE organizations SET status = 'suspended'
     WHERE id = (SELECT organization_id FROM admin_keys WHERE id = $1)
"""
CLOSE: Final = """
    UPDATE organizations SET status = 'closed'
     WHERE id = (SELECT organization_id FROM admin_keys WHERE id = $1)
"""
ENDS = {
    "revoked": (REVOKE, 401, "invalid_api_key"),
    "expired": (EXPIRE, 401, "invalid_api_key"),
    "without the permission": (NARROW, 403, "insufficient_permissions"),
    "of a suspended organization": (SUSPEND, 403, "organization_suspended"),
    "of a closed organization": (CLOSE, 401, "invalid_api_key"),
}


FORESEEN = {"publishPolicy", "resumePolicy", "rollBackPolicy"}
"""These look at the policy first, as a read does, and refuse the revision of this one."""


@dataclass(frozen=True)
class Scene:
    """An Admin key that the gateway knows and believes, and things that it could change."""

    org: OrganizationFixture
    acting: HeldAdminKey
    client: httpx2.AsyncClient
    targets: dict[str, str]

    async def end(self, statement: str) -> None:
        """Straight in the database, as another worker would."""
        async with self.org.database.transaction() as tx:
            changed = await tx.execute(statement, self.acting.key.id)  # pyright: ignore[reportArgumentType] - a literal of this module
        assert changed == 1

    async def act(self, row: Row) -> httpx2.Response:
        name = "admin_key_id" if "/admin_api_keys/" in row.path else "project_key_id"
        path = row.path.format_map(self.targets | {"api_key_id": self.targets[name]})
        headers = {"Idempotency-Key": "the change"}
        return await self.client.request(
            row.method,
            path,
            params=QUERIES.get(row.id),
            json=BODIES.get(row.id),
            headers=headers,
        )

    async def is_believed(self) -> bool:
        return (await self.client.get(LIST_ADMIN_KEYS)).status_code == 200


@pytest_asyncio.fixture(loop_scope="module")
async def scene(held: Gateway, org: OrganizationFixture, project: Project) -> AsyncIterator[Scene]:
    acting = await org.admin_key()
    targets = {
        "project_id": str(project.id),
        "project_key_id": str((await org.project_key(project)).key.id),
        "admin_key_id": str((await org.admin_key()).key.id),
        "policy_id": policy_id_text((await new_policy(org, ("publish",))).id),
        "alert_subscription_id": await subscription_id(org),
    }
    async with held.client(acting.value) as client:
        scene = Scene(org, acting, client, targets)
        assert await scene.is_believed()
        yield scene


@pytest.mark.parametrize("row", WRITING, ids=lambda row: row.id)
async def test_no_operation_writes_for_a_key_that_has_just_been_revoked(
    scene: Scene, row: Row
) -> None:
    rows_before = len(await audit_rows(scene.org))
    await scene.end(REVOKE)

    answer = await scene.act(row)

    code = "revision_conflict" if row.id in FORESEEN else "invalid_api_key"
    assert answer.status_code == (409 if row.id in FORESEEN else 401)
    assert answer.json()["error"]["code"] == code
    assert ("www-authenticate" in answer.headers) is (row.id not in FORESEEN)
    assert len(await audit_rows(scene.org)) == rows_before
    assert await scene.is_believed(), "or the test has shown nothing"


@pytest.mark.parametrize(("statement", "status", "code"), ENDS.values(), ids=ENDS)
async def test_whatever_has_ended_a_key_is_answered_as_the_door_would(
    scene: Scene, statement: str, status: int, code: str
) -> None:
    await scene.end(statement)

    answer = await create(scene.client, PROJECTS, "creation-1")

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert await scene.is_believed(), "or the test has shown nothing"


async def test_a_key_that_expires_while_its_write_waits_does_not_write(
    settings: Settings, org: OrganizationFixture, clock: HeldClock
) -> None:
    """Its request came a second too early, and its turn a second too late.

    The gateway is the test's own: it must not have the data key of the day yet.
    """
    acting = await org.admin_key(expires_at=START + SECOND)
    async with running_gateway(settings, clock) as gateway, gateway.client(acting.value) as client:
        async with holding(settings.database.url, LOCK_DATA_KEYS):
            creating = asyncio.ensure_future(create(client, ADMIN_KEYS, "creation-1", CHILD))
            await until_a_lock_is_awaited(settings.database.url)
            clock.advance(SECOND)
        answer = await creating

    assert answer.status_code == 401


async def test_a_replay_shows_nothing_to_a_key_that_has_just_been_revoked(
    scene: Scene, project: Project
) -> None:
    path = managed_keys_path(project.id)
    first = await create(scene.client, path, "creation-1")
    replay = await create(scene.client, path, "creation-1")
    await scene.end(REVOKE)

    refused = await create(scene.client, path, "creation-1")

    assert first.status_code == 200
    assert replay.headers[REPLAYED] == "true"
    assert refused.status_code == 401
    assert "value" not in refused.text


async def test_a_write_waits_for_a_revocation_that_is_under_way(
    scene: Scene, database_url: str
) -> None:
    """And is decided by it: here it is taken back, so the key works."""
    async with holding(database_url, REVOKE, scene.acting.key.id):
        creating = asyncio.ensure_future(create(scene.client, PROJECTS, "creation-1"))
        await until_a_lock_is_awaited(database_url)
    taken_back = await creating

    assert taken_back.status_code == 200


async def test_of_two_keys_that_revoke_each_other_at_once_one_remains(
    held: Gateway, org: OrganizationFixture
) -> None:
    """The loser has found itself revoked, or has stood in the winner's way."""
    one, other = await org.admin_key(), await org.admin_key()
    async with held.client(one.value) as first, held.client(other.value) as second:
        answers = await asyncio.gather(
            first.delete(f"{LIST_ADMIN_KEYS}/{other.key.id}"),
            second.delete(f"{LIST_ADMIN_KEYS}/{one.key.id}"),
        )

    won, lost = sorted(answer.status_code for answer in answers)
    assert won == 200
    assert lost in {401, 503}
