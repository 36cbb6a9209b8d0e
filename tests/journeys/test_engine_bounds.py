"""Credit for the bound of a small prompt is enough for what a real engine bills for it."""

from typing import Any

import pytest

from tests.journeys.engine_customer import EngineCustomer
from tests.support.deployment import COMPLETION_PICO_USD, MODEL, PROMPT_PICO_USD
from tollhouse.ledger.bounds import MESSAGE_TOKENS, TEMPLATE_TOKENS, TokenizerFamily

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = b'[{"role":"user","content":"Hi"}]'
BOUND_TOKENS = TEMPLATE_TOKENS[TokenizerFamily.BYTES] + MESSAGE_TOKENS + len(SAID)
BILLED_TOKENS = 31
"""With the system prompt that SmolLM2's template brings."""


@pytest.mark.parametrize(
    ("path", "body", "prompt"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}, "prompt"),
        ("/v1/responses", {"input": "Hi"}, "input"),
    ],
)
async def test_the_bound_of_two_bytes_covers_the_engines_own_system_prompt(
    customer: EngineCustomer, path: str, body: dict[str, Any], prompt: str
) -> None:
    await customer.deployment.leave_credit(BOUND_TOKENS * PROMPT_PICO_USD + COMPLETION_PICO_USD)

    async with customer.deployment.customer() as client:
        answer = await client.post(path, json=body | {"model": MODEL, "max_tokens": 1})

    assert answer.is_success, answer.text
    assert answer.json()["usage"][f"{prompt}_tokens"] == BILLED_TOKENS < BOUND_TOKENS
    assert (await customer.deployment.settled(1)).written_off_excess_pico_usd == 0
