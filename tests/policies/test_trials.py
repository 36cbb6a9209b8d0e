"""Rules read over HTTP, and texts where there is nobody to judge them."""

from typing import Any

import httpx2
import pytest

from tests.policies.client import MANAGE, Policies, body_of
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.policies.lint import ADVICE, LintRule

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def linted(policies: Policies, policy_id: str, body: dict[str, Any]) -> httpx2.Response:
    return await policies.client.post(f"{MANAGE}/policies/{policy_id}/lint", json=body)


async def test_the_rule_of_the_draft_is_read(policies: Policies) -> None:
    policy = await policies.created(rule="Is it never appropriate?")

    found = body_of(await linted(policies, policy["id"], {}))

    assert found == {
        "object": "list",
        "data": [
            {"weakness": "absence", "advice": ADVICE[LintRule.ABSENCE]},
            {"weakness": "vague", "advice": ADVICE[LintRule.VAGUE]},
        ],
    }


async def test_another_rule_is_read_in_its_place(policies: Policies) -> None:
    policy = await policies.created(rule="Is it never appropriate?")

    sound = body_of(await linted(policies, policy["id"], {"rule": "Does it name a person?"}))
    unfinished = body_of(await linted(policies, policy["id"], {"rule": "Names a person"}))

    assert sound["data"] == []
    assert [remark["weakness"] for remark in unfinished["data"]] == ["not_a_question"]
    assert (await policies.retrieve(policy["id"])).json() == policy


async def test_reading_leaves_no_trace(policies: Policies, org: OrganizationFixture) -> None:
    policy = await policies.created()
    statement = "SELECT count(*) FROM audit_log WHERE organization_id = $1"
    before = await org.database.fetch_all(statement, org.organization_id)

    body_of(await linted(policies, policy["id"], {}))

    assert await org.database.fetch_all(statement, org.organization_id) == before


@pytest.mark.parametrize(
    ("rule", "code"),
    [("", "string_below_min_length"), ("a" * 20_001, "string_above_max_length")],
)
async def test_a_rule_that_is_read_has_bounds(policies: Policies, rule: str, code: str) -> None:
    policy = await policies.created()

    answer = await linted(policies, policy["id"], {"rule": rule})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, code, "rule")


async def test_a_rule_is_read_before_it_is_saved(policies: Policies) -> None:
    path = f"{MANAGE}/policy_rules/lint"

    vague = body_of(await policies.client.post(path, json={"rule": "Is it never appropriate?"}))
    sound = body_of(await policies.client.post(path, json={"rule": "Does it name a person?"}))
    absent = await policies.client.post(path, json={})

    assert [remark["weakness"] for remark in vague["data"]] == ["absence", "vague"]
    assert sound["data"] == []
    assert (absent.status_code, absent.json()["error"]["param"]) == (400, "rule")


async def test_without_a_judge_nobody_is_asked(policies: Policies) -> None:
    policy = await policies.created()

    answer = await policies.client.post(
        f"{MANAGE}/policies/{policy['id']}/test", json={"text": "Some bread."}
    )

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_judge")
    assert answer.headers["x-should-retry"] == "false"
