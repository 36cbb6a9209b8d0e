"""Expiry, states that end, and what a key may be given."""

from datetime import timedelta

import httpx2
import pytest

from tests.identity.creations import START, create, keys_path, managed_keys_path, rotate_path
from tests.identity.table import ADMIN_PERMISSIONS
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock
from tollhouse.projects.types import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"
LIST_ADMIN_KEYS = "/v1/organization/admin_api_keys"
BELIEF_IS_STALE = timedelta(seconds=1)
LET_IN = 200


async def _use(client: httpx2.AsyncClient, key: str) -> int:
    answer = await client.get("/v1/models", headers={"authorization": f"Bearer {key}"})
    return answer.status_code


async def test_a_key_works_until_the_second_it_expires(
    held: Gateway, client: httpx2.AsyncClient, project: Project, clock: HeldClock
) -> None:
    expiry = int(START.timestamp()) + 100
    body = {"name": "short", "expires_at": expiry}
    key = (await create(client, managed_keys_path(project.id), "creation-1", body)).json()
    admin = (await create(client, ADMIN_KEYS, "creation-2", body)).json()
    async with held.client(admin["value"]) as admin_client:
        clock.advance(timedelta(seconds=99))
        assert await _use(client, key["value"]) == LET_IN
        assert (await admin_client.get(LIST_ADMIN_KEYS)).status_code == 200
        clock.advance(timedelta(seconds=1))
        assert await _use(client, key["value"]) == 401
        assert (await admin_client.get(LIST_ADMIN_KEYS)).status_code == 401

    shown = await client.get(f"{managed_keys_path(project.id)}/{key['id']}")
    assert shown.json()["status"] == "expired"
    listed = (await client.get(LIST_ADMIN_KEYS)).json()["data"]
    assert admin["id"] in [item["id"] for item in listed], "expired Admin keys are listed"


@pytest.mark.parametrize("seconds_ahead", [-1, 0])
async def test_an_expiry_that_is_not_ahead_is_refused(
    client: httpx2.AsyncClient, project: Project, seconds_ahead: int
) -> None:
    body = {"name": "late", "expires_at": int(START.timestamp()) + seconds_ahead}
    for path in (managed_keys_path(project.id), ADMIN_KEYS):
        answer = await create(client, path, "creation-1", body)

        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "expires_at"


CREATOR_SECONDS = 100
"""For how long the Admin keys below live."""


@pytest.mark.guarantee("T14")
@pytest.mark.parametrize(
    ("seconds_ahead", "status"),
    [(CREATOR_SECONDS - 1, 200), (CREATOR_SECONDS, 200), (CREATOR_SECONDS + 1, 403), (None, 403)],
)
async def test_no_key_outlives_the_admin_key_that_made_it(
    held: Gateway,
    org: OrganizationFixture,
    project: Project,
    seconds_ahead: int | None,
    status: int,
) -> None:
    creator = await org.admin_key(expires_at=START + timedelta(seconds=CREATOR_SECONDS))
    body: dict[str, object] = {"name": "child"}
    if seconds_ahead is not None:
        body["expires_at"] = int(START.timestamp()) + seconds_ahead
    async with held.client(creator.value) as client:
        answers = [
            await create(client, managed_keys_path(project.id), "creation-1", body),
            await create(client, ADMIN_KEYS, "creation-2", body),
        ]

    assert [answer.status_code for answer in answers] == [status, status]
    if status == 403:
        errors = [answer.json()["error"] for answer in answers]
        assert {error["code"] for error in errors} == {"expiry_exceeds_creator"}
        assert {error["param"] for error in errors} == {"expires_at"}


@pytest.mark.guarantee("T14")
async def test_an_admin_key_that_expires_makes_no_key_that_never_does(
    held: Gateway, org: OrganizationFixture, project: Project
) -> None:
    """The given creation has no field for an expiry."""
    creator = await org.admin_key(expires_at=START + timedelta(seconds=CREATOR_SECONDS))
    async with held.client(creator.value) as client:
        answer = await create(client, keys_path(project.id), "creation-1")

    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "expiry_exceeds_creator"


