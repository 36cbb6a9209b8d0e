"""Whether a policy ends answers early: content of draft and version, told by `/manage/v1` alone."""

import json
from typing import Any

import pytest

from tests.identity.audit_rows import audit_rows
from tests.policies.client import MANAGE, Policies, whole_body_of
from tests.support.organization_fixture import OrganizationFixture

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIELD = "ends_answer_early"


async def edited(policies: Policies, policy: dict[str, Any], **fields: object) -> dict[str, Any]:
    body = {"revision": policy["revision"]} | fields
    return whole_body_of(
        await policies.client.patch(f"{MANAGE}/policies/{policy['id']}", json=body)
    )


async def test_it_is_off_until_it_is_set_and_then_published_like_the_rest(
    policies: Policies,
) -> None:
    first = await policies.published(direction="response")
    second = await edited(policies, first, **{FIELD: True})
    third = whole_body_of(await policies.publish(second["id"], second["revision"]))
    fourth = whole_body_of(await policies.roll_back(third["id"], third["revision"], 1))

    seen = whole_body_of(await policies.retrieve_managed(first["id"]))
    versions = whole_body_of(await policies.versions(first["id"]))["data"]
    assert (second["draft"][FIELD], second["published"][FIELD]) == (True, False)
    assert second["has_unpublished_changes"]
    assert third["published"][FIELD]
    assert not third["has_unpublished_changes"]
    assert (fourth["draft"][FIELD], fourth["published"][FIELD]) == (True, False)
    assert seen | {"preflight": None} == fourth
    assert [version[FIELD] for version in versions] == [False, True, False]


async def test_the_given_routes_neither_show_nor_take_it(policies: Policies) -> None:
    created = whole_body_of(await policies.create(direction="response"))
    await edited(policies, created, **{FIELD: True})

    shown = whole_body_of(await policies.retrieve(created["id"]))
    refused = await policies.edit(created["id"], shown["revision"], **{FIELD: False})
    renamed = whole_body_of(await policies.edit(created["id"], shown["revision"], name="Another"))

    assert FIELD not in created["draft"]
    assert FIELD not in shown["draft"]
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "unknown_parameter"
    kept = whole_body_of(await policies.retrieve_managed(created["id"]))
    assert kept["draft"][FIELD], "an edit that does not name it leaves it"
    assert kept["revision"] == renamed["revision"]


async def test_what_judges_no_answer_can_end_none(policies: Policies) -> None:
    created = await policies.created(direction="request")
    path = f"{MANAGE}/policies/{created['id']}"

    alone = await policies.client.patch(path, json={"revision": 1, FIELD: True})
    both = whole_body_of(
        await policies.client.patch(path, json={"revision": 1, FIELD: True, "direction": "both"})
    )
    back = await policies.edit(created["id"], both["revision"], direction="request")

    for refused, param in ((alone, FIELD), (back, "direction")):
        error = refused.json()["error"]
        assert refused.status_code == 400
        assert (error["code"], error["param"]) == ("invalid_parameter_combination", param)


async def test_the_audit_names_it(policies: Policies, org: OrganizationFixture) -> None:
    created = await policies.created(direction="response")

    await edited(policies, created, **{FIELD: True})

    row = (await audit_rows(org))[-1]
    changes = {change["field"]: change for change in json.loads(row["changes"])}
    assert row["action"] == "policy.edit"
    assert changes[f"draft.{FIELD}"]["before"] is False
    assert changes[f"draft.{FIELD}"]["after"] is True
