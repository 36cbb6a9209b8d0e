"""Every field of a chat request as vLLM takes it: seen in the answer, kept back, or refused."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.journeys.engine_customer import HELLO, text_of_whole

PATTERN = "[0-9]{3}-[a-z]{2}"
DOOR: list[Any] = [{"role": "user", "content": "Paint the door red."}]


def tool(name: str) -> dict[str, Any]:
    """Strict, since this model would not keep to a schema by itself."""
    parameters = {
        "type": "object",
        "properties": {"color": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["color"],
        "additionalProperties": False,
    }
    function = {"name": name, "parameters": parameters, "strict": True}
    return {"type": "function", "function": function}


TOOLS = [tool("paint"), tool("wash")]


def schema(content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": content}}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A field that changes the answer, and how that is seen."""

    field: str
    fields: dict[str, Any]
    is_seen: Callable[[Any], object]


def calls_of(answer: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - what the SDK returns
    calls: list[Any] = answer.choices[0].message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


SHOWN = (
    Shown(
        field="prompt_logprobs",
        fields={"extra_body": {"prompt_logprobs": 1}},
        is_seen=lambda answer: (
            answer.prompt_logprobs[0] is None
            and len(answer.prompt_logprobs) == answer.usage.prompt_tokens
        ),
    ),
    Shown(
        field="response_format",
        fields={"response_format": schema({"type": "string", "pattern": f"^{PATTERN}$"})},
        is_seen=lambda answer: len(json.loads(text_of_whole(answer))) == len("123-ab"),
    ),
    Shown(
        field="response_format",
        fields={"response_format": schema({"enum": ["left", "right"]})},
        is_seen=lambda answer: json.loads(text_of_whole(answer)) in ("left", "right"),
    ),
    Shown(
        field="tools",
        fields={"messages": DOOR, "tools": TOOLS, "tool_choice": "required", "max_tokens": 96},
        is_seen=lambda answer: calls_of(answer) == [("paint", {"color": "red"})],
    ),
    Shown(
        field="tool_choice",
        fields={
            "messages": DOOR,
            "tools": TOOLS,
            "tool_choice": {"type": "function", "function": {"name": "wash"}},
            "max_tokens": 96,
        },
        is_seen=lambda answer: [name for name, _ in calls_of(answer)] == ["wash"],
    ),
    Shown(
        field="tool_choice",
        fields={"messages": DOOR, "tools": TOOLS, "tool_choice": "none"},
        is_seen=lambda answer: not calls_of(answer) and text_of_whole(answer),
    ),
    Shown(
        field="messages",
        fields={"messages": [{"role": "developer", "content": "Be brief."}, *HELLO]},
        is_seen=lambda answer: answer.usage.prompt_tokens == 20,
    ),
    Shown(
        field="messages",
        fields={
            "messages": [
                *DOOR,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_0",
                            "type": "function",
                            "function": {"name": "paint", "arguments": '{"color": "red"}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_0", "content": "It is red now."},
            ],
            "tools": TOOLS,
        },
        is_seen=lambda answer: answer.usage.prompt_tokens > 45,
    ),
)


KEPT: tuple[tuple[str, Any], ...] = (
    ("user", "somebody"),
    ("safety_identifier", "somebody"),
    ("metadata", {"a": "b"}),
    ("store", False),
    ("modalities", ["text"]),
    ("structuredOutputs", True),
    ("prompt_cache_key", "a session"),
    ("policy_ids", []),
    ("thinking", False),
    ("reasoning", {"enabled": False}),
    ("reasoning_effort", "none"),
    ("include_reasoning", False),
    ("tool_choice", "none"),
    ("function_call", "none"),
)
"""What is not for the engine, or turns off what it does not do."""

REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("functions", [{"name": "paint", "parameters": {}}], "functions"),
    ("verbosity", "low", "verbosity"),
    ("prediction", {"type": "content", "content": "Hello"}, "prediction"),
    ("service_tier", "flex", "service_tier"),
    ("prompt_cache_retention", "24h", "prompt_cache_retention"),
    ("web_search_options", {}, "web_search_options"),
    ("reasoning_effort", "low", "reasoning_effort"),
    ("reasoning", {"enabled": True}, "reasoning.enabled"),
    ("thinking", True, "thinking"),
    ("audio", {"voice": "alloy", "format": "wav"}, "audio"),
    ("modalities", ["text", "audio"], "modalities"),
)
"""What it would drop in silence, and under which name it is refused."""

ELSEWHERE = {"model", "n", "parallel_tool_calls", "cache_salt"}
"""Shown by tests of their own."""


def fields() -> set[str]:
    """All that are looked at."""
    return (
        {case.field for case in SHOWN}
        | {field for field, _ in KEPT}
        | {field for field, _, _ in REFUSED}
        | ELSEWHERE
    )