async def test_a_key_is_made_with_its_cap_by_an_admin_key_that_may_set_one(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture, project: Project
) -> None:
    path = managed_keys_path(project.id)
    cap = {"limit": {"value": "25", "currency": "usd"}}
    body = {"name": "capped", "spending_limit": cap}
    narrow = await org.admin_key(("project_api_keys:create",))
    async with held.client(narrow.value) as limited:
        refused = await create(limited, path, "creation-1", body)

    made = (await create(client, path, "creation-2", body)).json()

    (shown,) = (await client.get("/manage/v1/organization/spending_limits")).json()["data"]
    assert (refused.status_code, (await client.get(path)).json()["data"]) == (
        403,
        [{name: value for name, value in made.items() if name != "value"}],
    )
    assert (shown["api_key_id"], shown["period"]) == (made["id"], "month")
    assert shown["limit"] == cap["limit"]


async def test_an_empty_list_of_models_does_not_allow_every_model(
    client: httpx2.AsyncClient, project: Project
) -> None:
    path = managed_keys_path(project.id)
    body: dict[str, object] = {"name": "child", "allowed_models": []}

    answer = await create(client, path, "creation-1", body)
    every = await create(client, path, "creation-2", body | {"allowed_models": None})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "array_below_min_length")
    assert error["param"] == "allowed_models"
    assert every.json()["allowed_models"] is None


@pytest.mark.parametrize("end", ["revoke", "expire"])
@pytest.mark.parametrize("verb", ["suspend", "resume", "rotate"])
async def test_an_ended_key_takes_no_other_state(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project, end: str, verb: str
) -> None:
    past = START - timedelta(seconds=1)
    key = await org.project_key(project, expires_at=past if end == "expire" else None)
    if end == "revoke":
        await org.revoke_project_key(key)
    path = f"{managed_keys_path(project.id)}/{key.key.id}/{verb}"

    if verb == "rotate":
        answer = await create(client, path, "rotation-1", {"overlap_seconds": 0})
    else:
        answer = await client.post(path)

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "api_key_state_conflict"
    assert answer.headers["x-should-retry"] == "false"


async def test_a_suspended_key_cannot_be_rotated(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project
) -> None:
    key = await org.project_key(project)
    await org.suspend_project_key(key)

    answer = await create(
        client, rotate_path(project.id, key.key.id), "rotation-1", {"overlap_seconds": 0}
    )

    assert answer.status_code == 409


async def test_keys_of_an_archived_project_can_be_listed_and_revoked_but_not_made(
    client: httpx2.AsyncClient, org: OrganizationFixture, project: Project
) -> None:
    key = await org.project_key(project)
    await org.archive(project)
    listed = await client.get(managed_keys_path(project.id))
    revoked = await client.post(f"{managed_keys_path(project.id)}/{key.key.id}/revoke")
    made = [
        await create(client, keys_path(project.id), "creation-1"),
        await create(client, managed_keys_path(project.id), "creation-2"),
        await create(
            client, rotate_path(project.id, key.key.id), "rotation-1", {"overlap_seconds": 0}
        ),
    ]

    assert [item["status"] for item in listed.json()["data"]] == ["active"]
    assert revoked.json()["status"] == "revoked"
    assert [answer.status_code for answer in made] == 3 * [409]
    assert {answer.json()["error"]["code"] for answer in made} == {"project_archived"}


async def test_a_new_project_key_holds_the_two_customer_permissions(
    client: httpx2.AsyncClient, project: Project
) -> None:
    created = await create(client, keys_path(project.id), "creation-1")

    assert created.json()["permissions"] == ["inference:write", "models:read"]


@pytest.mark.guarantee("T14")
@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        (["projects:read"], 200),
        (["projects:read", "admin_api_keys:create"], 200),
        (["projects:read", "billing:read"], 403),
        (["admin_api_keys:revoke"], 403),
        (None, 403),
    ],
)
async def test_an_admin_key_grants_at_most_what_it_holds(
    held: Gateway, org: OrganizationFixture, wanted: list[str] | None, status: int
) -> None:
    creator = await org.admin_key(("admin_api_keys:create", "projects:read"))
    body: dict[str, object] = {"name": "child"}
    if wanted is not None:
        body["permissions"] = wanted
    async with held.client(creator.value) as client:
        answer = await create(client, ADMIN_KEYS, "creation-1", body)

    assert answer.status_code == status
    if status == 200:
        assert answer.json()["permissions"] == sorted(wanted or [])
    else:
        assert answer.json()["error"]["code"] == "insufficient_permissions"
        assert answer.json()["error"]["param"] == "permissions"


