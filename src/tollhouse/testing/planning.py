"""Which script a request gets and what is to be sent: pure, so that nothing waits here."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from tollhouse.contract.bounds import FreeObject
from tollhouse.testing.answers import Answer, answer_to
from tollhouse.testing.asked import (
    MODEL,
    ChatAsked,
    CountAsked,
    Message,
    TokenizeAsked,
    last_words,
)
from tollhouse.testing.connection import Request
from tollhouse.testing.rendering import CREATED, completion
from tollhouse.testing.scripts import SOUND, Script, brought

CONTEXT_LENGTH: Final = 131_072
REMEMBERED_MAX: Final = 256
REMEMBERED_BODY_BYTES_MAX: Final = 65_536
UNKNOWN: Final = Script(status=404, error={"message": "There is nothing here.", "code": 404})
SAID_SO: Final[FreeObject] = {"message": "The script says so.", "type": "scripted", "code": None}
MODEL_LIST: Final[FreeObject] = {
    "object": "list",
    "data": [{"id": MODEL, "object": "model", "created": CREATED, "owned_by": "tollhouse"}],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One body, or an answer to be streamed."""

    script: Script
    content: bytes | Answer


def plan(request: Request, queued: Script | None, *, tokens_default: int) -> Plan:
    """A request, or a script in it, that cannot be read is refused."""
    try:
        return _planned(request, queued, tokens_default)
    except msgspec.MsgspecError as error:
        return _whole(Script(status=400, error={"message": str(error), "code": 400}), {})


def _planned(request: Request, queued: Script | None, tokens_default: int) -> Plan:
    match request.method, request.path:
        case "POST", "/v1/chat/completions":
            is_remembered = queued is None and len(request.body) <= REMEMBERED_BODY_BYTES_MAX
            plan_chat = _remembered_chat if is_remembered else _chat
            return plan_chat(request.body, queued, tokens_default)
        case "POST", "/v1/messages/count_tokens":
            counted = msgspec.json.decode(request.body, type=CountAsked)
            script = queued or _brought(counted.messages)
            return _whole(script, {"input_tokens": counted.prompt_tokens()})
        case "POST", "/tokenize":
            tokenized = msgspec.json.decode(request.body, type=TokenizeAsked)
            script = queued or _brought(tokenized.messages or [])
            return _whole(script, _tokens(tokenized.tokens()))
        case "GET", "/v1/models":
            return _whole(queued or SOUND, MODEL_LIST)
        case "GET", "/health":
            return _whole(queued or SOUND, {"status": "ok"})
        case _:
            return _whole(queued or UNKNOWN, {})


def _chat(body: bytes, queued: Script | None, tokens_default: int) -> Plan:
    asked = msgspec.json.decode(body, type=ChatAsked)
    script = queued or _brought(asked.messages)
    is_stream = bool(asked.stream)
    if (stated := _stated(script, is_stream=is_stream)) is not None:
        return Plan(script=script, content=stated)
    answer = answer_to(asked, script, tokens_default=tokens_default)
    return Plan(script=script, content=answer if is_stream else completion(answer))


# A load test asks the same over and over again.
_remembered_chat = lru_cache(REMEMBERED_MAX)(_chat)


def _whole(script: Script, sound: FreeObject) -> Plan:
    stated = _stated(script, is_stream=False)
    return Plan(script=script, content=msgspec.json.encode(sound) if stated is None else stated)


def _stated(script: Script, *, is_stream: bool) -> bytes | None:
    """What the script has sent in place of an answer, if anything."""
    match script.body:
        case None if script.status != SOUND.status or (script.error and not is_stream):
            return msgspec.json.encode({"error": script.error or SAID_SO})
        case None:
            return None
        case str(text):
            return text.encode()
        case tree:
            return msgspec.json.encode(tree)


def _brought(messages: Sequence[Message]) -> Script:
    return brought(last_words(messages)) or SOUND


def _tokens(count: int) -> dict[str, Any]:
    """Fits the dialects of vLLM and of llama.cpp."""
    return {"count": count, "max_model_len": CONTEXT_LENGTH, "tokens": list(range(count))}
