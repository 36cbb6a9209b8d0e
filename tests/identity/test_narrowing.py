"""Narrowing an Admin key: it loses permissions, keeps its value, and gains none."""

from datetime import timedelta
from uuid import uuid4

import httpx2
import pytest

from tests.identity.creations import START
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.clock import HeldClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"
LIST_ADMIN_KEYS = "/v1/organization/admin_api_keys"
PROJECTS = "/manage/v1/organization/projects"
SNAPSHOT_IS_STALE = timedelta(seconds=1)


async def narrow(client: httpx2.AsyncClient, key_id: object, *permissions: str) -> httpx2.Response:
    body = {"permissions": list(permissions)}
    return await client.post(f"{ADMIN_KEYS}/{key_id}/narrow", json=body)


async def test_a_narrowed_key_keeps_its_value_and_loses_the_rest_within_a_second(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture, clock: HeldClock
) -> None:
    wide = await org.admin_key()
    async with held.client(wide.value) as owner:
        assert (await owner.get(LIST_ADMIN_KEYS)).status_code == 200

        answer = await narrow(client, wide.key.id, "projects:read", "projects:read")
        clock.advance(SNAPSHOT_IS_STALE)

        assert answer.status_code == 200, answer.text
        assert answer.json()["permissions"] == ["projects:read"]
        assert (await owner.get(PROJECTS)).status_code == 200
        assert (await owner.get(LIST_ADMIN_KEYS)).status_code == 403


@pytest.mark.guarantee("T14")
async def test_narrowing_gives_no_permission(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    key = (await org.admin_key(("billing:read", "projects:read"))).key

    refused = await narrow(client, key.id, "projects:read", "audit:read")
    listed = (await client.get(LIST_ADMIN_KEYS)).json()["data"]

    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "invalid_value"
    assert refused.json()["error"]["param"] == "permissions"
    assert "'audit:read'" in refused.json()["error"]["message"]
    (shown,) = [item for item in listed if item["id"] == str(key.id)]
    assert shown["permissions"] == ["billing:read", "projects:read"]


async def test_a_key_that_has_ended_is_not_narrowed(
    client: httpx2.AsyncClient, org: OrganizationFixture, clock: HeldClock
) -> None:
    revoked = await org.admin_key()
    expired = await org.admin_key(expires_at=START + timedelta(seconds=5))
    await client.delete(f"{LIST_ADMIN_KEYS}/{revoked.key.id}")
    clock.advance(timedelta(seconds=6))

    for held_key, status in ((revoked, "revoked"), (expired, "expired")):
        answer = await narrow(client, held_key.key.id, "projects:read")
        assert answer.status_code == 409
        assert f"is {status}" in answer.json()["error"]["message"]


async def test_an_unknown_key_and_an_empty_list_are_refused(
    client: httpx2.AsyncClient, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    foreign = (await other_org.admin_key()).key.id

    for key_id in (uuid4(), foreign, "no-uuid"):
        assert (await narrow(client, key_id, "projects:read")).status_code == 404
    empty = await narrow(client, (await org.admin_key()).key.id)
    assert empty.status_code == 400


@pytest.mark.guarantee("T14")
async def test_a_key_that_was_narrowed_meanwhile_creates_none_with_what_it_lost(
    held: Gateway, client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    """Authentication still has the wide key in its cache; the creation reads it again."""
    wide = await org.admin_key()
    headers = {"Idempotency-Key": str(uuid4())}
    async with held.client(wide.value) as owner:
        assert (await owner.get(LIST_ADMIN_KEYS)).status_code == 200
        await narrow(client, wide.key.id, "admin_api_keys:create", "projects:read")

        refused = await owner.post(ADMIN_KEYS, json={"name": "all"}, headers=headers)
        kept = {"name": "some", "permissions": ["projects:read"]}
        made = await owner.post(ADMIN_KEYS, json=kept, headers={"Idempotency-Key": str(uuid4())})

    assert refused.status_code == 403, refused.text
    assert refused.json()["error"]["code"] == "insufficient_permissions"
    assert made.status_code == 200, made.text
