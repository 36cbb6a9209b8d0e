"""A backend that refuses to count says so in its own words only where no policy guards answers."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.support.policies import CONTENT, new_policy
from tests.support.shop import MODEL, Shop, offering, open_shop
from tests.support.world import World
from tollhouse.policies.types import Direction, Mode
from tollhouse.settings import Settings
from tollhouse.testing.scripts import Script
from tollhouse.testing.upstream import ScriptedUpstream

PATH = "/v1/messages/count_tokens"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
WORDS = "the words of the engine"


@pytest.fixture
async def shop(settings: Settings, upstream: ScriptedUpstream, world: World) -> AsyncIterator[Shop]:
    offered = offering(settings, upstream.base_url, counts_tokens_by="messages")
    async with open_shop(offered, upstream, world) as opened:
        yield opened


@pytest.mark.parametrize(
    ("mode", "is_told"), [(None, True), (Mode.MONITORING, True), (Mode.ENFORCING, False)]
)
async def test_an_enforcing_response_policy_withholds_the_words_of_a_counter(
    shop: Shop, mode: Mode | None, is_told: bool
) -> None:
    if mode is not None:
        content = replace(CONTENT, mode=mode, direction=Direction.RESPONSE)
        await new_policy(shop.world, ("publish",), content=content)
    shop.upstream.queue(
        Script(status=422, body={"error": {"message": WORDS}}), path=PATH, times=None
    )

    async with shop.customer() as client:
        refused = await client.post(PATH, json=BODY)

    assert refused.json()["error"]["code"] == "provider_validation_failed"
    assert (WORDS in refused.text) is is_told
