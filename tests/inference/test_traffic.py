"""Limits on the way to a model: what is refused, what is given back, what the headers say."""

import httpx2
import pytest

from tests.support.deployment import Deployment, chat
from tests.support.limits import set_limit
from tollhouse.base.traffic import TrafficLimits

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
TOKENS_MAX = 10_000


def rate_headers(answer: httpx2.Response) -> list[str]:
    return [name for name, _ in answer.headers.multi_items() if name.startswith("x-ratelimit")]


async def test_tokens_that_were_not_used_are_given_back(deployment: Deployment) -> None:
    await set_limit(deployment.org, TrafficLimits(tokens_per_minute=TOKENS_MAX))
    async with deployment.customer() as client:
        first = await client.post(PATH, json=chat(max_tokens=4_000))
        second = await client.post(PATH, json=chat(max_tokens=4_000))
        third = await client.post(PATH, json=chat(max_tokens=4_000))

    assert [first.status_code, second.status_code, third.status_code] == [200, 200, 200]
    assert int(third.headers["x-ratelimit-remaining-tokens"]) > TOKENS_MAX // 2


async def test_a_request_that_cannot_be_paid_takes_no_tokens(deployment: Deployment) -> None:
    await set_limit(deployment.org, TrafficLimits(tokens_per_minute=TOKENS_MAX))
    async with deployment.customer() as client:
        refused = await client.post(PATH, json=chat(n=128, max_tokens=4_000))
        accepted = await client.post(PATH, json=chat(max_tokens=4_000))

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert accepted.is_success


async def test_a_refusal_for_tokens_says_each_header_once(deployment: Deployment) -> None:
    await set_limit(deployment.org, TrafficLimits(requests_per_minute=100, tokens_per_minute=1_000))
    async with deployment.customer() as client:
        await client.post(PATH, json=chat(max_tokens=900))
        refused = await client.post(PATH, json=chat(max_tokens=1_000))

    names = rate_headers(refused)
    assert refused.status_code == httpx2.codes.TOO_MANY_REQUESTS, refused.text
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert len(names) == len(set(names)) > 0
    assert int(refused.headers["retry-after"]) >= 1
