"""What the specification does not forbid is served alike on chat, responses and token counting."""

import json
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.deployment import MODEL, Deployment, model, offering
from tests.support.shared_deployment import deployment
from tests.upstream.rendering import FINGERPRINT
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.settings import Settings

__all__ = ["deployment"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

BARE = "example/bare"
"""A model that declares no option at all."""
SEARCHING = "example/searching"
"""A model that searches the web and calls no functions."""
OUTSIDE = "example/outside"
"""A model whose reasoning is billed beside the output bound."""
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
COUNTING = "/v1/messages/count_tokens"
MESSAGES = [{"role": "user", "content": "Hi"}]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": MODEL, "messages": MESSAGES},
    RESPONSES: {"model": MODEL, "input": "Hi"},
    COUNTING: {"model": MODEL, "messages": MESSAGES},
}
ROUTES = list(BODIES)
GENERATING = [CHAT, RESPONSES]
SESSION_HEADERS = ["X-Service-Session-ID", "X-Alt-Session-ID"]
NEUTRAL: list[dict[str, Any]] = [
    {"service_tier": "auto"},
    {"service_tier": "default"},
    {"parallel_tool_calls": True},
    {"parallel_tool_calls": False},
    {"tools": []},
    {"tools": [], "tool_choice": "auto"},
    {"tool_choice": "auto"},
    {"tool_choice": "none"},
    {"frequency_penalty": 0, "presence_penalty": 0},
    {"top_logprobs": 0},
]
"""Values that ask for nothing, of fields that chat and responses share."""
NEUTRAL_IN_CHAT: list[dict[str, Any]] = [
    {"logit_bias": {}},
    {"stop": []},
    {"functions": [], "function_call": "auto"},
    {"logprobs": False, "top_logprobs": 0},
    {"modalities": []},
    {"verbosity": "medium", "prompt_cache_retention": "in_memory"},
    {"prediction": {}},
    {"prompt_logprobs": 0},
    {"stream_options": {"include_usage": True}},
]
EMPTY: dict[str, dict[str, Any]] = {
    RESPONSES: {"context_management": {}, "moderation": False, "access_programs": []},
    COUNTING: {"context_management": {}, "mcp_servers": [], "speed": None},
}
"""Options that no model has, sent without content."""


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    bare = model(features=[], sampling_parameters=[])
    searching = model(features=["web_search"])
    outside = model(backend="outside")
    models = {MODEL: model(), BARE: bare, SEARCHING: searching, OUTSIDE: outside}
    made = offering(settings, upstream.base_url, models=models)
    beside = made.backends["scripted"] | {"reasons_outside_bound": True}
    return msgspec.structs.replace(made, backends=made.backends | {"outside": beside})


async def post(
    deployment: Deployment, path: str, headers: dict[str, str] | None = None, **fields: object
) -> httpx2.Response:
    async with deployment.customer() as client:
        return await client.post(path, json=BODIES[path] | fields, headers=headers or {})


def received(deployment: Deployment) -> dict[str, Any]:
    """Return the last body that the backend was sent."""
    return json.loads(deployment.upstream.seen[-1].body)


