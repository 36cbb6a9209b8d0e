"""A backend that refuses to count says so in its own words only where no policy guards answers."""

from dataclasses import replace

import pytest

from tests.support.deployment import MODEL, Deployment, offering
from tests.support.policies import CONTENT, new_policy
from tollhouse.base.policies import Direction, Mode
from tollhouse.settings import Settings
from tollhouse.testing.scripts import UpstreamScript
from tollhouse.testing.upstream import ScriptedUpstream

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/messages/count_tokens"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
WORDS = "the words of the engine"


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return offering(settings, upstream.base_url, counts_tokens_by="messages")


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
