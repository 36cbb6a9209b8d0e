"""Every line of the specification's policy tables, over HTTP; a refusal changes nothing."""

import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
import pytest
import pytest_asyncio

from tests.contract.tables import (
    ACCEPTED,
    BOOLEAN,
    Row,
    Table,
    array,
    cases,
    integer,
    one_of,
    row,
    string,
)
from tests.policies.client import GIVEN, MANAGE, RULE, Policies, body_of
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.contract import policies as wire
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

REVISION = row("revision", integer(1, 2_147_483_647), required=True)
UNJUDGED = row("refuses_until_judged", BOOLEAN, default=False)
DRAFT_ROWS = [
    row("description", string(high=240)),
    row("direction", one_of("request", "response", "both")),
    row("mode", one_of("monitoring", "enforcing")),
    row("scope", one_of("organization", "projects", "unattached")),
    row("project_ids", array("PROJECT", high=1000)),
    row("match_threshold_basis_points", integer(1, 9999), null=True),
]


def _texts(*, required: bool) -> list[Row]:
    return [
        row("name", string(1, 80), required=required),
        row("rule", string(1, 20_000, ending="?"), required=required),
    ]


TABLES = (
    Table(
        type_=wire.CreatePolicy,
        body={"name": "No names", "rule": RULE},
        rows=[*_texts(required=True), *DRAFT_ROWS],
    ),
    Table(
        type_=wire.EditPolicy,
        body={"revision": 2},
        rows=[REVISION, *_texts(required=False), *DRAFT_ROWS],
    ),
    *(
        Table(type_=type_, body={"revision": 2}, rows=[REVISION, *rows])
        for type_, rows in (
            (wire.PausePolicy, []),
            (wire.PublishPolicy, [UNJUDGED]),
            (wire.ResumePolicy, [UNJUDGED]),
        )
    ),
    Table(
        type_=wire.RollBackPolicy,
        body={"revision": 2, "version": 1},
        rows=[REVISION, UNJUDGED, row("version", integer(1, 2_147_483_647), required=True)],
    ),
)
PLACES: dict[type[msgspec.Struct], tuple[str, str]] = {
    wire.CreatePolicy: ("POST", GIVEN + "/policies"),
    wire.EditPolicy: ("PATCH", GIVEN + "/policies/{}"),
    wire.PausePolicy: ("POST", GIVEN + "/policies/{}/pause"),
    wire.PublishPolicy: ("POST", MANAGE + "/policies/{}/publish"),
    wire.ResumePolicy: ("POST", MANAGE + "/policies/{}/resume"),
    wire.RollBackPolicy: ("POST", MANAGE + "/policies/{}/rollback"),
}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared_world(database: Database) -> OrganizationFixture:
    return await new_organization_fixture(database)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(
    gateway: Gateway, shared_world: OrganizationFixture
) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.client((await shared_world.admin_key()).value) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def project_id(shared_world: OrganizationFixture) -> str:
    return str((await shared_world.project()).id)


@pytest.mark.parametrize(("type_", "body", "outcome"), cases(*TABLES))
async def test_each_field_keeps_its_line_of_the_table(
    client: httpx2.AsyncClient,
    project_id: str,
    type_: type[msgspec.Struct],
    body: dict[str, Any],
    outcome: tuple[str, str | None],
) -> None:
    policies = Policies(client)
    policy = await policies.published()
    method, path = PLACES[type_]

    answer = await client.request(
        method,
        path.format(policy["id"]),
        content=json.dumps(body).replace("PROJECT", project_id),
        headers={"Idempotency-Key": secrets.token_hex(8), "content-type": "application/json"},
    )

    if outcome == ACCEPTED:
        # It is sound; the rest is between its revision, its version and the policy.
        assert answer.status_code in {200, 404, 409}, answer.text
        return
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == outcome
    assert body_of(await policies.retrieve(policy["id"])) == policy


UNSHOWABLE = ["   ", "two\nlines", "two\u2028lines", "no\u202eseman", "\u2067x\u2069"]


@pytest.mark.parametrize("name", UNSHOWABLE)
async def test_a_name_that_cannot_be_shown_is_refused_as_for_keys(
    client: httpx2.AsyncClient, project_id: str, name: str
) -> None:
    policies = Policies(client)
    policy = await policies.published()
    idempotency = {"Idempotency-Key": secrets.token_hex(8)}

    answers = [
        await client.post(
            f"{GIVEN}/projects/{project_id}/api_keys", json={"name": name}, headers=idempotency
        ),
        await policies.create(name=name),
        await policies.edit(policy["id"], policy["revision"], name=name),
        await client.patch(
            f"{MANAGE}/policies/{policy['id']}", json={"revision": policy["revision"], "name": name}
        ),
    ]

    assert {answer.status_code for answer in answers} == {400}
    errors = [answer.json()["error"] for answer in answers]
    assert {(error["code"], error["param"]) for error in errors} == {("invalid_value", "name")}
    (message,) = {error["message"] for error in errors}
    assert "line breaks" in message
    assert body_of(await policies.retrieve(policy["id"])) == policy
