"""Nothing that can carry a text reaches a backend or a caller without having been judged.

The types themselves are walked, so that a field which is new there fails here until it is judged,
or is named among the exceptions with its reason.
"""

from collections.abc import Iterable

import msgspec
import pytest

from tests.judge import samples
from tests.judge.coverage import (
    CHUNKS,
    COMPLETIONS,
    FINISH,
    FORWARDING,
    REQUESTS,
    chat_rendering,
    is_judged,
    is_missed_in_answer,
    is_missed_in_request,
    message_rendering,
    response_rendering,
)
from tests.judge.samples import MARKER, Body, Path
from tollhouse.backends.messages_json import encode_messages
from tollhouse.backends.openai_json import encode
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion, UpstreamMessage
from tollhouse.base.errors import GatewayError
from tollhouse.contract import completions as wire
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.message_request import MessageRequest
from tollhouse.contract.message_request import check as check_message
from tollhouse.contract.responses import ResponseRequest, check
from tollhouse.evaluation.content.rendering import (
    UNJUDGED_OF_MESSAGE,
    UNJUDGED_OF_REQUEST,
    completion_content,
    request_content,
)
from tollhouse.evaluation.content.stream_accumulator import StreamAccumulator
from tollhouse.inference.endpoint import AnswerEncoder
from tollhouse.inference.messages.translation import translate as translate_message
from tollhouse.inference.messages_options import check_messages_options
from tollhouse.inference.responses.translation import translate

NEVER_SAID = {"name", "tool_call_id"}
"""Fields of an answer's message that no backend's answer has."""
RESPONSES = samples.of(ResponseRequest)
_ITEM: Body = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESPONSE_PLACES: list[Body] = [
    {"instructions": MARKER},
    {"input": MARKER},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": MARKER}]}]},
    {"input": [{"role": "assistant", "content": [{"type": "output_text", "text": MARKER}]}]},
    {
        "input": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": MARKER},
            {"type": "function_call_output", "call_id": "c", "output": "done"},
        ]
    },
    {
        "input": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": MARKER},
        ]
    },
    {"input": [{**_ITEM, "extra_content": {"provider": MARKER}}]},
    {"tools": [{"type": "function", "name": "f", "description": MARKER, "parameters": {}}]},
    {
        "text": {
            "format": {
                "type": "json_schema",
                "name": "s",
                "schema": {"description": MARKER},
            }
        }
    },
]


def _said(role: str, content: object) -> list[Body]:
    return [{"role": role, "content": content}]


MESSAGES = [
    (path, body if path[0] == "messages" else body | {"messages": _said("user", "Hi")})
    for path, body in samples.of(MessageRequest)
]
"""A message that is as small as its type allows would be refused whatever stands beside it."""


_DOCUMENT: Body = {"type": "document", "source": {"type": "text", "data": "Hi"}}
MESSAGE_PLACES: list[Body] = [
    {"system": MARKER},
    {"system": [{"type": "text", "text": MARKER}]},
    {"messages": _said("user", MARKER)},
    {"messages": _said("system", MARKER)},
    {"messages": _said("user", [{"type": "text", "text": MARKER}])},
    {"messages": _said("assistant", [{"type": "text", "text": MARKER}])},
    {"messages": _said("assistant", [{"type": "thinking", "thinking": MARKER}])},
    {
        "messages": _said(
            "assistant", [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": MARKER}}]
        )
    },
    {
        "messages": _said(
            "assistant", [{"type": "tool_use", "id": "c", "name": MARKER, "input": {"a": 1}}]
        )
    },
    {
        "messages": _said(
            "assistant",
            [{"type": "tool_use", "id": "c", "name": "f", "extra_content": {"a": MARKER}}],
        )
    },
    {"messages": _said("user", [{"type": "tool_result", "tool_use_id": "c", "content": MARKER}])},
    {
        "messages": _said(
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": [{"type": "tool_reference", "tool_name": MARKER}],
                }
            ],
        )
    },
    {"messages": _said("user", [_DOCUMENT | {"title": MARKER}])},
    {"messages": _said("user", [_DOCUMENT | {"context": MARKER}])},
    {"messages": _said("user", [_DOCUMENT | {"source": {"type": "text", "data": MARKER}}])},
    {
        "messages": _said(
            "user",
            [{"type": "search_result", "title": "t", "source": MARKER, "content": "Hi"}],
        )
    },
    {"tools": [{"name": "f", "description": MARKER, "input_schema": {}}]},
    {"tools": [{"name": "f", "input_schema": {"description": MARKER}}]},
    {"output_config": {"format": {"type": "json_schema", "schema": {"description": MARKER}}}},
    {"stop_sequences": [MARKER]},
]


def named(found: Iterable[tuple[Path, Body]]) -> list[str]:
    return [".".join(path) for path, _ in found]


