"""What a caller pays whose SDK times out and tries again: the guide's statements, by the SDK."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import openai
import pytest
from openai import OpenAI

from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MODEL,
    Deployment,
    chat,
    model,
    offering,
)
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import InferenceSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = 20
TIMEOUT_SECONDS = 1.0
SLOW_MS = 2_500
"""How long the model takes: longer than the client waits."""
QUICK = "example/quick"
"""Whose backend gives up before the client does."""
ONE_ANSWER = TOKENS * COMPLETION_PICO_USD
SLOW = {"tokens": TOKENS, "before_head_ms": SLOW_MS}


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    models = {MODEL: model(), QUICK: model(backend="quick", features=[])}
    offered = offering(settings, upstream.base_url, models=models)
    quick = {"replicas": [upstream.base_url], "total_seconds": 0.3}
    return msgspec.structs.replace(
        offered,
        backends=offered.backends | {"quick": quick},
        inference=InferenceSettings(head_wait_seconds=0.2, keep_alive_seconds=0.2),
    )


@dataclass(frozen=True)
class Asking:
    """A client of the SDK with its settings, in a thread: the gateway runs on this loop."""

    deployment: Deployment
    timeout: float = TIMEOUT_SECONDS
    max_retries: int = 2

    async def ask(self, script: dict[str, Any], **fields: Any) -> Any:  # noqa: ANN401 - the SDK's
        body = chat(json.dumps({"script": script}), max_completion_tokens=100) | fields
        return await self._do(lambda client: client.chat.completions.create(**body))

    async def read(self, script: dict[str, Any], **fields: Any) -> str:  # noqa: ANN401 - the SDK's
        """The text of a stream."""
        body = chat(json.dumps({"script": script}), max_completion_tokens=100, stream=True) | fields

        def work(client: Any) -> str:  # noqa: ANN401 - its overloads do not fit a dictionary
            chunks: Any = client.chat.completions.create(**body)
            return "".join(
                choice.delta.content or "" for chunk in chunks for choice in chunk.choices
            )

        return await self._do(work)

    async def _do(self, work: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - the SDK's
        def run() -> Any:  # noqa: ANN401 - the SDK's
            with OpenAI(
                api_key=self.deployment.key.value,
                base_url=f"{self.deployment.gateway.base_url}/v1",
                timeout=self.timeout,
                max_retries=self.max_retries,
            ) as client:
                return work(client)

        return await asyncio.to_thread(run)


async def paid(deployment: Deployment, requests: int) -> int:
    """What was charged for the output of so many requests, and for nothing else."""
    await deployment.settled(requests)
    async with deployment.org.database.transaction() as tx:
        tokens = await tx.fetch_value(
            "SELECT coalesce(sum(output_tokens), 0) FROM cost_daily WHERE organization_id = $1",
            deployment.org.organization_id,
        )
    return int(tokens) * COMPLETION_PICO_USD


@pytest.mark.guarantee("T32")
@pytest.mark.parametrize(("max_retries", "times"), [(0, 1), (1, 2), (2, 3)])
async def test_every_attempt_that_times_out_at_the_client_is_paid(
    deployment: Deployment, max_retries: int, times: int
) -> None:
    with pytest.raises(openai.APITimeoutError):
        await Asking(deployment, max_retries=max_retries).ask(SLOW)

    assert await paid(deployment, times) == times * ONE_ANSWER


@pytest.mark.clock
async def test_a_stream_that_pauses_longer_than_the_timeout_is_read_and_paid_once(
    deployment: Deployment,
) -> None:
    text = await Asking(deployment).read(SLOW)

    assert len(text.split()) == TOKENS
    assert await paid(deployment, 1) == ONE_ANSWER


@pytest.mark.guarantee("T32")
async def test_a_timeout_above_the_backends_deadline_is_answered_once_and_costs_nothing(
    deployment: Deployment,
) -> None:
    """The gateway gives up first, and tells the SDK not to try again."""
    with pytest.raises(openai.APIStatusError) as failed:
        await Asking(deployment, timeout=120).ask(SLOW, model=QUICK)

    assert (failed.value.status_code, failed.value.code) == (504, "deadline_exceeded")
    assert failed.value.response.headers["x-should-retry"] == "false"
    assert await paid(deployment, 1) == 0


async def test_a_backend_that_fails_before_its_answer_is_tried_again_and_costs_nothing(
    deployment: Deployment,
) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        await Asking(deployment, timeout=120).ask({"status": 500})

    assert failed.value.status_code == 502
    assert await paid(deployment, 3) == 0


@pytest.mark.guarantee("T32")
async def test_a_stream_that_fails_after_output_is_paid_so_far_and_not_tried_again(
    deployment: Deployment,
) -> None:
    script = {"tokens": TOKENS, "cut": {"how": "reset", "after": 6}}

    with pytest.raises(openai.APIError):
        await Asking(deployment, timeout=120).read(script)

    assert 0 < await paid(deployment, 1) < ONE_ANSWER


@pytest.mark.guarantee("T32")
async def test_a_refusal_for_want_of_credit_is_not_tried_again(deployment: Deployment) -> None:
    await deployment.leave_credit(1)

    with pytest.raises(openai.APIStatusError) as refused:
        await Asking(deployment, timeout=120).ask({"tokens": 1})

    assert refused.value.status_code == 402
    assert await deployment.admitted() == 0


async def test_an_idempotency_key_does_not_make_two_calls_one(deployment: Deployment) -> None:
    headers = {"Idempotency-Key": "the same call twice"}
    asking = Asking(deployment, timeout=120)

    for _ in range(2):
        await asking.ask({"tokens": TOKENS}, extra_headers=headers)

    assert await paid(deployment, 2) == 2 * ONE_ANSWER