@pytest.mark.guarantee("T14")
async def test_only_a_key_with_all_grants_all(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    """Holding every permission that there is today is less than holding all."""
    every = await org.admin_key(ADMIN_PERMISSIONS)
    async with held.client(every.value) as limited:
        refused = await create(limited, ADMIN_KEYS, "creation-1", {"name": "child"})
    granted = await create(client, ADMIN_KEYS, "creation-1", {"name": "child"})
    async with held.client(granted.json()["value"]) as child:
        grandchild = await create(child, ADMIN_KEYS, "creation-2", {"name": "grandchild"})

    assert refused.status_code == 403
    assert granted.json()["permissions"] == sorted(ADMIN_PERMISSIONS)
    assert grandchild.status_code == 200


@pytest.mark.parametrize("permission", ["inference:write", "everything", "", "policies:read "])
async def test_an_admin_key_cannot_hold_what_is_no_admin_permission(
    client: httpx2.AsyncClient, permission: str
) -> None:
    body = {"name": "child", "permissions": [permission]}

    answer = await create(client, ADMIN_KEYS, "creation-1", body)

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "permissions[0]"


@pytest.mark.guarantee("T14")
async def test_a_project_key_cannot_hold_an_admin_permission(
    client: httpx2.AsyncClient, project: Project
) -> None:
    body = {"name": "child", "permissions": ["projects:read"]}

    answer = await create(client, managed_keys_path(project.id), "creation-1", body)

    assert answer.status_code == 400


async def test_a_key_may_revoke_itself(
    held: Gateway, org: OrganizationFixture, clock: HeldClock
) -> None:
    admin = await org.admin_key()
    async with held.client(admin.value) as client:
        revoked = await client.delete(f"{LIST_ADMIN_KEYS}/{admin.key.id}")
        clock.advance(BELIEF_IS_STALE)
        after = await client.get(LIST_ADMIN_KEYS)

    assert revoked.status_code == 200
    assert after.status_code == 401


@pytest.mark.guarantee("T14")
@pytest.mark.parametrize(
    ("seconds_ahead", "status"),
    [(CREATOR_SECONDS - 1, 200), (CREATOR_SECONDS, 200), (CREATOR_SECONDS + 1, 403), (None, 403)],
)
async def test_no_rotated_value_outlives_the_admin_key_that_made_it(
    held: Gateway,
    org: OrganizationFixture,
    project: Project,
    seconds_ahead: int | None,
    status: int,
) -> None:
    rotator = await org.admin_key(expires_at=START + timedelta(seconds=CREATOR_SECONDS))
    expires_at = None if seconds_ahead is None else START + timedelta(seconds=seconds_ahead)
    key = await org.project_key(project, expires_at=expires_at)
    path = rotate_path(project.id, key.key.id)
    async with held.client(rotator.value) as client:
        answer = await create(client, path, "rotation-1", {"overlap_seconds": 0})
        models = await client.get("/v1/models", headers={"authorization": f"Bearer {key.value}"})

    assert answer.status_code == status
    if status == 403:
        error = answer.json()["error"]
        assert (error["code"], error["param"]) == ("expiry_exceeds_creator", "api_key_id")
        assert models.status_code == 200, "the old value works on"


async def test_an_admin_key_without_an_expiry_rotates_every_key(
    held: Gateway, org: OrganizationFixture, project: Project
) -> None:
    rotator, key = await org.admin_key(), await org.project_key(project)
    async with held.client(rotator.value) as client:
        path = rotate_path(project.id, key.key.id)
        answer = await create(client, path, "rotation-1", {"overlap_seconds": 0})

    assert answer.status_code == 200
