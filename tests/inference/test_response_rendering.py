"""What callers of responses read of a backend's words: the register's samples B.2 to B.4."""

from typing import Any

import msgspec
import pytest
from openai.types.responses import Response

from tests.inference.answers import (
    FINISH,
    REQUEST_ID,
    call,
    chunk,
    events,
    kinds,
    rendering,
    said,
    streamed,
)
from tollhouse.backends.types import UpstreamCompletion
from tollhouse.contract.errors import ErrorBody
from tollhouse.inference.errors import AnswerTooLong
from tollhouse.inference.responses.endpoint import KEPT_BYTES_MAX

HEX = REQUEST_ID.hex
BEGUN: dict[str, Any] = {
    "id": f"resp_{HEX}",
    "object": "response",
    "created_at": 1700000000,
    "completed_at": None,
    "status": "in_progress",
    "background": False,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": 1024,
    "max_tool_calls": None,
    "metadata": {},
    "model": "example/model-a",
    "output": [],
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "usage": None,
    "user": None,
}
USAGE: dict[str, Any] = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 17,
}
CITATION = {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}


def message(text: str, status: str = "completed", index: int = 0) -> dict[str, Any]:
    return {
        "id": f"msg_{HEX}_{index}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def completion(message: dict[str, Any], **choice: object) -> UpstreamCompletion:
    choices = [{"index": 0, "message": message, "finish_reason": "stop", **choice}]
    return msgspec.convert({"choices": choices}, UpstreamCompletion)


def whole(upstream: UpstreamCompletion, **fields: object) -> dict[str, Any]:
    body = rendering(**fields).complete(upstream, FINISH)
    Response.model_validate_json(body, strict=True)
    return msgspec.json.decode(body)


# Streamed


def test_a_text_is_told_as_in_the_sample() -> None:
    told = streamed(rendering(), said("Hello"), said(" there."), chunk(finish_reason="stop"))
    place = {"item_id": f"msg_{HEX}_0", "output_index": 0, "content_index": 0}
    empty: dict[str, Any] = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    done = message("Hello there.")

    ended = BEGUN | {
        "completed_at": 1700000001,
        "status": "completed",
        "output": [done],
        "usage": USAGE,
    }
    expected: list[dict[str, Any]] = [
        {"type": "response.created", "response": BEGUN},
        {"type": "response.in_progress", "response": BEGUN},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": done | {"status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": empty},
        {"type": "response.output_text.delta", **place, "delta": "Hello", "logprobs": []},
        {"type": "response.output_text.delta", **place, "delta": " there.", "logprobs": []},
        {"type": "response.output_text.done", **place, "text": "Hello there.", "logprobs": []},
        {"type": "response.content_part.done", **place, "part": done["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": ended},
    ]
    assert told == [event | {"sequence_number": i} for i, event in enumerate(expected)]


def test_members_stand_in_the_order_of_the_sample() -> None:
    (event,) = events(rendering().opening(()))[:1]

    assert list(event) == ["type", "sequence_number", "response"]
    assert list(event["response"]) == list(BEGUN)


def test_a_call_is_told_as_in_the_sample() -> None:
    told = streamed(
        rendering(),
        call(0, id="call_A", name="get_weather"),
        call(0, '{"city":'),
        call(0, '"Example City"}'),
        chunk(finish_reason="tool_calls"),
    )
    place = {"item_id": f"fc_{HEX}_0", "output_index": 0}
    done = {
        "id": f"fc_{HEX}_0",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_A",
        "name": "get_weather",
        "arguments": '{"city":"Example City"}',
    }

    expected: list[dict[str, Any]] = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": done | {"status": "in_progress", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", **place, "delta": '{"city":'},
        {"type": "response.function_call_arguments.delta", **place, "delta": '"Example City"}'},
        {
            "type": "response.function_call_arguments.done",
            **place,
            "name": "get_weather",
            "arguments": '{"city":"Example City"}',
        },
        {"type": "response.output_item.done", "output_index": 0, "item": done},
    ]
    assert told[2:-1] == [event | {"sequence_number": i} for i, event in enumerate(expected, 2)]
    assert told[-1]["response"]["output"] == [done]


