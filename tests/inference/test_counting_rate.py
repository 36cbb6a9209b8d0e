"""Token counting is free, and has a bound on bytes: also for a key without credit."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.support.shop import COMPLETION_PICO_USD, MODEL, Shop, chat, offering, open_shop
from tests.support.world import World
from tollhouse.settings import QuotaSettings, Settings
from tollhouse.testing.upstream import ScriptedUpstream

PATH = "/v1/messages/count_tokens"
BYTES_PER_MINUTE = 100_000


@pytest.fixture
async def shop(settings: Settings, upstream: ScriptedUpstream, world: World) -> AsyncIterator[Shop]:
    """Little is counted for an organization, and this one has no credit."""
    bounded = msgspec.structs.replace(
        offering(settings, upstream.base_url),
        quotas=QuotaSettings(counted_bytes_per_minute=BYTES_PER_MINUTE),
    )
    async with open_shop(bounded, upstream, world) as opened:
        await opened.leave_credit(0)
        yield opened


def message(characters: int) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "x" * characters}]}


async def test_bytes_beyond_the_rate_are_not_counted(shop: Shop, other_world: World) -> None:
    neighbour = await other_world.project_key(await other_world.project())
    async with shop.customer() as client:
        counted = [await client.post(PATH, json=message(40_000)) for _ in range(2)]
        refused = await client.post(PATH, json=message(40_000))
        async with shop.gateway.client(neighbour.value) as other:
            others = await other.post(PATH, json=message(40_000))

    assert [answer.status_code for answer in counted] == [200, 200]
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert "quotas.counted_bytes_per_minute" in refused.json()["error"]["message"]
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert others.status_code == 200


async def test_a_request_that_is_refused_for_want_of_credit_is_not_counted_without_end(
    settings: Settings, upstream: ScriptedUpstream, world: World
) -> None:
    """Near the end of credit the engine counts the prompt, and whoever is refused paid nothing."""
    bounded = msgspec.structs.replace(
        offering(settings, upstream.base_url, counts_tokens_by="tokenize", counts_exactly=True),
        quotas=QuotaSettings(counted_bytes_per_minute=BYTES_PER_MINUTE),
    )
    async with open_shop(bounded, upstream, world) as shop, shop.customer() as client:
        await shop.leave_credit(10 * COMPLETION_PICO_USD)
        body = chat("word " * 1_500, max_tokens=2)
        answers = [await client.post("/v1/chat/completions", json=body) for _ in range(30)]

    assert {answer.status_code for answer in answers} == {402}
    counted = [exchange for exchange in upstream.seen if exchange.path == "/tokenize"]
    assert 0 < len(counted) < 20
