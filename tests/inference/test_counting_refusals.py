"""What policies change of counting: who counts, and in whose words a backend refuses to."""

from dataclasses import replace

import pytest

from tests.support.deployment import MODEL, Deployment, model, offering
from tests.support.policies import CONTENT, new_policy
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.policies import Direction, Mode
from tollhouse.inference.messages.token_counter import MESSAGE_TOKENS
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/messages/count_tokens"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
WORDS = "the words of the engine"
DECLARED = "example/declared"
TEMPLATE_TOKENS = 31
ESTIMATED = "x-tollhouse-estimated"


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    declared = model(template_tokens=TEMPLATE_TOKENS, tokenizer="bytes")
    models = {MODEL: model(), DECLARED: declared}
    return offering(settings, upstream.base_url, models=models, counts_tokens_by="messages")


@pytest.mark.parametrize(
    ("mode", "is_told"), [(None, True), (Mode.MONITORING, True), (Mode.ENFORCING, False)]
)
async def test_an_enforcing_response_policy_withholds_the_words_of_a_counter(
    deployment: Deployment, mode: Mode | None, is_told: bool
) -> None:
    if mode is not None:
        content = replace(CONTENT, mode=mode, direction=Direction.RESPONSE)
        await new_policy(deployment.org, ("publish",), content=content)
    deployment.upstream.queue(
        UpstreamScript(status=422, body={"error": {"message": WORDS}}), path=PATH, times=None
    )

    async with deployment.customer() as client:
        refused = await client.post(PATH, json=BODY)

    assert refused.json()["error"]["code"] == "provider_validation_failed"
    assert (WORDS in refused.text) is is_told


async def test_an_estimate_is_marked_and_has_the_tokens_of_the_template(
    deployment: Deployment,
) -> None:
    content = replace(CONTENT, mode=Mode.ENFORCING, direction=Direction.REQUEST)
    await new_policy(deployment.org, ("publish",), content=content)
    async with deployment.customer() as client:
        plain = await client.post(PATH, json=BODY)
        declared = await client.post(PATH, json=BODY | {"model": DECLARED})

    assert plain.headers[ESTIMATED] == declared.headers[ESTIMATED] == "true"
    difference = declared.json()["input_tokens"] - plain.json()["input_tokens"]
    assert difference == TEMPLATE_TOKENS - MESSAGE_TOKENS
