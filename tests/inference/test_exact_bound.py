"""Near the end of credit the engine's own count takes the place of bytes; no cap is crossed."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.deployment import (
    COMPLETION_PICO_USD,
    MESSAGES_MODEL,
    MODEL,
    PROMPT_PICO_USD,
    TAKES,
    Deployment,
    chat,
    model,
)
from tests.support.policies import CONTENT, new_policy
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Direction, Mode
from tollhouse.catalog.types import Counter
from tollhouse.contract.chat import ChatRequest
from tollhouse.inference.exact_bound import counting_body
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = "/v1/chat/completions"
COUNTERS = {"messages": "/v1/messages/count_tokens", "tokenize": "/tokenize"}
EXACT, EACH_CHOICE, SIGNING = "messages", "each-choice", "signing"
INEXACT: dict[str, dict[str, Any]] = {
    "uncounted": {},
    "by-messages": {"counts_tokens_by": "messages"},
    "by-tokenize": {"counts_tokens_by": "tokenize"},
}
BY_MESSAGES: dict[str, Any] = {"counts_tokens_by": "messages", "counts_exactly": True}
BACKENDS: dict[str, dict[str, Any]] = {
    EXACT: BY_MESSAGES,
    "tokenize": {"counts_tokens_by": "tokenize", "counts_exactly": True},
    EACH_CHOICE: {**BY_MESSAGES, "bills_prompt_per_choice": True},
    SIGNING: {**BY_MESSAGES, "dialect": "anthropic", "takes": []},
    **INEXACT,
}
"""What is declared of each; its name is that of its model, too."""
WORDS = "one two three four five six seven eight nine ten eleven twelve"
PROMPT_TOKENS = 13
OUTPUT_TOKENS = 5
NEEDED = PROMPT_TOKENS * PROMPT_PICO_USD + OUTPUT_TOKENS * COMPLETION_PICO_USD


def question(**fields: object) -> dict[str, Any]:
    """Thirteen tokens by the upstream's count, several hundred by its bytes."""
    return chat(WORDS, max_tokens=OUTPUT_TOKENS, **{"model": EXACT, **fields})


async def asked(deployment: Deployment, **fields: object) -> httpx2.Response:
    async with deployment.customer() as client:
        return await client.post(PATH, json=question(**fields))


def paths(deployment: Deployment) -> list[str]:
    """What the upstream was asked, in order."""
    return [exchange.path for exchange in deployment.upstream.seen]


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """A model on each backend."""
    backends = {
        name: {"replicas": [upstream.base_url], "takes": TAKES, **declared}
        for name, declared in BACKENDS.items()
    }
    models = {name: model(backend=name) for name in BACKENDS}
    models[SIGNING] = model(backend=SIGNING, **MESSAGES_MODEL)
    return msgspec.structs.replace(settings, backends=backends, models=models)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("counter", COUNTERS)
async def test_the_last_credit_pays_for_what_it_covers_exactly(
    deployment: Deployment, counter: str, stream: bool
) -> None:
    await deployment.leave_credit(NEEDED)

    answer = await asked(deployment, model=counter, stream=stream)

    assert answer.is_success, answer.text
    assert paths(deployment) == [COUNTERS[counter], PATH]
    credit = await deployment.settled(1)
    assert credit.settled_pico_usd == NEEDED
    assert credit.available_pico_usd == 0


async def test_one_pico_dollar_less_is_refused_by_the_exact_price(deployment: Deployment) -> None:
    await deployment.leave_credit(NEEDED - 1)

    refused = await asked(deployment)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert "0.000023 USD needed" in refused.json()["error"]["message"]
    assert PATH not in paths(deployment)
    assert (await deployment.credit()).reserved_pico_usd == 0


