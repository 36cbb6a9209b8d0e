"""The models of a project under /manage/v1."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.identity.audit_rows import audit_rows
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.support.shared_gateway import database, database_url, gateway, org, settings

__all__ = ["database", "database_url", "gateway", "org", "settings"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROJECTS = "/manage/v1/organization/projects"


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.client((await org.admin_key()).value) as opened:
        yield opened


async def edited(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.patch(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_edit_changes_what_it_names_and_null_allows_every_model(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    project = await org.project("search")
    path = f"{PROJECTS}/{project.id}"
    rows_before = len(await audit_rows(org))

    models = ["b", "a", "b"]
    narrowed = await edited(client, path, {"allowed_models": models})
    renamed = await edited(client, path, {"name": "find"})
    nothing = await edited(client, path, {})
    both = await edited(client, path, {"name": "seek", "allowed_models": None})
    again = await edited(client, path, {"name": "seek", "allowed_models": None})
    read = (await client.get(path)).json()
    listed = (await client.get(PROJECTS)).json()["data"]

    assert (narrowed["name"], narrowed["allowed_models"]) == ("search", ["b", "a"])
    assert (renamed["name"], renamed["allowed_models"]) == ("find", ["b", "a"])
    assert nothing == renamed
    assert (both["name"], both["allowed_models"]) == ("seek", None)
    assert again == both == read == listed[0]
    entries = (await audit_rows(org))[rows_before:]
    assert [entry["action"] for entry in entries] == 3 * ["project.edit"]


@pytest.mark.parametrize(
    ("models", "code"),
    [
        ([], "array_below_min_length"),
        ([""], "string_below_min_length"),
        (["x" * 201], "string_above_max_length"),
        ([f"model-{number}" for number in range(101)], "array_above_max_length"),
        ("a", "invalid_type"),
        ([1], "invalid_type"),
    ],
)
async def test_a_list_that_is_none_is_refused(
    client: httpx2.AsyncClient, org: OrganizationFixture, models: object, code: str
) -> None:
    project = await org.project()

    answer = await client.patch(f"{PROJECTS}/{project.id}", json={"allowed_models": models})

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == code
    assert answer.json()["error"]["param"].startswith("allowed_models")


async def test_an_archived_project_keeps_its_models(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    project = await org.allow_models(await org.project(), "a")
    await org.archive(project)

    answer = await client.patch(f"{PROJECTS}/{project.id}", json={"allowed_models": None})

    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "project_archived")
    read = (await client.get(f"{PROJECTS}/{project.id}")).json()
    assert read["allowed_models"] == ["a"]
