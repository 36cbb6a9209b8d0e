"""Options are forwarded only to models that declare them; others are 501 with the option's name."""

from typing import Any

import msgspec
import pytest

from tollhouse.base.errors import InvalidRequest
from tollhouse.catalog.types import Backend, Model
from tollhouse.contract.chat import ChatRequest, check
from tollhouse.contract.errors import UnsupportedOption
from tollhouse.inference.content_parts import with_forwarded_parts
from tollhouse.inference.options import check_options, check_output_bound

TOOL = {"type": "function", "function": {"name": "f"}}
SCHEMA: dict[str, Any] = {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}
DATA_URL = "data:image/png;base64,AAAA"

# field, value, what must be declared, other fields that the value needs
OPTIONS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("temperature", 0.5, {"sampling_parameters": ["temperature"]}, {}),
    ("top_p", 0.5, {"sampling_parameters": ["top_p"]}, {}),
    ("frequency_penalty", 1, {"sampling_parameters": ["frequency_penalty"]}, {}),
    ("presence_penalty", 1, {"sampling_parameters": ["presence_penalty"]}, {}),
    ("logit_bias", {"5": 1}, {"sampling_parameters": ["logit_bias"]}, {}),
    ("n", 2, {"sampling_parameters": ["n"]}, {}),
    ("seed", 0, {"sampling_parameters": ["seed"]}, {}),
    ("stop", "x", {"sampling_parameters": ["stop"]}, {}),
    ("logprobs", True, {"sampling_parameters": ["logprobs"]}, {}),
    ("top_logprobs", 2, {"sampling_parameters": ["logprobs", "top_logprobs"]}, {"logprobs": True}),
    ("tools", [TOOL], {"features": ["tools"]}, {}),
    ("functions", [{"name": "f"}], {"features": ["functions"]}, {}),
    ("response_format", {"type": "json_object"}, {"features": ["json_mode"]}, {}),
    ("response_format", SCHEMA, {"features": ["structured_outputs"]}, {}),
    ("verbosity", "low", {"features": ["verbosity"]}, {}),
    ("prediction", {"type": "content", "content": "x"}, {"features": ["prediction"]}, {}),
    ("service_tier", "flex", {"features": ["service_tier"]}, {}),
    ("prompt_cache_retention", "24h", {"features": ["prompt_cache_retention"]}, {}),
    ("prompt_logprobs", 1, {"features": ["prompt_logprobs"]}, {}),
    ("web_search_options", {}, {"features": ["web_search"]}, {}),
    ("cache_salt", "s", {"features": ["cache_salt"]}, {}),
    ("thinking", True, {"features": ["reasoning"]}, {}),
    ("reasoning_effort", "low", {"features": ["reasoning"]}, {}),
    ("modalities", ["text", "audio"], {"output_modalities": ["text", "audio"]}, {}),
    ("audio", {"voice": "v"}, {"output_modalities": ["text", "audio"]}, {}),
]
HARMLESS: list[dict[str, Any]] = [
    {"n": 1},
    {"logprobs": False},
    {"tools": [], "parallel_tool_calls": True},
    {"parallel_tool_calls": True},
    {"parallel_tool_calls": False},
    {"logit_bias": {}},
    {"stop": []},
    {"frequency_penalty": 0, "presence_penalty": 0.0},
    {"top_logprobs": 0},
    {"service_tier": "auto"},
    {"service_tier": "default"},
    {"tool_choice": "auto", "function_call": "auto"},
    {"stream_options": {"include_usage": True}},
    {"functions": []},
    {"tool_choice": "none"},
    {"response_format": {"type": "text"}},
    {"modalities": ["text"]},
    {"thinking": False},
    {"reasoning_effort": "none"},
    {"reasoning": {"enabled": False, "exclude": True}},
    {"include_reasoning": True},
    {"prompt_logprobs": 0},
    {"user": "u", "safety_identifier": "s", "metadata": {"a": "b"}},
    {"structuredOutputs": True, "prompt_cache_key": "k"},
]


def request(**fields: object) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    decoded = msgspec.convert(body, ChatRequest)
    check(decoded)
    return with_forwarded_parts(decoded)


def model(**fields: object) -> Model:
    bare: dict[str, Any] = {
        "backend": "b",
        "pricing": {"prompt": "0", "completion": "0"},
        "context_length": 1000,
        "max_output_length": 500,
        "sampling_parameters": [],
        **fields,
    }
    return msgspec.convert(bare, Model)


