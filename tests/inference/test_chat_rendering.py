"""What callers read of a backend's words: the register's sample B.1, and the rules behind it."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.base.ids import RequestId
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import ErrorBody
from tollhouse.inference.chat import ChatEncoder
from tollhouse.inference.endpoint import Finish
from tollhouse.ledger.pricing import Usage

REQUEST_ID = RequestId(UUID("018f0000-0000-7000-8000-000000000001"))
NOW = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
FINISH = Finish(
    usage=Usage(prompt_tokens=42, completion_tokens=31, cached_tokens=10, reasoning_tokens=5),
    at=NOW,
)


def rendering(**fields: object) -> ChatEncoder:
    body = {"model": "example/model-a", "messages": [{"role": "user", "content": "Hi"}], **fields}
    return ChatEncoder(msgspec.convert(body, ChatRequest), REQUEST_ID, NOW)


def chunk(**choice: object) -> UpstreamChunk:
    return msgspec.convert({"choices": [choice]}, UpstreamChunk)


def records(data: bytes) -> list[Any]:
    """Every record of a stream, with the end marker as text; each chunk fits the SDK's type."""
    pieces = data.split(b"\n\n")
    assert pieces.pop() == b"", "whole records only"
    found: list[Any] = []
    for piece in pieces:
        payload = piece.removeprefix(b"data: ")
        if payload == b"[DONE]":
            found.append("[DONE]")
            continue
        found.append(json.loads(payload))
        if "error" not in found[-1]:
            ChatCompletionChunk.model_validate_json(payload, strict=True)
    return found


def marked(fingerprint: str | None) -> UpstreamChunk:
    choice = {"index": 0, "delta": {"content": "Hi"}}
    return msgspec.convert({"choices": [choice], "system_fingerprint": fingerprint}, UpstreamChunk)


@pytest.mark.parametrize(
    ("received", "shown"), [((None, "fp_1"), "fp_1"), (("fp_1", "fp_2"), "fp_1"), ((), None)]
)
def test_all_records_of_a_stream_have_one_fingerprint(
    received: tuple[str | None, ...], shown: str | None
) -> None:
    first = [marked(fingerprint) for fingerprint in received]
    answer = rendering(stream=True)

    told = answer.opening(first) + answer.records([*first, marked("fp_3")])

    assert {record["system_fingerprint"] for record in records(told)} == {shown}


def test_the_first_record_is_the_register_s_sample() -> None:
    told = rendering(stream=True, stream_options={"include_usage": True}).opening(())

    assert records(told) == [
        {
            "id": f"chatcmpl-{REQUEST_ID.hex}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": "example/model-a",
            "service_tier": None,
            "system_fingerprint": None,
            "choices": [
                {
                    "index": 0,
                    "delta": {"role": "assistant", "content": ""},
                    "logprobs": None,
                    "finish_reason": None,
                }
            ],
            "usage": None,
        }
    ]


def test_roles_of_all_choices_come_first_and_in_order() -> None:
    told = records(rendering(stream=True, n=3).opening(()))

    assert [record["choices"][0]["index"] for record in told] == [0, 1, 2]


def test_the_role_that_a_backend_sends_is_not_said_again() -> None:
    told = rendering(stream=True).records([chunk(delta={"role": "assistant", "content": ""})])

    assert told == b""


def test_an_end_that_comes_with_content_is_told_apart() -> None:
    told = records(
        rendering(stream=True).records([chunk(delta={"content": "x"}, finish_reason="stop")])
    )

    assert [record["choices"][0]["delta"] for record in told] == [{"content": "x"}, {}]
    assert [record["choices"][0]["finish_reason"] for record in told] == [None, "stop"]


def test_a_call_s_name_and_id_are_told_once_however_often_the_backend_repeats_them() -> None:
    extra: dict[str, Any] = {"extra_content": {"google": {"thought_signature": "ab"}}}
    piece = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}} | extra
    told = rendering(stream=True)

    first = records(told.records([chunk(delta={"tool_calls": [piece]})]))
    second = records(told.records([chunk(delta={"tool_calls": [piece]})]))

    assert first[0]["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        | extra
    ]
    assert second[0]["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "function": {"arguments": "{}"}}
    ]


def test_a_call_without_an_id_gets_one() -> None:
    piece = {"index": 1, "function": {"name": "f", "arguments": ""}}
    told = records(rendering(stream=True).records([chunk(delta={"tool_calls": [piece]})]))

    assert told[0]["choices"][0]["delta"]["tool_calls"][0]["id"].startswith("call_")


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_has_both_names_whichever_the_backend_uses(name: str) -> None:
    told = records(rendering(stream=True).records([chunk(delta={name: "hm"})]))

    assert told[0]["choices"][0]["delta"] == {"reasoning": "hm", "reasoning_content": "hm"}


