"""The request fields of responses (OQ-49), line by line, and the rules between them."""

from typing import Any

import msgspec
import pytest

from tests.contract.tables import (
    ACCEPTED,
    BOOLEAN,
    OBJECT,
    Table,
    array,
    cases,
    check_case,
    decoded,
    integer,
    number,
    one_of,
    outcome_of,
    row,
    string,
)
from tollhouse.base.errors import GatewayError, InvalidRequest
from tollhouse.contract import responses

OUTPUT_BOUND = integer(1, 999_990)
MINIMAL: dict[str, Any] = {"model": "example/model-a", "input": "Hello"}
ITEM = {"role": "user", "content": "Hello"}
SUMMARY = one_of("auto", "concise", "detailed")
EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultracode")
FUNCTION: dict[str, Any] = {"type": "function", "name": "f", "parameters": {}}
WEB_SEARCH: dict[str, Any] = {"type": "web_search"}
JSON_SCHEMA: dict[str, Any] = {"type": "json_schema", "name": "answer", "schema": {}}
INCLUDE = (
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
)

REQUEST = Table(
    type_=responses.ResponseRequest,
    body=MINIMAL,
    rows=[
        row("model", string(1, 200), required=True),
        row("input", string(1), array(ITEM, 1), required=True),
        row("instructions", string(), null=True),
        row("max_output_tokens", OUTPUT_BOUND, null=True),
        row("max_tokens", OUTPUT_BOUND, null=True),
        row("max_completion_tokens", OUTPUT_BOUND, null=True),
        row("temperature", number(), null=True),
        row("top_p", number(), null=True),
        row("presence_penalty", number(-2, 2), null=True),
        row("frequency_penalty", number(-2, 2), null=True),
        row("top_logprobs", integer(), null=True),
        row("tools", array({"type": "web_search"}), null=True),
        row("tool_choice", one_of("none", "auto", "required"), OBJECT, null=True),
        row("parallel_tool_calls", BOOLEAN, null=True),
        row("max_tool_calls", integer(1), null=True),
        row("include", array(INCLUDE[0]), null=True),
        row("truncation", one_of("auto", "disabled"), null=True),
        row("service_tier", one_of("auto", "default", "flex", "scale", "priority"), null=True),
        row("prompt_cache_key", string(high=512), null=True),
        row("prompt_cache_retention", one_of("in_memory", "24h"), null=True),
        row("safety_identifier", string(high=64), null=True),
        row("user", string(high=512), null=True),
        row("policy_ids", array("pol_1", high=1000)),
        row("stream", BOOLEAN, null=True),
        row("store", BOOLEAN, null=True),
    ],
)
REASONING = Table(
    type_=responses.ResponseRequest,
    body=MINIMAL | {"reasoning": {}},
    at=("reasoning",),
    rows=[
        row("effort", EFFORT, null=True),
        row("summary", SUMMARY, null=True),
        row("generate_summary", SUMMARY, null=True),
    ],
)
TEXT = Table(
    type_=responses.ResponseRequest,
    body=MINIMAL | {"text": {}},
    at=("text",),
    rows=[row("verbosity", one_of("low", "medium", "high"), null=True)],
)
TEXT_FORMAT = Table(
    type_=responses.ResponseRequest,
    body=MINIMAL | {"text": {"format": JSON_SCHEMA}},
    at=("text", "format"),
    rows=[
        row("name", string(1, 128), required=True),
        row("schema", OBJECT, required=True),
        row("description", string(high=2048), null=True),
        row("strict", BOOLEAN, null=True),
    ],
)
STREAM_OPTIONS = Table(
    type_=responses.ResponseRequest,
    body=MINIMAL | {"stream_options": {}},
    at=("stream_options",),
    rows=[row("include_obfuscation", BOOLEAN)],
)


def outcome(fields: dict[str, Any]) -> tuple[str, str | None]:
    request = decoded(responses.ResponseRequest, MINIMAL | fields)
    try:
        for tool in responses.check(request).values():
            raise tool.refusal
    except InvalidRequest as refusal:
        return refusal.code, refusal.param
    except GatewayError as refusal:
        return f"{refusal.kind} {refusal.code}", refusal.param
    return ACCEPTED


