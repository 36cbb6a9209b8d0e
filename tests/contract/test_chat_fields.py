"""The chat tables of the specification, line by line."""

from typing import Any

import msgspec
import pytest

from tests.contract.tables import (
    ACCEPTED,
    BOOLEAN,
    OBJECT,
    Cases,
    Table,
    array,
    cases,
    check_case,
    integer,
    number,
    one_of,
    outcome_of,
    row,
    string,
)
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.openapi import document

OUTPUT_BOUND = integer(1, 999_990)
EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultracode")
MESSAGE = {"role": "user", "content": "Hello"}
MINIMAL: dict[str, Any] = {"model": "example/model-a", "messages": [MESSAGE]}
SCHEMA = {"name": "answer", "schema": {"type": "object"}}
FORMAT = {"type": "json_schema", "json_schema": SCHEMA}

REQUEST = Table(
    type_=ChatRequest,
    body=MINIMAL,
    rows=[
        row("model", string(1, 200), required=True),
        row("messages", array(MESSAGE, 1), required=True),
        row("policy_ids", array("pol_1", high=1000)),
        row("stream", BOOLEAN),
        row("max_tokens", OUTPUT_BOUND, null=True),
        row("max_completion_tokens", OUTPUT_BOUND, null=True),
        row("temperature", number(), null=True),
        row("top_p", number(), null=True),
        row("frequency_penalty", number(-2, 2), null=True),
        row("presence_penalty", number(-2, 2), null=True),
        row("n", integer(1, 128), null=True),
        row("seed", integer(), null=True),
        row("stop", string(), array("END"), null=True),
        row("thinking", BOOLEAN, null=True),
        row("reasoning_effort", EFFORT, null=True),
        row("include_reasoning", BOOLEAN, null=True),
        row("safety_identifier", string(high=64), null=True),
        row("user", string(high=512), null=True),
        row("structuredOutputs", BOOLEAN),
        row("tools", array({"type": "function"}), null=True),
        row("tool_choice", one_of("none", "auto", "required"), OBJECT, null=True),
        row("parallel_tool_calls", BOOLEAN, null=True),
        row("functions", array({"name": "f"}), null=True),
        row("function_call", one_of("none", "auto"), OBJECT, null=True),
        row("modalities", array("text"), null=True),
        row("verbosity", one_of("low", "medium", "high"), null=True),
        row("audio", OBJECT, null=True),
        row("prediction", OBJECT, null=True),
        row("metadata", OBJECT, null=True),
        row("store", BOOLEAN),
        row("service_tier", string(), null=True),
        row("prompt_cache_key", string(high=512), null=True),
        row("prompt_cache_retention", one_of("in_memory", "24h"), null=True),
        row("logprobs", BOOLEAN, null=True),
        row("top_logprobs", integer(), null=True),
        row("prompt_logprobs", integer(), null=True),
        row("web_search_options", OBJECT, null=True),
        row("cache_salt", string(), null=True),
    ],
)
NESTED_FIELDS = {"logit_bias", "stream_options", "reasoning", "response_format"}
MESSAGES = Table(
    type_=ChatRequest,
    body=MINIMAL,
    at=("messages", 0),
    rows=[
        row(
            "role",
            one_of("system", "developer", "user", "assistant", "tool", "function"),
            required=True,
        ),
        row("content", string(), array({"type": "text", "text": "Hi", "extra": 1}), null=True),
        row("reasoning", string(), null=True),
        row("reasoning_content", string(), null=True),
        row("name", string(), null=True),
        row("tool_call_id", string(), null=True),
        row("tool_calls", array({"id": "call_1"}), null=True),
        row("function_call", OBJECT, null=True),
        row("model_id", string(1, 256)),
    ],
)
STREAM_OPTIONS = Table(
    type_=ChatRequest,
    body=MINIMAL | {"stream_options": {}},
    at=("stream_options",),
    rows=[row("include_usage", BOOLEAN, null=True)],
)
REASONING = Table(
    type_=ChatRequest,
    body=MINIMAL | {"reasoning": {}},
    at=("reasoning",),
    rows=[
        row("enabled", BOOLEAN, null=True),
        row("effort", EFFORT, null=True),
        row("max_tokens", OUTPUT_BOUND, null=True),
        row("exclude", BOOLEAN, null=True),
    ],
)
JSON_SCHEMA = Table(
    type_=ChatRequest,
    body=MINIMAL | {"response_format": FORMAT},
    at=("response_format", "json_schema"),
    rows=[
        row("name", string(1, 128), required=True),
        row("description", string(high=2048), null=True),
        row("schema", OBJECT, required=True),
        row("strict", BOOLEAN, null=True),
    ],
)


