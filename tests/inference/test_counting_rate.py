"""Token counting is free, and has a bound on bytes: also for a key without credit."""

import msgspec
import pytest

from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MODEL,
    Deployment,
    chat,
    model,
    offering,
)
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import QuotaSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/messages/count_tokens"
BYTES_PER_MINUTE = 100_000
EXACT = "example/exact"


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """Little is counted for an organization; the counter of one of two models is exact."""
    exact = {"replicas": [upstream.base_url], "counts_tokens_by": "tokenize"}
    models = {MODEL: model(), EXACT: model(backend="exact", features=[])}
    bounded = offering(settings, upstream.base_url, models=models)
    return msgspec.structs.replace(
        bounded,
        backends=bounded.backends | {"exact": exact | {"counts_exactly": True}},
        quotas=QuotaSettings(counted_bytes_per_minute=BYTES_PER_MINUTE),
    )


def message(characters: int) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "x" * characters}]}


async def test_bytes_beyond_the_rate_are_not_counted(
    deployment: Deployment, other_org: OrganizationFixture
) -> None:
    await deployment.leave_credit(0)
    neighbour = await other_org.project_key(await other_org.project())
    async with deployment.customer() as client:
        counted = [await client.post(PATH, json=message(40_000)) for _ in range(2)]
        refused = await client.post(PATH, json=message(40_000))
        async with deployment.gateway.client(neighbour.value) as other:
            others = await other.post(PATH, json=message(40_000))

    assert [answer.status_code for answer in counted] == [200, 200]
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert "quotas.counted_bytes_per_minute" in refused.json()["error"]["message"]
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert others.status_code == 200


async def test_a_request_that_is_refused_for_want_of_credit_is_not_counted_without_end(
    deployment: Deployment,
) -> None:
    """Near the end of credit the engine counts the prompt, and whoever is refused paid nothing."""
    await deployment.leave_credit(10 * COMPLETION_PICO_USD)
    body = chat("word " * 1_500, max_tokens=2) | {"model": EXACT}
    async with deployment.customer() as client:
        answers = [await client.post("/v1/chat/completions", json=body) for _ in range(30)]

    assert {answer.status_code for answer in answers} == {402}
    counted = [exchange for exchange in deployment.upstream.seen if exchange.path == "/tokenize"]
    assert 0 < len(counted) < 20
