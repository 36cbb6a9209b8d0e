"""Drafts tried over HTTP with a judge whose answers are known: bounded, and nothing is kept."""

import asyncio
import logging
import os
from typing import Any, LiteralString

import httpx2
import pytest

from tests.identity.waiting import until
from tests.support.judge import Fault
from tests.support.judged_deployment import BODIES, CHAT, JudgedDeployment, OpenJudged
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.base.policies import Direction, Mode
from tollhouse.evaluation.trials import TRIALS_AT_ONCE_MAX
from tollhouse.policies.types import PolicyScope
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

MANAGE = "/manage/v1/organization/policies"
EXAMINED = "SELECT count(*) FROM evaluations WHERE organization_id = $1"
AUDITED = "SELECT count(*) FROM audit_log WHERE organization_id = $1"


async def tried(judged: JudgedDeployment, policy_id: str, **body: object) -> httpx2.Response:
    async with judged.deployment.administrator() as client:
        return await client.post(f"{MANAGE}/{policy_id}/test", json=body)


async def verdicts(
    judged: JudgedDeployment, policy_id: str, **body: object
) -> list[dict[str, Any]]:
    answer = await tried(judged, policy_id, **body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["object"] == "list"
    return answer.json()["data"]


async def draft(judged: JudgedDeployment, **changes: object) -> str:
    """A policy about bread, published nowhere."""
    body = {"name": "Bread", "rule": 'Does it say "bread"?', **changes}
    async with judged.deployment.administrator() as client:
        answer = await client.post(
            "/v1/organization/policies", json=body, headers={"Idempotency-Key": os.urandom(8).hex()}
        )
    return answer.json()["id"]


async def edit(judged: JudgedDeployment, policy_id: str, revision: int, **changes: object) -> None:
    async with judged.deployment.administrator() as client:
        answer = await client.patch(
            f"/v1/organization/policies/{policy_id}", json={"revision": revision, **changes}
        )
    assert answer.status_code == 200, answer.text


def outcomes(found: list[dict[str, Any]]) -> dict[str, str]:
    return {verdict["of"]: verdict["outcome"] for verdict in found}


async def test_a_draft_is_judged_with_its_score_and_what_encloses_it(
    judged: JudgedDeployment,
) -> None:
    policy_id = await draft(judged, match_threshold_basis_points=8_000)

    (verdict,) = await verdicts(judged, policy_id, text="Some bread.")

    assert verdict.pop("lowest_basis_points") <= 9_000 <= verdict.pop("highest_basis_points")
    assert verdict == {
        "of": "draft",
        "outcome": "match",
        "score_basis_points": 9_000,
        "coverage_basis_points": 9_800,
        "threshold_basis_points": 8_000,
        "reason": None,
    }
    assert judged.judge.received[0].content == "Some bread."
    assert judged.judge.received[0].data["direction"] == "request"


async def test_draft_and_publication_are_told_apart(judged: JudgedDeployment) -> None:
    policy_id = await judged.forbid("bread", mode=Mode.MONITORING, direction=Direction.RESPONSE)
    await edit(judged, policy_id, 2, rule='Does it say "wine"?')

    drafted = await verdicts(judged, policy_id, text="Some wine.")
    other = await verdicts(judged, policy_id, text="Water.", rule='Does it say "Water"?')

    assert outcomes(drafted) == {"draft": "match", "published": "no_match"}
    assert outcomes(other) == {"draft": "match", "published": "no_match"}
    assert {question.data["direction"] for question in judged.judge.received} == {"response"}
    assert len({question.delimiter for question in judged.judge.received}) == 1, (
        "another delimiter moves scores"
    )


async def test_a_rule_is_judged_before_it_is_saved(judged: JudgedDeployment) -> None:
    body: dict[str, object] = {"text": "Some bread.", "rule": 'Does it say "bread"?'}
    path = "/manage/v1/organization/policy_rules/test"
    async with judged.deployment.administrator() as client:
        usual = await client.post(path, json=body)
        strict = await client.post(
            path, json=body | {"direction": "response", "match_threshold_basis_points": 9_950}
        )

    assert usual.status_code == 200, usual.text
    assert [outcomes(answer.json()["data"]) for answer in (usual, strict)] == [
        {"draft": "match"},
        {"draft": "no_match"},
    ]
    assert strict.json()["data"][0]["threshold_basis_points"] == 9_950
    assert [each.data["direction"] for each in judged.judge.received] == ["request", "response"]
    assert await rows_of(judged.deployment.org, EXAMINED) == 0


async def test_a_draft_that_was_edited_is_asked_anew(judged: JudgedDeployment) -> None:
    policy_id = await draft(judged)
    before = await verdicts(judged, policy_id, text="Some bread.")
    await edit(judged, policy_id, 1, rule='Does it say "wine"?')

    after = await verdicts(judged, policy_id, text="Some bread.")

    assert (before[0]["outcome"], after[0]["outcome"]) == ("match", "no_match")


async def test_a_judge_that_fails_is_a_verdict(judged: JudgedDeployment) -> None:
    policy_id = await draft(judged)
    judged.judge.fails = lambda _: Fault.LOW_COVERAGE

    (verdict,) = await verdicts(judged, policy_id, text="Some bread.")

    assert (verdict["outcome"], verdict["reason"]) == ("failed", "uncovered")
    assert verdict["score_basis_points"] is None


async def test_nothing_is_recorded_charged_or_logged(
    judged: JudgedDeployment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    org = judged.deployment.org
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    audited = await rows_of(org, AUDITED)

    await verdicts(judged, policy_id, text="bread and canary", rule='Is it "canary"?')
    refused = await judged.send(CHAT, BODIES[CHAT]("Where is bread?"))

    async def is_written() -> bool:
        return await rows_of(org, EXAMINED) > 0

    await until(is_written)
    assert refused.status_code == 403
    assert await rows_of(org, EXAMINED) == 1
    assert await judged.deployment.admitted() == 1
    assert await rows_of(org, AUDITED) == audited
    assert "canary" not in caplog.text


async def rows_of(org: OrganizationFixture, statement: LiteralString) -> int:
    rows = await org.database.fetch_all(statement, org.organization_id)
    return rows[0][0]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_required_parameter", "text"),
        ({"text": ""}, "string_below_min_length", "text"),
        ({"text": "a" * 20_001}, "string_above_max_length", "text"),
        ({"text": "a", "rule": "No question"}, "invalid_value", "rule"),
        ({"text": "a", "rule": "a" * 20_000 + "?"}, "string_above_max_length", "rule"),
        ({"text": "a", "threshold": 1}, "unknown_parameter", "threshold"),
    ],
)
async def test_what_is_tried_has_bounds(
    judged: JudgedDeployment, body: dict[str, Any], code: str, param: str
) -> None:
    answer = await tried(judged, await draft(judged), **body)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, code, param)
    assert judged.judge.received == []