@pytest.fixture(params=[chat_rendering, response_rendering, message_rendering])
def rendering(request: pytest.FixtureRequest) -> AnswerEncoder:
    """What a caller of each operation reads, with all that can be asked for."""
    return request.param()


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize(("path", "body"), REQUESTS, ids=named(REQUESTS))
def test_every_text_of_a_request_is_judged_or_stays_here(path: Path, body: Body) -> None:
    request = msgspec.convert(body, ChatRequest)

    assert not is_missed_in_request(path, request, request_content)


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize(("path", "body"), RESPONSES, ids=named(RESPONSES))
def test_every_text_of_a_response_request_is_judged_or_stays_here(path: Path, body: Body) -> None:
    """It is judged as the chat that it becomes, which is all that the backend gets."""
    del path
    try:
        check(request := msgspec.convert(body, ResponseRequest))
        translated, *_ = translate(request)
    except GatewayError:
        return

    if MARKER in encode(translated, FORWARDING).decode():
        assert is_judged(lambda: request_content(translated))


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize("place", RESPONSE_PLACES)
def test_the_places_of_a_response_request_that_a_model_reads_are_judged(place: Body) -> None:
    body = {"model": "m", "input": "Hi", **place}

    translated, *_ = translate(msgspec.convert(body, ResponseRequest))

    assert MARKER in encode(translated, FORWARDING).decode()
    assert is_judged(lambda: request_content(translated))


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize(("path", "body"), MESSAGES, ids=named(MESSAGES))
def test_every_text_of_a_message_request_is_judged_or_stays_here(path: Path, body: Body) -> None:
    """It is judged as the chat that it becomes, which is all that the backend gets."""
    del path
    try:
        check_message(request := msgspec.convert(body, MessageRequest))
        translated, name_of, hints = translate_message(request)
    except GatewayError:
        return

    if MARKER in encode(translated, FORWARDING).decode():
        assert is_judged(lambda: request_content(translated))
    check_messages_options(translated, name_of)
    told = encode_messages(translated, msgspec.structs.replace(FORWARDING, hints=hints))
    if MARKER in told.decode():
        assert is_judged(lambda: request_content(translated))


def test_a_signature_that_could_be_text_is_not_forwarded() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": MARKER}
    body = {"model": "m", "max_tokens": 1, "messages": _said("assistant", [thought])}

    translated, _, hints = translate_message(msgspec.convert(body, MessageRequest))

    told = encode_messages(translated, msgspec.structs.replace(FORWARDING, hints=hints))
    assert MARKER not in told.decode()


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize("place", MESSAGE_PLACES)
def test_the_places_of_a_message_request_that_a_model_reads_are_judged(place: Body) -> None:
    body = {"model": "m", "max_tokens": 1, "messages": _said("user", "Hi"), **place}

    translated, *_ = translate_message(msgspec.convert(body, MessageRequest))

    assert MARKER in encode(translated, FORWARDING).decode()
    assert is_judged(lambda: request_content(translated))


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize(("path", "body"), COMPLETIONS, ids=named(COMPLETIONS))
def test_every_text_of_an_answer_is_judged(
    rendering: AnswerEncoder, path: Path, body: Body
) -> None:
    completion = msgspec.convert(body, UpstreamCompletion)

    told = rendering.complete(completion, FINISH)

    assert not is_missed_in_answer(path, told, lambda: completion_content(completion))


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize(("path", "body"), CHUNKS, ids=named(CHUNKS))
def test_every_text_of_a_streamed_answer_is_judged(
    rendering: AnswerEncoder, path: Path, body: Body
) -> None:
    chunk = msgspec.convert(body, UpstreamChunk)
    accumulator = StreamAccumulator()
    accumulator.add([chunk])

    told = rendering.records([chunk])

    assert not is_missed_in_answer(path, told, accumulator.content)


@pytest.mark.guarantee("T35")
def test_whatever_a_caller_can_be_told_comes_from_what_is_judged() -> None:
    told = {*wire.CompletionMessage.__struct_fields__, *wire.Delta.__struct_fields__}

    said = set(UpstreamMessage.__struct_fields__)
    # Callers of messages see a signature if no enforcing policy reads the answer.
    assert told - NEVER_SAID - {"role"} == said - {"signature"}


def test_exceptions_name_fields_that_exist() -> None:
    known = {field.encode_name for field in msgspec.structs.fields(ChatRequest)}

    assert known >= UNJUDGED_OF_REQUEST.keys()
    assert set(ChatMessage.__struct_fields__) >= UNJUDGED_OF_MESSAGE.keys()


def _is_taken(body: Body, type_: type[ResponseRequest | MessageRequest]) -> bool:
    try:
        request = msgspec.convert(body, type_)
        if isinstance(request, ResponseRequest):
            check(request)
            translate(request)
        else:
            check_message(request)
            translate_message(request)
    except GatewayError:
        return False
    return True


def test_the_walk_gets_past_the_checks() -> None:
    """A walk whose requests are all refused would prove nothing."""
    assert sum(_is_taken(body, ResponseRequest) for _, body in RESPONSES) >= 15
    assert sum(_is_taken(body, MessageRequest) for _, body in MESSAGES) >= 30


def test_the_walk_sees_what_matters() -> None:
    """A walk that found nothing would prove nothing."""
    assert {path[0] for path, _ in REQUESTS} >= {"messages", "tools", "prediction", "stop"}
    assert len(REQUESTS) > 50
    assert len(COMPLETIONS) > 40
    assert len(CHUNKS) > 30
    assert {path[0] for path, _ in MESSAGES} >= {"messages", "system", "tools", "output_config"}
