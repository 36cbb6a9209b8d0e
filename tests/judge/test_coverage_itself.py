"""What the tests of coverage say of a naive judge, and of a field that is new: they catch both."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from tests.judge import samples
from tests.judge.coverage import (
    CHUNKS,
    COMPLETIONS,
    FINISH,
    REQUESTS,
    SECOND_CHOICE,
    Sample,
    chat_rendering,
    is_missed_in_answer,
    is_missed_in_request,
    of_answers,
    response_rendering,
)
from tests.judge.samples import Path
from tollhouse.backends.types import (
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamMessage,
)
from tollhouse.base.policies import Direction, JudgedDirection
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.evaluation.content.rendering import completion_content, request_content
from tollhouse.evaluation.content.stream_accumulator import StreamAccumulator
from tollhouse.evaluation.types import Content, ContentPart
from tollhouse.inference.endpoint import AnswerEncoder

NEW = "whispers"
CONTENT = "content"
SENT_BESIDE_CONTENT = {
    *("tools", "tool_choice", "functions", "function_call", "tool_calls", "tool_call_id"),
    *("reasoning", "reasoning_content", "response_format", "prediction", "stop", "logit_bias"),
}
SAID_BESIDE_CONTENT = {
    *("refusal", "reasoning", "reasoning_content", "tool_calls", "function_call"),
    *("annotations", "logprobs", SECOND_CHOICE),
}
TOLD_IN_CHATS_ALONE = {"function_call", SECOND_CHOICE}
RENDERINGS = pytest.mark.parametrize(
    ("new_rendering", "groups"),
    [
        (chat_rendering, SAID_BESIDE_CONTENT),
        (response_rendering, SAID_BESIDE_CONTENT - TOLD_IN_CHATS_ALONE),
    ],
)


def only(direction: JudgedDirection, contents: Iterable[object]) -> Content:
    parts = tuple(ContentPart(CONTENT, text) for text in contents if isinstance(text, str))
    return Content(direction=direction, parts=parts, opening=1)


def contents_of_request(request: ChatRequest) -> Content:
    return only(Direction.REQUEST, (message.content for message in request.messages))


def content_of_completion(completion: UpstreamCompletion) -> Content:
    return only(Direction.RESPONSE, (each.message.content for each in completion.choices[:1]))


def content_of_chunk(chunk: UpstreamChunk) -> Content:
    return only(Direction.RESPONSE, (each.delta.content for each in chunk.choices[:1]))


def accumulator(chunk: UpstreamChunk) -> Content:
    accumulating = StreamAccumulator()
    accumulating.add([chunk])
    return accumulating.content()


def missed_requests(
    found: Iterable[Sample],
    content_of: Callable[[ChatRequest], Content],
    type_: type[ChatRequest] = ChatRequest,
) -> list[Path]:
    return [
        path
        for path, body in found
        if is_missed_in_request(path, msgspec.convert(body, type_), content_of)
    ]


def missed_answers(
    found: Iterable[Sample],
    content_of: Callable[[Any], Content],
    type_: type[Struct],
    tell: Callable[[Any], bytes],
) -> list[Path]:
    missed: list[Path] = []
    for path, body in found:
        answer = msgspec.convert(body, type_)
        if is_missed_in_answer(path, tell(answer), lambda: content_of(answer)):  # noqa: B023 - called at once
            missed.append(path)
    return missed


def counted(missed: list[Path], groups: Iterable[str]) -> dict[str, int]:
    return {group: sum(group in path for path in missed) for group in groups}


def with_new_field(type_: type[Struct], *replaced: tuple[Any, ...]) -> Any:  # noqa: ANN401 - made here
    """The type as it may be tomorrow: with a text more, or with fields whose type has one."""
    fields = replaced or ((NEW, str | None, None),)
    return msgspec.defstruct(
        f"New{type_.__name__}", fields, bases=(type_,), frozen=True, kw_only=True
    )


def test_who_reads_only_contents_of_a_request_is_caught_in_every_group() -> None:
    missed = missed_requests(REQUESTS, contents_of_request)

    assert min(counted(missed, SENT_BESIDE_CONTENT).values()) > 0
    assert ("messages", "item", CONTENT) not in missed
    assert missed_requests(REQUESTS, request_content) == []


@RENDERINGS
def test_who_reads_only_the_first_content_of_an_answer_is_caught_in_every_group(
    new_rendering: Callable[[], AnswerEncoder], groups: set[str]
) -> None:
    def tell(completion: UpstreamCompletion) -> bytes:
        return new_rendering().complete(completion, FINISH)

    missed = missed_answers(COMPLETIONS, content_of_completion, UpstreamCompletion, tell)

    assert min(counted(missed, groups).values()) > 0
    assert ("choices", "item", "message", CONTENT) not in missed
    assert missed_answers(COMPLETIONS, completion_content, UpstreamCompletion, tell) == []


@RENDERINGS
def test_who_reads_only_the_first_content_of_a_record_is_caught_in_every_group(
    new_rendering: Callable[[], AnswerEncoder], groups: set[str]
) -> None:
    def tell(chunk: UpstreamChunk) -> bytes:
        return new_rendering().records([chunk])

    missed = missed_answers(CHUNKS, content_of_chunk, UpstreamChunk, tell)

    assert min(counted(missed, groups).values()) > 0
    assert ("choices", "item", "delta", CONTENT) not in missed
    assert missed_answers(CHUNKS, accumulator, UpstreamChunk, tell) == []


@pytest.mark.parametrize(
    "type_",
    [
        pytest.param(with_new_field(ChatRequest), id="request"),
        pytest.param(
            with_new_field(ChatRequest, ("messages", list[with_new_field(ChatMessage)])),
            id="message",
        ),
    ],
)
def test_a_new_field_of_a_request_is_judged_from_its_first_day(type_: type[ChatRequest]) -> None:
    found = [sample for sample in samples.of(type_) if NEW in sample[0]]

    assert missed_requests(found, request_content, type_) == []
    assert len(missed_requests(found, contents_of_request, type_)) == len(found) == 1


def test_a_new_field_of_an_answer_is_judged_from_its_first_day() -> None:
    message = with_new_field(UpstreamMessage)
    choice = with_new_field(UpstreamChoice, ("message", message, message()))
    type_ = with_new_field(UpstreamCompletion, ("choices", list[choice]))
    found = [sample for sample in of_answers(type_, "message") if NEW in sample[0]]

    naive = missed_answers(found, content_of_completion, type_, msgspec.json.encode)

    assert missed_answers(found, completion_content, type_, msgspec.json.encode) == []
    assert len(naive) == len(found) == 2


def test_a_new_field_of_a_record_is_missed_until_it_is_gathered() -> None:
    """Pieces are joined by field name, so the walk finds a field that was forgotten."""
    delta = with_new_field(UpstreamDelta)
    choice = with_new_field(UpstreamChunkChoice, ("delta", delta, delta()))
    type_ = with_new_field(UpstreamChunk, ("choices", list[choice]))
    found = [sample for sample in of_answers(type_, "delta") if NEW in sample[0]]

    missed = missed_answers(found, accumulator, type_, msgspec.json.encode)

    assert len(missed) == len(found) == 2
