"""A response request as a chat: what every field of it becomes, and what it is called again."""

from typing import Any

import msgspec
import pytest

from tollhouse.contract.chat import ChatRequest, check
from tollhouse.contract.responses import ResponseRequest
from tollhouse.contract.responses import check as check_response
from tollhouse.inference.endpoint import NameOf
from tollhouse.inference.responses.translation import translate

FUNCTION: dict[str, Any] = {
    "type": "function",
    "name": "f",
    "description": "d",
    "parameters": {"type": "object"},
    "strict": True,
}
NESTED: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object"},
        "strict": True,
    },
}
OTHER: dict[str, Any] = {"type": "function", "name": "g", "parameters": None}
OTHER_NESTED: dict[str, Any] = {"type": "function", "function": {"name": "g"}}
SEARCH: dict[str, Any] = {"type": "web_search_preview", "search_context_size": "low"}
SEARCH_OPTIONS: dict[str, Any] = {"search_context_size": "low"}


def translated(**fields: object) -> tuple[ChatRequest, NameOf]:
    body = {"model": "m", "input": "Hi", **fields}
    request = msgspec.convert(body, ResponseRequest)
    check_response(request)
    found, name_of, _ = translate(request)
    # What Tollhouse makes itself must pass what it demands of others.
    check(found)
    return found, name_of


def chat(**fields: object) -> dict[str, Any]:
    """All that is in the chat, as it would be written."""
    return msgspec.to_builtins(translated(**fields)[0])


def messages(*items: object, **fields: object) -> list[dict[str, Any]]:
    return chat(input=list(items), **fields)["messages"]


def test_a_plain_request_is_a_plain_chat() -> None:
    assert chat() == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": False,
        "store": False,
    }


@pytest.mark.parametrize(
    ("sent", "becomes"),
    [
        ({"stream": True}, {"stream": True}),
        ({"stream": None}, {}),
        ({"max_output_tokens": 7}, {"max_completion_tokens": 7}),
        ({"max_tokens": 7}, {"max_completion_tokens": 7}),
        ({"max_completion_tokens": 7}, {"max_completion_tokens": 7}),
        ({"temperature": 0.0}, {"temperature": 0.0}),
        ({"top_p": 0.5}, {"top_p": 0.5}),
        ({"presence_penalty": -1.0}, {"presence_penalty": -1.0}),
        ({"frequency_penalty": 1.0}, {"frequency_penalty": 1.0}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"top_logprobs": 0}, {}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"include": ["reasoning.encrypted_content", "file_search_call.results"]}, {}),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            {"response_format": {"type": "json_object"}, "verbosity": "low"},
        ),
        (
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "schema": {"type": "object"},
                        "strict": True,
                    }
                }
            },
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
                }
            },
        ),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"reasoning": {"generate_summary": "concise"}}, {}),
        ({"service_tier": "flex"}, {"service_tier": "flex"}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"prompt_cache_key": "k"}, {"prompt_cache_key": "k"}),
        ({"prompt_cache_retention": "24h"}, {"prompt_cache_retention": "24h"}),
        ({"safety_identifier": "s"}, {"safety_identifier": "s"}),
        ({"user": "u"}, {"user": "u"}),
        ({"policy_ids": ["pol_1"]}, {"policy_ids": ["pol_1"]}),
        ({"metadata": {"k": "v"}}, {}),
        ({"truncation": "disabled", "stream_options": {"include_obfuscation": True}}, {}),
        ({"store": False, "background": False, "previous_response_id": None}, {}),
        ({"parallel_tool_calls": False}, {}),
        (
            {"parallel_tool_calls": False, "tools": [FUNCTION]},
            {"parallel_tool_calls": False, "tools": [NESTED]},
        ),
    ],
)
def test_each_field_has_its_place_in_a_chat(sent: dict[str, Any], becomes: dict[str, Any]) -> None:
    assert chat(**sent) == chat() | becomes


@pytest.mark.parametrize("name", sorted(ResponseRequest.__struct_fields__))
def test_null_says_nothing(name: str) -> None:
    try:
        request = msgspec.convert({"model": "m", "input": "Hi", name: None}, ResponseRequest)
    except msgspec.ValidationError:
        return

    assert {
        field: value
        for field, value in msgspec.to_builtins(translate(request)[0]).items()
        if value is not None
    } == chat()


