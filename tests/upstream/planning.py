"""Decides which script applies to a request and what is sent. Pure: no I/O."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import msgspec

from tests.upstream import azure, messages
from tests.upstream.answers import ScriptedAnswer, answer_to
from tests.upstream.asked import ChatAsked, CountAsked, TokenizeAsked
from tests.upstream.connection import Request
from tests.upstream.rendering import CREATED, completion, records
from tests.upstream.scripts import SOUND, UpstreamScript, script_in
from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.contract.bounds import FreeObject
from tollhouse.trial import demonstration_judge
from tollhouse.trial.chat import MODEL, SentMessage, last_words

CONTEXT_LENGTH: Final = 131_072
CACHED_MAX: Final = 256
CACHED_BODY_BYTES_MAX: Final = 65_536
AZURE_CHAT: Final = re.compile(r"/openai/deployments/[^/]+/chat/completions")
UNKNOWN: Final = UpstreamScript(
    status=404, error={"message": "There is nothing here.", "code": 404}
)
SCRIPTED_ERROR: Final[FreeObject] = {
    "message": "The script says so.",
    "type": "scripted",
    "code": None,
}
MODEL_LIST: Final[FreeObject] = {
    "object": "list",
    "data": [{"id": MODEL, "object": "model", "created": CREATED, "owned_by": "tollhouse"}],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The content to send: a whole body, or an answer to stream, whose events `records` yields."""

    script: UpstreamScript
    content: bytes | ScriptedAnswer
    records: Callable[[ScriptedAnswer], Iterator[bytes]] = records
    names_events: bool = False


def plan(request: Request, queued: UpstreamScript | None, *, tokens_default: int) -> Plan:
    """Return the plan for a request. Refuses a request or a script that cannot be decoded."""
    try:
        return _planned(request, queued, tokens_default)
    except msgspec.MsgspecError as error:
        return _whole(UpstreamScript(status=400, error={"message": str(error), "code": 400}), {})


def _planned(request: Request, queued: UpstreamScript | None, tokens_default: int) -> Plan:
    if request.method == "POST":
        return _posted(request, queued, tokens_default)
    match request.method, request.path:
        case "GET", "/v1/models":
            return _whole(queued or SOUND, MODEL_LIST)
        case "GET", "/openai/models":
            return _whole(queued or azure.refusal(request) or SOUND, MODEL_LIST)
        case "GET", "/health":
            return _whole(queued or SOUND, {"status": "ok"})
        case _:
            return _whole(queued or UNKNOWN, {})


def _posted(request: Request, queued: UpstreamScript | None, tokens_default: int) -> Plan:
    match request.path:
        case "/v1/chat/completions":
            is_cached = queued is None and len(request.body) <= CACHED_BODY_BYTES_MAX
            plan_chat = _cached_chat if is_cached else _chat
            return plan_chat(request.body, queued, tokens_default)
        case path if AZURE_CHAT.fullmatch(path):
            queued = azure.refusal(request) or queued
            planned = _chat(request.body, queued, tokens_default)
            return replace(planned, records=azure.records)
        case "/v1/messages":
            queued = queued if request.headers.get(messages.VERSION_HEADER) else messages.NO_VERSION
            return _messages(request.body, queued, tokens_default)
        case "/v1/messages/count_tokens":
            counted = msgspec.json.decode(request.body, type=CountAsked)
            script = queued or _script_of(counted.messages)
            return _whole(script, {"input_tokens": counted.prompt_tokens()})
        case "/tokenize":
            tokenized = msgspec.json.decode(request.body, type=TokenizeAsked)
            script = queued or _script_of(tokenized.messages or [])
            return _whole(script, _tokens(tokenized.tokens()))
        case _:
            return _whole(queued or UNKNOWN, {})


def _chat(body: bytes, queued: UpstreamScript | None, tokens_default: int) -> Plan:
    asked = msgspec.json.decode(body, type=ChatAsked)
    if asked.model == DEMONSTRATION_JUDGE:
        return _whole(queued or SOUND, demonstration_judge.completion(last_words(asked.messages)))
    script = queued or _script_of(asked.messages)
    is_stream = bool(asked.stream)
    if (stated := _stated(script, is_stream=is_stream)) is not None:
        return Plan(script=script, content=stated)
    answer = answer_to(asked, script, tokens_default=tokens_default)
    return Plan(script=script, content=answer if is_stream else completion(answer))


def _messages(body: bytes, queued: UpstreamScript | None, tokens_default: int) -> Plan:
    asked = msgspec.json.decode(body, type=messages.MessagesAsked).as_chat()
    script = queued or _script_of(asked.messages)
    is_stream = bool(asked.stream)
    is_error = script.status != SOUND.status or (script.error is not None and not is_stream)
    if script.body is None and is_error:
        return Plan(script=script, content=messages.error_body(script.error))
    if (stated := _stated(script, is_stream=is_stream)) is not None:
        return Plan(script=script, content=stated)
    answer = answer_to(asked, script, tokens_default=tokens_default)
    content = answer if is_stream else messages.message(answer)
    return Plan(script=script, content=content, records=messages.events, names_events=True)


# A load test repeats the same request.
_cached_chat = lru_cache(CACHED_MAX)(_chat)


def _whole(script: UpstreamScript, sound: FreeObject) -> Plan:
    stated = _stated(script, is_stream=False)
    return Plan(script=script, content=msgspec.json.encode(sound) if stated is None else stated)


def _stated(script: UpstreamScript, *, is_stream: bool) -> bytes | None:
    """Return the body that the script sends in place of an answer, or None."""
    match script.body:
        case None if script.status != SOUND.status or (script.error and not is_stream):
            return msgspec.json.encode({"error": script.error or SCRIPTED_ERROR})
        case None:
            return None
        case str(text):
            return text.encode()
        case tree:
            return msgspec.json.encode(tree)


def _script_of(messages: Sequence[SentMessage]) -> UpstreamScript:
    return script_in(last_words(messages)) or SOUND


def _tokens(count: int) -> dict[str, Any]:
    """Return a token count in the forms of both vLLM and llama.cpp."""
    return {"count": count, "max_model_len": CONTEXT_LENGTH, "tokens": list(range(count))}