async def test_a_cap_is_held_as_tightly_as_credit(deployment: Deployment) -> None:
    org = deployment.org
    place = CapId(scope=CapScope.KEY, scope_id=deployment.key.key.id, period=Period.MONTH)
    async with org.database.mutation(org.authority()) as tx:
        await ledger.set_cap(tx, place, limit_pico_usd=PicoUsd(NEEDED), alert_percent=80)

    answers = [await asked(deployment), await asked(deployment)]

    assert [answer.status_code for answer in answers] == [200, 402]
    assert answers[1].json()["error"]["code"] == "api_key_spend_limit_exceeded"
    assert (await deployment.settled(1)).settled_pico_usd == NEEDED


async def test_many_at_once_share_the_last_credit_and_no_more(deployment: Deployment) -> None:
    await deployment.leave_credit(3 * NEEDED)

    answers = await asyncio.gather(*(asked(deployment) for _ in range(20)))

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] * 3 + [402] * 17
    assert (await deployment.settled(3)).available_pico_usd == 0


@pytest.mark.parametrize(("missing", "status"), [(0, 200), (1, 402)])
async def test_a_prompt_that_is_billed_for_each_choice_is_held_for_each(
    deployment: Deployment, missing: int, status: int
) -> None:
    await deployment.leave_credit(2 * NEEDED - missing)

    answer = await asked(deployment, model=EACH_CHOICE, n=2)

    assert answer.status_code == status, answer.text


# Nobody is asked


@pytest.mark.parametrize("model_id", INEXACT)
async def test_a_count_that_is_not_declared_to_be_exact_is_no_bound(
    deployment: Deployment, model_id: str
) -> None:
    await deployment.leave_credit(NEEDED)

    refused = await asked(deployment, model=model_id)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert paths(deployment) == []


SIGNED = {"type": "thinking", "thinking": "", "signature": "abcd" * 1_000}


@pytest.mark.parametrize("thoughts", [[], [SIGNED]], ids=["adaptive", "signed"])
async def test_thinking_that_no_counter_sees_is_held_by_its_bytes(
    deployment: Deployment, thoughts: list[dict[str, Any]]
) -> None:
    user = {"role": "user", "content": WORDS}
    answered = {"role": "assistant", "content": [*thoughts, {"type": "text", "text": "Hi"}]}
    body = {
        "model": SIGNING,
        "max_tokens": OUTPUT_TOKENS,
        "messages": [user, *([answered, user] if thoughts else ())],
        "thinking": {"type": "adaptive"},
    }
    await deployment.leave_credit(3 * NEEDED)

    async with deployment.customer() as client:
        refused = await client.post("/compat/anthropic/v1/messages", json=body)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert paths(deployment) == []


async def test_who_has_too_little_for_any_prompt_makes_nobody_count(deployment: Deployment) -> None:
    await deployment.leave_credit(OUTPUT_TOKENS * COMPLETION_PICO_USD)

    refused = await asked(deployment)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert paths(deployment) == []


@pytest.mark.parametrize("direction", [Direction.REQUEST, Direction.BOTH])
async def test_what_a_policy_must_judge_first_is_shown_to_no_counter(
    deployment: Deployment, direction: Direction
) -> None:
    content = replace(CONTENT, mode=Mode.ENFORCING, direction=direction)
    await new_policy(deployment.org, ("publish",), content=content)
    await deployment.leave_credit(NEEDED)

    refused = await asked(deployment)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert paths(deployment) == []


@pytest.mark.parametrize(
    "script",
    [
        UpstreamScript(status=500),
        UpstreamScript(status=400),
        UpstreamScript(body={"input_tokens": 0}),
        UpstreamScript(body={"input_tokens": -1}),
        UpstreamScript(body={}),
        UpstreamScript(body="no JSON"),
    ],
    ids=["fails", "refuses", "zero", "negative", "nothing", "nonsense"],
)
async def test_a_counter_that_says_nothing_sound_changes_nothing(
    deployment: Deployment, script: UpstreamScript
) -> None:
    await deployment.leave_credit(NEEDED)
    deployment.upstream.queue(script, path=COUNTERS["messages"], times=None)

    refused = await asked(deployment)

    assert refused.status_code == httpx2.codes.PAYMENT_REQUIRED
    assert "credit" in refused.json()["error"]["message"]
    assert PATH not in paths(deployment)


