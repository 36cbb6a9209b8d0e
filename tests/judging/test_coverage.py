"""Nothing that can carry a text reaches a backend or a caller without having been judged.

The types themselves are walked, so that a field which is new there fails here until it is judged,
or is named among the exceptions with its reason.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from tests.judging import samples
from tests.judging.samples import MARKER, Body, Path
from tollhouse.backends.encoding import Forwarding, encode
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion, UpstreamMessage
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId
from tollhouse.contract import completions as wire
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.responses import ResponseRequest, check
from tollhouse.inference.chat import ChatRendering
from tollhouse.inference.response_translation import translate
from tollhouse.inference.responses import ResponseRendering
from tollhouse.inference.surface import Finish, Rendering
from tollhouse.judging.content import (
    UNJUDGED_OF_ANSWER,
    UNJUDGED_OF_MESSAGE,
    UNJUDGED_OF_REQUEST,
    of_completion,
    of_request,
)
from tollhouse.judging.errors import NotEvaluable
from tollhouse.judging.gathering import Gathered
from tollhouse.judging.types import Content
from tollhouse.ledger.pricing import Usage

NEVER_SAID = {"name", "tool_call_id"}
"""Fields of an answer's message that no backend's answer has."""
SALT = "a digest"
FORWARDING = Forwarding(
    upstream_model="m",
    output_tokens=1,
    effort_names={},
    reasons=True,
    cache_salt=SALT,
    prompt_cache_key=SALT,
)
REQUESTS = samples.of(ChatRequest)
COMPLETIONS = samples.of(UpstreamCompletion)
CHUNKS = samples.of(UpstreamChunk)
RESPONSES = samples.of(ResponseRequest)
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
FINISH = Finish(usage=Usage(prompt_tokens=1, completion_tokens=1), at=datetime.now(UTC))


def named(found: Iterable[tuple[Path, Body]]) -> list[str]:
    return [".".join(path) for path, _ in found]


def is_judged(content: Callable[[], Content]) -> bool:
    """Whether a judge sees the marker, or all of it is refused because it cannot be shown."""
    try:
        return any(MARKER in part.text for part in content().parts)
    except NotEvaluable:
        return True


def is_exempt(path: Path) -> bool:
    return path[0] in UNJUDGED_OF_REQUEST or (
        path[0] == "messages" and path[2] in UNJUDGED_OF_MESSAGE
    )


@pytest.fixture(params=["chat", "responses"])
def rendering(request: pytest.FixtureRequest) -> Rendering:
    """What a caller of either operation reads, with all that can be asked for."""
    request_id, now = RequestId(UUID(int=1)), datetime.now(UTC)
    if request.param == "chat":
        message = {"role": "user", "content": "Hi"}
        chat = msgspec.convert({"model": "m", "messages": [message]}, ChatRequest)
        return ChatRendering(chat, request_id, now)
    body = {"model": "m", "input": "Hi", "include": ["message.output_text.logprobs"]}
    return ResponseRendering(msgspec.convert(body, ResponseRequest), request_id, now)


@pytest.mark.parametrize(("path", "body"), REQUESTS, ids=named(REQUESTS))
def test_every_text_of_a_request_is_judged_or_stays_here(path: Path, body: Body) -> None:
    request = msgspec.convert(body, ChatRequest)

    if is_exempt(path):
        assert MARKER not in encode(request, FORWARDING).decode()
    else:
        assert is_judged(lambda: of_request(request))


@pytest.mark.parametrize(("path", "body"), RESPONSES, ids=named(RESPONSES))
def test_every_text_of_a_response_request_is_judged_or_stays_here(path: Path, body: Body) -> None:
    """It is judged as the chat that it becomes, which is all that the backend gets."""
    del path
    try:
        check(request := msgspec.convert(body, ResponseRequest))
        translated, _ = translate(request)
    except GatewayError:
        return

    if MARKER in encode(translated, FORWARDING).decode():
        assert is_judged(lambda: of_request(translated))


@pytest.mark.parametrize("place", RESPONSE_PLACES)
def test_the_places_of_a_response_request_that_a_model_reads_are_judged(place: Body) -> None:
    body = {"model": "m", "input": "Hi", **place}

    translated, _ = translate(msgspec.convert(body, ResponseRequest))

    assert MARKER in encode(translated, FORWARDING).decode()
    assert is_judged(lambda: of_request(translated))


@pytest.mark.parametrize(("path", "body"), COMPLETIONS, ids=named(COMPLETIONS))
def test_every_text_of_an_answer_is_judged(rendering: Rendering, path: Path, body: Body) -> None:
    completion = msgspec.convert(body, UpstreamCompletion)

    is_told = MARKER in rendering.complete(completion, FINISH).decode()

    if is_told and UNJUDGED_OF_ANSWER.keys().isdisjoint(path):
        assert is_judged(lambda: of_completion(completion))


@pytest.mark.parametrize(("path", "body"), CHUNKS, ids=named(CHUNKS))
def test_every_text_of_a_streamed_answer_is_judged(
    rendering: Rendering, path: Path, body: Body
) -> None:
    chunk = msgspec.convert(body, UpstreamChunk)
    gathered = Gathered()
    gathered.see([chunk])

    is_told = MARKER in rendering.records([chunk]).decode()

    if is_told and UNJUDGED_OF_ANSWER.keys().isdisjoint(path):
        assert is_judged(gathered.content)


def test_whatever_a_caller_can_be_told_comes_from_what_is_judged() -> None:
    told = {*wire.CompletionMessage.__struct_fields__, *wire.Delta.__struct_fields__}

    assert told - NEVER_SAID - {"role"} == set(UpstreamMessage.__struct_fields__)


def test_exceptions_name_fields_that_exist() -> None:
    known = {field.encode_name for field in msgspec.structs.fields(ChatRequest)}

    assert known >= UNJUDGED_OF_REQUEST.keys()
    assert set(ChatMessage.__struct_fields__) >= UNJUDGED_OF_MESSAGE.keys()


def test_the_walk_sees_what_matters() -> None:
    """A walk that found nothing would prove nothing."""
    assert {path[0] for path, _ in REQUESTS} >= {"messages", "tools", "prediction", "stop"}
    assert len(REQUESTS) > 50
    assert len(COMPLETIONS) > 20
    assert len(CHUNKS) > 15
