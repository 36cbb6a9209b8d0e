"""The official SDK, unmodified, against the organization's own routes."""

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.identity import measures
from tests.identity.creations import RUNNING_TWIN, keys_of, keys_path
from tests.identity.waiting import holding, until
from tests.support.credentials import ADMIN_PREFIX, unknown_key
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.ids import time_ordered_uuid
from tollhouse.projects.types import Project

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _sync(gateway: Gateway, key: str) -> OpenAI:
    return OpenAI(api_key=key, admin_api_key=key, base_url=f"{gateway.base_url}/v1")


def _async(gateway: Gateway, key: str) -> AsyncOpenAI:
    return AsyncOpenAI(api_key=key, admin_api_key=key, base_url=f"{gateway.base_url}/v1")


async def _in_thread(work: Callable[[OpenAI], Any], gateway: Gateway, key: str) -> Any:  # noqa: ANN401 - what the SDK returns
    """The blocking client must not block the loop that the gateway runs on."""

    def run() -> Any:  # noqa: ANN401 - what the SDK returns
        with _sync(gateway, key) as client:
            return work(client)

    return await asyncio.to_thread(run)


async def _five_keys(org: OrganizationFixture) -> tuple[str, list[str]]:
    """The first key, and the IDs of all in order; created in one millisecond, they have another."""
    held = [await org.admin_key(name=f"key {number}") for number in range(5)]
    ids = sorted(str(item.key.id) for item in held)
    return next(item.value for item in held if str(item.key.id) == ids[0]), ids


async def test_the_async_list_pages_by_itself(gateway: Gateway, org: OrganizationFixture) -> None:
    key, ids = await _five_keys(org)
    requests = measures.answers("listAdminKeys", 200)

    async with _async(gateway, key) as client:
        listed = [item async for item in client.admin.organization.admin_api_keys.list(limit=2)]

    assert [item.id for item in listed] == ids
    assert {item.name for item in listed} == {f"key {number}" for number in range(5)}
    assert {item.object for item in listed} == {"organization.admin_api_key"}
    assert measures.answers("listAdminKeys", 200) - requests == 3


async def test_the_sync_list_pages_by_itself(gateway: Gateway, org: OrganizationFixture) -> None:
    key, ids = await _five_keys(org)

    def work(client: OpenAI) -> list[str]:
        return [item.id for item in client.admin.organization.admin_api_keys.list(limit=2)]

    assert await _in_thread(work, gateway, key) == ids