@pytest.mark.parametrize("fields", [{"include_reasoning": False}, {"reasoning": {"exclude": True}}])
def test_excluded_reasoning_is_not_told(fields: dict[str, Any]) -> None:
    told = rendering(stream=True, **fields).records([chunk(delta={"reasoning": "hm"})])

    assert told == b""


def test_usage_is_the_last_record_before_the_end_and_only_when_asked_for() -> None:
    asked = b"".join(rendering(stream=True, stream_options={"include_usage": True}).closing(FINISH))

    assert records(asked)[0]["usage"] == {
        "prompt_tokens": 42,
        "completion_tokens": 31,
        "total_tokens": 73,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert records(asked)[0]["choices"] == []
    assert records(asked)[1:] == ["[DONE]"]
    assert records(b"".join(rendering(stream=True).closing(FINISH))) == ["[DONE]"]


def test_without_include_usage_no_record_has_the_member() -> None:
    assert "usage" not in records(rendering(stream=True).opening(()))[0]


def test_legacy_calls_log_probabilities_and_annotations_pass() -> None:
    citation = {"url": "https://example.org", "title": "t", "start_index": 0, "end_index": 1}
    annotation = {"type": "url_citation", "url_citation": citation}
    told = records(
        rendering(stream=True).records(
            [
                chunk(delta={"function_call": {"name": "f", "arguments": "{"}}),
                chunk(delta={"content": "a"}, logprobs={"content": [], "refusal": None}),
                chunk(delta={"annotations": [annotation, {"type": "other"}]}),
            ]
        )
    )

    assert told[0]["choices"][0]["delta"] == {"function_call": {"name": "f", "arguments": "{"}}
    assert told[1]["choices"][0]["logprobs"] == {"content": [], "refusal": None}
    assert told[2]["choices"][0]["delta"] == {"annotations": [annotation]}


@pytest.mark.guarantee("T31")
def test_text_that_looks_like_framing_stays_text() -> None:
    text = "a\n\ndata: [DONE]\r\n\u2028\u2029\x00"
    told = records(rendering(stream=True).records([chunk(delta={"content": text})]))

    assert told[0]["choices"][0]["delta"]["content"] == text


def test_a_failure_is_the_envelope_and_no_end_marker_follows() -> None:
    error = ErrorBody(
        code="backend_error",
        message="m",
        type="server_error",
        param=None,
        request_id="r",
        doc_url=None,
    )

    assert records(rendering(stream=True).failure(error)) == [{"error": msgspec.to_builtins(error)}]


def test_a_whole_answer_has_the_gateway_s_id_and_model_and_choices_in_order() -> None:
    upstream = msgspec.convert(
        {
            "id": "cmpl-secret",
            "model": "internal-name",
            "choices": [
                {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"},
                {"index": 0, "message": {"content": "a", "secret": 1}, "finish_reason": "stop"},
            ],
            "kv_transfer_params": {"secret": 1},
        },
        UpstreamCompletion,
    )

    body = rendering(n=2).complete(upstream, FINISH)
    answer = ChatCompletion.model_validate_json(body, strict=True)

    assert answer.id == f"chatcmpl-{REQUEST_ID.hex}"
    assert answer.model == "example/model-a"
    assert [choice.message.content for choice in answer.choices] == ["a", "b"]
    assert b"secret" not in body
    assert b"internal-name" not in body


def test_calls_are_numbered_by_their_first_pieces() -> None:
    told = rendering(stream=True).records(
        [
            chunk(delta={"tool_calls": [{"index": number, "function": {"arguments": "{"}}]})
            for number in (122, -7, 122, 2**40)
        ]
    )

    calls = [record["choices"][0]["delta"]["tool_calls"][0] for record in records(told)]
    assert [call["index"] for call in calls] == [0, 1, 0, 2]
    assert len({call["id"] for call in calls if "id" in call}) == 3


def test_a_whole_answer_numbers_its_calls_by_their_places() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = {"choices": [{"message": {"tool_calls": [{**call, "index": 122}, call]}}]}

    told = rendering().complete(msgspec.convert(answer, UpstreamCompletion), FINISH)

    calls = json.loads(told)["choices"][0]["message"]["tool_calls"]
    assert calls == [{**call, "index": 0}, call]


@pytest.mark.parametrize(("asked", "is_shown"), [({}, False), ({"prompt_logprobs": 0}, True)])
def test_probabilities_of_the_prompt_are_shown_only_if_asked_for(
    asked: dict[str, Any], is_shown: bool
) -> None:
    answer = {"choices": [], "prompt_logprobs": [None, {"1": {"logprob": -1}}]}

    told = rendering(**asked).complete(msgspec.convert(answer, UpstreamCompletion), FINISH)

    assert ("prompt_logprobs" in json.loads(told)) is is_shown