async def test_an_organization_tries_only_so_many_at_once(
    judged: JudgedDeployment, other_org: OrganizationFixture
) -> None:
    policy_id = await draft(judged)
    judged.judge.holds_answers = True
    waiting = [
        asyncio.create_task(tried(judged, policy_id, text=f"bread {number}"))
        for number in range(TRIALS_AT_ONCE_MAX)
    ]
    await judged.judge.has_received(TRIALS_AT_ONCE_MAX)

    refused = await tried(judged, policy_id, text="one more")
    other = asyncio.create_task(_tried_by(judged, other_org))
    await judged.judge.has_received(TRIALS_AT_ONCE_MAX + 1)

    error = refused.json()["error"]
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert (error["code"], error["type"]) == ("too_many_policy_tests", "rate_limit_error")
    judged.judge.let_all()
    assert {(await each).status_code for each in [*waiting, other]} == {200}
    assert outcomes(await verdicts(judged, policy_id, text="one more")) == {"draft": "no_match"}


async def _tried_by(judged: JudgedDeployment, org: OrganizationFixture) -> httpx2.Response:
    key = await org.admin_key()
    async with judged.deployment.gateway.client(key.value) as client:
        created = await client.post(
            "/v1/organization/policies",
            json={"name": "Bread", "rule": 'Does it say "bread"?'},
            headers={"Idempotency-Key": os.urandom(8).hex()},
        )
        return await client.post(f"{MANAGE}/{created.json()['id']}/test", json={"text": "bread"})


async def test_a_request_does_not_wait_for_what_is_tried(
    open_judged: OpenJudged, offered: Settings
) -> None:
    """Each has one slot: with a common slot, the request's question would never be asked."""
    judged = await open_judged(
        offered, request_questions_max=1, organization_questions_max=1, worker_questions_max=1
    )
    policy_id = await judged.forbid("bread", direction=Direction.REQUEST)
    judged.judge.holds_answers = True
    trials = [
        asyncio.create_task(tried(judged, policy_id, text=f"wine {number}"))
        for number in range(TRIALS_AT_ONCE_MAX)
    ]
    await judged.judge.has_received(1)

    request = asyncio.create_task(judged.send(CHAT, BODIES[CHAT]("Where is bread?")))
    await judged.judge.has_received(2)

    assert judged.judge.received[1].content == "Where is bread?"
    judged.judge.let_all()
    assert (await request).status_code == 403
    assert [(await each).status_code for each in trials] == [200] * TRIALS_AT_ONCE_MAX


async def test_what_exceeds_the_budget_is_not_asked(
    open_judged: OpenJudged, offered: Settings
) -> None:
    judged = await open_judged(
        offered, context_length=5_000, question_tokens_max=500, request_tokens_max=5_000
    )
    policy_id = await draft(judged, scope=PolicyScope.UNATTACHED.value)

    long_text = await verdicts(judged, policy_id, text="bread" * 4_000)
    long_rule = await verdicts(judged, policy_id, text="bread", rule="a" * 3_000 + ' says "bread"?')

    assert [each["reason"] for each in (*long_text, *long_rule)] == ["over_budget"] * 2
    assert [each["outcome"] for each in (*long_text, *long_rule)] == ["failed"] * 2
    assert judged.judge.received == []
