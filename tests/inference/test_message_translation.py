"""A Messages request as a chat: what every field of it becomes, and what it is called again."""

from typing import Any

import msgspec
import pytest

from tollhouse.base.errors import GatewayError, InvalidRequest
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.chat import check as check_chat
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.contract.message_request import MessageRequest, check
from tollhouse.inference.endpoint import NameOf
from tollhouse.inference.messages.translation import (
    optional_features,
    refused_tools,
    shows_thinking,
    translate,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: dict[str, Any] = {"name": "weather", "description": "d", "input_schema": SCHEMA}
FUNCTION: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": SCHEMA},
}
PNG = "iVBORw0KGgo="
USER: dict[str, Any] = {"role": "user", "content": "Hi"}
DOCUMENT: dict[str, Any] = {"type": "document", "source": {"type": "content"}}
CACHED = {"cache_control": {"type": "ephemeral"}}


def request_of(**fields: object) -> MessageRequest:
    adaptive = {"type": "adaptive"}
    body = {"model": "m", "max_tokens": 50, "messages": [USER], "thinking": adaptive, **fields}
    return msgspec.convert(body, MessageRequest)


def translated(**fields: object) -> tuple[ChatRequest, NameOf]:
    request = request_of(**fields)
    check(request)
    found, name_of, _ = translate(request)
    # What Tollhouse makes itself must pass what it demands of others.
    check_chat(found)
    return found, name_of


def chat(**fields: object) -> dict[str, Any]:
    """All that is in the chat, as it would be written."""
    return msgspec.to_builtins(translated(**fields)[0])


def messages(*content: object, role: str = "user") -> list[dict[str, Any]]:
    return chat(messages=[{"role": role, "content": list(content)}])["messages"]


def refusal(**fields: object) -> GatewayError:
    with pytest.raises(GatewayError) as refused:
        translated(**fields)
    return refused.value


def test_a_plain_request_is_a_plain_chat() -> None:
    assert chat() == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": False,
        "store": False,
        "max_completion_tokens": 50,
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stream": True}, {"stream": True}),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
        ({"stop_sequences": ["END"]}, {"stop": ["END"]}),
        ({"policy_ids": ["a"]}, {"policy_ids": ["a"]}),
        ({"tools": [TOOL | CACHED]}, {"tools": [FUNCTION]}),
        ({"tools": [TOOL | {"type": "custom", "defer_loading": True}]}, {"tools": [FUNCTION]}),
        ({"thinking": {"type": "disabled"}}, {"thinking": False}),
        ({"thinking": None}, {"thinking": False}),
        ({"thinking": None, "output_config": {"effort": "low"}}, {"reasoning_effort": "low"}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 20}},
            {"reasoning": {"max_tokens": 20}},
        ),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
            {"reasoning_effort": "high"},
        ),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            {"thinking": False},
        ),
        ({"metadata": {"user_id": "someone"}}, {}),
        ({"service_tier": "auto"}, {}),
        ({"speed": "standard"}, {}),
        (
            {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
            {},
        ),
    ],
)
def test_a_field_becomes_its_equivalent(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert chat(**fields) == chat() | expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, {}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "weather"},
            {"tool_choice": {"type": "function", "function": {"name": "weather"}}},
        ),
        (
            {"type": "any", "disable_parallel_tool_use": True},
            {"tool_choice": "required", "parallel_tool_calls": False},
        ),
    ],
)
def test_a_choice_of_tools_becomes_its_equivalent(
    choice: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert chat(tools=[TOOL], tool_choice=choice) == chat(tools=[TOOL]) | expected


@pytest.mark.parametrize("name", ["output_config", "output_format"])
def test_a_schema_of_the_answer_becomes_a_response_format(name: str) -> None:
    form = {"type": "json_schema", "schema": SCHEMA}
    sent = {"format": form} if name == "output_config" else form

    assert chat(**{name: sent})["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": SCHEMA, "strict": True},
    }


