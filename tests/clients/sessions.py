"""Sessions of an agent: what the engine answers in each step, and what they cost."""

import json
from typing import Any

from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD, Deployment
from tests.upstream.scripts import ScriptedCall, UpstreamScript
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period

WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def step(prompt_tokens: int, *calls: tuple[str, dict[str, Any]], text: str = "") -> UpstreamScript:
    """One answer of the engine, and the usage that it reports."""
    return UpstreamScript(
        calls=tuple(ScriptedCall(name=name, arguments=json.dumps(sent)) for name, sent in calls),
        text=text or None,
        usage={"prompt_tokens": prompt_tokens, "completion_tokens": 40},
    )


LONG = "A text that is too long for the model."
PRINT_LONG = "printf 'A text that is too %s for the model.' long"


_WORDS = "request (140031 tokens) exceeds the available context size (131072 tokens)"
TOO_LONG = UpstreamScript(status=400, body={"error": {"message": _WORDS}})
"""How llama.cpp refuses a prompt."""


def refuse_long_prompts(deployment: Deployment) -> None:
    """Let the engine refuse each prompt that contains `LONG` as too long."""
    deployment.upstream.queue(TOO_LONG, match=LONG, times=None)


def cost(*prompt_tokens: int) -> int:
    return sum(each * PROMPT_PICO_USD + 40 * COMPLETION_PICO_USD for each in prompt_tokens)


def sent_to_engine(deployment: Deployment, since: int) -> list[dict[str, Any]]:
    return [
        json.loads(exchange.body)
        for exchange in list(deployment.upstream.seen)[since:]
        if exchange.path == "/v1/chat/completions"
    ]


async def cap(deployment: Deployment, amount: int) -> None:
    org = deployment.org
    place = CapId(scope=CapScope.KEY, scope_id=deployment.key.key.id, period=Period.MONTH)
    async with org.database.mutation(org.authority()) as tx:
        await ledger.set_cap(tx, place, limit_pico_usd=PicoUsd(amount), alert_percent=80)
