"""What a replay shows: the resource as it is now, and its secret while it may be seen."""

from datetime import timedelta

import httpx2
import pytest

from tests.identity.creations import (
    REPLAYED,
    START,
    create,
    keys_of,
    keys_path,
    managed_keys_path,
    records_of,
    rotate_path,
    secrets_of,
)
from tests.support.gateway import Gateway, run_jobs
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.projects.types import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROJECTS = "/manage/v1/organization/projects"
ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"
RECORD_DAYS = 30
BELIEF_IS_STALE = timedelta(seconds=1)


def _without_value(answer: httpx2.Response) -> dict[str, object]:
    return {name: value for name, value in answer.json().items() if name != "value"}


async def _verb(client: httpx2.AsyncClient, project: Project, key_id: str, verb: str) -> None:
    answer = await client.post(f"{managed_keys_path(project.id)}/{key_id}/{verb}")
    assert answer.status_code == 200, answer.text


async def test_another_admin_key_gets_the_resource_without_its_value(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture, project: Project
) -> None:
    first = await create(client, keys_path(project.id), "creation-1")
    async with held.client((await org.admin_key()).value) as other:
        replay = await create(other, keys_path(project.id), "creation-1")

    assert replay.status_code == 200
    assert replay.headers[REPLAYED] == "true"
    assert "value" in first.json()
    assert replay.json() == _without_value(first)


@pytest.mark.parametrize(("verb", "status"), [("revoke", "revoked"), ("suspend", "suspended")])
async def test_the_value_of_a_key_that_is_not_active_is_not_replayed(
    client: httpx2.AsyncClient, project: Project, verb: str, status: str
) -> None:
    first = await create(client, keys_path(project.id), "creation-1")
    await _verb(client, project, first.json()["id"], verb)

    replay = await create(client, keys_path(project.id), "creation-1")

    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == _without_value(first) | {"status": status}


async def test_a_resumed_key_is_replayed_with_its_value_again(
    client: httpx2.AsyncClient, project: Project
) -> None:
    first = await create(client, keys_path(project.id), "creation-1")
    await _verb(client, project, first.json()["id"], "suspend")
    await _verb(client, project, first.json()["id"], "resume")

    replay = await create(client, keys_path(project.id), "creation-1")

    assert replay.json() == first.json()


async def test_the_value_of_an_expired_key_is_not_replayed(
    client: httpx2.AsyncClient, project: Project, clock: HeldClock
) -> None:
    path = managed_keys_path(project.id)
    body = {"name": "short", "expires_at": int(START.timestamp()) + 60}
    first = await create(client, path, "creation-1", body)
    clock.advance(timedelta(seconds=60))

    replay = await create(client, path, "creation-1", body)

    assert first.json()["status"] == "active"
    assert replay.json() == _without_value(first) | {"status": "expired"}


@pytest.mark.guarantee("T10", "I10")
@pytest.mark.parametrize(
    ("age", "is_shown"),
    [
        (timedelta(hours=24, seconds=-1), True),
        (timedelta(hours=24), False),
        (timedelta(hours=24, seconds=1), False),
        (timedelta(days=RECORD_DAYS, seconds=-1), False),
    ],
)
async def test_the_value_is_replayed_for_24_hours(
    client: httpx2.AsyncClient,
    project: Project,
    clock: HeldClock,
    age: timedelta,
    is_shown: bool,
) -> None:
    first = await create(client, keys_path(project.id), "creation-1")
    clock.advance(age)

    replay = await create(client, keys_path(project.id), "creation-1")

    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == (first.json() if is_shown else _without_value(first))


@pytest.mark.parametrize("is_purged", [True, False])
async def test_after_its_retention_an_idempotency_key_is_new(
    held: Gateway,
    client: httpx2.AsyncClient,
    org: OrganizationFixture,
    project: Project,
    clock: HeldClock,
    is_purged: bool,
) -> None:
    first = await create(client, keys_path(project.id), "creation-1")
    clock.advance(timedelta(days=RECORD_DAYS))
    if is_purged:
        await run_jobs(held.application, "purge")
        assert await records_of(org) == 0

    second = await create(client, keys_path(project.id), "creation-1", {"name": "another"})

    assert second.status_code == 200
    assert REPLAYED not in second.headers
    assert second.json()["id"] != first.json()["id"]
    assert second.json()["value"] != first.json()["value"]
    assert (await keys_of(org), await records_of(org)) == (2, 1)


