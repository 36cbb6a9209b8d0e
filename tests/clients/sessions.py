"""Sessions of an agent: what the engine answers in each step, and what they cost."""

import json
from typing import Any

from tests.support.deployment import COMPLETION_PICO_USD, PROMPT_PICO_USD, Deployment
from tollhouse.base.money import PicoUsd
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, Period
from tollhouse.testing.scripts import ScriptedCall, UpstreamScript

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