def refusal(answer: httpx2.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


# Session headers


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("name", SESSION_HEADERS)
@pytest.mark.parametrize("value", ["", "a" * 513])
async def test_a_session_header_out_of_bounds_is_400_on_every_route(
    deployment: Deployment, path: str, name: str, value: str
) -> None:
    seen = len(deployment.upstream.seen)

    answer = await post(deployment, path, {name: value})

    assert refusal(answer) == (400, "invalid_value", name)
    assert len(deployment.upstream.seen) == seen


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("name", SESSION_HEADERS)
@pytest.mark.parametrize("value", ["a", "a" * 512])
async def test_a_session_header_within_bounds_is_taken_on_every_route(
    deployment: Deployment, path: str, name: str, value: str
) -> None:
    assert (await post(deployment, path, {name: value})).status_code == 200


@pytest.mark.parametrize(("length", "status"), [(512, 200), (513, 400)])
async def test_a_session_header_is_measured_in_characters(
    deployment: Deployment, length: int, status: int
) -> None:
    key = deployment.key.value
    headers = [
        (b"Authorization", f"Bearer {key}".encode()),
        (b"X-Service-Session-ID", ("д" * length).encode()),
    ]
    async with httpx2.AsyncClient() as client:
        answer = await client.post(
            f"{deployment.gateway.base_url}{CHAT}", json=BODIES[CHAT], headers=headers
        )

    assert answer.status_code == status


# Token counting


TYPING_ERRORS: list[tuple[dict[str, Any], str, str]] = [
    (
        {"messages": [{"role": "system", "content": "x"}]},
        "invalid_value",
        "messages[0].role",
    ),
    (
        {"messages": [*MESSAGES, {"role": "robot", "content": "x"}]},
        "invalid_value",
        "messages[1].role",
    ),
    ({"messages": [{"content": "x"}]}, "missing_required_parameter", "messages[0].role"),
    ({"messages": [{"role": 1, "content": "x"}]}, "invalid_type", "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
    ({"messages": [{"role": "user", "content": None}]}, "invalid_type", "messages[0].content"),
    ({"tools": [{"type": None, "name": ""}]}, "invalid_value", "tools[0].name"),
    ({"tools": [{"input_schema": {}}]}, "missing_required_parameter", "tools[0].name"),
    (
        {"tools": [{"name": "f"}, {"type": "web_search_20250305"}]},
        "missing_required_parameter",
        "tools[1].name",
    ),
    ({"tools": [{"name": ""}]}, "invalid_value", "tools[0].name"),
    ({"tools": [{"name": None}]}, "invalid_type", "tools[0].name"),
]


@pytest.mark.parametrize(("fields", "code", "param"), TYPING_ERRORS)
async def test_a_typing_error_gets_no_estimate(
    deployment: Deployment, fields: dict[str, Any], code: str, param: str
) -> None:
    assert refusal(await post(deployment, COUNTING, **fields)) == (400, code, param)


# Reasoning


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"reasoning": {"max_tokens": 2000}}, 1023),
        ({"reasoning": {"max_tokens": 4096}}, 1023),
        ({"reasoning": {"max_tokens": 1023}}, 1023),
        ({"reasoning": {"max_tokens": 100}}, 100),
        ({"reasoning": {"max_tokens": 9}, "max_tokens": 9}, 8),
        ({"reasoning": {"max_tokens": 4096}, "max_completion_tokens": 4096}, 4095),
    ],
)
async def test_a_budget_of_reasoning_is_lowered_to_fit_the_output_bound(
    deployment: Deployment, fields: dict[str, Any], sent: int
) -> None:
    assert (await post(deployment, CHAT, **fields)).status_code == 200
    assert received(deployment)["reasoning"] == {"max_tokens": sent}


async def test_a_bound_of_one_token_leaves_no_budget_to_send(deployment: Deployment) -> None:
    answer = await post(deployment, CHAT, reasoning={"max_tokens": 9}, max_tokens=1)

    assert answer.status_code == 200
    assert "reasoning" not in received(deployment)


async def test_a_budget_beside_the_output_bound_is_sent_as_it_is(deployment: Deployment) -> None:
    answer = await post(
        deployment, CHAT, model=OUTSIDE, reasoning={"max_tokens": 2000}, max_tokens=9
    )

    assert answer.status_code == 200
    assert received(deployment)["reasoning"] == {"max_tokens": 2000}


@pytest.mark.parametrize("fields", [{}, {"max_tokens": 4096}])
async def test_a_budget_above_the_models_maximum_is_400(
    deployment: Deployment, fields: dict[str, Any]
) -> None:
    answer = await post(deployment, CHAT, reasoning={"max_tokens": 4097}, **fields)

    assert refusal(answer) == (400, "integer_above_max_value", "reasoning.max_tokens")
    assert "4096" in answer.json()["error"]["message"]


# Options that ask for nothing


@pytest.mark.parametrize("name", [MODEL, BARE])
@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize("fields", NEUTRAL)
async def test_a_value_that_asks_for_nothing_is_served_by_every_model(
    deployment: Deployment, name: str, path: str, fields: dict[str, Any]
) -> None:
    assert (await post(deployment, path, model=name, **fields)).status_code == 200
    if name == BARE:
        assert not set(fields) & set(received(deployment))


@pytest.mark.parametrize("path", [RESPONSES, COUNTING])
async def test_an_empty_option_that_no_model_has_asks_for_nothing(
    deployment: Deployment, path: str
) -> None:
    assert (await post(deployment, path, **EMPTY[path])).status_code == 200


