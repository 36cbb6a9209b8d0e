"""Fields of a chat request that are fine alone and not together."""

from typing import Any

import pytest

from tests.contract.tables import ACCEPTED, Cases, decoded
from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import chat

MINIMAL: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
TOOL = {"type": "function", "function": {"name": "get_time"}}
BY_NAME = {"type": "function", "function": {"name": "get_time"}}
OTHER_NAME = {"type": "function", "function": {"name": "get_weather"}}


def outcome(fields: dict[str, Any]) -> tuple[str, str | None]:
    request = decoded(chat.ChatRequest, MINIMAL | fields)
    try:
        chat.check(request)
    except InvalidRequest as refusal:
        return refusal.code, refusal.param
    return ACCEPTED


def clash(param: str) -> tuple[str, str]:
    return "invalid_parameter_combination", param


TOGETHER: Cases = [
    ({}, ACCEPTED),
    ({"max_tokens": 5}, ACCEPTED),
    ({"max_completion_tokens": 5}, ACCEPTED),
    ({"max_tokens": 5, "max_completion_tokens": None}, ACCEPTED),
    ({"max_tokens": None, "max_completion_tokens": None}, ACCEPTED),
    ({"max_tokens": 5, "max_completion_tokens": 5}, clash("max_tokens")),
    ({"store": False}, ACCEPTED),
    ({"store": True}, ("unsupported_value", "store")),
    ({"stream": True, "stream_options": {"include_usage": True}}, ACCEPTED),
    ({"stream_options": None}, ACCEPTED),
    ({"stream_options": {}}, ACCEPTED),
    ({"stream": False, "stream_options": {"include_usage": True}}, ACCEPTED),
    ({"logprobs": True, "top_logprobs": 3}, ACCEPTED),
    ({"top_logprobs": None}, ACCEPTED),
    ({"top_logprobs": 3}, ACCEPTED),
    ({"top_logprobs": 0}, ACCEPTED),
    ({"top_logprobs": 0, "logprobs": False}, ACCEPTED),
    ({"top_logprobs": 3, "logprobs": None}, ACCEPTED),
    ({"top_logprobs": 3, "logprobs": False}, clash("top_logprobs")),
    ({"prompt_logprobs": 1}, ACCEPTED),
    ({"prompt_logprobs": 0, "stream": True}, ACCEPTED),
    ({"prompt_logprobs": None, "stream": True}, ACCEPTED),
    ({"prompt_logprobs": 1, "stream": True}, clash("prompt_logprobs")),
]