# Tools


@pytest.mark.parametrize(
    ("choice", "tools", "becomes"),
    [
        (None, [FUNCTION, OTHER], {"tools": [NESTED, OTHER_NESTED]}),
        ("auto", [FUNCTION], {"tools": [NESTED]}),
        ("auto", [], {}),
        ("none", [], {}),
        ("none", [FUNCTION, SEARCH], {"tools": [NESTED], "tool_choice": "none"}),
        ("required", [FUNCTION], {"tools": [NESTED], "tool_choice": "required"}),
        (None, [SEARCH], {"web_search_options": SEARCH_OPTIONS}),
        (
            "auto",
            [SEARCH, FUNCTION],
            {"tools": [NESTED], "web_search_options": SEARCH_OPTIONS},
        ),
        ("required", [SEARCH], {"web_search_options": SEARCH_OPTIONS}),
        (
            {"type": "function", "name": "f"},
            [FUNCTION, OTHER, SEARCH],
            {
                "tools": [NESTED, OTHER_NESTED],
                "tool_choice": {"type": "function", "function": {"name": "f"}},
            },
        ),
        (
            {"type": "web_search"},
            [FUNCTION, SEARCH],
            {"web_search_options": SEARCH_OPTIONS},
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "g"}],
            },
            [FUNCTION, OTHER, SEARCH],
            {"tools": [OTHER_NESTED], "tool_choice": "required"},
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
            },
            [FUNCTION, OTHER, SEARCH],
            {"tools": [NESTED], "web_search_options": SEARCH_OPTIONS},
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": []}, [FUNCTION, SEARCH], {}),
    ],
)
def test_tools_and_the_choice_among_them(
    choice: object, tools: list[dict[str, Any]], becomes: dict[str, Any]
) -> None:
    assert chat(tools=tools, tool_choice=choice) == chat() | becomes


def test_a_function_is_forwarded_with_its_known_members() -> None:
    tool = FUNCTION | {"server_url": "http://169.254.169.254", "strict": True}

    (found,) = chat(tools=[tool])["tools"]

    known = {name: value for name, value in FUNCTION.items() if name != "type"}
    assert found == {"type": "function", "function": {**known, "strict": True}}


def test_a_place_is_nested_in_a_chat() -> None:
    tool = {
        "type": "web_search",
        "user_location": {"type": "approximate", "city": "Rome", "country": "IT"},
    }

    assert chat(tools=[tool])["web_search_options"] == {
        "user_location": {"type": "approximate", "approximate": {"city": "Rome", "country": "IT"}}
    }


# Input


def test_instructions_and_what_else_instructs_at_the_beginning_is_one_system_message() -> None:
    found = messages(
        {"role": "developer", "content": "B"},
        {"role": "system", "content": [{"type": "input_text", "text": "C"}]},
        {"role": "user", "content": "Hi"},
        instructions="A",
    )

    assert found == [
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "A"},
                {"type": "text", "text": "B"},
                {"type": "text", "text": "C"},
            ],
        },
        {"role": "user", "content": "Hi"},
    ]


def test_instructions_alone_are_a_plain_text() -> None:
    assert chat(instructions="A")["messages"] == [
        {"role": "system", "content": "A"},
        {"role": "user", "content": "Hi"},
    ]


def test_what_instructs_later_stays_where_it_stands() -> None:
    found = messages(
        {"role": "user", "content": "Hi"},
        {"type": "message", "role": "developer", "content": "Be brief."},
        {"role": "user", "content": "Go on"},
    )

    assert [message["role"] for message in found] == ["user", "system", "user"]


def test_a_turn_of_the_assistant_is_one_message_in_whatever_order_its_items_stand() -> None:
    reasoning = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    said: dict[str, Any] = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "A", "annotations": [], "logprobs": []}],
    }
    calls = [
        {"type": "function_call", "id": "fc", "call_id": f"c{i}", "name": "f", "arguments": "{}"}
        for i in range(2)
    ]
    outputs = [{"type": "function_call_output", "call_id": f"c{i}", "output": "x"} for i in (1, 0)]
    answer = {
        "role": "assistant",
        "content": "A",
        "reasoning": "long",
        "reasoning_content": "long",
        "tool_calls": [
            {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            for i in range(2)
        ],
    }
    told = [
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c0", "content": "x"},
    ]

    assert messages(reasoning, said, *calls, *outputs) == [answer, *told]
    assert messages(*calls, said, reasoning, *outputs) == [answer, *told]


def test_calls_alone_have_no_content_and_reasoning_alone_an_empty_one() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}]}

    assert "content" not in messages(call)[0]
    assert messages(reasoning)[0]["content"] == ""
    assert messages(reasoning)[0]["reasoning"] == "short"