@pytest.mark.parametrize("name", [MODEL, BARE])
@pytest.mark.parametrize("fields", NEUTRAL_IN_CHAT)
async def test_a_value_that_asks_for_nothing_is_served_in_a_chat(
    deployment: Deployment, name: str, fields: dict[str, Any]
) -> None:
    assert (await post(deployment, CHAT, model=name, **fields)).status_code == 200
    if name == BARE:
        assert not set(fields) & set(received(deployment))


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize("tier", ["auto", "default", "flex"])
async def test_a_tier_is_forwarded_to_a_model_that_has_tiers(
    deployment: Deployment, path: str, tier: str
) -> None:
    assert (await post(deployment, path, service_tier=tier)).status_code == 200
    assert received(deployment)["service_tier"] == tier


@pytest.mark.parametrize("path", GENERATING)
async def test_a_tier_that_asks_for_more_is_501_without_tiers(
    deployment: Deployment, path: str
) -> None:
    answer = await post(deployment, path, model=BARE, service_tier="priority")

    assert refusal(answer) == (501, "unsupported_parameter", "service_tier")


@pytest.mark.parametrize("path", GENERATING)
async def test_a_choice_that_demands_a_tool_needs_one(deployment: Deployment, path: str) -> None:
    answer = await post(deployment, path, tool_choice="required")

    assert refusal(answer) == (400, "invalid_parameter_combination", "tool_choice")


@pytest.mark.parametrize("path", GENERATING)
@pytest.mark.parametrize("likeliest", [2, 20])
async def test_the_likeliest_tokens_alone_ask_for_log_probabilities(
    deployment: Deployment, path: str, likeliest: int
) -> None:
    assert (await post(deployment, path, top_logprobs=likeliest)).status_code == 200
    assert received(deployment)["logprobs"] is True
    assert received(deployment)["top_logprobs"] == likeliest


@pytest.mark.parametrize("path", GENERATING)
async def test_log_probabilities_are_501_by_the_name_that_was_sent(
    deployment: Deployment, path: str
) -> None:
    answer = await post(deployment, path, model=BARE, top_logprobs=2)

    assert refusal(answer) == (501, "unsupported_parameter", "top_logprobs")


@pytest.mark.parametrize("likeliest", [-1, 1])
async def test_no_number_turns_on_log_probabilities_that_were_turned_off(
    deployment: Deployment, likeliest: int
) -> None:
    answer = await post(deployment, CHAT, logprobs=False, top_logprobs=likeliest)

    assert refusal(answer) == (400, "invalid_parameter_combination", "top_logprobs")


@pytest.mark.parametrize("path", GENERATING)
async def test_web_search_needs_its_own_feature_alone(deployment: Deployment, path: str) -> None:
    tools = [{"type": "web_search"}]

    lacking = await post(deployment, path, model=BARE, tools=tools)
    assert refusal(lacking) == (501, "unsupported_parameter", "tools[0].type")
    assert (await post(deployment, path, model=SEARCHING, tools=tools)).status_code == 200


async def test_options_of_a_stream_have_no_effect_without_one(deployment: Deployment) -> None:
    answer = await post(deployment, CHAT, stream_options={"include_usage": False})

    assert answer.json()["usage"]["prompt_tokens"] > 0
    assert "stream_options" not in received(deployment)


# Truncation


async def test_an_input_that_fits_needs_no_truncation(deployment: Deployment) -> None:
    answer = await post(deployment, RESPONSES, truncation="auto")

    assert answer.json()["truncation"] == "auto"


async def test_an_input_that_may_not_fit_is_not_cut(deployment: Deployment) -> None:
    answer = await post(deployment, RESPONSES, truncation="auto", input="x" * 8192)

    assert refusal(answer) == (501, "unsupported_parameter", "truncation")
    assert "8192 tokens" in answer.json()["error"]["message"]


# Streams


async def test_all_records_of_a_stream_have_the_engines_fingerprint(deployment: Deployment) -> None:
    answer = await post(deployment, CHAT, stream=True, stream_options={"include_usage": True})

    records = [
        json.loads(line.removeprefix("data: "))
        for line in answer.text.split("\n\n")
        if line.startswith("data: {")
    ]
    assert len(records) > 2
    assert {record["system_fingerprint"] for record in records} == {FINGERPRINT}
