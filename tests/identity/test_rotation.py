"""A rotated key: another secret, the same key, and the old secret for a while."""

from datetime import timedelta

import httpx2
import pytest

from tests.identity.creations import START, create, managed_keys_path, rotate_path
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.projects.types import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")

BELIEF_IS_STALE = timedelta(seconds=1)
LET_IN = 200


async def _use(client: httpx2.AsyncClient, key: str) -> int:
    answer = await client.get("/v1/models", headers={"authorization": f"Bearer {key}"})
    return answer.status_code


async def test_both_secrets_work_until_the_overlap_ends(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    old = await org.project_key(project)
    path = rotate_path(project.id, old.key.id)
    rotated = await create(client, path, "rotation-1", {"overlap_seconds": 600})
    new = rotated.json()["value"]

    assert rotated.json()["id"] == str(old.key.id)
    assert (await _use(client, old.value), await _use(client, new)) == (LET_IN, LET_IN)
    clock.advance(timedelta(seconds=599))
    assert (await _use(client, old.value), await _use(client, new)) == (LET_IN, LET_IN)
    clock.advance(timedelta(seconds=1))
    assert (await _use(client, old.value), await _use(client, new)) == (401, LET_IN)


async def test_an_overlap_is_shown_until_it_is_ended(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    old = await org.project_key(project)
    path = rotate_path(project.id, old.key.id)
    rotated = (await create(client, path, "rotation-1", {"overlap_seconds": 600})).json()
    end = path.removesuffix("rotate") + "end_previous"
    ended, again = [(await client.post(end)).json() for _ in range(2)]
    clock.advance(BELIEF_IS_STALE)

    assert rotated["previous_value_expires_at"] == int(START.timestamp()) + 600
    assert ended["previous_value_expires_at"] is None
    assert ended == again
    assert (await _use(client, old.value), await _use(client, rotated["value"])) == (401, LET_IN)


async def test_an_overlap_of_zero_ends_the_old_secret_at_once(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    old = await org.project_key(project)
    path = rotate_path(project.id, old.key.id)
    rotated = await create(client, path, "rotation-1", {"overlap_seconds": 0})
    clock.advance(BELIEF_IS_STALE)

    assert await _use(client, old.value) == 401
    assert await _use(client, rotated.json()["value"]) == LET_IN


async def test_a_key_has_at_most_two_secrets_that_work(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    first = await org.project_key(project)
    path = rotate_path(project.id, first.key.id)
    values = [first.value]
    for number in range(4):
        answer = await create(client, path, f"rotation-{number}", {"overlap_seconds": 604_800})
        values.append(answer.json()["value"])
    clock.advance(BELIEF_IS_STALE)

    assert [await _use(client, value) for value in values] == [401, 401, 401, LET_IN, LET_IN]


async def test_a_second_rotation_gives_a_secret_that_has_ended_no_more_time(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    first = await org.project_key(project)
    path = rotate_path(project.id, first.key.id)
    await create(client, path, "rotation-1", {"overlap_seconds": 10})
    clock.advance(timedelta(seconds=10))
    await create(client, path, "rotation-2", {"overlap_seconds": 600})

    assert await _use(client, first.value) == 401


async def test_a_rotation_keeps_everything_but_the_secret(
    client: httpx2.AsyncClient, project: Project
) -> None:
    body = {
        "name": "narrow",
        "permissions": ["models:read"],
        "allowed_models": ["example/model-a"],
        "expires_at": int(START.timestamp()) + 3600,
    }
    created = (await create(client, managed_keys_path(project.id), "creation-1", body)).json()
    path = rotate_path(project.id, created["id"])
    rotated = (await create(client, path, "rotation-1", {"overlap_seconds": 0})).json()

    changed = {"value", "redacted_value"}
    assert {name for name in created if created[name] != rotated[name]} == changed
    assert rotated["redacted_value"] == f"{rotated['value'][:8]}...{rotated['value'][-4:]}"


async def test_states_hold_for_all_secrets_of_a_key(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, clock: HeldClock
) -> None:
    old = await org.project_key(project)
    path = rotate_path(project.id, old.key.id)
    new = (await create(client, path, "rotation-1", {"overlap_seconds": 600})).json()["value"]
    expected = {"suspend": 403, "resume": LET_IN, "revoke": 401}
    for verb, status in expected.items():
        await client.post(f"{managed_keys_path(project.id)}/{old.key.id}/{verb}")
        clock.advance(BELIEF_IS_STALE)

        assert (await _use(client, old.value), await _use(client, new)) == (status, status), verb
