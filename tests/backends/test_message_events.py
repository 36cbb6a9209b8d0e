"""Answers of Anthropic's Messages API, in the shapes that its documentation shows."""

from typing import Any

import msgspec
import pytest

from tollhouse.backends.message_events import ErrorEvent, MessageStreamDecoder, decode_message
from tollhouse.backends.openai_json import Undecodable
from tollhouse.backends.types import UpstreamChunk, UpstreamUsage


def whole(*content: dict[str, Any], **members: object) -> bytes:
    return msgspec.json.encode(
        {"type": "message", "role": "assistant", "content": content, **members}
    )


def decoded(*events: dict[str, Any]) -> list[UpstreamChunk]:
    decoder = MessageStreamDecoder()
    return [chunk for event in events for chunk in decoder.decode(msgspec.json.encode(event))]


def test_usage_counts_all_input_as_prompt() -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
    }

    found = decode_message(whole({"type": "text", "text": "Hi"}, usage=usage)).usage

    assert found is not None
    assert (found.prompt_tokens, found.completion_tokens) == (123, 7)
    assert found.prompt_tokens_details is not None
    assert found.prompt_tokens_details.cached_tokens == 100
    assert found.prompt_tokens_details.cache_write_tokens == 20
    assert found.completion_tokens_details is not None
    assert found.completion_tokens_details.reasoning_tokens == 4


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": -1}, {"input_tokens": "3"}, "x", 3])
def test_an_answer_without_sound_usage_is_an_answer(usage: object) -> None:
    completion = decode_message(whole({"type": "text", "text": "Hi"}, usage=usage))

    assert completion.usage is None
    assert completion.choices[0].message.content == "Hi"


REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


@pytest.mark.parametrize(("said", "reason"), REASONS.items())
def test_reasons_to_stop_are_those_of_a_chat(said: str, reason: str) -> None:
    (choice,) = decode_message(whole(stop_reason=said, stop_sequence="END")).choices
    (chunk,) = decoded(
        {"type": "message_delta", "delta": {"stop_reason": said, "stop_sequence": "END"}}
    )

    assert (choice.finish_reason, choice.stop_reason) == (reason, "END")
    assert (chunk.choices[0].finish_reason, chunk.choices[0].stop_reason) == (reason, "END")


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b"{}", b'{"type":"error","error":{"type":"api_error"}}', b'{"type":3}'],
)
def test_what_is_no_message_is_not_decoded(body: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_message(body)


def test_several_thoughts_have_no_signature_that_a_chat_could_keep() -> None:
    thoughts = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in "ab"]

    (one,) = decode_message(whole(thoughts[0])).choices
    (two,) = decode_message(whole(*thoughts)).choices

    assert (one.message.reasoning, one.message.signature) == ("a", "c2ln")
    assert (two.message.reasoning, two.message.signature) == ("a\nb", None)


def test_unknown_blocks_and_events_are_dropped() -> None:
    chunks = decoded(
        {"type": "ping"},
        {"type": "news"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta"}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{"},
        },
        {"type": "content_block_stop", "index": 0},
    )

    assert chunks == []


STRANGE_BLOCK = {"type": "server_tool_use", "text": {"a": 1}, "name": 3}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "future", "delta": "x"},
        {"type": "ping", "index": None},
        {"type": "content_block_start", "index": 0, "content_block": STRANGE_BLOCK},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "text": []}},
    ],
)
def test_unknown_events_and_blocks_may_have_any_members(event: dict[str, Any]) -> None:
    assert decoded(event) == []


def test_unknown_blocks_of_a_whole_answer_may_have_any_members() -> None:
    (choice,) = decode_message(whole(STRANGE_BLOCK, {"type": "text", "text": "Hi"})).choices

    assert choice.message.content == "Hi"
    with pytest.raises(Undecodable):
        decode_message(whole({"type": "text", "text": {}}))


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_start", "content_block": {"type": "text", "text": {}}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": {}}},
        {"type": "content_block_delta", "delta": "x"},
        {"type": "message_delta", "delta": {"stop_reason": 3}},
    ],
)
def test_known_events_with_other_members_are_not_decoded(event: dict[str, Any]) -> None:
    with pytest.raises(Undecodable):
        decoded(event)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, ""),
        ("overloaded", ""),
        ({"type": 3}, ""),
        ({"type": "overloaded_error", "message": {}}, "overloaded_error"),
    ],
)
@pytest.mark.parametrize("members", [{}, {"index": None}])
def test_an_error_in_any_form_is_an_error(
    error: object, kind: str, members: dict[str, Any]
) -> None:
    with pytest.raises(ErrorEvent) as raised:
        decoded({"type": "error", "error": error, **members})

    assert raised.value.kind == kind