def test_calls_that_interleave_end_with_the_answer() -> None:
    told = streamed(
        rendering(),
        call(0, "{", id="a", name="f"),
        call(1, "[", id="b", name="g"),
        call(0, "}"),
        call(1, "]"),
    )

    assert kinds(told)[2:-1] == [
        "output_item.added",
        "function_call_arguments.delta",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert [item["arguments"] for item in told[-1]["response"]["output"]] == ["{}", "[]"]


def test_calls_without_an_id_or_with_that_of_another_get_their_own() -> None:
    told = streamed(
        rendering(), call(0, id="a", name="f"), call(1, id="a", name="f"), call(2, name="f")
    )

    ids = [item["call_id"] for item in told[-1]["response"]["output"]]
    assert ids[0] == "a"
    assert len(set(ids)) == 3


def test_a_name_that_comes_late_is_told_at_the_end() -> None:
    told = streamed(rendering(), call(0, "{}", id="a"), call(0, name="f"))

    assert told[-3]["name"] == "f"
    assert told[-1]["response"]["output"][0]["name"] == "f"


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_an_item_that_ends_when_the_answer_begins(name: str) -> None:
    told = streamed(rendering(), chunk(delta={name: "Hm"}), chunk(delta={name: "."}), said("Yes"))

    assert kinds(told)[2:-1] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert told[-1]["response"]["output"] == [
        {
            "id": f"rs_{HEX}_0",
            "type": "reasoning",
            "status": "completed",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        message("Yes", index=1),
    ]


def test_reasoning_that_is_taken_up_again_is_another_item() -> None:
    told = streamed(
        rendering(),
        chunk(delta={"reasoning": "a"}),
        said("A"),
        chunk(delta={"reasoning": "b"}),
        said("B"),
    )

    output = told[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "reasoning"]
    assert output[1]["content"][0]["text"] == "AB"


def test_a_refusal_is_a_part_of_the_message() -> None:
    told = streamed(
        rendering(), chunk(delta={"refusal": "I "}), chunk(delta={"refusal": "cannot."})
    )

    assert kinds(told)[4:8] == [
        "refusal.delta",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
    ]
    assert told[-1]["response"]["output"][0]["content"] == [
        {"type": "refusal", "refusal": "I cannot."}
    ]


def test_sources_are_told_one_by_one_and_stand_in_the_text() -> None:
    found = [{"type": "url_citation", "url_citation": CITATION}, {"type": "other"}]
    told = streamed(rendering(), said("Yes"), chunk(delta={"annotations": found}))

    annotation = {"type": "url_citation", **CITATION}
    assert told[5] == {
        "type": "response.output_text.annotation.added",
        "sequence_number": 5,
        "item_id": f"msg_{HEX}_0",
        "output_index": 0,
        "content_index": 0,
        "annotation_index": 0,
        "annotation": annotation,
    }
    assert told[-1]["response"]["output"][0]["content"][0]["annotations"] == [annotation]


def test_log_probabilities_go_with_the_text_when_they_were_asked_for() -> None:
    logprobs = {
        "content": [
            {
                "token": "é",
                "logprob": -0.5,
                "bytes": None,
                "top_logprobs": [{"token": "e", "logprob": -1, "bytes": [101]}],
            }
        ]
    }
    chunks = [said("é", logprobs=logprobs), chunk(delta={"content": ""}, logprobs=logprobs)]

    asked = streamed(rendering(top_logprobs=1), *chunks)
    unasked = streamed(rendering(), *chunks)

    token = {
        "token": "é",
        "bytes": [195, 169],
        "logprob": -0.5,
        "top_logprobs": [{"token": "e", "bytes": [101], "logprob": -1.0}],
    }
    assert [event["logprobs"] for event in asked[4:6]] == [[token], [token]]
    assert asked[-1]["response"]["output"][0]["content"][0]["logprobs"] == [token, token]
    assert unasked[-1]["response"]["output"][0]["content"][0]["logprobs"] == []


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": [{"a": 1}]}, "x"])
def test_log_probabilities_that_nobody_understands_are_left_out(logprobs: object) -> None:
    told = streamed(rendering(top_logprobs=1), said("a", logprobs=logprobs))

    assert told[4]["logprobs"] == []


def test_a_token_of_a_call_makes_no_text() -> None:
    logprobs = {"content": [{"token": "{", "logprob": -0.5}]}
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    told = streamed(
        rendering(top_logprobs=1),
        chunk(delta={"tool_calls": [piece]}, logprobs=logprobs),
        chunk(delta={}, logprobs=logprobs, finish_reason="tool_calls"),
    )

    assert [item["type"] for item in told[-1]["response"]["output"]] == ["function_call"]


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_an_answer_that_was_cut_is_incomplete_and_so_is_its_last_item(
    finish_reason: str, reason: str
) -> None:
    told = streamed(
        rendering(),
        call(0, "{}", id="a", name="f"),
        said("Hello"),
        chunk(finish_reason=finish_reason),
    )

    last = told[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["status"] == "incomplete"
    assert last["response"]["incomplete_details"] == {"reason": reason}
    assert last["response"]["completed_at"] is None
    assert last["response"]["usage"] == USAGE
    assert [item["status"] for item in last["response"]["output"]] == ["completed", "incomplete"]


TEXT_DELTA = {"content": "Hello"}
CALL_DELTA = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]}
REASONING_DELTA = {"reasoning": "Because"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (TEXT_DELTA, CALL_DELTA),
        (TEXT_DELTA, REASONING_DELTA),
        (CALL_DELTA, TEXT_DELTA),
        (CALL_DELTA, REASONING_DELTA),
    ],
)
def test_of_items_that_grow_in_turns_the_one_that_grew_last_is_incomplete(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    told = streamed(
        rendering(),
        chunk(delta=first),
        chunk(delta=second),
        chunk(delta=first),
        chunk(finish_reason="length"),
    )

    output = told[-1]["response"]["output"]
    assert [item["status"] for item in output] == ["incomplete", "completed"]


def test_an_answer_without_a_word_is_an_empty_message() -> None:
    told = streamed(rendering(), chunk(delta={"role": "assistant", "content": ""}))

    assert told[-1]["response"]["output"] == [message("")]


def test_only_the_choice_that_was_asked_for_is_told() -> None:
    told = streamed(rendering(), said("A"), said("B", index=1))

    assert told[-1]["response"]["output"] == [message("A")]


@pytest.mark.guarantee("T31")
def test_text_that_looks_like_framing_stays_text() -> None:
    text = "a\n\nevent: x\ndata: [DONE]\r\n\u2028\u2029\x00"
    told = streamed(rendering(), said(text))

    assert told[4]["delta"] == text


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        ("server_error", "server_error"),
        ("service_unavailable_error", "server_error"),
        ("rate_limit_error", "rate_limit_exceeded"),
        ("invalid_request_error", "invalid_prompt"),
        ("policy_error", "misalignment_policy_violation"),
    ],
)
def test_a_failure_is_one_event_without_the_output(type_: str, code: str) -> None:
    answer = rendering()
    begun = events(answer.opening(()) + answer.records([said("Hello")]))
    error = ErrorBody(
        code="x", message="It stopped.", type=type_, param=None, request_id="r", doc_url=None
    )

    (failed,) = events(answer.failure(error))

    expected = {"code": code, "message": "It stopped.", "request_id": "r"}
    if type_ == "policy_error":
        expected["type"] = "policy_error"
    assert failed == {
        "type": "response.failed",
        "sequence_number": len(begun),
        "response": BEGUN | {"status": "failed", "error": expected},
    }