async def test_a_count_above_the_context_is_told_as_each_endpoint_does(
    deployment: Deployment,
) -> None:
    await deployment.leave_credit(NEEDED)
    script = UpstreamScript(body={"input_tokens": 9_000})
    deployment.upstream.queue(script, path=COUNTERS["messages"], times=None)
    body = {"model": EXACT, "input": WORDS, "max_output_tokens": OUTPUT_TOKENS, "stream": True}

    whole = await asked(deployment)
    async with deployment.customer() as client:
        streamed = await client.post("/v1/responses", json=body)

    assert [whole.status_code, streamed.status_code] == [400, 200]
    assert streamed.text.count("event: response.failed") == 1
    for answer in (whole, streamed):
        assert '"code":"context_length_exceeded"' in answer.text
        assert "maximum context length is 8192 tokens. The prompt has 9000" in answer.text
        record = await deployment.record(answer.headers["x-request-id"])
        assert record["error_code"] == "context_length_exceeded"
    assert PATH not in paths(deployment)


# What a counter is shown

SAID = [{"role": "user", "content": "Hi."}]
SYSTEM = {"role": "system", "content": "Be brief."}
REPLY = {"role": "assistant", "content": "Hello."}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
BOTH: set[Counter] = {"messages", "tokenize"}
CASES: dict[str, tuple[dict[str, Any], set[Counter]]] = {
    "text": ({"messages": SAID}, BOTH),
    "a system prompt": ({"messages": [SYSTEM, *SAID]}, BOTH),
    "turns": ({"messages": [*SAID, REPLY, *SAID]}, BOTH),
    "plain form": ({"messages": SAID, "response_format": {"type": "text"}}, BOTH),
    "parts": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi."}]}]},
        {"tokenize"},
    ),
    "a later system prompt": ({"messages": [*SAID, SYSTEM, *SAID]}, {"tokenize"}),
    "another role": ({"messages": [{"role": "developer", "content": "x"}, *SAID]}, {"tokenize"}),
    "a name": ({"messages": [{"role": "user", "content": "Hi.", "name": "x"}]}, {"tokenize"}),
    "an open turn": ({"messages": [*SAID, REPLY]}, {"tokenize"}),
    "only a system prompt": ({"messages": [SYSTEM]}, {"tokenize"}),
    "calls": (
        {"messages": [*SAID, {"role": "assistant", "tool_calls": [CALL]}, *SAID]},
        {"tokenize"},
    ),
    "tools": ({"messages": SAID, "tools": TOOLS}, {"tokenize"}),
    "functions": ({"messages": SAID, "functions": [{"name": "f"}]}, set()),
    "a schema": (
        {
            "messages": SAID,
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        },
        set(),
    ),
    "reasoning": ({"messages": SAID, "reasoning_effort": "low"}, set()),
    "web search": ({"messages": SAID, "web_search_options": {}}, set()),
    "an image": ({"messages": [{"role": "user", "content": [IMAGE]}]}, set()),
}


@pytest.mark.parametrize("counter", sorted(BOTH))
@pytest.mark.parametrize(("fields", "counters"), CASES.values(), ids=CASES)
async def test_a_counter_is_shown_the_whole_prompt_or_nothing(
    fields: dict[str, Any], counters: set[Counter], counter: Counter
) -> None:
    request = msgspec.convert({"model": MODEL, **fields}, ChatRequest)

    body = counting_body(request, "upstream-name", counter)

    assert (body is not None) is (counter in counters)
    if body is not None:
        assert len(body["messages"]) + ("system" in body) == len(fields["messages"])
        assert body.get("tools") == fields.get("tools")
        assert body["model"] == "upstream-name"