async def test_a_rotation_is_replayed_and_not_repeated(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project
) -> None:
    created = await create(client, keys_path(project.id), "creation-1")
    path = rotate_path(project.id, created.json()["id"])

    first = await create(client, path, "rotation-1", {"overlap_seconds": 60})
    replay = await create(client, path, "rotation-1", {"overlap_seconds": 60})

    assert first.json()["id"] == created.json()["id"]
    assert first.json()["value"] != created.json()["value"]
    assert REPLAYED not in first.headers
    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == first.json()
    assert await secrets_of(org) == 2


async def test_a_secret_that_was_rotated_away_is_not_replayed(
    client: httpx2.AsyncClient, project: Project
) -> None:
    created = await create(client, keys_path(project.id), "creation-1")
    path = rotate_path(project.id, created.json()["id"])
    first = await create(client, path, "rotation-1", {"overlap_seconds": 60})
    second = await create(client, path, "rotation-2", {"overlap_seconds": 60})

    creation = await create(client, keys_path(project.id), "creation-1")
    rotation = await create(client, path, "rotation-1", {"overlap_seconds": 60})

    assert second.json()["value"] not in {first.json()["value"], created.json()["value"]}
    assert "value" not in creation.json()
    assert "value" not in rotation.json()
    assert creation.json()["redacted_value"] == second.json()["redacted_value"]


async def test_a_project_is_created_once_and_replayed_as_it_is_now(
    client: httpx2.AsyncClient,
) -> None:
    first = await create(client, PROJECTS, "creation-1", {"name": "search"})
    project_id = first.json()["id"]
    await client.patch(f"{PROJECTS}/{project_id}", json={"name": "find"})

    replay = await create(client, PROJECTS, "creation-1", {"name": "search"})

    assert REPLAYED not in first.headers
    assert replay.headers[REPLAYED] == "true"
    assert replay.json() == first.json() | {"name": "find"}
    assert len((await client.get(PROJECTS)).json()["data"]) == 1


async def test_an_admin_key_is_created_once_and_its_value_replayed(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture, clock: HeldClock
) -> None:
    body = {"name": "reader", "permissions": ["admin_api_keys:read"]}
    first = await create(client, ADMIN_KEYS, "creation-1", body)
    replay = await create(client, ADMIN_KEYS, "creation-1", body)
    async with held.client((await org.admin_key()).value) as other:
        foreign_replay = await create(other, ADMIN_KEYS, "creation-1", body)
    clock.advance(timedelta(hours=24))
    late_replay = await create(client, ADMIN_KEYS, "creation-1", body)

    assert first.json()["value"].startswith("tha_")
    assert replay.json() == first.json()
    assert foreign_replay.json() == _without_value(first)
    assert late_replay.json() == _without_value(first)
    assert {answer.headers.get(REPLAYED) for answer in (replay, foreign_replay, late_replay)} == {
        "true"
    }


async def test_a_revoked_admin_key_is_replayed_without_its_value(
    client: httpx2.AsyncClient,
) -> None:
    body = {"name": "reader", "permissions": ["admin_api_keys:read"]}
    first = await create(client, ADMIN_KEYS, "creation-1", body)
    revoked = await client.delete(f"/v1/organization/admin_api_keys/{first.json()['id']}")
    assert revoked.status_code == 200

    replay = await create(client, ADMIN_KEYS, "creation-1", body)

    assert replay.json() == _without_value(first)


async def test_a_revoked_creator_cannot_replay(
    held: Gateway, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    creator = await org.admin_key()
    async with held.client(creator.value) as client:
        await create(client, keys_path(project.id), "creation-1")
        await org.revoke_admin_key(creator)
        clock.advance(BELIEF_IS_STALE)
        replay = await create(client, keys_path(project.id), "creation-1")

    assert replay.status_code == 401
