"""The chat tables of the specification, line by line."""

from typing import Any

import msgspec
import pytest

from tests.contract import tables
from tests.contract.tables import (
    ACCEPTED,
    CHAT_MESSAGE,
    CHAT_REQUEST,
    FORMAT,
    MESSAGE,
    SCHEMA,
    Cases,
    Table,
    cases,
    check_case,
    fields_of,
    outcome_of,
)
from tollhouse.contract.chat import ChatRequest

MINIMAL: dict[str, Any] = {"model": "example/model-a", "messages": [MESSAGE]}
NESTED_FIELDS = {"logit_bias", "stream_options", "reasoning", "response_format"}

REQUEST = Table(type_=ChatRequest, body=MINIMAL, rows=fields_of(CHAT_REQUEST, *NESTED_FIELDS))
MESSAGES = Table(type_=ChatRequest, body=MINIMAL, at=("messages", 0), rows=fields_of(CHAT_MESSAGE))
STREAM_OPTIONS = Table(
    type_=ChatRequest,
    body=MINIMAL | {"stream_options": {}},
    at=("stream_options",),
    rows=fields_of(tables.STREAM_OPTIONS),
)
REASONING = Table(
    type_=ChatRequest,
    body=MINIMAL | {"reasoning": {}},
    at=("reasoning",),
    rows=fields_of(tables.REASONING),
)
JSON_SCHEMA = Table(
    type_=ChatRequest,
    body=MINIMAL | {"response_format": FORMAT},
    at=("response_format", "json_schema"),
    rows=fields_of(tables.JSON_SCHEMA),
)


@pytest.mark.guarantee("T15")
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