def test_system_blocks_are_one_message_before_all_others() -> None:
    texts = [{"type": "text", "text": "a", **CACHED}, {"type": "text", "text": "b"}]

    assert chat(system="Be brief.")["messages"][0] == {"role": "system", "content": "Be brief."}
    assert chat(system=texts)["messages"][0] == {
        "role": "system",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }


def test_a_system_message_in_between_keeps_its_place() -> None:
    said = [USER, {"role": "system", "content": "Now in French."}, USER]

    assert [each["role"] for each in chat(messages=said)["messages"]] == ["user", "system", "user"]


def test_a_turn_of_the_assistant_is_one_message() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Here"}}

    assert messages(thinking, hidden, {"type": "text", "text": "Ok."}, use, role="assistant") == [
        {
            "role": "assistant",
            "content": "Ok.",
            "reasoning": "Hm.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city":"Here"}'},
                }
            ],
        }
    ]


def test_results_of_tools_are_messages_in_their_order() -> None:
    first = {"type": "tool_result", "tool_use_id": "a", "content": "Rain.", "is_error": False}
    second = {"type": "tool_result", "tool_use_id": "b"}
    text = {"type": "text", "text": "And now?"}

    assert messages(first, second, text | CACHED) == [
        {"role": "tool", "content": "Rain.", "tool_call_id": "a"},
        {"role": "tool", "content": "", "tool_call_id": "b"},
        {"role": "user", "content": "And now?"},
    ]


def test_a_reference_to_a_tool_is_told_as_text() -> None:
    found = [{"type": "tool_reference", "tool_name": "weather"}]
    result = {"type": "tool_result", "tool_use_id": "a", "content": found}

    assert messages(result)[0]["content"] == "The tool weather can be called now."


@pytest.mark.parametrize(
    ("block", "parts"),
    [
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            },
            [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
        ),
        (
            {
                "type": "document",
                "title": "Tolls",
                "source": {"type": "text", "media_type": "text/plain", "data": "Two cents."},
            },
            [{"type": "text", "text": "Tolls"}, {"type": "text", "text": "Two cents."}],
        ),
        (
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PNG},
            },
            [
                {
                    "type": "file",
                    "file": {
                        "file_data": f"data:application/pdf;base64,{PNG}",
                        "filename": "document.pdf",
                    },
                }
            ],
        ),
        (
            {
                "type": "search_result",
                "source": "https://example.com",
                "title": "Tolls",
                "content": [{"type": "text", "text": "Two cents."}],
            },
            [
                {"type": "text", "text": "Tolls\nhttps://example.com"},
                {"type": "text", "text": "Two cents."},
            ],
        ),
    ],
)
def test_media_become_parts(block: dict[str, Any], parts: list[dict[str, Any]]) -> None:
    content = messages({"type": "text", "text": "See."}, block)[0]["content"]

    assert content == [{"type": "text", "text": "See."}, *parts]