async def test_a_list_goes_on_after_a_cursor_and_in_either_order(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key, ids = await _five_keys(org)
    async with _async(gateway, key) as client:
        keys = client.admin.organization.admin_api_keys
        rest = [item.id async for item in keys.list(after=ids[1], limit=100)]
        newest_first = [item.id async for item in keys.list(order="desc", limit=2)]
        older = [item.id async for item in keys.list(order="desc", after=ids[3], limit=1)]

    assert rest == ids[2:]
    assert newest_first == ids[::-1]
    assert older == ids[2::-1]


async def test_an_admin_key_is_deleted_and_leaves_the_list(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key, ids = await _five_keys(org)
    async with _async(gateway, key) as client:
        keys = client.admin.organization.admin_api_keys
        deleted = await keys.delete(ids[1])
        again = await keys.delete(ids[1])
        listed = [item.id async for item in keys.list(limit=2)]
        after_the_deleted = [item.id async for item in keys.list(after=ids[1])]

    assert (deleted.id, deleted.deleted, deleted.object) == (
        ids[1],
        True,
        "organization.admin_api_key.deleted",
    )
    assert again == deleted
    assert listed == [ids[0], *ids[2:]]
    assert after_the_deleted == ids[2:]


async def test_the_sync_client_deletes_and_archives(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    key, ids = await _five_keys(org)
    project = await org.project()

    def work(client: OpenAI) -> tuple[bool, str]:
        organization = client.admin.organization
        deleted = organization.admin_api_keys.delete(ids[4])
        archived = organization.projects.archive(str(project.id))
        return deleted.deleted, archived.id

    assert await _in_thread(work, gateway, key) == (True, str(project.id))


async def test_a_project_is_archived(gateway: Gateway, org: OrganizationFixture) -> None:
    project, admin = await org.project(), await org.admin_key()
    async with _async(gateway, admin.value) as client:
        archived = await client.admin.organization.projects.archive(str(project.id))

    assert archived.id == str(project.id)
    assert str(archived.object) == "organization.project.deleted"


async def test_failures_become_the_classes_of_the_sdk(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    admin, narrow = await org.admin_key(), await org.admin_key(("billing:read",))
    unknown_id = str(time_ordered_uuid())

    async def failure(key: str, after: str | None = None) -> openai.APIStatusError:
        async with _async(gateway, key) as client:
            keys = client.admin.organization.admin_api_keys
            with pytest.raises(openai.APIStatusError) as raised:
                await (keys.delete(unknown_id) if after is None else keys.list(after=after))
        return raised.value

    unauthenticated = await failure(unknown_key(ADMIN_PREFIX))
    denied, missing = await failure(narrow.value), await failure(admin.value)
    invalid = await failure(admin.value, after=unknown_id)

    assert isinstance(unauthenticated, openai.AuthenticationError)
    assert unauthenticated.code == "invalid_api_key"
    assert isinstance(denied, openai.PermissionDeniedError)
    assert denied.code == "insufficient_permissions"
    assert isinstance(missing, openai.NotFoundError)
    assert missing.code == "api_key_not_found"
    assert isinstance(invalid, openai.BadRequestError)
    assert (invalid.code, invalid.param) == ("invalid_value", "after")
    for error in (unauthenticated, denied, missing, invalid):
        assert error.request_id is not None
        assert error.request_id == error.response.json()["error"]["request_id"]


async def _create(client: AsyncOpenAI, project: Project, name: str) -> Any:  # noqa: ANN401 - free form
    return await client.post(
        keys_path(project.id).removeprefix("/v1"),
        body={"name": name},
        cast_to=object,
        options={"headers": {"Idempotency-Key": "creation-1"}},
    )


async def test_a_lasting_conflict_is_sent_once(gateway: Gateway, org: OrganizationFixture) -> None:
    project, admin = await org.project(), await org.admin_key()
    conflicts = measures.answers("createProjectKey", 409)
    async with _async(gateway, admin.value) as client:
        await _create(client, project, "production")
        with pytest.raises(openai.ConflictError) as raised:
            await _create(client, project, "staging")

    assert raised.value.code == "idempotency_key_reused"
    assert measures.answers("createProjectKey", 409) - conflicts == 1


async def test_the_sync_client_sends_a_lasting_conflict_once_too(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    project, admin = await org.project(), await org.admin_key()
    await org.archive(project)
    conflicts = measures.answers("createProjectKey", 409)

    def work(client: OpenAI) -> str | None:
        with pytest.raises(openai.ConflictError) as raised:
            client.post(
                keys_path(project.id).removeprefix("/v1"),
                body={"name": "production"},
                cast_to=object,
                options={"headers": {"Idempotency-Key": "creation-1"}},
            )
        return raised.value.code

    assert await _in_thread(work, gateway, admin.value) == "project_archived"
    assert measures.answers("createProjectKey", 409) - conflicts == 1


async def test_the_sdk_picks_up_a_creation_that_was_still_running(
    gateway: Gateway, org: OrganizationFixture, database_url: str
) -> None:
    """The twin holds its record for longer than the gateway waits, and then fails."""
    project, admin = await org.project(), await org.admin_key()
    conflicts = measures.answers("createProjectKey", 409)

    async def is_refused_once() -> bool:
        return measures.answers("createProjectKey", 409) > conflicts

    async with _async(gateway, admin.value) as client:
        async with holding(database_url, RUNNING_TWIN, org.organization_id):
            creation = asyncio.ensure_future(_create(client, project, "production"))
            await until(is_refused_once)
        created = await creation

    assert created["value"].startswith("thp_")
    assert measures.answers("createProjectKey", 409) - conflicts == 1
    assert await keys_of(org) == 1
