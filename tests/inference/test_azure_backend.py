"""A backend of Azure's flavour: path, version, header and name of the output bound."""

import json

import pytest

from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
    chat,
    model,
    offering,
)
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
PROMPT_TOKENS, ANSWER_TOKENS = 3, 16


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return offering(
        settings,
        upstream.origin,
        models={MODEL: model(upstream_model="gpt 5/eu", features=[])},
        dialect="azure",
        api_version="2024-10-21",
        api_key="azure-secret",
        takes=["max_completion_tokens"],
    )


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_deployment_answers_and_is_charged(
    deployment: Deployment, *, is_stream: bool
) -> None:
    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat("Say something.", stream=is_stream))

    assert answer.is_success
    assert "content_filter" not in answer.text
    seen = deployment.upstream.seen[0]
    assert seen.path == "/openai/deployments/gpt%205%2Feu/chat/completions"
    assert seen.headers["api-key"] == "azure-secret"
    assert "authorization" not in seen.headers
    sent = json.loads(seen.body)
    assert (sent.get("max_tokens"), sent["max_completion_tokens"]) == (None, 1_024)
    credit = await deployment.settled(1)
    spent = PROMPT_TOKENS * PROMPT_PICO_USD + ANSWER_TOKENS * COMPLETION_PICO_USD
    assert credit.settled_pico_usd == spent


async def test_a_prompt_that_a_filter_refuses_is_the_callers_and_costs_nothing(
    deployment: Deployment,
) -> None:
    error = {"message": "The response was filtered.", "code": "content_filter", "status": 400}
    deployment.upstream.queue(UpstreamScript(status=400, error=error))

    async with deployment.customer() as client:
        answer = await client.post(PATH, json=chat())

    assert (answer.status_code, answer.json()["error"]["code"]) == (
        422,
        "provider_validation_failed",
    )
    assert "The response was filtered." in answer.json()["error"]["message"]
    assert (await deployment.settled(1)).settled_pico_usd == 0
