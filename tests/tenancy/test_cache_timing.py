"""An engine that caches prompts tells no organization by its speed what another one has sent.

The engine here caches by salt and blocks of words, as vLLM does, and takes its time for each block
that it has not cached.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.support import seeds
from tests.support.deployment import Deployment, customer_of, offering
from tests.support.gateway import running_gateway
from tests.support.loopback import serving
from tests.support.organization_fixture import OrganizationFixture
from tests.support.prefix_timing import same_distribution_p, time_prompts
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

PROMPTS = int(os.environ.get("TOLLHOUSE_TIMED_PROMPTS", "60"))
WORDS = 400
BLOCK_WORDS = 50
BLOCK_SECONDS = 0.004
USAGE = {"prompt_tokens": WORDS, "completion_tokens": 1, "total_tokens": WORDS + 1}


@dataclass
class PrefixCachingEngine:
    """Streams one token, as soon as all blocks of the prompt are computed."""

    cached: set[tuple[str | None, str]] = field(default_factory=set[tuple[str | None, str]])

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        words = body["messages"][-1]["content"].split()
        ends = range(BLOCK_WORDS, len(words) + 1, BLOCK_WORDS)
        blocks = [(body.get("cache_salt"), " ".join(words[:end])) for end in ends]
        await asyncio.sleep(BLOCK_SECONDS * sum(block not in self.cached for block in blocks))
        self.cached.update(blocks)
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        for choices, usage in ([_choice()], None), ([], USAGE):
            record = {"id": "x", "model": "x", "created": 1, "choices": choices, "usage": usage}
            await answer.write(f"data: {json.dumps(record)}\n\n".encode())
        await answer.write(b"data: [DONE]\n\n")
        return answer


def _choice() -> dict[str, Any]:
    return {"index": 0, "delta": {"content": "Yes"}, "finish_reason": "stop"}


@pytest.fixture
async def customers(
    settings: Settings,
    upstream: ScriptedUpstream,
    org: OrganizationFixture,
    other_org: OrganizationFixture,
) -> AsyncIterator[tuple[Deployment, Deployment]]:
    engine = PrefixCachingEngine()
    async with (
        serving({"/v1/chat/completions": engine.complete}) as origin,
        running_gateway(offering(settings, f"{origin}/v1")) as gateway,
    ):
        yield (
            await customer_of(gateway, upstream, org),
            await customer_of(gateway, upstream, other_org),
        )


@pytest.mark.clock
@pytest.mark.nightly
@pytest.mark.guarantee("T38")
@pytest.mark.parametrize("salt", [None, "a salt of both"])
async def test_the_first_token_comes_no_sooner_for_a_prompt_that_another_organization_sent(
    customers: tuple[Deployment, Deployment], salt: str | None
) -> None:
    fields = {} if salt is None else {"cache_salt": salt}
    timings = await time_prompts(*customers, seeds.chance(), prompts=PROMPTS, words=WORDS, **fields)

    assert same_distribution_p(timings.own, timings.fresh) < 1e-6, "the engine caches"
    assert same_distribution_p(timings.foreign, timings.fresh) > 0.01


def test_samples_of_one_distribution_are_told_from_samples_of_two() -> None:
    """The last p is in tables: D is 0.25 with 100 values each."""
    one = [float(number) for number in range(100)]

    assert same_distribution_p(one, one) == 1.0
    assert same_distribution_p(one, [each + 200 for each in one]) < 1e-12
    assert same_distribution_p(one, [each + 25 for each in one]) == pytest.approx(
        0.0029, abs=0.0005
    )
