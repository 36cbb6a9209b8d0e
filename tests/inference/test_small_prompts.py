"""What is held for a prompt of two bytes: little more than its template, on every surface."""

import re
from typing import Any

import httpx2
import pytest

from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MODEL,
    PROMPT_PICO_USD,
    Deployment,
    model,
    offering,
)
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

OUTPUT_TOKENS_DEFAULT = 1_024
TOOL = {"type": "function", "function": {"name": "f"}}
FLAT_TOOL = {"type": "function", "name": "f"}
MODELS = {
    MODEL: model(),
    "example/nfc": model(tokenizer="nfc"),
    "example/nfkc": model(tokenizer="nfkc"),
    "example/declared": model(template_tokens=31),
    "example/long-template": model(template_tokens=1_376),
    "example/unknown": model(tokenizer=None),
}
PROMPT_TOKENS = {
    MODEL: 304,
    "example/nfc": 176,
    "example/nfkc": 432,
    "example/declared": 79,
    "example/long-template": 1_424,
    "example/unknown": 8_192,
}
SURFACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
}
EACH_SURFACE = pytest.mark.parametrize("endpoint", SURFACES)
EACH_MODEL = pytest.mark.parametrize("model_id", MODELS)


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    return offering(settings, upstream.base_url, models=MODELS)


async def ask(
    deployment: Deployment, endpoint: str, model_id: str, **fields: object
) -> httpx2.Response:
    path, body = SURFACES[endpoint]
    async with deployment.customer() as client:
        return await client.post(path, json=body | {"model": model_id} | fields)


def price(prompt_tokens: int, output_tokens: int = OUTPUT_TOKENS_DEFAULT) -> int:
    return prompt_tokens * PROMPT_PICO_USD + output_tokens * COMPLETION_PICO_USD


def in_usd(pico_usd: int) -> str:
    return f"{pico_usd / 10**12:.12f}".rstrip("0")


@EACH_SURFACE
@EACH_MODEL
async def test_a_pico_dollar_less_than_the_bound_is_402(
    deployment: Deployment, endpoint: str, model_id: str
) -> None:
    needed = price(PROMPT_TOKENS[model_id])
    await deployment.leave_credit(needed - 1)

    refused = await ask(deployment, endpoint, model_id)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED, refused.text
    assert f"{in_usd(needed)} USD needed" in refused.json()["error"]["message"]
    assert len(deployment.upstream.seen) == 0


@EACH_SURFACE
@EACH_MODEL
async def test_what_is_held_for_two_bytes_is_exactly_the_bound(
    deployment: Deployment, endpoint: str, model_id: str
) -> None:
    await deployment.leave_credit(price(PROMPT_TOKENS[model_id]))

    answer = await ask(deployment, endpoint, model_id)

    assert answer.is_success, answer.text
    assert (await deployment.settled(1)).settled_pico_usd < price(PROMPT_TOKENS[model_id])


@EACH_SURFACE
async def test_the_hold_grows_with_messages_and_tools(
    deployment: Deployment, endpoint: str
) -> None:
    said = {"role": "user", "content": "Hi"}
    tool = TOOL if endpoint == "chat" else FLAT_TOOL
    field = "messages" if endpoint == "chat" else "input"
    bodies: list[dict[str, Any]] = [
        {field: [said]},
        {field: [said] * 2},
        {field: [said] * 3},
        {field: [said], "tools": [tool]},
        {field: [said], "tools": [tool] * 2},
        {field: [said], "tools": [tool] * 3},
    ]
    await deployment.leave_credit(0)

    answers = [await ask(deployment, endpoint, MODEL, **body, max_tokens=1) for body in bodies]

    one, two, three, tool_one, tool_two, tool_three = map(needed_tokens, answers)
    assert two - one == three - two > 16
    assert tool_one - one > 256, "how tools are called is told once"
    assert 64 < tool_two - tool_one == tool_three - tool_two < tool_one - one


def needed_tokens(answer: httpx2.Response) -> int:
    assert answer.status_code == httpx2.codes.PAYMENT_REQUIRED, answer.text
    message: str = answer.json()["error"]["message"]
    (usd,) = re.findall(r"([0-9.]+) USD needed", message)
    return round(float(usd) * 10**12 - COMPLETION_PICO_USD) // PROMPT_PICO_USD


@EACH_SURFACE
async def test_a_template_longer_than_declared_crosses_no_cap(
    deployment: Deployment, endpoint: str
) -> None:
    """The caller pays for what was held; the operator pays the rest."""
    await deployment.leave_credit(price(PROMPT_TOKENS[MODEL]))
    usage = {"prompt_tokens": 1_376, "completion_tokens": 5, "total_tokens": 1_381}
    deployment.upstream.queue(UpstreamScript(text="Yes.", usage=usage), times=None)

    answer = await ask(deployment, endpoint, MODEL)

    assert answer.is_success, answer.text
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == price(PROMPT_TOKENS[MODEL], 5)
    assert credit.written_off_excess_pico_usd == (1_376 - PROMPT_TOKENS[MODEL]) * PROMPT_PICO_USD
