"""Fields with text that is not judged, found by a walk through the types."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from uuid import UUID

import msgspec

from tests.judge import samples
from tests.judge.samples import MARKER, Body, Path
from tollhouse.backends.openai_json import Forwarding, encode
from tollhouse.backends.types import UpstreamChunk, UpstreamCompletion
from tollhouse.base.ids import RequestId
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.message_request import MessageRequest
from tollhouse.contract.responses import ResponseRequest
from tollhouse.evaluation.content.rendering import (
    UNJUDGED_OF_ANSWER,
    UNJUDGED_OF_MESSAGE,
    UNJUDGED_OF_REQUEST,
)
from tollhouse.evaluation.errors import NotEvaluable
from tollhouse.evaluation.types import Content
from tollhouse.inference.chat import ChatEncoder
from tollhouse.inference.endpoint import Finish
from tollhouse.inference.messages.endpoint import MessagesEncoder
from tollhouse.inference.responses.endpoint import ResponsesEncoder
from tollhouse.ledger.pricing import Usage

Sample = tuple[Path, Body]

SALT = "a digest"
FORWARDING = Forwarding(
    upstream_model="m",
    output_tokens=1,
    reasoning_tokens_max=1_000,
    effort_names={},
    reasons=True,
    cache_salt=SALT,
    prompt_cache_key=SALT,
)
FINISH = Finish(usage=Usage(prompt_tokens=1, completion_tokens=1), at=datetime.now(UTC))
REQUEST_ID = RequestId(UUID(int=1))
SECOND_CHOICE = "second choice"


def of_answers(type_: type, said: str) -> list[Sample]:
    """Every place of an answer's type, in the first choice and in the second.

    What a choice says is its member `said`.
    """
    found = [*samples.of(type_), *_in_known_form(said)]
    return [*found, *_in_second_choice(found)]


def _in_known_form(said: str) -> Iterator[Sample]:
    """Callers get free-form objects only where these have the form that is usual."""
    citation = {"start_index": 0, "end_index": 1, "title": "a", "url": "https://a.example"}
    for name in ("title", "url"):
        source = {"type": "url_citation", "url_citation": citation | {name: MARKER}}
        yield ("choices", "annotations", name), _choice({said: {"annotations": [source]}})
    for name in ("name", "arguments"):
        function = {"name": "a", "arguments": "{}"} | {name: MARKER}
        call: Body = {"id": "c", "type": "function", "function": function}
        yield ("choices", "tool_calls", name), _choice({said: {"tool_calls": [call]}})
    call = {"function": {"name": "a"}, "extra_content": {"a": MARKER}}
    yield ("choices", "tool_calls", "extra_content"), _choice({said: {"tool_calls": [call]}})
    for chosen, guess in ((MARKER, "a"), ("a", MARKER)):
        guesses = [{"token": guess, "logprob": -1.0}]
        token = {"token": chosen, "logprob": -1.0, "top_logprobs": guesses}
        path = ("choices", "logprobs", "token" if chosen == MARKER else "top_logprobs")
        yield path, _choice({said: {"content": "a"}, "logprobs": {"content": [token]}})


def _choice(choice: Body) -> Body:
    return {"choices": [choice]}


def _in_second_choice(found: Iterable[Sample]) -> Iterator[Sample]:
    for path, body in found:
        for choice in body.get("choices", ()):
            choices = [{"index": 0}, choice | {"index": 1}]
            yield (SECOND_CHOICE, *path), body | {"choices": choices}


REQUESTS = samples.of(ChatRequest)
COMPLETIONS = of_answers(UpstreamCompletion, "message")
CHUNKS = of_answers(UpstreamChunk, "delta")


def chat_rendering() -> ChatEncoder:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    return ChatEncoder(msgspec.convert(body, ChatRequest), REQUEST_ID, datetime.now(UTC))


def response_rendering() -> ResponsesEncoder:
    body = {"model": "m", "input": "Hi", "include": ["message.output_text.logprobs"]}
    request = msgspec.convert(body, ResponseRequest)
    return ResponsesEncoder(request, REQUEST_ID, datetime.now(UTC))


def message_rendering() -> MessagesEncoder:
    body = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "Hi"}],
        "thinking": {"type": "adaptive"},
    }
    return MessagesEncoder(msgspec.convert(body, MessageRequest), REQUEST_ID)


def is_judged(content: Callable[[], Content]) -> bool:
    """Whether a judge sees the marker, or all of it is refused because it cannot be shown."""
    try:
        return any(MARKER in part.text for part in content().parts)
    except NotEvaluable:
        return True


def is_missed_in_request(
    path: Path, request: ChatRequest, content_of: Callable[[ChatRequest], Content]
) -> bool:
    """Whether a backend gets the marker, and no judge. Only what is exempt may stay unjudged."""
    if _is_exempt(path):
        return MARKER in encode(request, FORWARDING).decode()
    return not is_judged(lambda: content_of(request))


def is_missed_in_answer(path: Path, told: bytes, content: Callable[[], Content]) -> bool:
    """Whether a caller gets the marker, and no judge."""
    is_said = MARKER in told.decode() and UNJUDGED_OF_ANSWER.keys().isdisjoint(path)
    return is_said and not is_judged(content)


def _is_exempt(path: Path) -> bool:
    return path[0] in UNJUDGED_OF_REQUEST or (
        path[0] == "messages" and path[2] in UNJUDGED_OF_MESSAGE
    )
