"""Requests that take long to render: others are served meanwhile, and none is let through."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.deployment import MODEL
from tests.support.judged_deployment import CHAT, JudgedDeployment
from tollhouse.base.policies import Direction
from tollhouse.contract.decoding import OBJECTS_IN_ARRAYS_MAX
from tollhouse.policies.types import PolicyScope

pytestmark = pytest.mark.asyncio(loop_scope="module")

PARTS: list[Any] = [{"type": "text", "text": "x" * 1_000}] * (OBJECTS_IN_ARRAYS_MAX - 10)
BRACKETS = "[a]" * 5_000_000
READABLE = "some words " * 150_000
PAUSE_SECONDS_MAX = 1.0
"""Of processor time, which a machine with other work does not lengthen."""


def saying(content: object, **fields: object) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}


@asynccontextmanager
async def longest_pause() -> AsyncGenerator[list[float]]:
    """How long this process computed while its event loop did nothing else: in one element."""
    longest = [0.0]

    async def tick() -> None:
        while True:
            began = time.process_time()
            await asyncio.sleep(0)
            longest[0] = max(longest[0], time.process_time() - began)

    ticking = asyncio.create_task(tick())
    try:
        yield longest
    finally:
        ticking.cancel()


@pytest.mark.parametrize("content", [PARTS, BRACKETS], ids=["parts", "brackets"])
async def test_what_is_too_long_to_be_judged_holds_up_nobody(
    judged: JudgedDeployment, content: object
) -> None:
    """To read the body and to say it again takes its time too, with a policy or without."""
    async with longest_pause() as without_policy:
        assert (await judged.send(CHAT, saying(content))).status_code == 200
    await judged.forbid("bread", direction=Direction.REQUEST)
    key = await judged.deployment.org.project_key(judged.deployment.project)

    async with (
        judged.deployment.gateway.client(key.value) as client,
        longest_pause() as with_policy,
    ):
        answer = await client.post(CHAT, json=saying(content))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "policy_not_evaluable")
    assert "too long to be judged" in answer.json()["error"]["message"]
    assert with_policy[0] < max(PAUSE_SECONDS_MAX, 2 * without_policy[0])


async def test_a_long_text_is_judged_whole_and_holds_up_nobody(judged: JudgedDeployment) -> None:
    await judged.forbid("bread", direction=Direction.REQUEST)

    async with longest_pause() as pause:
        answer = await judged.send(CHAT, saying(READABLE + "bread"))

    assert answer.status_code == 403
    assert pause[0] < PAUSE_SECONDS_MAX


async def test_a_selection_alone_is_to_blame_for_a_text_that_nothing_else_would_judge(
    judged: JudgedDeployment,
) -> None:
    asked = await judged.forbid("bread", direction=Direction.REQUEST, scope=PolicyScope.UNATTACHED)
    policy_id = await judged.forbid(
        "bread", direction=Direction.RESPONSE, scope=PolicyScope.UNATTACHED
    )

    refused = await judged.send(CHAT, saying(BRACKETS, policy_ids=[asked]))
    passed = await judged.send(CHAT, saying(BRACKETS, policy_ids=[policy_id]))

    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["code"], error["param"]) == ("policy_budget_exceeded", "policy_ids")
    assert passed.status_code == 200, "nothing is asked about the request"
