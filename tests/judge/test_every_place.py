"""Sound requests with a marker in each of their places: no backend gets it unless a judge does.

A place is a text, a further member of an object, or a member whose name differs in case.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec
import pytest

from tests.judge.coverage import FORWARDING, is_judged
from tests.judge.samples import MARKER, Body
from tests.judge.test_coverage import MESSAGE_PLACES, RESPONSE_PLACES
from tollhouse.backends.messages_json import encode_messages
from tollhouse.backends.openai_json import encode
from tollhouse.base.errors import GatewayError
from tollhouse.contract import chat, message_request, responses
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.message_request import MessageRequest
from tollhouse.contract.own_answers import ChatRequestWithOwnAnswers, check_own_answers
from tollhouse.contract.responses import ResponseRequest
from tollhouse.evaluation.content.rendering import request_content
from tollhouse.inference.chat_content import as_specified
from tollhouse.inference.content_parts import with_forwarded_parts
from tollhouse.inference.forwarded_tools import with_forwarded_tools
from tollhouse.inference.messages.translation import translate as translate_message
from tollhouse.inference.responses.translation import translate as translate_response

Told = tuple[ChatRequest, str]
"""A request as it is judged, and all that a backend could get of it."""

_CALL: Body = {
    "id": "c",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
    "extra_content": {"provider": {"signature": "s"}},
}
_FUNCTION: Body = {"name": "f", "description": "d", "parameters": {"type": "object", "title": "t"}}
_SCHEMA: Body = {"name": "s", "schema": {"type": "object", "description": "d"}}
CHAT_PLACES: list[Body] = [
    {"messages": [{"role": role, "content": "Hi", "name": "n"}]}
    for role in ("system", "developer", "user", "assistant")
] + [
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
    {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}]},
    {"messages": [{"role": "assistant", "reasoning": "Hm"}]},
    {"messages": [{"role": "assistant", "reasoning_content": "Hm", "content": "Hi"}]},
    {
        "messages": [
            {"role": "assistant", "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ]
    },
    {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]},
    {"messages": [{"role": "function", "name": "f", "content": "done"}]},
    {"messages": [{"role": "assistant", "content": "Hi", "refusal": "No", "parsed": {"a": "b"}}]},
    {
        "tools": [{"type": "function", "function": _FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
    },
    {"web_search_options": {"user_location": {"approximate": {"city": "Rome"}}}},
    {"audio": {"voice": "v", "format": "wav"}},
    {"functions": [_FUNCTION]},
    {"response_format": {"type": "json_schema", "json_schema": _SCHEMA}},
    {"prediction": {"type": "content", "content": [{"type": "text", "text": "Hi"}]}},
    {"stop": ["END"], "user": "u", "metadata": {"a": "b"}, "safety_identifier": "s"},
]


def marked(value: Any) -> Iterator[Any]:  # noqa: ANN401 - whatever JSON holds
    """Yield the value with the marker in one place."""
    match value:
        case str():
            yield MARKER
        case list():
            items = cast("list[Any]", value)
            for at, item in enumerate(items):
                yield from ([*items[:at], each, *items[at + 1 :]] for each in marked(item))
        case dict():
            members = cast("Body", value)
            yield members | {"zz_unknown": MARKER}
            for name, member in members.items():
                yield members | {name.upper(): MARKER}
                yield from (members | {name: each} for each in marked(member))
        case _:
            return


def of_chat(body: Body) -> Told:
    sent = msgspec.convert(body, ChatRequestWithOwnAnswers)
    chat.check(sent)
    check_own_answers(sent)
    request = with_forwarded_tools(with_forwarded_parts(as_specified(sent)))
    return request, encode(request, FORWARDING).decode()


def of_response(body: Body) -> Told:
    request = msgspec.convert(body, ResponseRequest)
    responses.check(request)
    translated, *_ = translate_response(request)
    return translated, encode(translated, FORWARDING).decode()


def of_message(body: Body) -> Told:
    request = msgspec.convert(body, MessageRequest)
    message_request.check(request)
    translated, _, hints = translate_message(request)
    by_messages = encode_messages(translated, msgspec.structs.replace(FORWARDING, hints=hints))
    return translated, encode(translated, FORWARDING).decode() + by_messages.decode()


def without_marker(place: Body) -> Body:
    return msgspec.json.decode(msgspec.json.encode(place).replace(MARKER.encode(), b"Hi"))


SAID = [{"role": "user", "content": "Hi"}]
Endpoint = tuple[Callable[[Body], Told], Body, list[Body], int]
ENDPOINTS: dict[str, Endpoint] = {
    "chat": (of_chat, {"model": "m", "messages": SAID}, CHAT_PLACES, 90),
    "responses": (of_response, {"model": "m", "input": "Hi"}, RESPONSE_PLACES, 20),
    "messages": (
        of_message,
        {"model": "m", "max_tokens": 1, "messages": SAID},
        MESSAGE_PLACES,
        40,
    ),
}


@pytest.mark.guarantee("T35")
@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_is_forwarded_of_a_sound_request_is_judged(name: str) -> None:
    told_of, base, places, forwarded_min = ENDPOINTS[name]
    forwarded, missed = 0, list[Body]()
    for sound in (base | without_marker(place) for place in places):
        told_of(sound)
        for body in marked(sound):
            try:
                request, told = told_of(body)
            except (GatewayError, msgspec.ValidationError):
                continue
            if MARKER in told:
                forwarded += 1
                if not is_judged(lambda request=request: request_content(request)):
                    missed.append(body)

    assert missed == []
    assert forwarded >= forwarded_min