def test_an_answer_that_never_ends_is_broken_off() -> None:
    answer = rendering()
    half = [said("x" * (KEPT_BYTES_MAX // 2))]
    answer.records(half)

    with pytest.raises(AnswerTooLong):
        answer.records(half)


# What was asked for


def test_what_was_asked_for_is_told_again() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "max_output_tokens": 77,
        "temperature": 0.0,
        "top_p": 0.5,
        "presence_penalty": 1.0,
        "frequency_penalty": -1.0,
        "top_logprobs": 2,
        "tools": [tool],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "text": {"format": form, "verbosity": "low"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "user": "u",
        "metadata": {"a": "b"},
        "service_tier": "flex",
    }

    (created, _) = events(rendering(**asked).opening(()))

    assert created["response"] == BEGUN | asked


def test_the_old_name_of_the_summary_is_told_under_the_new_one() -> None:
    (created, _) = events(rendering(reasoning={"generate_summary": "concise"}).opening(()))

    assert created["response"]["reasoning"] == {"effort": None, "summary": "concise"}


@pytest.mark.parametrize(
    ("asked", "reported", "told"),
    [
        (None, None, "default"),
        ("auto", None, "default"),
        ("auto", "priority", "priority"),
        ("flex", "turbo", "flex"),
    ],
)
def test_the_tier_is_the_backend_s_if_sdks_know_it(
    asked: str | None, reported: str | None, told: str
) -> None:
    upstream = msgspec.structs.replace(completion({"content": "A"}), service_tier=reported)

    assert whole(upstream, service_tier=asked)["service_tier"] == told


# Whole


def test_a_whole_answer_is_the_object_with_which_a_stream_ends() -> None:
    logprobs: dict[str, Any] = {"content": [{"token": "Yes", "logprob": -0.5, "top_logprobs": []}]}
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "[]"}},
    ]
    annotation = {"type": "url_citation", "url_citation": CITATION}
    upstream = completion(
        {
            "content": "Yes",
            "reasoning_content": "Hm.",
            "tool_calls": calls,
            "annotations": [annotation],
        },
        logprobs=logprobs,
        finish_reason="tool_calls",
    )
    told = streamed(
        rendering(top_logprobs=1),
        chunk(delta={"reasoning": "Hm."}),
        said("Yes", logprobs=logprobs),
        chunk(delta={"annotations": [annotation]}),
        call(0, "{}", id="a", name="f"),
        call(1, "[]", id="b", name="g"),
        chunk(finish_reason="tool_calls"),
    )

    assert whole(upstream, top_logprobs=1) == told[-1]["response"]


