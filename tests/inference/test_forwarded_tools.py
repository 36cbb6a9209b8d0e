"""Tools, calls and options of a chat are forwarded whole, those of a count with known members."""

from typing import Any

import msgspec
import pytest

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.contract.messages import CountTokens
from tollhouse.inference.content_parts import with_forwarded_parts
from tollhouse.inference.forwarded_tools import with_forwarded_tools
from tollhouse.inference.messages.blocks import with_forwarded_options

ADDRESS = "http://169.254.169.254/latest"
HIDDEN = {"image_url": {"url": ADDRESS}, "server_url": ADDRESS}
SCHEMA = {"type": "object", "properties": {"url": {"const": ADDRESS}}}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
CUSTOM = {
    "name": "f",
    "format": {"type": "grammar", "grammar": {"definition": "a: b", "syntax": "lark"}},
}
CALLED = {"name": "f", "arguments": "{}"}
CALL = {"id": "a", "type": "function", "function": CALLED}
CUSTOM_CALL = {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}
ALLOWED = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}
PLACE = {"type": "approximate", "approximate": {"city": "Rome"}}


def forwarded(**fields: object) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    request = msgspec.convert(body, ChatRequest)
    return msgspec.to_builtins(with_forwarded_tools(with_forwarded_parts(request)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{**TOOL, **HIDDEN, "function": {**FUNCTION, **HIDDEN}}]),
        ("tools", [{"a": 1}, {"type": None, "function": ADDRESS}]),
        ("tools", [{"type": "custom", "custom": {**CUSTOM, **HIDDEN}, **HIDDEN}]),
        ("tools", [{"type": "web_search", "user_location": {**PLACE, **HIDDEN}, **HIDDEN}]),
        ("functions", [{**FUNCTION, **HIDDEN}]),
        ("function_call", {"name": "f", **HIDDEN}),
        ("tool_choice", {"type": "allowed_tools", "allowed_tools": {**ALLOWED, **HIDDEN}}),
        ("web_search_options", {"user_location": PLACE, **HIDDEN}),
        ("audio", {"voice": {"id": "v"}, "format": "wav", **HIDDEN}),
        ("prediction", {"type": "content", "content": "x", **HIDDEN}),
    ],
)
def test_free_objects_are_forwarded_whole(name: str, value: object) -> None:
    assert forwarded(**{name: value})[name] == value


def test_the_calls_of_a_message_are_forwarded_without_what_sdks_copied_into_them() -> None:
    call = {**CALL, **HIDDEN, "extra_content": {"google": {"thought_signature": "ab"}}}
    copied = {**call, "index": 5, "function": {**CALLED, "parsed_arguments": {"a": 1}}}
    old = {"role": "assistant", "function_call": {**CALLED, **HIDDEN}}

    messages = [{"role": "assistant", "tool_calls": [copied, CUSTOM_CALL]}, old]

    assert forwarded(messages=messages)["messages"] == [
        {"role": "assistant", "tool_calls": [call, CUSTOM_CALL]},
        old,
    ]


@pytest.mark.parametrize("kind", ["mcp", "code_interpreter", "Function", "web_fetch", " "])
def test_a_tool_that_is_neither_the_caller_s_nor_a_web_search_is_refused(kind: str) -> None:
    with pytest.raises(UnsupportedOption) as refusal:
        forwarded(tools=[TOOL, {"type": kind, "server_url": ADDRESS}])

    assert refusal.value.param == "tools[1].type"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": ["mcp"]}]}, "tools[0].type"),
        ({"prediction": {"type": "content", "content": HIDDEN}}, "prediction.content"),
    ],
)
def test_a_type_and_a_prediction_are_texts(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        forwarded(**fields)

    assert (refusal.value.code, refusal.value.param) == ("invalid_type", param)


def test_a_request_without_tools_stays_the_same_object() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    request = msgspec.convert(body, ChatRequest)

    assert with_forwarded_tools(request) is request


@pytest.mark.parametrize(
    ("name", "value", "becomes"),
    [
        (
            "tools",
            [{"name": "f", "input_schema": SCHEMA, "source": HIDDEN, **HIDDEN}],
            [{"name": "f", "input_schema": SCHEMA}],
        ),
        (
            "tools",
            [{"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 1, "url": ADDRESS}],
            [{"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 1}],
        ),
        (
            "thinking",
            {"type": "enabled", "budget_tokens": 5, "source": HIDDEN},
            {"type": "enabled", "budget_tokens": 5},
        ),
        ("tool_choice", {"type": "tool", "name": "f", **HIDDEN}, {"type": "tool", "name": "f"}),
        (
            "output_config",
            {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA, **HIDDEN}},
            {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
        ),
        (
            "cache_control",
            {"type": "ephemeral", "ttl": ADDRESS, **HIDDEN},
            {"type": "ephemeral"},
        ),
    ],
)
def test_a_counter_gets_known_members_of_options(name: str, value: object, becomes: object) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], name: value}

    found = with_forwarded_options(msgspec.convert(body, CountTokens))

    assert getattr(found, name) == becomes