@pytest.mark.parametrize(("fields", "expected"), TOGETHER)
def test_bounds_storage_and_streaming_options_go_together(
    fields: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(fields) == expected


CHOICES: Cases = [
    ({"tools": [TOOL]}, ACCEPTED),
    ({"tools": [TOOL], "functions": []}, ACCEPTED),
    ({"tools": [], "functions": [{"name": "f"}]}, ACCEPTED),
    ({"tools": [TOOL], "functions": [{"name": "f"}]}, clash("functions")),
    ({"tool_choice": "none"}, ACCEPTED),
    ({"tool_choice": None}, ACCEPTED),
    ({"tool_choice": "auto", "tools": [TOOL]}, ACCEPTED),
    ({"tool_choice": "auto"}, ACCEPTED),
    ({"tool_choice": "auto", "tools": []}, ACCEPTED),
    ({"tool_choice": "required"}, clash("tool_choice")),
    ({"tool_choice": "required", "tools": []}, clash("tool_choice")),
    ({"tool_choice": BY_NAME}, clash("tool_choice")),
    ({"tool_choice": BY_NAME, "tools": [TOOL]}, ACCEPTED),
    ({"tool_choice": OTHER_NAME, "tools": [TOOL]}, clash("tool_choice")),
    ({"tool_choice": OTHER_NAME, "tools": [{"function": "?"}]}, clash("tool_choice")),
    ({"tool_choice": {"type": "allowed_tools"}, "tools": [TOOL]}, ACCEPTED),
    ({"function_call": "none"}, ACCEPTED),
    ({"function_call": "auto"}, ACCEPTED),
    ({"function_call": {"name": "f"}}, clash("function_call")),
    ({"function_call": "auto", "functions": [{"name": "f"}]}, ACCEPTED),
    ({"function_call": {"name": "f"}, "functions": [{"name": "f"}]}, ACCEPTED),
    ({"function_call": {"name": "g"}, "functions": [{"name": "f"}]}, clash("function_call")),
    ({"function_call": "auto", "tools": [TOOL]}, ACCEPTED),
]


@pytest.mark.parametrize(("fields", "expected"), CHOICES)
def test_a_choice_of_tools_needs_their_definitions(
    fields: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(fields) == expected


REASONING_CONTROLS: Cases = [
    ({"reasoning": None, "reasoning_effort": None, "thinking": None}, ACCEPTED),
    ({"reasoning": {"effort": "high"}, "reasoning_effort": "high"}, ACCEPTED),
    ({"reasoning": {"effort": "high"}, "reasoning_effort": None}, ACCEPTED),
    ({"reasoning": {"effort": "high"}, "reasoning_effort": "low"}, clash("reasoning.effort")),
    ({"reasoning": {"max_tokens": 1023}}, ACCEPTED),
    ({"reasoning": {"max_tokens": 1024}}, ACCEPTED),
    ({"reasoning": {"max_tokens": 2000}}, ACCEPTED),
    ({"reasoning": {"max_tokens": 1024}, "max_tokens": 1025}, ACCEPTED),
    ({"reasoning": {"max_tokens": 9}, "max_completion_tokens": 9}, ACCEPTED),
    ({"reasoning": {"max_tokens": 9}, "max_tokens": 1}, ACCEPTED),
    ({"reasoning": {"max_tokens": 9, "effort": "low"}}, clash("reasoning.max_tokens")),
    (
        {"reasoning": {"max_tokens": 9}, "reasoning_effort": "none"},
        clash("reasoning.max_tokens"),
    ),
    ({"thinking": True, "reasoning": {"enabled": True, "effort": "max"}}, ACCEPTED),
    (
        {"thinking": False, "reasoning": {"enabled": False}, "reasoning_effort": "none"},
        ACCEPTED,
    ),
    ({"thinking": False, "reasoning": {"enabled": True}}, clash("thinking")),
    ({"thinking": True, "reasoning": {"enabled": False}}, clash("reasoning.enabled")),
    ({"thinking": False, "reasoning_effort": "low"}, clash("thinking")),
    ({"thinking": True, "reasoning_effort": "none"}, clash("reasoning_effort")),
    ({"thinking": True, "reasoning": {"effort": "none"}}, clash("reasoning.effort")),
    ({"thinking": False, "reasoning": {"max_tokens": 9}}, clash("thinking")),
    ({"include_reasoning": True, "reasoning": {"exclude": False}}, ACCEPTED),
    ({"include_reasoning": False, "reasoning": {"exclude": True}}, ACCEPTED),
    ({"include_reasoning": True, "reasoning": {"exclude": True}}, clash("reasoning.exclude")),
    ({"include_reasoning": False, "reasoning": {"exclude": False}}, clash("include_reasoning")),
    ({"include_reasoning": False, "thinking": False}, ACCEPTED),
]


@pytest.mark.parametrize(("fields", "expected"), REASONING_CONTROLS)
def test_controls_of_reasoning_must_not_contradict(
    fields: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(fields) == expected


PARTS: Cases = [
    ({}, ACCEPTED),
    ({"type": "text", "text": "Hi"}, ACCEPTED),
    ({"type": None, "text": None, "image_url": None}, ACCEPTED),
    (
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}, "detail": "low"},
        ACCEPTED,
    ),
    ({"image_url": 5}, ACCEPTED),
    ({"text": 5}, ("invalid_type", "messages[0].content[1].text")),
    ({"type": {}}, ("invalid_type", "messages[0].content[1].type")),
]


@pytest.mark.parametrize(("part", "expected"), PARTS)
def test_a_content_part_has_text_where_text_belongs(
    part: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    content = [{"type": "text", "text": "first"}, part]

    assert outcome({"messages": [{"role": "user", "content": content}]}) == expected


def test_the_members_of_a_content_part_are_kept_as_they_are() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    body = MINIMAL | {"messages": [{"role": "user", "content": [part]}]}

    assert decoded(chat.ChatRequest, body).messages[0].content == [part]