def test_a_whole_answer_may_be_cut_too() -> None:
    answer = whole(completion({"content": "Hel"}, finish_reason="length"))

    assert answer["status"] == "incomplete"
    assert answer["output"] == [message("Hel", "incomplete")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("A", "A"),
        (None, ""),
        ([{"type": "text", "text": "A"}, {"type": "other"}, {"type": "text", "text": "B"}], "AB"),
    ],
)
def test_the_content_of_a_whole_answer_may_have_each_form(content: object, text: str) -> None:
    assert whole(completion({"content": content}))["output"] == [message(text)]


@pytest.mark.parametrize(
    ("sent", "arguments"),
    [
        ({"name": "f", "arguments": '{"a":1}'}, '{"a":1}'),
        ({"name": "f", "arguments": {"a": 1}}, '{"a":1}'),
        ({"name": "f", "arguments": None}, ""),
    ],
)
def test_arguments_are_text_in_whatever_form_they_came(
    sent: dict[str, Any], arguments: str
) -> None:
    (item,) = whole(completion({"tool_calls": [{"id": "a", "function": sent}]}))["output"]

    assert (item["name"], item["arguments"]) == ("f", arguments)


@pytest.mark.parametrize("call", [{}, {"function": "x"}, {"id": 1, "function": {"name": 2}}])
def test_a_call_that_makes_no_sense_is_still_a_call(call: dict[str, Any]) -> None:
    (item,) = whole(completion({"tool_calls": [call]}))["output"]

    assert item["name"] == ""
    assert item["call_id"].startswith("call_")


def test_nothing_of_the_backend_s_own_leaves() -> None:
    upstream = msgspec.convert(
        {
            "id": "cmpl-secret",
            "model": "internal-name",
            "choices": [{"message": {"content": "a", "secret": 1}}],
            "system_fingerprint": "secret",
        },
        UpstreamCompletion,
    )

    body = rendering().complete(upstream, FINISH)

    assert b"secret" not in body
    assert b"internal-name" not in body
