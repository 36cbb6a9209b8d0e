"""Refusals name the field, the rule and the bound, and never what the caller sent."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract import decoding
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.policies import CreatePolicy

MINIMAL: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
SECRET = "thp_secret"


def refusal(tree: object, type_: type[Struct] = ChatRequest) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        decoding.decode(tree, type_)
    return refused.value


@pytest.mark.parametrize(
    ("fields", "code", "param", "message"),
    [
        (
            {"messages": []},
            "array_below_min_length",
            "messages",
            "Invalid 'messages': expected at least 1 item.",
        ),
        (
            {"model": ""},
            "string_below_min_length",
            "model",
            "Invalid 'model': expected at least 1 character.",
        ),
        (
            {"user": SECRET * 100},
            "string_above_max_length",
            "user",
            "Invalid 'user': expected at most 512 characters.",
        ),
        (
            {"max_tokens": 1_000_000},
            "integer_above_max_value",
            "max_tokens",
            "Invalid 'max_tokens': expected at most 999990.",
        ),
        (
            {"top_p": 10**400},
            "invalid_value",
            "top_p",
            "Invalid 'top_p': the value is out of range.",
        ),
        (
            {"frequency_penalty": -2.5},
            "decimal_below_min_value",
            "frequency_penalty",
            "Invalid 'frequency_penalty': expected at least -2.",
        ),
        (
            {"stop": 5},
            "invalid_type",
            "stop",
            "Invalid type for 'stop': expected a string or an array or null, got an integer.",
        ),
        (
            {"stream": None},
            "invalid_type",
            "stream",
            "Invalid type for 'stream': expected a boolean, got null.",
        ),
        (
            {"verbosity": SECRET},
            "invalid_value",
            "verbosity",
            "Invalid 'verbosity': expected one of 'high', 'low', 'medium'.",
        ),
        (
            {"response_format": {"type": SECRET}},
            "invalid_value",
            "response_format.type",
            "Invalid 'response_format.type': expected one of 'text', 'json_object', 'json_schema'.",
        ),
        (
            {"messages": [{"content": "Hi"}]},
            "missing_required_parameter",
            "messages[0].role",
            "Missing required parameter: 'messages[0].role'.",
        ),
        (
            {"stream_options": {"include_obfuscation": True}},
            "unknown_parameter",
            "stream_options.include_obfuscation",
            "Unknown parameter: 'stream_options.include_obfuscation'. Leave it out.",
        ),
        (
            {"messages": [{"role": "user"}, {"role": "user", "weight": 1}]},
            "unknown_parameter",
            "messages[1].weight",
            (
                "Unknown parameter: 'messages[1].weight'. Messages of a request have no such "
                "member. If it came with an answer, drop this member before you send the answer "
                "back."
            ),
        ),
        (
            {"logit_bias": {"1": 1, "50256": 101}},
            "decimal_above_max_value",
            "logit_bias",
            "Invalid 'logit_bias': expected at most 100. The entry that does not fit is '50256'.",
        ),
    ],
)
def test_a_refusal_says_which_field_and_which_bound(
    fields: dict[str, Any], code: str, param: str, message: str
) -> None:
    refused = refusal(MINIMAL | fields)

    assert (refused.code, refused.param, refused.message) == (code, param, message)
    assert SECRET not in refused.message


def test_a_rule_that_is_no_question_is_told_so() -> None:
    refused = refusal({"name": "n", "rule": SECRET}, CreatePolicy)

    assert refused.message == "Invalid 'rule': expected a question that ends with '?'."


@pytest.mark.parametrize("tree", [None, 1, "x", [], [MINIMAL], True, 1.5])
def test_a_body_that_is_no_object_is_not_json_that_we_read(tree: object) -> None:
    refused = refusal(tree)

    assert (refused.code, refused.param) == ("invalid_json", None)


@pytest.mark.parametrize(
    "name", ["", "a.b", "a`b", "x` - at `$.y", "a\nb", "é", "'", "model ", "MODEL", "__class__"]
)
def test_an_unknown_name_of_any_form_is_an_unknown_parameter(name: str) -> None:
    assert refusal(MINIMAL | {name: 1}).code == "unknown_parameter"


def test_a_long_unknown_name_is_cut() -> None:
    refused = refusal(MINIMAL | {"a" * 1_000_000: 1})

    assert refused.code == "unknown_parameter"
    assert refused.param == "a" * 200


def test_a_value_that_looks_like_a_path_does_not_become_the_param() -> None:
    refused = refusal(MINIMAL | {"verbosity": "x` - at `$.secret`"})

    assert (refused.code, refused.param) == ("invalid_value", "verbosity")


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    size: Annotated[int, Meta(ge=1)]
    colour: Literal["red", "green"] | UnsetType = UNSET


class Outer(Struct, frozen=True, forbid_unknown_fields=True):
    inner: dict[str, list[Inner]]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"size": 0}, "integer_below_min_value"),
        ({"size": "1"}, "invalid_type"),
        ({"size": 1, "colour": "blue"}, "invalid_value"),
        (5, "invalid_type"),
    ],
)
def test_below_a_map_the_param_is_the_map(value: object, code: str) -> None:
    refused = refusal({"inner": {"key": [value]}}, Outer)

    assert (refused.code, refused.param) == (code, "inner")
