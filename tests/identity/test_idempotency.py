"""A creation happens once per `Idempotency-Key`, however often and from wherever it is sent."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from tests.identity.creations import (
    LOCK_PROJECT,
    REPLAYED,
    RUNNING_TWIN,
    create,
    keys_of,
    keys_path,
    managed_keys_path,
    records_of,
    secrets_of,
)
from tests.identity.raw import bearer, connected
from tests.identity.waiting import holding
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

WAIT_FOR_TWIN_SECONDS = 2.0


@pytest_asyncio.fixture(loop_scope="module")
async def client(gateway: Gateway, org: OrganizationFixture) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.client((await org.admin_key()).value) as opened:
        yield opened


@pytest.mark.guarantee("T9", "I10")
@pytest.mark.clock
async def test_a_hundred_identical_creations_make_one_key(
    settings: Settings, gateway: Gateway, org: OrganizationFixture
) -> None:
    """Half of them through another gateway on the same database."""
    path = keys_path((await org.project()).id)
    admin = await org.admin_key()
    async with (
        running_gateway(settings) as twin,
        gateway.client(admin.value) as one,
        twin.client(admin.value) as other,
    ):
        answers = await asyncio.gather(
            *(create(client, path, "creation-1") for client in (one, other) for _ in range(50))
        )

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["value"].startswith("thp_")
    assert sorted(answer.headers.get(REPLAYED, "") for answer in answers) == [""] + 99 * ["true"]
    assert (await keys_of(org), await secrets_of(org), await records_of(org)) == (1, 1, 1)


async def test_members_in_another_order_are_the_same_body(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    path = managed_keys_path((await org.project()).id)
    bodies = (
        b'{"name": "production", "permissions": ["models:read"]}',
        b'{"permissions":["models:read"],"name":"\\u0070roduction"}',
    )
    headers = {"Idempotency-Key": "creation-1", "content-type": "application/json"}

    first, second = [await client.post(path, content=body, headers=headers) for body in bodies]

    assert first.status_code == second.status_code == 200
    assert second.headers[REPLAYED] == "true"
    assert first.content == second.content


@pytest.mark.guarantee("T10")
async def test_another_body_is_a_conflict_that_is_not_retried(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    path = keys_path((await org.project()).id)
    await create(client, path, "creation-1")

    answer = await create(client, path, "creation-1", {"name": "staging"})

    _assert_reused(answer)
    assert await keys_of(org) == 1


async def test_another_path_is_a_conflict(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    project, other_project = await org.project(), await org.project()
    await create(client, keys_path(project.id), "creation-1")

    for path in (
        managed_keys_path(project.id),
        keys_path(other_project.id),
        "/manage/v1/organization/projects",
    ):
        _assert_reused(await create(client, path, "creation-1"))
    assert await keys_of(org) == 1


@pytest.mark.guarantee("T10")
async def test_organizations_do_not_share_idempotency_keys(
    gateway: Gateway, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    made: list[str] = []
    for side in (org, other_org):
        path = keys_path((await side.project()).id)
        async with gateway.client((await side.admin_key()).value) as client:
            answer = await create(client, path, "creation-1")
        assert REPLAYED not in answer.headers
        made.append(answer.json()["value"])

    assert len(set(made)) == 2


def on_the_wire(text: str) -> str:
    """Return one character for each byte of the text in UTF-8."""
    return text.encode().decode("latin-1")


BAD_KEYS = {
    "seven characters": ["1234567"],
    "201 characters": ["k" * 201],
    "two headers": ["creation-1", "creation-1"],
    "a tab": ["creation\t1"],
    "not UTF-8": ["cr\xe9ation-1"],
    "seven Cyrillic characters": [on_the_wire("ключ-12")],
    "201 Cyrillic characters": [on_the_wire("к" * 201)],
    "a line separator": [on_the_wire("creation\u20281")],
    "a bidirectional control": [on_the_wire("creation\u202e1")],
    "empty": [""],
    "only blanks": ["         "],
}


@pytest.mark.parametrize("values", BAD_KEYS.values(), ids=BAD_KEYS)
async def test_a_bad_idempotency_key_is_named(
    gateway: Gateway, org: OrganizationFixture, values: list[str]
) -> None:
    answer = await _create_raw(gateway, org, values)

    assert answer.pop("message")
    assert answer == {"status": 400, "code": "invalid_value", "param": "Idempotency-Key"}
    assert await keys_of(org) == 0


async def test_a_missing_idempotency_key_is_named(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    answer = await _create_raw(gateway, org, [])

    assert answer.pop("message")
    assert answer == {
        "status": 400,
        "code": "missing_required_parameter",
        "param": "Idempotency-Key",
    }


async def test_bytes_that_are_no_text_are_told_as_such(
    gateway: Gateway, org: OrganizationFixture
) -> None:
    answer = await _create_raw(gateway, org, ["cr\xe9ation-1"])

    assert "not UTF-8" in str(answer.pop("message"))


@pytest.mark.parametrize(
    "value",
    [
        *("12345678", "k" * 200, "a b c d e", '"quoted"', "~!@#$%^&"),
        *map(on_the_wire, ("création-1", "ключ-123", "к" * 200, "注文番号一二三四", "order-🧾-1")),
        *map(
            on_the_wire,
            ("\u0646\u06cc\u200c\u0645-1234", "family-👨\u200d👩\u200d👧", "注文\u3000番号-123"),
        ),
    ],
)
async def test_every_printable_key_of_8_to_200_characters_is_taken(
    gateway: Gateway, org: OrganizationFixture, value: str
) -> None:
    assert (await _create_raw(gateway, org, [value]))["status"] == 200


async def _create_raw(
    gateway: Gateway, org: OrganizationFixture, values: list[str]
) -> dict[str, object]:
    path = keys_path((await org.project()).id)
    headers = [bearer((await org.admin_key()).value)]
    headers += [("idempotency-key", value) for value in values]
    async with connected(gateway.host, gateway.port) as connection:
        answer = await connection.ask("POST", path, headers, b'{"name":"production"}')
    error = json.loads(answer.body).get("error", {})
    return {
        "status": answer.status,
        "code": error.get("code"),
        "param": error.get("param"),
        "message": error.get("message"),
    }


async def test_a_failed_creation_leaves_its_key_free(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    archived, active = await org.project(), await org.project()
    await org.archive(archived)

    refused = await create(client, keys_path(archived.id), "creation-1")
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "project_archived"
    assert await records_of(org) == 0

    created = await create(client, keys_path(active.id), "creation-1")
    assert created.status_code == 200
    assert REPLAYED not in created.headers


@pytest.mark.clock
async def test_a_twin_that_runs_on_is_waited_for_and_then_reported(
    client: httpx2.AsyncClient, org: OrganizationFixture, database_url: str
) -> None:
    path = keys_path((await org.project()).id)
    async with holding(database_url, RUNNING_TWIN, org.organization_id):
        began = time.monotonic()
        answer = await create(client, path, "creation-1")
        waited_seconds = time.monotonic() - began

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_key_in_progress"
    assert answer.json()["error"]["param"] == "Idempotency-Key"
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["x-should-retry"] == "true"
    assert WAIT_FOR_TWIN_SECONDS <= waited_seconds < 2 * WAIT_FOR_TWIN_SECONDS
    assert (await create(client, path, "creation-1")).status_code == 200


async def test_a_creation_that_cannot_lock_its_project_can_be_retried(
    client: httpx2.AsyncClient, org: OrganizationFixture, database_url: str
) -> None:
    """Somebody else holding the project is no bug of ours and no twin of this request."""
    project = await org.project()
    async with holding(database_url, LOCK_PROJECT, project.id):
        answer = await create(client, keys_path(project.id), "creation-1")

    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert await records_of(org) == 0
    assert (await create(client, keys_path(project.id), "creation-1")).status_code == 200


@pytest.mark.clock
async def test_creations_that_race_with_the_archiving_leave_what_they_said(
    client: httpx2.AsyncClient, org: OrganizationFixture
) -> None:
    project = await org.project()
    path = keys_path(project.id)

    async def archive() -> httpx2.Response:
        return await client.post(f"/v1/organization/projects/{project.id}/archive")

    creations = [create(client, path, f"creation-{number}") for number in range(20)]
    answers = await asyncio.gather(*creations[:10], archive(), *creations[10:])

    statuses = [answer.status_code for answer in answers]
    assert set(statuses) <= {200, 409}
    assert await keys_of(org) == await records_of(org) == statuses.count(200) - 1
    assert (await create(client, path, "too late")).status_code == 409


def _assert_reused(answer: httpx2.Response) -> None:
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_key_reused"
    assert answer.json()["error"]["param"] == "Idempotency-Key"
    assert answer.headers["x-should-retry"] == "false"