def not_served(param: str) -> tuple[str, str]:
    return "501 unsupported_parameter", param


@pytest.mark.guarantee("T15")
@pytest.mark.parametrize(
    ("type_", "body", "outcome"), cases(REQUEST, REASONING, TEXT, TEXT_FORMAT, STREAM_OPTIONS)
)
def test_each_field_of_responses_keeps_its_line_of_the_table(
    type_: type[msgspec.Struct], body: dict[str, Any], outcome: tuple[str, str | None]
) -> None:
    check_case(type_, body, outcome)


@pytest.mark.parametrize("value", INCLUDE)
def test_all_six_given_include_values_are_accepted(value: str) -> None:
    assert outcome({"include": [value]}) == ACCEPTED


def test_other_include_values_are_refused() -> None:
    body = MINIMAL | {"include": [INCLUDE[0], "web_search_call.results"]}

    assert outcome_of(responses.ResponseRequest, body) == ("invalid_value", "include[1]")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({f"k{i}": "v" for i in range(16)}, ACCEPTED),
        ({"é" * 64: "é" * 512}, ACCEPTED),
        (None, ACCEPTED),
        ({f"k{i}": "v" for i in range(17)}, ("invalid_value", "metadata")),
        ({"é" * 65: "v"}, ("string_above_max_length", "metadata")),
        ({"k": "é" * 513}, ("string_above_max_length", "metadata")),
        ({"k": 1}, ("invalid_type", "metadata")),
    ],
)
def test_metadata_has_16_pairs_of_short_texts(
    metadata: object, expected: tuple[str, str | None]
) -> None:
    body = MINIMAL | {"metadata": metadata}

    assert outcome_of(responses.ResponseRequest, body) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ACCEPTED),
        ({"store": False}, ACCEPTED),
        ({"store": None}, ACCEPTED),
        ({"store": True}, ("unsupported_value", "store")),
        ({"max_output_tokens": 5, "max_tokens": None}, ACCEPTED),
        (
            {"max_output_tokens": 5, "max_tokens": 5},
            ("invalid_parameter_combination", "max_tokens"),
        ),
        (
            {"max_tokens": 5, "max_completion_tokens": 5},
            ("invalid_parameter_combination", "max_completion_tokens"),
        ),
        ({"background": False, "previous_response_id": None}, ACCEPTED),
        ({"background": True}, ("unsupported_parameter", "background")),
        ({"previous_response_id": "resp_1"}, ("unsupported_parameter", "previous_response_id")),
        ({"previous_response_id": 0}, ("unsupported_parameter", "previous_response_id")),
        ({"conversation": {"id": "c"}}, ("unsupported_parameter", "conversation")),
        ({"prompt": {"id": "p"}}, ("unsupported_parameter", "prompt")),
        ({"context_management": None, "image": None}, ACCEPTED),
        ({"context_management": {"a": 1}}, not_served("context_management")),
        ({"moderation": True}, not_served("moderation")),
        ({"prompt_cache_options": {"a": 1}}, not_served("prompt_cache_options")),
        ({"access_programs": ["a"]}, not_served("access_programs")),
        ({"image": "x"}, not_served("image")),
        ({"max_tool_calls": 1}, not_served("max_tool_calls")),
        ({"truncation": "disabled"}, ACCEPTED),
        ({"truncation": "auto"}, ACCEPTED),
    ],
)
def test_what_is_stateful_or_contradictory_is_refused(
    fields: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(fields) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (ITEM, ACCEPTED),
        ({"type": "message", "role": "developer", "content": []}, ACCEPTED),
        ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, ACCEPTED),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}, ACCEPTED),
        ({"role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, ACCEPTED),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "x"}]}, ACCEPTED),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, ACCEPTED),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, ACCEPTED),
        ({"type": "reasoning", "summary": []}, ACCEPTED),
        (
            {
                "type": "reasoning",
                "summary": None,
                "content": [{"type": "reasoning_text", "text": "Hm."}],
                "encrypted_content": "x",
            },
            ACCEPTED,
        ),
        (
            {"type": "reasoning", "summary": [{"type": "summary_text"}]},
            ("missing_required_parameter", "input[0].summary[0].text"),
        ),
        ({"type": "reasoning", "content": "x"}, ("invalid_type", "input[0].content")),
        ({"type": "reasoning", "content": ["x"]}, ("invalid_type", "input[0].content[0]")),
        ({}, ("missing_required_parameter", "input[0].role")),
        ({"role": "tool", "content": "x"}, ("invalid_value", "input[0].role")),
        ({"role": 1, "content": "x"}, ("invalid_type", "input[0].role")),
        ({"role": "user"}, ("missing_required_parameter", "input[0].content")),
        ({"role": "user", "content": None}, ("invalid_type", "input[0].content")),
        ({"role": "user", "content": ["x"]}, ("invalid_type", "input[0].content[0]")),
        ({"type": None}, ("invalid_type", "input[0].type")),
        (
            {"role": "user", "content": [{"text": "x"}]},
            ("missing_required_parameter", "input[0].content[0].type"),
        ),
        (
            {"type": "function_call", "call_id": "c", "name": "f"},
            ("missing_required_parameter", "input[0].arguments"),
        ),
        (
            {"type": "function_call_output", "call_id": "c"},
            ("missing_required_parameter", "input[0].output"),
        ),
        ({"type": "item_reference", "id": "i"}, ("unsupported_parameter", "input[0].type")),
        (
            {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]},
            ("unsupported_parameter", "input[0].content[0].file_id"),
        ),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_image", "file_id": "file_1"}],
            },
            ("unsupported_parameter", "input[0].output[0].file_id"),
        ),
        (
            {"role": "user", "content": [{"type": "input_text"}]},
            ("missing_required_parameter", "input[0].content[0].text"),
        ),
        (
            {"role": "user", "content": [{"type": "input_text", "text": None}]},
            ("invalid_type", "input[0].content[0].text"),
        ),
        (
            {"role": "user", "content": [{"type": "input_image", "image_url": {"url": "x"}}]},
            ("invalid_type", "input[0].content[0].image_url"),
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_data": "data:,x"}]},
            ACCEPTED,
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "filename": "a.pdf"}]},
            ("missing_required_parameter", "input[0].content[0].file_data"),
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_url": "https://x"}]},
            not_served("input[0].content[0].file_url"),
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "text": "x"}]},
            ("missing_required_parameter", "input[0].content[0].refusal"),
        ),
        ({"type": "computer_call"}, not_served("input[0].type")),
        (
            {"role": "user", "content": [{"type": "input_audio"}]},
            not_served("input[0].content[0].type"),
        ),
    ],
)
def test_input_items_are_looked_at_one_by_one(
    item: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome({"input": [item]}) == expected


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "function", "name": "f", "parameters": {}, "strict": True}, ACCEPTED),
        ({"type": "web_search"}, ACCEPTED),
        ({"type": "web_search_2025_08_26"}, ACCEPTED),
        ({"type": "web_search_preview"}, ACCEPTED),
        ({"type": "web_search_preview_2025_03_11"}, ACCEPTED),
        ({}, ("missing_required_parameter", "tools[0].type")),
        ({"type": "function"}, ("missing_required_parameter", "tools[0].name")),
        (
            {"type": "function", "function": {"name": "f"}},
            ("missing_required_parameter", "tools[0].name"),
        ),
        ({"type": "function", "name": 1}, ("invalid_type", "tools[0].name")),
        ({"type": "file_search"}, not_served("tools[0].type")),
        (
            {
                "type": "web_search",
                "search_context_size": "low",
                "user_location": {"type": "approximate", "city": "Rome"},
                "filters": None,
            },
            ACCEPTED,
        ),
        ({"type": "web_search", "user_location": None}, ACCEPTED),
        (
            {"type": "web_search", "user_location": "Rome"},
            ("invalid_type", "tools[0].user_location"),
        ),
        (
            {"type": "web_search", "filters": {"allowed_domains": ["example.org"]}},
            not_served("tools[0].filters"),
        ),
    ],
)
def test_tools_are_flat_functions_or_web_searches(
    tool: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome({"tools": [tool]}) == expected


def test_the_web_is_searched_by_one_tool() -> None:
    tools = [{"type": "web_search"}, FUNCTION, {"type": "web_search_preview"}]

    assert outcome({"tools": tools}) == ("invalid_parameter_combination", "tools")


@pytest.mark.parametrize(
    ("choice", "tools", "expected"),
    [
        ("auto", [], ACCEPTED),
        ("none", [], ACCEPTED),
        ("required", [FUNCTION], ACCEPTED),
        ("required", [WEB_SEARCH], ACCEPTED),
        ("required", [FUNCTION, WEB_SEARCH], not_served("tool_choice")),
        ("required", [], ("invalid_parameter_combination", "tool_choice")),
        ({"type": "function", "name": "f"}, [FUNCTION, WEB_SEARCH], ACCEPTED),
        (
            {"type": "function", "name": "g"},
            [FUNCTION],
            ("invalid_parameter_combination", "tool_choice"),
        ),
        ({"type": "web_search_preview"}, [FUNCTION, WEB_SEARCH], ACCEPTED),
        (
            {"type": "web_search_preview"},
            [FUNCTION],
            ("invalid_parameter_combination", "tool_choice"),
        ),
        ({}, [], ("missing_required_parameter", "tool_choice.type")),
        ({"type": "function"}, [FUNCTION], ("missing_required_parameter", "tool_choice.name")),
        ({"type": "mcp"}, [FUNCTION], not_served("tool_choice.type")),
    ],
)
def test_a_choice_is_among_the_tools(
    choice: object, tools: list[dict[str, Any]], expected: tuple[str, str | None]
) -> None:
    assert outcome({"tool_choice": choice, "tools": tools}) == expected


@pytest.mark.parametrize(
    ("mode", "allowed", "expected"),
    [
        ("auto", [], ACCEPTED),
        ("auto", [{"type": "function", "name": "f"}, {"type": "web_search"}], ACCEPTED),
        ("required", [{"type": "function", "name": "f"}], ACCEPTED),
        ("required", [], ("invalid_parameter_combination", "tool_choice.mode")),
        (
            "required",
            [{"type": "function", "name": "f"}, {"type": "web_search"}],
            not_served("tool_choice.mode"),
        ),
        ("none", [], ("invalid_value", "tool_choice.mode")),
        (
            "auto",
            [{"type": "function", "name": "g"}],
            ("invalid_parameter_combination", "tool_choice.tools[0]"),
        ),
        ("auto", [{"type": "mcp"}], not_served("tool_choice.tools[0].type")),
        ("auto", "f", ("invalid_type", "tool_choice.tools")),
        ("auto", ["f"], ("invalid_type", "tool_choice.tools[0]")),
        (None, [], ("invalid_type", "tool_choice.mode")),
    ],
)
def test_allowed_tools_are_some_of_the_tools(
    mode: object, allowed: object, expected: tuple[str, str | None]
) -> None:
    choice = {"type": "allowed_tools", "mode": mode, "tools": allowed}

    assert outcome({"tool_choice": choice, "tools": [FUNCTION, WEB_SEARCH]}) == expected


@pytest.mark.parametrize(
    ("reasoning", "expected"),
    [
        ({"summary": "auto", "generate_summary": "auto"}, ACCEPTED),
        ({"summary": None, "generate_summary": "concise"}, ACCEPTED),
        (
            {"summary": "auto", "generate_summary": "concise"},
            ("invalid_parameter_combination", "reasoning.generate_summary"),
        ),
    ],
)
def test_both_names_of_the_summary_say_the_same(
    reasoning: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome({"reasoning": reasoning}) == expected
