"""The tables of chat as requests over HTTP: each case of the contract, and how it is answered."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract import test_chat_fields as fields
from tests.contract import test_chat_rules as rules
from tests.contract.tables import ACCEPTED, Told, cases
from tests.support.deployment import MODEL

Body = dict[str, Any]
Outcome = tuple[int, str | None, str | None]

OK: Outcome = (200, None, None)
MODEL_OUTPUT_MAX = 4096
TOOL = {"type": "function", "function": {"name": "get_time"}}
COMPANIONS: dict[str, Body] = {
    "stream_options": {"stream": True},
    "tool_choice": {"tools": [TOOL]},
    "parallel_tool_calls": {"tools": [TOOL]},
    "function_call": {"functions": [{"name": "f"}]},
}
"""Without which a field that is fine by its line of the table is refused or has no effect."""


def of_fields() -> list[Any]:
    """One field each, with its companion."""
    tables = (
        fields.REQUEST,
        fields.MESSAGES,
        fields.STREAM_OPTIONS,
        fields.REASONING,
        fields.JSON_SCHEMA,
    )
    made = [(case.id, *case.values[1:]) for case in cases(*tables)]
    made += _numbered("response_format", fields.RESPONSE_FORMATS)
    made += _numbered("logit_bias", fields.LOGIT_BIASES)
    made += _numbered("policy_ids", fields.POLICY_IDS)
    return [pytest.param(_accompanied(body), told, id=name) for name, body, told in made]


def of_rules() -> list[Any]:
    """Fields that are fine alone and not together, as they are."""
    together = (rules.TOGETHER, rules.CHOICES, rules.REASONING_CONTROLS)
    bodies = [(fields.MINIMAL | tried, told) for rows in together for tried, told in rows]
    for part, told in rules.PARTS:
        content = [{"type": "text", "text": "first"}, part]
        bodies.append((fields.MINIMAL | {"messages": [{"role": "user", "content": content}]}, told))
    return [pytest.param(body, told, id=f"rule-{at}") for at, (body, told) in enumerate(bodies)]


def answered(body: Body, told: Told) -> Outcome:
    """What the contract refuses is 400; what it takes can still be refused for what it names."""
    if told != ACCEPTED:
        return 400, *told
    return next(_refusals(body), OK)


def _refusals(body: Body) -> Iterator[Outcome]:
    """In the order of checks."""
    if body.get("store"):
        yield 400, "unsupported_value", "store"
    if body["model"] != MODEL:
        yield 404, "model_not_found", "model"
    if body.get("policy_ids"):
        yield 404, "policy_not_found", "policy_ids"
    yield from _remote_images(body)
    for name in ("max_tokens", "max_completion_tokens"):
        if (body.get(name) or 0) > MODEL_OUTPUT_MAX:
            yield 400, "integer_above_max_value", name
    reasoning: Body = body.get("reasoning") or {}
    if (reasoning.get("max_tokens") or 0) > MODEL_OUTPUT_MAX:
        yield 400, "integer_above_max_value", "reasoning.max_tokens"


def _remote_images(body: Body) -> Iterator[Outcome]:
    content: str | list[Body] | None = body["messages"][0].get("content")
    for at, part in enumerate(content if isinstance(content, list) else []):
        image = part.get("image_url")
        if image is not None and not str(image).startswith("{'url': 'data:"):
            yield 501, "unsupported_parameter", f"messages[0].content[{at}].image_url"


def _accompanied(body: Body) -> Body:
    companions = [COMPANIONS[name] for name in body if name in COMPANIONS]
    return {name: value for companion in companions for name, value in companion.items()} | body


def _numbered(name: str, rows: list[tuple[Any, Told]]) -> list[tuple[str, Body, Told]]:
    return [
        (f"{name}-{at}", fields.MINIMAL | {name: value}, told)
        for at, (value, told) in enumerate(rows)
    ]