@pytest.mark.parametrize(
    ("type_", "body", "outcome"),
    cases(REQUEST, MESSAGES, STREAM_OPTIONS, REASONING, JSON_SCHEMA),
)
def test_each_field_of_chat_keeps_its_line_of_the_table(
    type_: type[msgspec.Struct], body: dict[str, Any], outcome: tuple[str, str | None]
) -> None:
    check_case(type_, body, outcome)


RESPONSE_FORMATS: Cases = [
    ({"type": "text"}, ACCEPTED),
    ({"type": "json_object"}, ACCEPTED),
    (FORMAT, ACCEPTED),
    (None, ACCEPTED),
    ({}, ("missing_required_parameter", "response_format.type")),
    ({"type": "xml"}, ("invalid_value", "response_format.type")),
    ({"type": 1}, ("invalid_type", "response_format.type")),
    ({"type": "text", "extra": 1}, ("unknown_parameter", "response_format.extra")),
    ({"type": "json_object", "extra": 1}, ("unknown_parameter", "response_format.extra")),
    (
        {"type": "text", "json_schema": SCHEMA},
        ("unknown_parameter", "response_format.json_schema"),
    ),
    ({"type": "json_schema"}, ("missing_required_parameter", "response_format.json_schema")),
    (FORMAT | {"extra": 1}, ("unknown_parameter", "response_format.extra")),
    ("text", ("invalid_type", "response_format")),
]


@pytest.mark.parametrize(("value", "outcome"), RESPONSE_FORMATS)
def test_a_response_format_is_told_by_its_type(
    value: object, outcome: tuple[str, str | None]
) -> None:
    assert outcome_of(ChatRequest, MINIMAL | {"response_format": value}) == outcome


LOGIT_BIASES: Cases = [
    ({"50256": -100, "1": 100.0, "2": 0.5}, ACCEPTED),
    ({}, ACCEPTED),
    (None, ACCEPTED),
    ({"50256": -100.5}, ("decimal_below_min_value", "logit_bias")),
    ({"50256": 100.5}, ("decimal_above_max_value", "logit_bias")),
    ({"50256": None}, ("invalid_type", "logit_bias")),
    ({"50256": True}, ("invalid_type", "logit_bias")),
    ([], ("invalid_type", "logit_bias")),
]


@pytest.mark.parametrize(("value", "outcome"), LOGIT_BIASES)
def test_a_logit_bias_maps_tokens_to_bounded_numbers(
    value: object, outcome: tuple[str, str | None]
) -> None:
    assert outcome_of(ChatRequest, MINIMAL | {"logit_bias": value}) == outcome


POLICY_IDS: Cases = [
    (["é" * 120], ACCEPTED),
    (["ok", "é" * 121], ("string_above_max_length", "policy_ids[1]")),
    ([""], ("string_below_min_length", "policy_ids[0]")),
    ([1], ("invalid_type", "policy_ids[0]")),
    ([None], ("invalid_type", "policy_ids[0]")),
]


@pytest.mark.parametrize(("policy_ids", "outcome"), POLICY_IDS)
def test_each_policy_id_has_1_to_120_characters(
    policy_ids: list[Any], outcome: tuple[str, str | None]
) -> None:
    assert outcome_of(ChatRequest, MINIMAL | {"policy_ids": policy_ids}) == outcome


@pytest.mark.parametrize("field", ["tools", "functions", "stop", "modalities"])
def test_items_of_a_list_have_one_type(field: str) -> None:
    assert outcome_of(ChatRequest, MINIMAL | {field: [1]}) == ("invalid_type", f"{field}[0]")


def test_the_tables_name_every_field_and_no_other() -> None:
    schemas = document()["components"]["schemas"]

    names = {line.name for line in REQUEST.rows} | NESTED_FIELDS
    assert set(schemas["ChatRequest"]["properties"]) == names
    assert set(schemas["ChatMessage"]["properties"]) == {line.name for line in MESSAGES.rows}
    assert set(schemas["Reasoning"]["properties"]) == {line.name for line in REASONING.rows}


def test_all_of_the_chat_tables_is_marked_as_given() -> None:
    schemas = document()["components"]["schemas"]

    for name in ("ChatRequest", "ChatMessage", "StreamOptions", "Reasoning", "JsonSchema"):
        origins = {prop["x-tollhouse-origin"] for prop in schemas[name]["properties"].values()}
        assert origins == {"given"}, name
