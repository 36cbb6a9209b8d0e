"""Reasoning on vLLM: every switch reaches the model's template, and what was reasoned is shown.

The small model does not reason by itself. A template that says how it was switched, and a talk
in which it did, make it look so.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.journeys.engine_customer import HELLO, EngineCustomer, text_of_whole
from tests.support.deployment import MODEL, model, offering
from tests.support.engine import Engine
from tests.support.gateway import Gateway, running_gateway
from tests.support.vllm import CONTEXT_TOKENS, NAME, running_vllm
from tollhouse.settings import Settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.vllm]

TEMPLATE = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking %}"
    "<think>effort {{ reasoning_effort or 'unknown' }}."
    "{% endif %}"
)
OPENING = "<|im_start|>assistant\n"
REASONING = "The gate is open."
ANSWER = "The toll is paid."
TALK: list[Any] = [
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": f"<think>{REASONING}</think>{ANSWER}"},
] * 4 + [{"role": "user", "content": "Go on."}]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One of its own, with a parser that takes `<think>` for text."""
    template: Path = tmp_path_factory.mktemp("template") / "reasoning.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    options = ("--reasoning-parser", "olmo3", "--chat-template", str(template))
    with running_vllm(*options) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def gateway(settings: Settings, engine: Engine) -> AsyncIterator[Gateway]:
    offered = model(
        context_length=CONTEXT_TOKENS,
        max_output_length=256,
        upstream_model=NAME,
        features=["prompt_logprobs", "reasoning"],
    )
    async with running_gateway(
        offering(settings, engine.base_url, models={MODEL: offered})
    ) as running:
        yield running


def prompt_of(answer: Any) -> str:  # noqa: ANN401 - what the SDK returns
    """What the engine read, but for the first token."""
    tokens = [next(iter(token.values())) for token in answer.prompt_logprobs[1:]]
    return "".join(token["decoded_token"] for token in tokens)


@pytest.mark.parametrize(
    ("switch", "opening"),
    [
        ({"thinking": True}, "<think>effort unknown."),
        ({"reasoning": {"enabled": True}}, "<think>effort unknown."),
        ({"reasoning_effort": "high"}, "<think>effort high."),
        ({"reasoning": {"effort": "low"}}, "<think>effort low."),
        ({"reasoning_effort": "ultracode"}, "<think>effort xhigh."),
        ({"thinking": False}, ""),
        ({"reasoning": {"enabled": False}}, ""),
        ({"reasoning_effort": "none"}, ""),
    ],
    ids=str,
)
async def test_a_switch_reaches_the_template(
    customer: EngineCustomer, switch: dict[str, Any], opening: str
) -> None:
    answer = await customer.ask(
        messages=HELLO, max_tokens=1, extra_body=switch | {"prompt_logprobs": 0}
    )

    assert prompt_of(answer).partition(OPENING)[2] == opening
    await customer.check(answer)


async def test_what_was_reasoned_is_shown_unless_it_is_not_wanted(customer: EngineCustomer) -> None:
    asked: Any = {"messages": TALK, "temperature": 0, "max_tokens": 32}

    shown = await customer.ask(**asked)
    kept = [
        await customer.ask(**asked, extra_body={"include_reasoning": False}),
        await customer.ask(**asked, extra_body={"reasoning": {"exclude": True}}),
    ]

    message = shown.choices[0].message
    assert message.reasoning == message.reasoning_content == REASONING
    assert [text_of_whole(answer) for answer in (shown, *kept)] == [ANSWER] * 3
    assert not any(getattr(answer.choices[0].message, "reasoning", None) for answer in kept)
    assert {answer.usage.completion_tokens for answer in kept} == {shown.usage.completion_tokens}
    await customer.check(shown, *kept)
