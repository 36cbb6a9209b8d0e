"""Credit for the bound of a small prompt is enough for what a real engine bills for it."""

from typing import Any

import pytest

from tests.journeys.till import Till
from tests.support.shop import COMPLETION_PICO_USD, MODEL, PROMPT_PICO_USD
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
    till: Till, path: str, body: dict[str, Any], prompt: str
) -> None:
    await till.shop.leave_credit(BOUND_TOKENS * PROMPT_PICO_USD + COMPLETION_PICO_USD)

    async with till.shop.customer() as client:
        answer = await client.post(path, json=body | {"model": MODEL, "max_tokens": 1})

    assert answer.is_success, answer.text
    assert answer.json()["usage"][f"{prompt}_tokens"] == BILLED_TOKENS < BOUND_TOKENS
    assert (await till.shop.settled(1)).absorbed_excess_pico_usd == 0