def test_what_is_encrypted_is_left_out() -> None:
    encrypted: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}

    found = messages(encrypted, {"role": "user", "content": "Hi"})

    assert found == [{"role": "user", "content": "Hi"}]


def test_several_texts_of_a_turn_are_its_parts() -> None:
    found = messages(
        {"role": "assistant", "content": "A"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    )

    assert found == [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "No."}],
        }
    ]


@pytest.mark.parametrize(
    ("part", "becomes"),
    [
        (
            {"type": "input_image", "image_url": "data:,x", "video_url": "http://127.0.0.1"},
            {"type": "image_url", "image_url": {"url": "data:,x"}},
        ),
        (
            {"type": "input_image", "image_url": "data:,x", "detail": "low", "file_id": None},
            {"type": "image_url", "image_url": {"url": "data:,x", "detail": "low"}},
        ),
        (
            {"type": "input_image", "image_url": "data:,x", "detail": None},
            {"type": "image_url", "image_url": {"url": "data:,x"}},
        ),
        (
            {"type": "input_file", "file_data": "data:,x", "filename": "a.pdf"},
            {"type": "file", "file": {"file_data": "data:,x", "filename": "a.pdf"}},
        ),
    ],
)
def test_each_kind_of_part(part: dict[str, Any], becomes: dict[str, Any]) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": [part]}

    assert messages({"role": "user", "content": [part]})[0]["content"] == [becomes]
    assert messages(output)[0]["content"] == [becomes]


def test_further_members_of_a_text_are_not_forwarded() -> None:
    part = {"type": "input_text", "text": "x", "uuid": "a", "audio_url": "http://127.0.0.1"}

    assert messages({"role": "user", "content": [part]})[0]["content"] == "x"


def test_a_single_plain_text_needs_no_parts() -> None:
    found = messages({"role": "user", "content": [{"type": "input_text", "text": "x"}]})

    assert found == [{"role": "user", "content": "x"}]


def test_an_output_that_was_parsed_can_be_sent_back() -> None:
    part: dict[str, Any] = {"type": "output_text", "text": "{}", "parsed": {"a": 1}}
    call: dict[str, Any] = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
        "parsed_arguments": {},
    }

    (found,) = messages({"role": "assistant", "content": [part]}, call)

    assert found["content"] == "{}"
    assert found["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}


def test_an_empty_content_stays_empty() -> None:
    assert messages({"role": "user", "content": []}) == [{"role": "user", "content": ""}]


# Names


@pytest.mark.parametrize(
    ("fields", "param", "name"),
    [
        ({}, "temperature", "temperature"),
        ({}, "response_format", "text.format"),
        ({}, "verbosity", "text.verbosity"),
        ({}, "reasoning_effort", "reasoning.effort"),
        (
            {"tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]},
            "web_search_options",
            "tools[1].type",
        ),
        ({"max_tokens": 5}, "max_completion_tokens", "max_tokens"),
        ({"max_output_tokens": 5}, "max_completion_tokens", "max_output_tokens"),
        ({"top_logprobs": 5}, "logprobs", "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "logprobs", "include"),
        ({}, "messages", "input"),
        ({}, "messages[0].content", "input"),
    ],
)
def test_faults_have_the_names_that_the_caller_used(
    fields: dict[str, Any], param: str, name: str
) -> None:
    _, name_of = translated(**fields)

    assert name_of(param) == name


def test_a_part_is_named_by_where_the_caller_put_it() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/x.png"}
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "B"},
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "x"}, image],
        },
        {"role": "user", "content": [image]},
    ]

    request, name_of = translated(instructions="A", input=items)

    assert [message.role for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert name_of("messages[0].content[1].type") == "input[0].content.type"
    assert name_of("messages[3].content[1].image_url") == "input[4].output[1].image_url"
    assert name_of("messages[4].content[0].type") == "input[5].content[0].type"
    assert name_of("messages[4].content[0].file.file_data") == "input[5].content[0].file_data"
