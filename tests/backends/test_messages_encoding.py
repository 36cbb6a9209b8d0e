"""Chats as bodies of Anthropic's Messages API, compared as whole bodies."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tollhouse.backends.messages_json import encode_messages
from tollhouse.backends.openai_json import Forwarding
from tollhouse.backends.types import MessageHints
from tollhouse.contract.chat import ChatRequest, check

FORWARD = Forwarding(
    upstream_model="claude",
    output_tokens=10_000,
    reasoning_tokens_max=9_999,
    effort_names={"minimal": "low"},
    reasons=True,
)
BUDGETED = replace(FORWARD, takes_budget=True)
USER = {"role": "user", "content": "hi"}
SAID = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
BARE = {"model": "claude", "max_tokens": 10_000, "messages": [SAID]}
FUNCTION: dict[str, Any] = {
    "name": "f",
    "description": "does",
    "parameters": {"properties": {}},
    "strict": True,
}
TOOL = {"type": "function", "function": FUNCTION}
SHOWN_TOOL: dict[str, Any] = {
    "name": "f",
    "description": "does",
    "input_schema": {"type": "object", "properties": {}},
    "strict": True,
}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def sent(forward: Forwarding = FORWARD, /, **members: object) -> Any:  # noqa: ANN401 - any JSON
    body = {"model": "acme/small", "messages": [USER], **members}
    request = msgspec.json.decode(msgspec.json.encode(body), type=ChatRequest)
    check(request)
    return msgspec.json.decode(encode_messages(request, forward))


def called(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


def test_the_least_request_gets_the_upstream_name_and_the_bound() -> None:
    assert sent() == BARE


EXPRESSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sampling": (
        {"temperature": 0.5, "top_p": 0.25, "stop": "END", "stream": True},
        {"temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END"], "stream": True},
    ),
    "a schema": (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "s", "schema": {"type": "object"}},
            }
        },
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
    ),
    "tools": ({"tools": [TOOL]}, {"tools": [SHOWN_TOOL]}),
    "no tool": (
        {"tools": [TOOL], "tool_choice": "none"},
        {"tools": [SHOWN_TOOL], "tool_choice": {"type": "none"}},
    ),
    "any tool": (
        {"tools": [TOOL], "tool_choice": "required"},
        {"tools": [SHOWN_TOOL], "tool_choice": {"type": "any"}},
    ),
    "one tool": (
        {
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "parallel_tool_calls": False,
        },
        {
            "tools": [SHOWN_TOOL],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        },
    ),
    "one call at a time": (
        {"tools": [TOOL], "parallel_tool_calls": False},
        {
            "tools": [SHOWN_TOOL],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        },
    ),
    "what stays here": (
        {"user": "u", "metadata": {"a": "b"}, "safety_identifier": "s", "prompt_cache_key": "k"},
        {},
    ),
}


@pytest.mark.parametrize(("members", "shown"), EXPRESSED.values(), ids=EXPRESSED)
def test_options_are_expressed_in_the_other_dialect(
    members: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert sent(**members) == BARE | shown


def test_a_conversation_with_tools_and_media_keeps_its_order() -> None:
    conversation = [
        {"role": "system", "content": "Be kind."},
        USER,
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": IMAGE}}]},
        {"role": "assistant", "content": "", "tool_calls": [called('{"a": 1}'), called("[")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "file", "file": {"file_data": "aGk="}}]},
    ]

    body = sent(messages=conversation)

    assert [block["text"] for block in body["system"]] == ["Be kind.", "Be brief."]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    asked, answered, told = (turn["content"] for turn in body["messages"])
    data = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert asked == [{"type": "text", "text": "hi"}, {"type": "image", "source": data}]
    assert [block["input"] for block in answered] == [{"a": 1}, {"INVALID_JSON": "["}]
    assert {block["type"] for block in answered} == {"tool_use"}
    assert told[0] == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": [{"type": "text", "text": "42"}],
    }
    assert told[1] == {"type": "tool_result", "tool_use_id": "call_1"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    assert told[2] == {"type": "document", "source": pdf}


IMAGE = "data:image/PNG;base64,aGk="
ADAPTIVE = {"type": "adaptive", "display": "summarized"}
THOUGHTFUL: dict[str, tuple[Forwarding, dict[str, Any], object, object]] = {
    "nothing asked": (FORWARD, {}, None, None),
    "none": (FORWARD, {"reasoning_effort": "none"}, None, None),
    "off": (FORWARD, {"thinking": False}, None, None),
    "on": (FORWARD, {"thinking": True}, ADAPTIVE, None),
    "an effort": (FORWARD, {"reasoning_effort": "minimal"}, ADAPTIVE, "low"),
    "no model that reasons": (
        replace(FORWARD, reasons=False),
        {"reasoning_effort": "high"},
        None,
        None,
    ),
    "a budget": (
        BUDGETED,
        {"reasoning": {"max_tokens": 2_000}},
        {"type": "enabled", "budget_tokens": 2_000},
        None,
    ),
    "too small a budget": (
        BUDGETED,
        {"reasoning": {"max_tokens": 5}},
        {"type": "enabled", "budget_tokens": 1_024},
        None,
    ),
    "an effort as a budget": (
        BUDGETED,
        {"reasoning_effort": "high"},
        {"type": "enabled", "budget_tokens": 8_000},
        None,
    ),
    "no room to think": (
        replace(BUDGETED, output_tokens=1_024, reasoning_tokens_max=1_023),
        {"thinking": True},
        None,
        None,
    ),
}


@pytest.mark.parametrize(
    ("forward", "members", "thinking", "effort"), THOUGHTFUL.values(), ids=THOUGHTFUL
)
def test_reasoning_becomes_adaptive_thinking_or_a_budget(
    forward: Forwarding, members: dict[str, Any], thinking: object, effort: object
) -> None:
    body = sent(forward, **members)

    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort


def test_with_a_budget_a_call_without_its_thoughts_is_continued_without_thinking() -> None:
    turns = [
        USER,
        {"role": "assistant", "tool_calls": [called("{}")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    ]
    signed = replace(BUDGETED, hints=MessageHints(thoughts={1: [THOUGHT]}))

    forgotten = sent(BUDGETED, messages=turns, reasoning_effort="high")
    known = sent(signed, messages=turns, reasoning_effort="high")
    adaptive = sent(FORWARD, messages=turns, reasoning_effort="high")

    assert "thinking" not in forgotten
    assert known["thinking"]["type"] == "enabled"
    assert known["messages"][1]["content"][0] == THOUGHT
    assert adaptive["thinking"] == ADAPTIVE


def test_hints_mark_failed_results_and_the_cache() -> None:
    turns = [
        USER,
        {"role": "assistant", "tool_calls": [called("{}")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "no"},
    ]
    hints = MessageHints(failed_results=frozenset({2}), asks_for_cache=True, thinks_adaptively=True)

    body = sent(replace(FORWARD, hints=hints, writes_cache=True), messages=turns)

    assert body["messages"][2]["content"][0]["is_error"] is True
    assert body["cache_control"] == {"type": "ephemeral"}
    assert body["thinking"] == ADAPTIVE
    unpriced = sent(replace(FORWARD, hints=hints), messages=turns)
    assert "cache_control" not in unpriced
    by_key = sent(replace(FORWARD, writes_cache=True), prompt_cache_key="k")
    assert by_key["cache_control"] == {"type": "ephemeral"}
