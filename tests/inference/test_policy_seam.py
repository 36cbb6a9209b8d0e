"""Until policies are judged: whatever one would have to decide is refused, and costs nothing."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.support.deployment import MODEL, Deployment, chat
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.ids import policy_id_text
from tollhouse.base.policies import Mode
from tollhouse.policies.types import PolicyScope

pytestmark = pytest.mark.asyncio(loop_scope="module")

SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", chat()),
    "responses": ("/v1/responses", {"model": MODEL, "input": "Hi"}),
}
FORMS = pytest.mark.parametrize("is_stream", [False, True])
EACH_SURFACE = pytest.mark.parametrize("endpoint", SURFACES)


async def ask(
    deployment: Deployment, endpoint: str, *, key: str | None = None, **fields: object
) -> httpx2.Response:
    path, body = SURFACES[endpoint]
    async with deployment.gateway.client(key or deployment.key.value) as client:
        return await client.post(path, json=body | fields)


def told(answer: httpx2.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["type"], error["code"]


async def assert_undecided(deployment: Deployment, answer: httpx2.Response) -> None:
    assert told(answer) == (503, "policy_error", "policy_evaluator_unavailable")
    assert answer.headers["x-should-retry"] == "false"
    assert len(deployment.upstream.seen) == 0
    assert (await deployment.settled(await deployment.admitted())).settled_pico_usd == 0


@FORMS
@EACH_SURFACE
async def test_a_policy_that_the_request_names_is_never_passed_over(
    deployment: Deployment, endpoint: str, *, is_stream: bool
) -> None:
    content = replace(CONTENT, scope=PolicyScope.UNATTACHED)
    policy = await new_policy(deployment.org, ("publish",), content=content)

    answer = await ask(
        deployment, endpoint, stream=is_stream, policy_ids=[policy_id_text(policy.id)] * 2
    )

    await assert_undecided(deployment, answer)


@FORMS
@EACH_SURFACE
async def test_an_enforcing_policy_is_never_passed_over(
    deployment: Deployment, endpoint: str, *, is_stream: bool
) -> None:
    await new_policy(deployment.org, ("publish",), content=replace(CONTENT, mode=Mode.ENFORCING))

    await assert_undecided(deployment, await ask(deployment, endpoint, stream=is_stream))


@EACH_SURFACE
async def test_a_monitoring_policy_keeps_nobody_waiting(
    deployment: Deployment, endpoint: str
) -> None:
    await new_policy(deployment.org, ("publish",))

    assert (await ask(deployment, endpoint)).is_success


@EACH_SURFACE
async def test_credit_is_asked_before_a_policy_and_a_policy_before_the_backend(
    deployment: Deployment, other_org: OrganizationFixture, endpoint: str
) -> None:
    """Two faults each: the earlier check is told."""
    for org in (deployment.org, other_org):
        await new_policy(org, ("publish",), content=replace(CONTENT, mode=Mode.ENFORCING))
    poor = await other_org.project_key(await other_org.project())

    uncovered = await ask(deployment, endpoint, key=poor.value)
    assert told(uncovered) == (402, "insufficient_quota", "credit_balance_exhausted")

    refused = '{"script":{"status":400}}'
    content: dict[str, Any] = {"messages": [{"role": "user", "content": refused}]}
    answer = await ask(
        deployment, endpoint, **(content if endpoint == "chat" else {"input": refused})
    )
    await assert_undecided(deployment, answer)