def test_errors_use_the_names_of_the_caller() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "Rain."}
    content = [result, {"type": "text", "text": "See."}, image]
    _, name_of = translated(system="s", messages=[USER, {"role": "user", "content": content}])

    assert name_of("messages[3].content[1].image_url") == "messages[1].content[2].source"
    assert name_of("messages[3].content[0]") == "messages[1].content[1]"
    assert name_of("messages[2].content") == "messages[1].content[0].content"
    assert name_of("messages[1].content") == "messages[0].content"
    assert name_of("messages[0].content") == "system"
    assert name_of("max_completion_tokens") == "max_tokens"
    assert name_of("reasoning.max_tokens") == "thinking.budget_tokens"
    assert name_of("temperature") == "temperature"


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"top_k": 5}, 501, "top_k"),
        ({"mcp_servers": [{"url": "u"}]}, 501, "mcp_servers"),
        ({"speed": "fast"}, 501, "speed"),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
            501,
            "context_management.edits[0].type",
        ),
        ({"tools": [{"name": "", "input_schema": SCHEMA}]}, 400, "tools[0].name"),
        ({"tools": [{"name": "a"}]}, 400, "tools[0].input_schema"),
        ({"tool_choice": {"type": "any"}}, 400, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "b"}}, 400, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "some"}}, 400, "tool_choice.type"),
        ({"thinking": {"type": "enabled"}}, 400, "thinking.budget_tokens"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 50}},
            400,
            "thinking.budget_tokens",
        ),
        ({"thinking": {"type": "sometimes"}}, 400, "thinking.type"),
        ({"output_config": {"effort": "huge"}}, 400, "output_config.effort"),
        ({"output_config": {"format": {"type": "text"}}}, 400, "output_config.format"),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, 400, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, 400, "messages[0].content[0]"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool"}}, 400, "tool_choice.name"),
        ({"output_format": {"type": "text"}}, 400, "output_format"),
        (
            {"messages": [{"role": "user", "content": [DOCUMENT]}]},
            400,
            "messages[0].content[0].source.content",
        ),
        (
            {"messages": [{"role": "user", "content": [DOCUMENT | {"title": 5}]}]},
            400,
            "messages[0].content[0].title",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "server_tool_use"}]}]},
            501,
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "image"}]}]},
            501,
            "messages[0].content[0].type",
        ),
    ],
)
def test_what_cannot_be_translated_is_refused(
    fields: dict[str, Any], status: int, param: str
) -> None:
    refused = refusal(**fields)

    assert (refused.kind, refused.param) == (status, param)


def test_tools_of_a_provider_are_left_to_the_model_unless_they_are_demanded() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    request = request_of(tools=[TOOL, search])
    demanded = request_of(tools=[search], tool_choice={"type": "tool", "name": "web_search"})

    (refused,) = refused_tools(request)

    assert (refused.kind, refused.refusal.param) == ("web_search_20250305", "tools[1].type")
    assert msgspec.to_builtins(translate(request)[0])["tools"] == [FUNCTION]
    for demanding in (demanded, request_of(tools=[TOOL, search], tool_choice={"type": "any"})):
        with pytest.raises(UnsupportedOption):
            refused_tools(demanding)
    chosen = request_of(tools=[TOOL, search], tool_choice={"type": "tool", "name": "weather"})
    nameless = request_of(tools=[TOOL, {"type": "mcp_toolset"}])
    assert [tool.kind for tool in refused_tools(chosen)] == ["web_search_20250305"]
    assert [tool.kind for tool in refused_tools(nameless)] == ["mcp_toolset"]
    with pytest.raises(InvalidRequest):
        refused_tools(request_of(tools=[{"type": {"a": 1}, "name": "b"}]))


@pytest.mark.parametrize(
    ("thinking", "is_shown", "optional"),
    [
        (None, False, {"reasoning", "reasoning_budget"}),
        ({"type": "adaptive"}, True, {"reasoning", "reasoning_budget"}),
        ({"type": "adaptive", "display": "omitted"}, False, {"reasoning", "reasoning_budget"}),
        ({"type": "enabled", "budget_tokens": 5}, True, {"reasoning_budget"}),
        ({"type": "disabled"}, False, {"reasoning", "reasoning_budget"}),
    ],
)
def test_only_thinking_that_is_enabled_by_name_needs_a_model_that_thinks(
    thinking: dict[str, Any] | None, *, is_shown: bool, optional: set[str]
) -> None:
    request = request_of(thinking=thinking)

    assert shows_thinking(request) is is_shown
    assert optional_features(request) == optional


@pytest.mark.parametrize(
    "content", [[], [{"type": "document", "source": {"type": "content", "content": []}}]]
)
def test_a_message_without_content_is_an_empty_message(content: list[Any]) -> None:
    assert messages(*content) == [{"role": "user", "content": ""}]


def test_a_format_is_called_as_it_was_sent() -> None:
    form = {"type": "json_schema", "schema": SCHEMA}

    assert translated(output_format=form)[1]("response_format") == "output_format"
    assert (
        translated(output_config={"format": form})[1]("response_format") == "output_config.format"
    )
