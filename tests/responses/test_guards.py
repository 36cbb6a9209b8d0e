"""What stands between a caller and a model stands here as before chat."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.responses.conftest import PLAIN_MODEL
from tests.support.deployment import MODEL, Deployment
from tests.support.limits import set_limit
from tests.support.organization_fixture import OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tests.support.routes import ROUTES
from tollhouse.api.call import OperationAnswer, OperationCall
from tollhouse.api.router import Route
from tollhouse.base.policies import Mode
from tollhouse.base.traffic import TrafficLimits
from tollhouse.contract.operation import Guard, MisdeclaredOperation
from tollhouse.contract.operations import CREATE_CHAT_COMPLETION, CREATE_RESPONSE

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/responses"
BODY: dict[str, Any] = {"model": MODEL, "input": "Hi"}


async def ignored(call: OperationCall[Any, Any, Any]) -> OperationAnswer:
    raise AssertionError(call)


async def test_a_response_passes_every_guard_and_cannot_be_served_past_the_pipeline() -> None:
    (route,) = [route for route in ROUTES if route.operation is CREATE_RESPONSE]

    assert route.endpoint is not None
    assert CREATE_RESPONSE.guards == CREATE_CHAT_COMPLETION.guards == frozenset(Guard)
    with pytest.raises(MisdeclaredOperation):
        Route(operation=CREATE_RESPONSE, handler=ignored)


async def test_nobody_is_served_without_a_key_that_may(deployment: Deployment) -> None:
    reader = await deployment.org.project_key(deployment.project, ("models:read",))
    async with deployment.gateway.client() as client:
        nameless = await client.post(PATH, json=BODY)
    async with deployment.gateway.client(reader.value) as client:
        forbidden = await client.post(PATH, json=BODY)
    async with deployment.administrator() as client:
        administrator = await client.post(PATH, json=BODY)

    assert nameless.status_code == httpx2.codes.UNAUTHORIZED.value
    assert forbidden.json()["error"]["code"] == "insufficient_permissions"
    assert administrator.json()["error"]["code"] == "wrong_key_type"


async def test_a_model_that_the_key_may_not_use_is_not_there(deployment: Deployment) -> None:
    narrow = await deployment.org.project_key(deployment.project, allowed_models=(PLAIN_MODEL,))
    async with deployment.gateway.client(narrow.value) as client:
        answer = await client.post(PATH, json=BODY)

    assert answer.json()["error"]["code"] == "model_not_found"


async def test_without_credit_nobody_is_asked(
    deployment: Deployment, other_org: OrganizationFixture
) -> None:
    poor = await other_org.project_key(await other_org.project())
    seen = len(deployment.upstream.seen)
    async with deployment.gateway.client(poor.value) as client:
        answer = await client.post(PATH, json=BODY)

    assert answer.status_code == httpx2.codes.PAYMENT_REQUIRED.value
    assert answer.json()["error"]["code"] == "credit_balance_exhausted"
    assert len(deployment.upstream.seen) == seen


async def test_limits_of_requests_hold(deployment: Deployment) -> None:
    await set_limit(deployment.org, TrafficLimits(requests_per_minute=1))
    key = await deployment.org.project_key(deployment.project)
    async with deployment.gateway.client(key.value) as client:
        first = await client.post(PATH, json=BODY)
        second = await client.post(PATH, json=BODY)

    assert first.status_code == httpx2.codes.OK.value
    assert first.headers["x-ratelimit-limit-requests"] == "1"
    assert second.status_code == httpx2.codes.TOO_MANY_REQUESTS.value


@pytest.mark.parametrize("is_stream", [False, True])
async def test_where_a_policy_would_have_to_decide_nobody_is_asked(
    deployment: Deployment, *, is_stream: bool
) -> None:
    content = replace(CONTENT, mode=Mode.ENFORCING)
    await new_policy(deployment.org, ("publish",), content=content)
    key = await deployment.org.project_key(deployment.project)
    seen = len(deployment.upstream.seen)
    async with deployment.gateway.client(key.value) as client:
        answer = await client.post(PATH, json=BODY | {"stream": is_stream})

    assert answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE.value
    assert answer.json()["error"]["type"] == "policy_error"
    assert len(deployment.upstream.seen) == seen
    assert (await deployment.settled(1)).settled_pico_usd == 0