def test_a_call_without_arguments_gets_an_empty_object() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    chunks = decoded(
        {"type": "content_block_start", "index": 1, "content_block": block},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": ""},
        },
        {"type": "content_block_stop", "index": 1},
    )

    calls = [chunk.choices[0].delta.tool_calls for chunk in chunks]
    functions = [call[0].function for call in calls if call]
    assert "".join(each.arguments or "" for each in functions if each) == "{}"
    assert {call[0].index for call in calls if call} == {0}


def test_a_report_of_the_output_alone_keeps_the_prompt() -> None:
    start = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    *_, begun, ended = decoded(
        {"type": "message_start", "message": {"usage": start}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 0, "output_tokens": 12}},
    )

    assert isinstance(begun.usage, UpstreamUsage)
    assert (begun.usage.prompt_tokens, begun.usage.completion_tokens) == (15, None)
    assert isinstance(ended.usage, UpstreamUsage)
    assert (ended.usage.prompt_tokens, ended.usage.completion_tokens) == (15, 12)


def counts(*usages: dict[str, Any]) -> tuple[int, int | None, int | None, int | None]:
    """Prompt, cached, written and output tokens after these reports."""
    first, *later = usages
    chunks = decoded(
        {"type": "message_start", "message": {"usage": first}},
        *({"type": "message_delta", "delta": {}, "usage": usage} for usage in later),
    )
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    details = usage.prompt_tokens_details
    cached, written = details.cached_tokens, details.cache_write_tokens
    return usage.prompt_tokens, cached, written, usage.completion_tokens


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        pytest.param([{}, {"output_tokens": 5_000}], (0, 0, 0, 5_000), id="no prompt"),
        pytest.param(
            [{"input_tokens": 9, "cache_read_input_tokens": "x"}, {"output_tokens": 5}],
            (9, 0, 0, 5),
            id="an invalid count",
        ),
        pytest.param(
            [{"input_tokens": 9}, {"output_tokens": 5, "output_tokens_details": 3}],
            (9, 0, 0, 5),
            id="invalid details",
        ),
        pytest.param(
            [
                {"input_tokens": 500},
                {"input_tokens": 0, "cache_read_input_tokens": 500, "output_tokens": 5},
            ],
            (500, 500, 0, 5),
            id="a cache read that is told at the end",
        ),
        pytest.param(
            [
                {"input_tokens": 3, "cache_creation_input_tokens": 20},
                {"input_tokens": 3, "output_tokens": 5},
            ],
            (23, 0, 20, 5),
            id="a part of the prompt repeated",
        ),
        pytest.param(
            [{"input_tokens": 2**31 - 1}, {"cache_read_input_tokens": 1, "output_tokens": 5}],
            (2**31 - 1, 1, 0, 5),
            id="an absurd sum",
        ),
    ],
)
def test_each_count_is_kept_by_itself_and_the_prompt_is_counted_once(
    usages: list[dict[str, Any]], expected: tuple[int, int, int, int]
) -> None:
    assert counts(*usages) == expected


def test_an_output_without_a_prompt_is_kept_from_a_whole_answer() -> None:
    usage = decode_message(whole({"type": "text", "text": "Hi"}, usage={"output_tokens": 9})).usage

    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (0, 9)


@pytest.mark.parametrize("event", [b"{]", b"[]", b'{"type":"message_start","message":3}'])
def test_an_event_that_is_none_is_not_decoded(event: bytes) -> None:
    with pytest.raises(Undecodable):
        MessageStreamDecoder().decode(event)


def test_an_error_tells_its_type() -> None:
    with pytest.raises(ErrorEvent) as raised:
        decoded({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})

    assert raised.value.kind == "overloaded_error"