def backend(**fields: object) -> Backend:
    return msgspec.convert({"replicas": ["http://127.0.0.1:1/v1"], **fields}, Backend)


def image(url: str) -> list[dict[str, Any]]:
    part = {"type": "image_url", "image_url": {"url": url}}
    return [{"role": "user", "content": [part]}]


@pytest.mark.parametrize(("field", "value", "declared", "needs"), OPTIONS)
def test_an_undeclared_option_is_refused_by_its_name(
    field: str, value: object, declared: dict[str, Any], needs: dict[str, Any]
) -> None:
    partly = {name: [v for v in values if v != field] for name, values in declared.items()}
    lacking = model(**(partly if needs else {}))

    with pytest.raises(UnsupportedOption) as refusal:
        check_options(request(**{field: value}, **needs), lacking, backend())

    assert refusal.value.param == field
    assert refusal.value.should_retry is False


@pytest.mark.parametrize(("field", "value", "declared", "needs"), OPTIONS)
def test_a_declared_option_passes(
    field: str, value: object, declared: dict[str, Any], needs: dict[str, Any]
) -> None:
    check_options(request(**{field: value}, **needs), model(**declared), backend())


@pytest.mark.parametrize("fields", HARMLESS)
def test_what_asks_for_nothing_special_never_fails(fields: dict[str, Any]) -> None:
    check_options(request(**fields), model(), backend())


def test_a_budget_of_reasoning_needs_its_own_declaration() -> None:
    budget = request(reasoning={"max_tokens": 10})

    with pytest.raises(UnsupportedOption) as refusal:
        check_options(budget, model(features=["reasoning"]), backend())
    check_options(budget, model(features=["reasoning", "reasoning_budget"]), backend())

    assert refusal.value.param == "reasoning.max_tokens"
    assert "'reasoning_budget' in 'supported_features'" in refusal.value.message


def test_pictures_need_a_model_that_sees() -> None:
    with pytest.raises(UnsupportedOption) as refusal:
        check_options(request(messages=image(DATA_URL)), model(), backend())

    assert refusal.value.param == "messages[0].content[0].image_url"


def test_a_remote_picture_passes_only_to_a_backend_that_fetches_safely() -> None:
    seeing = model(input_modalities=["text", "image"])
    remote = request(messages=image("https://example.org/a.png"))

    check_options(request(messages=image(DATA_URL)), seeing, backend())
    check_options(remote, seeing, backend(fetches_images_safely=True))
    with pytest.raises(UnsupportedOption) as refusal:
        check_options(remote, seeing, backend())

    assert refusal.value.param == "messages[0].content[0].image_url"
    assert "fetches_images_safely" in refusal.value.message


def test_a_prediction_is_text_whatever_the_model_sees() -> None:
    seeing = model(input_modalities=["text", "image"], features=["prediction"])
    text = {"type": "content", "content": [{"type": "text", "text": "x"}]}
    picture = {"type": "content", "content": [{"image_url": DATA_URL}]}

    check_options(request(prediction=text), seeing, backend())
    with pytest.raises(UnsupportedOption) as refusal:
        check_options(request(prediction=picture), seeing, backend())

    assert refusal.value.param == "prediction.content[0].image_url"


def test_a_part_without_a_type_that_holds_a_picture_is_a_picture() -> None:
    parts = [{"role": "user", "content": [{"image_url": "https://example.org/a.png"}]}]

    with pytest.raises(UnsupportedOption):
        check_options(request(messages=parts), model(), backend())


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_bound_above_the_model_s_maximum_is_refused_and_never_lowered(name: str) -> None:
    check_output_bound(request(**{name: 500}), model())
    with pytest.raises(InvalidRequest) as refusal:
        check_output_bound(request(**{name: 501}), model())

    assert refusal.value.code == "integer_above_max_value"
    assert refusal.value.param == name
    assert "500" in refusal.value.message


def test_a_web_search_among_the_tools_is_for_a_model_that_declares_it() -> None:
    asked = request(tools=[TOOL, {"type": "web_search"}])

    check_options(asked, model(features=["tools", "web_search"]), backend())
    with pytest.raises(UnsupportedOption) as refusal:
        check_options(asked, model(features=["tools"]), backend())

    assert refusal.value.param == "tools[1].type"
