"""What callers of Messages read of a backend's answer."""

import json
from typing import Any

import msgspec
import pytest

from tests.inference.answers import FINISH, REQUEST_ID, call, chunk, said
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.contract.errors import ErrorBody
from tollhouse.contract.message_request import MessageRequest
from tollhouse.inference.messages.endpoint import MessagesEncoder
from tollhouse.inference.messages.output import input_of

USAGE = {
    "input_tokens": 9,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 3,
    "output_tokens": 5,
}


EVENT_NAMES = {
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
    *("message_delta", "message_stop"),
}


def encoder(**fields: object) -> MessagesEncoder:
    user = {"role": "user", "content": "Hi"}
    body = {"model": "example/model-a", "max_tokens": 9, "messages": [user], **fields}
    return MessagesEncoder(msgspec.convert(body, MessageRequest), REQUEST_ID)


def events(data: bytes) -> list[dict[str, Any]]:
    pieces = data.split(b"\n\n")
    assert pieces.pop() == b"", "whole records only"
    found: list[dict[str, Any]] = []
    for piece in pieces:
        name, payload = piece.split(b"\n")
        event = json.loads(payload.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        found.append(event)
    return found


def streamed(answer: MessagesEncoder, *chunks: UpstreamChunk) -> list[dict[str, Any]]:
    told = answer.opening(())
    for one in chunks:
        told += answer.records([one])
    return events(told + b"".join(answer.closing(FINISH)))


def outline(told: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    return [(event["type"], event.get("index")) for event in told]


def whole(answer: MessagesEncoder, **choice: object) -> dict[str, Any]:
    completion = msgspec.convert({"choices": [choice]}, UpstreamCompletion)
    return json.loads(answer.complete(completion, FINISH))


@pytest.mark.guarantee("T31")
def test_text_that_looks_like_framing_stays_text() -> None:
    text = "a\n\nevent: x\ndata: [DONE]\r\n\u2028\u2029\x00"
    told = streamed(encoder(), said(text))

    deltas = [event["delta"]["text"] for event in told if event["type"] == "content_block_delta"]
    assert "".join(deltas) == text
    assert {event["type"] for event in told} == EVENT_NAMES


def test_text_is_one_block_whatever_its_pieces() -> None:
    told = streamed(encoder(), said("He"), said('llo "\n'), said("", finish_reason="stop"))

    assert told[0]["message"] == {
        "id": f"msg_{REQUEST_ID.hex}",
        "type": "message",
        "role": "assistant",
        "model": "example/model-a",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        },
    }
    assert told[1] == {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    assert [event["delta"] for event in told[2:4]] == [
        {"type": "text_delta", "text": "He"},
        {"type": "text_delta", "text": 'llo "\n'},
    ]
    assert told[4:] == [
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": USAGE,
        },
        {"type": "message_stop"},
    ]


def test_blocks_follow_each_other() -> None:
    told = streamed(
        encoder(thinking={"type": "adaptive"}),
        chunk(delta={"reasoning": "Hm."}),
        said("I look."),
        call(0, '{"a":', id="x", name="f"),
        call(0, "1}"),
        call(1, "{}", id="y", name="g"),
        said("Done.", finish_reason="tool_calls"),
    )

    blocks = [event["content_block"] for event in told if event["type"] == "content_block_start"]
    assert blocks == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "x", "name": "f", "input": {}},
        {"type": "tool_use", "id": "y", "name": "g", "input": {}},
        {"type": "text", "text": ""},
    ]
    assert outline(told) == [
        ("message_start", None),
        *[(f"content_block_{step}", 0) for step in ("start", "delta", "stop")],
        *[(f"content_block_{step}", 1) for step in ("start", "delta", "stop")],
        *[(f"content_block_{step}", 2) for step in ("start", "delta", "delta")],
        *[(f"content_block_{step}", 3) for step in ("start", "delta")],
        *[(f"content_block_{step}", 4) for step in ("start", "delta", "stop")],
        *[("content_block_stop", index) for index in (2, 3)],
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


def joined(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a stream as a client adds them up: by index."""
    blocks: list[dict[str, Any]] = []
    for event in told:
        if event["type"] == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append({"arguments": "", **event["content_block"]})
        elif event["type"] == "content_block_delta":
            delta: dict[str, str] = event["delta"]
            is_call = delta["type"] == "input_json_delta"
            member = "partial_json" if is_call else delta["type"].removesuffix("_delta")
            blocks[event["index"]]["arguments" if is_call else member] += delta[member]
    return blocks


def test_thinking_after_a_signature_is_a_block_of_its_own() -> None:
    pieces = [{"reasoning": "a"}, {"signature": "c2ln"}, {"reasoning": "b"}, {"reasoning": "c"}]
    deltas = [chunk(delta=delta) for delta in (*pieces, {"signature": "bWVu"})]

    told = streamed(encoder(thinking={"type": "adaptive"}), *deltas, said("Hi"))

    started = [each["content_block"]["type"] for each in told if "content_block" in each]
    added = [each for each in told if each["type"] == "content_block_delta"]
    shown = [(each["index"], *each["delta"].values()) for each in added]
    assert started == ["thinking", "thinking", "text"]
    assert shown == [
        (0, "thinking_delta", "a"),
        (0, "signature_delta", "c2ln"),
        (1, "thinking_delta", "b"),
        (1, "thinking_delta", "c"),
        (1, "signature_delta", "bWVu"),
        (2, "text_delta", "Hi"),
    ]


def test_pieces_of_calls_may_come_in_any_order() -> None:
    told = streamed(
        encoder(),
        call(0, '{"a":', id="x", name="f"),
        call(1, '{"b":', id="y", name="g"),
        said("Hm."),
        call(0, "1}"),
        chunk(
            delta={"content": "\n", "tool_calls": [{"index": 1, "function": {"arguments": "2}"}}]}
        ),
    )

    found = [(block.get("name"), block["arguments"], block.get("text")) for block in joined(told)]
    assert found == [("f", '{"a":1}', None), ("g", '{"b":2}', None), (None, "", "Hm.\n")]
    assert [event["type"] for event in told].count("content_block_stop") == 3


def test_a_name_may_come_after_the_id_and_after_arguments() -> None:
    told = streamed(
        encoder(), call(0, id="x"), call(0, '{"a"'), call(0, ":1}", name="f"), call(1, "{", id="y")
    )

    assert [(block["id"], block["name"], block["arguments"]) for block in joined(told)] == [
        ("x", "f", '{"a":1}'),
        ("y", "", "{"),
    ]


def test_another_id_at_the_same_index_is_another_call() -> None:
    told = streamed(
        encoder(), call(0, '{"a":1}', id="x", name="f"), call(0, '{"b":2}', id="y", name="g")
    )

    assert [(block["id"], block["arguments"]) for block in joined(told)] == [
        ("x", '{"a":1}'),
        ("y", '{"b":2}'),
    ]


def test_a_call_without_an_id_gets_one() -> None:
    told = streamed(encoder(), call(0, "{}", name="f"), call(1, "{}", name="f"))
    blocks = [event["content_block"] for event in told if event["type"] == "content_block_start"]

    assert [block["id"] for block in blocks] == [
        f"toolu_{REQUEST_ID.hex}_1",
        f"toolu_{REQUEST_ID.hex}_2",
    ]


@pytest.mark.parametrize("thinking", [None, {"type": "adaptive", "display": "omitted"}])
def test_thinking_is_shown_to_those_who_asked_for_it(thinking: dict[str, Any] | None) -> None:
    answer = encoder(thinking=thinking)

    assert answer.records([chunk(delta={"reasoning_content": "Hm."})]) == b""
    assert whole(encoder(thinking=thinking), message={"reasoning": "Hm.", "content": "Hi"})[
        "content"
    ] == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize(
    ("choice", "end"),
    [
        ({"finish_reason": "stop"}, ("end_turn", None)),
        ({"finish_reason": None}, ("end_turn", None)),
        ({"finish_reason": "length"}, ("max_tokens", None)),
        ({"finish_reason": "content_filter"}, ("refusal", None)),
        ({"finish_reason": "stop", "stop_reason": "END"}, ("stop_sequence", "END")),
        ({"finish_reason": "stop", "stop_reason": "other"}, ("end_turn", None)),
        ({"finish_reason": "stop", "stop_reason": 128009}, ("end_turn", None)),
        ({"finish_reason": "length", "stop_reason": "END"}, ("max_tokens", None)),
    ],
)
def test_an_answer_says_why_it_ended(choice: dict[str, Any], end: tuple[str, str | None]) -> None:
    body = whole(encoder(stop_sequences=["END"]), message={"content": "Hi"}, **choice)
    told = streamed(encoder(stop_sequences=["END"]), said("Hi", **choice))

    assert (body["stop_reason"], body["stop_sequence"]) == end
    assert (told[-2]["delta"]["stop_reason"], told[-2]["delta"]["stop_sequence"]) == end


def test_a_refusal_of_the_model_is_text() -> None:
    body = whole(encoder(), message={"refusal": "No."}, finish_reason="stop")

    assert body["content"] == [{"type": "text", "text": "No."}]
    assert body["stop_reason"] == "refusal"


def test_a_forced_call_ends_as_a_call() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    calls = [{"id": "x", "type": "function", "function": function}]
    body = whole(encoder(), message={"tool_calls": calls}, finish_reason="stop")

    assert body["content"] == [{"type": "tool_use", "id": "x", "name": "f", "input": {"a": 1}}]
    assert body["stop_reason"] == "tool_use"
    assert body["usage"] == USAGE


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "5", '{"a":' + "[" * 2_000, "\ud800"])
def test_arguments_that_are_no_object_are_shown_as_they_are(arguments: str) -> None:
    assert input_of(arguments) == {"INVALID_JSON": arguments}


@pytest.mark.parametrize("depth", [100, 900, 990, 1_000, 5_000])
def test_arguments_may_be_nested_as_deep_as_the_model_likes(depth: int) -> None:
    arguments = '{"a":' + "[" * depth + "]" * depth + "}"
    function = {"name": "f", "arguments": arguments}
    calls = [{"id": "x", "type": "function", "function": function}]
    completion = msgspec.convert(
        {"choices": [{"message": {"tool_calls": calls}}]}, UpstreamCompletion
    )

    assert arguments[5:-1].encode() in encoder().complete(completion, FINISH)


def test_a_failure_is_the_last_event() -> None:
    error = ErrorBody(
        code="backend_error",
        message="m",
        type="api_error",
        param=None,
        request_id=str(REQUEST_ID),
        doc_url=None,
    )

    (told,) = events(encoder().failure(error))

    assert told["type"] == "error"
    assert told["error"]["type"] == "api_error"
    assert told["request_id"] == str(REQUEST_ID)
