"""What is sent upstream, compared as whole bodies."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.backends.openai_json import Forwarding, encode
from tollhouse.contract.chat import ChatRequest, check

FORWARD = Forwarding(
    upstream_model="smol",
    output_tokens=77,
    reasoning_tokens_max=76,
    effort_names={"ultracode": "xhigh"},
    reasons=True,
)
MESSAGES = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "f", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": FUNCTION}
BARE = {"model": "smol", "messages": MESSAGES, "max_tokens": 77}


def sent(forward: Forwarding = FORWARD, /, **members: object) -> Any:  # noqa: ANN401 - any JSON
    body = {"model": "acme/small", "messages": MESSAGES, **members}
    request = msgspec.json.decode(msgspec.json.encode(body), type=ChatRequest)
    check(request)
    return msgspec.json.decode(encode(request, forward))


def test_the_least_request_gets_the_upstream_name_and_the_bound() -> None:
    assert sent() == BARE


FORWARDED: dict[str, object] = {
    "temperature": 0.5,
    "top_p": 0.25,
    "frequency_penalty": -1.5,
    "presence_penalty": 1.5,
    "logit_bias": {"50256": -100.0},
    "n": 3,
    "seed": 2**70,
    "stop": ["a", "b"],
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "parallel_tool_calls": False,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True},
    },
    "modalities": ["text", "audio"],
    "verbosity": "low",
    "audio": {"voice": "alloy", "format": "wav"},
    "prediction": {"type": "content", "content": "x"},
    "service_tier": "flex",
    "prompt_cache_retention": "24h",
    "logprobs": True,
    "top_logprobs": 5,
    "prompt_logprobs": 0,
    "web_search_options": {"search_context_size": "low"},
}


def test_what_the_upstream_decides_by_is_forwarded() -> None:
    assert sent(**FORWARDED) == {**BARE, **FORWARDED}


def test_legacy_functions_go_as_they_are() -> None:
    legacy = {"functions": [FUNCTION], "function_call": {"name": "f"}}

    assert sent(**legacy) == {**BARE, **legacy}


@pytest.mark.parametrize(
    "members",
    [
        {"policy_ids": ["pol_1"]},
        {"store": False},
        {"structuredOutputs": True},
        {"metadata": {"a": "b"}},
        {"user": "u"},
        {"safety_identifier": "s"},
        {"include_reasoning": False},
        {"reasoning": {"exclude": True}},
        {"cache_salt": "of the caller"},
        {"prompt_cache_key": "of the caller"},
        {"max_tokens": 5},
        {"max_completion_tokens": 5},
        {"stream": False},
        {"n": 1},
        {"logprobs": False},
        {"modalities": ["text"]},
        {"tools": []},
        {"tools": [], "tool_choice": "none", "parallel_tool_calls": True},
        {"functions": [], "function_call": "none"},
        dict.fromkeys([*FORWARDED, "stream_options", "thinking", "reasoning"]),
    ],
    ids=str,
)
def test_what_is_the_gateways_or_says_nothing_stays_here(members: dict[str, object]) -> None:
    assert sent(**members) == BARE


def test_usage_is_always_asked_for_in_a_stream() -> None:
    plain = sent(stream=True, stream_options={"include_usage": False})
    continuous = sent(msgspec.structs.replace(FORWARD, takes_continuous_usage=True), stream=True)
    timed = sent(msgspec.structs.replace(FORWARD, takes_timings=True), stream=True)

    assert plain == {**BARE, "stream": True, "stream_options": {"include_usage": True}}
    assert timed == plain | {"timings_per_token": True}
    assert continuous["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


@pytest.mark.guarantee("T38")
def test_salt_and_cache_key_are_the_gateways() -> None:
    forward = msgspec.structs.replace(FORWARD, cache_salt="digest", prompt_cache_key="other")

    assert sent(forward, cache_salt="mine", prompt_cache_key="mine") == {
        **BARE,
        "cache_salt": "digest",
        "prompt_cache_key": "other",
    }


@pytest.mark.parametrize(
    ("controls", "forwarded"),
    [
        ({"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        ({"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
        ({"reasoning_effort": "ultracode"}, {"reasoning_effort": "xhigh"}),
        ({"reasoning_effort": "none", "thinking": False}, {"reasoning_effort": "none"}),
        ({"reasoning_effort": "low", "thinking": True}, {"reasoning_effort": "low"}),
        ({"reasoning": {"max_tokens": 50, "enabled": True}}, {"reasoning": {"max_tokens": 50}}),
        ({"thinking": True}, {"chat_template_kwargs": {"enable_thinking": True}}),
        ({"thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"reasoning": {"enabled": False}}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"reasoning": {}}, {}),
        ({"thinking": None, "reasoning": {"enabled": None, "effort": None}}, {}),
    ],
)
def test_reasoning_is_controlled_in_the_upstream_words(
    controls: dict[str, object], forwarded: dict[str, object]
) -> None:
    assert sent(**controls) == {**BARE, **forwarded}


@pytest.mark.parametrize(
    ("controls", "forwarded"),
    [
        ({"thinking": False}, {"reasoning_effort": "minimal"}),
        ({"reasoning": {"enabled": False}}, {"reasoning_effort": "minimal"}),
        ({"thinking": True}, {}),
        ({"reasoning_effort": "high", "thinking": True}, {"reasoning_effort": "high"}),
    ],
)
def test_a_reasoning_model_of_openai_gets_no_switch_that_it_would_refuse(
    controls: dict[str, object], forwarded: dict[str, object]
) -> None:
    forward = msgspec.structs.replace(
        FORWARD, takes_completion_bound=True, effort_names={"none": "minimal"}
    )
    body = sent(forward, **controls)

    assert "chat_template_kwargs" not in body
    assert {name: body[name] for name in body if name.startswith("reasoning")} == forwarded


@pytest.mark.parametrize(
    "controls",
    [{"thinking": False}, {"reasoning_effort": "none"}, {"reasoning": {"effort": "none"}}],
)
def test_a_model_that_does_not_reason_is_told_nothing(controls: dict[str, object]) -> None:
    forward = msgspec.structs.replace(FORWARD, reasons=False)

    assert sent(forward, **controls) == BARE


def test_messages_lose_nulls_and_who_wrote_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "be brief", "name": None},
        {"role": "user", "content": "hi", "model_id": "m"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning": None},
        {"role": "tool", "content": [{"type": "text", "text": None}], "tool_call_id": "c"},
    ]

    assert sent(messages=messages)["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": [{"type": "text", "text": None}], "tool_call_id": "c"},
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON)


@given(text=st.text(), parameters=OBJECTS, seed=st.integers())
def test_what_a_caller_wrote_arrives_as_it_was(
    text: str, parameters: dict[str, object], seed: int
) -> None:
    function = {"name": text, "parameters": parameters}
    tools = [{"type": "function", "function": function}]

    body = sent(messages=[{"role": "user", "content": text}], tools=tools, seed=seed)

    assert body["messages"][0]["content"] == text
    assert body["tools"] == tools
    assert body["seed"] == seed
