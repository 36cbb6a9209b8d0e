"""A policy is created once per `Idempotency-Key`, however often and from wherever it is sent."""

import asyncio
from collections.abc import Mapping

import httpx2
import pytest

from tests.identity.creations import REPLAYED, RUNNING_TWIN, create, records_of
from tests.identity.waiting import holding
from tests.policies.client import GIVEN, RULE, Policies, body_of
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = f"{GIVEN}/policies"
BODY: Mapping[str, object] = {"name": "No names", "rule": RULE}


async def policies_of(org: OrganizationFixture) -> int:
    async with org.database.transaction() as tx:
        return await tx.fetch_value(
            "SELECT count(*) FROM policies WHERE organization_id = $1", org.organization_id
        )


@pytest.mark.guarantee("T9")
async def test_a_hundred_identical_creations_make_one_policy(
    settings: Settings, gateway: Gateway, org: OrganizationFixture
) -> None:
    """Half of them through another gateway on the same database."""
    admin = await org.admin_key()
    async with (
        running_gateway(settings) as twin,
        gateway.client(admin.value) as one,
        twin.client(admin.value) as other,
    ):
        clients = 50 * [one, other]
        answers = await asyncio.gather(
            *(_create_patiently(client, "creation-1") for client in clients)
        )

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sorted(answer.headers.get(REPLAYED, "") for answer in answers) == [""] + 99 * ["true"]
    assert (await policies_of(org), await records_of(org)) == (1, 1)


async def test_a_replay_shows_the_policy_as_it_is_now(policies: Policies) -> None:
    first = body_of(await create(policies.client, PATH, "creation-1", BODY))
    published = body_of(await policies.publish(first["id"], 1))

    replay = await create(policies.client, PATH, "creation-1", BODY)

    assert replay.headers[REPLAYED] == "true"
    assert body_of(replay) == published


async def test_members_in_another_order_are_the_same_body(
    policies: Policies, org: OrganizationFixture
) -> None:
    headers = {"Idempotency-Key": "creation-1", "content-type": "application/json"}
    bodies = (b'{"name": "n", "rule": "Is it?"}', b'{"rule":"\\u0049s it?","name":"n"}')

    first, second = [
        await policies.client.post(PATH, content=body, headers=headers) for body in bodies
    ]

    assert first.content == second.content
    assert await policies_of(org) == 1


@pytest.mark.guarantee("T10")
@pytest.mark.parametrize(
    "body",
    [
        {"name": "another", "rule": RULE},
        {"name": "No names", "rule": "Is it so?"},
        {**BODY, "description": "x"},
        {**BODY, "mode": "enforcing"},
        {**BODY, "match_threshold_basis_points": None},
    ],
)
async def test_another_body_is_a_conflict_that_is_not_retried(
    policies: Policies, org: OrganizationFixture, body: Mapping[str, object]
) -> None:
    """Also one that would make the same policy: bodies are compared, not their effects."""
    await create(policies.client, PATH, "creation-1", BODY)

    answer = await create(policies.client, PATH, "creation-1", body)

    _assert_reused(answer)
    assert await policies_of(org) == 1


async def test_a_key_of_another_creation_is_a_conflict(
    policies: Policies, org: OrganizationFixture
) -> None:
    await create(policies.client, "/manage/v1/organization/projects", "creation-1")

    _assert_reused(await create(policies.client, PATH, "creation-1", BODY))
    assert await policies_of(org) == 0


async def test_a_missing_idempotency_key_is_named(
    policies: Policies, org: OrganizationFixture
) -> None:
    answer = await policies.client.post(PATH, json=BODY)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("missing_required_parameter", "Idempotency-Key")
    assert await policies_of(org) == 0


async def test_a_failed_creation_leaves_its_key_free(
    policies: Policies, org: OrganizationFixture
) -> None:
    unknown = {**BODY, "project_ids": ["11111111-1111-4111-8111-111111111111"]}

    refused = await create(policies.client, PATH, "creation-1", unknown)
    created = await create(policies.client, PATH, "creation-1", BODY)

    assert refused.status_code == 404
    assert created.status_code == 200
    assert REPLAYED not in created.headers
    assert (await policies_of(org), await records_of(org)) == (1, 1)


async def test_a_twin_that_runs_on_is_reported(
    policies: Policies, org: OrganizationFixture, database_url: str
) -> None:
    async with holding(database_url, RUNNING_TWIN, org.organization_id):
        answer = await create(policies.client, PATH, "creation-1", BODY)

    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_key_in_progress"
    assert answer.headers["x-should-retry"] == "true"
    assert (await create(policies.client, PATH, "creation-1", BODY)).status_code == 200


@pytest.mark.guarantee("T10")
async def test_organizations_do_not_share_idempotency_keys(
    gateway: Gateway, org: OrganizationFixture, other_org: OrganizationFixture
) -> None:
    made: set[str] = set()
    for side in (org, other_org):
        async with gateway.client((await side.admin_key()).value) as client:
            answer = await create(client, PATH, "creation-1", BODY)
        assert REPLAYED not in answer.headers
        made.add(body_of(answer)["id"])

    assert len(made) == 2


async def _create_patiently(client: httpx2.AsyncClient, idempotency_key: str) -> httpx2.Response:
    """As an SDK does: a machine that stalls makes a twin run for longer than it is waited for."""
    while True:
        answer = await create(client, PATH, idempotency_key, BODY)
        if answer.headers.get("x-should-retry") != "true":
            return answer


def _assert_reused(answer: httpx2.Response) -> None:
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("idempotency_key_reused", "Idempotency-Key")
    assert answer.headers["x-should-retry"] == "false"
