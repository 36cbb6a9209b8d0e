"""Answers of hosted providers, in the shapes that their public documentation shows.

Each shape has the whole body and the events of the same answer. `PROMPT`, `CACHED`, `WRITTEN` and
`OUTPUT` are the tokens that they report; a shape without usage is counted by the gateway.
"""

import json
from dataclasses import dataclass
from typing import Any

from tests.faults.upstream_faults import ANSWERED, BACKEND, BROKEN, BUSY, Refusal

TEXT = "Good day."
THOUGHT = "Let me think."
PROMPT, CACHED, WRITTEN, OUTPUT = 40, 8, 16, 12
DONE = "data: [DONE]\n\n"
USAGE: dict[str, Any] = {
    "prompt_tokens": PROMPT,
    "completion_tokens": OUTPUT,
    "total_tokens": PROMPT + OUTPUT,
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """An answer. `usage` has the reported tokens, or is None if the gateway has to count.

    `whole` of None means that the shape exists in streams alone.
    """

    whole: dict[str, Any] | None
    events: str
    status: int = 200
    dialect: str = "openai"
    text: str = TEXT
    thought: str = ""
    usage: tuple[int, int, int, int] | None = (PROMPT, 0, 0, OUTPUT)
    ending: Refusal | str = ANSWERED
    finish: str = "stop"


def data(*records: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(record)}\n\n" for record in records)


def chunk(delta: dict[str, Any], finish: str | None = None, **members: object) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice], **members}


def chat(message: dict[str, Any], finish: str = "stop", **members: object) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "choices": [choice], **members}


ROLE = chunk({"role": "assistant", "content": ""}, usage=None)
SAID = (chunk({"content": "Good"}), chunk({"content": " day."}))
STOP = chunk({}, "stop")
TRAILER: dict[str, Any] = {
    "id": "x",
    "object": "chat.completion.chunk",
    "choices": [],
    "usage": USAGE,
}
CACHE_DETAILS = {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN}
DETAILED = USAGE | {"prompt_tokens_details": CACHE_DETAILS}
FILTERS = {"hate": {"filtered": False, "severity": "safe"}}
PROMPT_FILTERS = [{"prompt_index": 0, "content_filter_results": FILTERS}]
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
PLAIN = chat({"content": TEXT}, usage=USAGE)

OPENAI = {
    "usage in a trailing record": Shape(
        whole=PLAIN, events=data(ROLE, *SAID, STOP, TRAILER) + DONE
    ),
    "usage beside the last choice": Shape(
        whole=PLAIN, events=data(ROLE, *SAID, chunk({}, "stop", usage=USAGE)) + DONE
    ),
    "usage missing": Shape(
        whole=chat({"content": TEXT}), events=data(ROLE, *SAID, STOP) + DONE, usage=None
    ),
    "cache reads and writes in the details": Shape(
        whole=chat({"content": TEXT}, usage=DETAILED),
        events=data(ROLE, *SAID, STOP, TRAILER | {"usage": DETAILED}) + DONE,
        usage=(PROMPT, CACHED, WRITTEN, OUTPUT),
    ),
    "no end marker": Shape(whole=PLAIN, events=data(ROLE, *SAID, STOP, TRAILER)),
    "keep-alive comments": Shape(
        whole=PLAIN,
        events=": OPENROUTER PROCESSING\n\n"
        + data(ROLE)
        + ": keep-alive\n\n"
        + data(*SAID, STOP, TRAILER)
        + DONE,
    ),
    "empty deltas": Shape(
        whole=PLAIN,
        events=data(ROLE, chunk({}), chunk({"content": ""}), *SAID, chunk({"content": None}))
        + data(STOP, TRAILER)
        + DONE,
    ),
    "results of a prompt filter": Shape(
        whole=chat({"content": TEXT}, usage=USAGE, prompt_filter_results=PROMPT_FILTERS),
        events=data({"id": "", "choices": [], "prompt_filter_results": PROMPT_FILTERS})
        + data(ROLE, *SAID, STOP, TRAILER)
        + DONE,
    ),
    "an answer that a filter ended": Shape(
        whole=chat({"content": TEXT}, "content_filter", usage=USAGE),
        events=data(ROLE, *SAID, chunk({}, "content_filter"), TRAILER) + DONE,
        finish="content_filter",
    ),
    "reasoning_content": Shape(
        whole=chat({"content": TEXT, "reasoning_content": THOUGHT}, usage=USAGE),
        events=data(ROLE, chunk({"content": None, "reasoning_content": THOUGHT}), *SAID, STOP)
        + data(TRAILER)
        + DONE,
        thought=THOUGHT,
    ),
    "reasoning": Shape(
        whole=chat({"content": TEXT, "reasoning": THOUGHT}, usage=USAGE),
        events=data(ROLE, chunk({"content": "", "reasoning": THOUGHT}), *SAID, STOP, TRAILER)
        + DONE,
        thought=THOUGHT,
    ),
    "an error in mid-stream": Shape(
        whole=None,
        events=data(ROLE, *SAID)
        + data({"error": {"code": 502, "message": "down"}, "choices": [{"index": 0, "delta": {}}]}),
        usage=None,
        ending=BROKEN,
    ),
    "an error with status 200": Shape(
        whole={"error": {"message": "Rate limit", "code": 429}},
        events=data({"error": {"message": "Rate limit", "code": 429}}),
        ending=BACKEND,
    ),
    "too many requests": Shape(
        whole={"error": {"message": "slow down"}}, events="{}", status=429, ending=BUSY
    ),
}


def event(kind: str, **members: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n"


def message(*blocks: dict[str, Any], stop: str = "end_turn", **members: object) -> dict[str, Any]:
    shared = {"id": "msg_1", "type": "message", "role": "assistant", "stop_sequence": None}
    return {**shared, "content": list(blocks), "stop_reason": stop, **members}


def started(usage: dict[str, Any] | None) -> str:
    return event("message_start", message=message(stop="", usage=usage) | {"stop_reason": None})


def block(index: int, empty: dict[str, Any], *deltas: dict[str, Any]) -> str:
    pieces = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    start = event("content_block_start", index=index, content_block=empty)
    return start + "".join(pieces) + event("content_block_stop", index=index)


def ended(usage: dict[str, Any] | None, stop: str = "end_turn") -> str:
    delta = {"stop_reason": stop, "stop_sequence": None}
    told = {} if usage is None else {"usage": usage}
    return event("message_delta", delta=delta, **told) + event("message_stop")


MESSAGE_USAGE = {"input_tokens": PROMPT, "output_tokens": OUTPUT}
CACHE_USAGE = {
    "input_tokens": PROMPT - CACHED - WRITTEN,
    "cache_creation_input_tokens": WRITTEN,
    "cache_read_input_tokens": CACHED,
    "cache_creation": {"ephemeral_5m_input_tokens": WRITTEN, "ephemeral_1h_input_tokens": 0},
    "output_tokens": OUTPUT,
    "service_tier": "standard",
}
SAID_BLOCK = {"type": "text", "text": TEXT}
NO_TEXT = {"type": "text", "text": ""}
TEXT_DELTAS = tuple({"type": "text_delta", "text": text} for text in ("Good", " day."))
THOUGHT_BLOCK = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}
BEGUN = started(MESSAGE_USAGE | {"output_tokens": 1}) + event("ping")
SPOKEN = block(0, NO_TEXT, *TEXT_DELTAS)

ANTHROPIC = {
    "a message": Shape(
        dialect="anthropic",
        whole=message(SAID_BLOCK, usage=MESSAGE_USAGE),
        events=BEGUN + SPOKEN + ended({"output_tokens": OUTPUT}),
    ),
    "a message with pings and news": Shape(
        dialect="anthropic",
        whole=message({"type": "news"}, SAID_BLOCK, usage=MESSAGE_USAGE, news=1),
        events=event("ping")
        + BEGUN
        + event("news")
        + SPOKEN
        + event("ping")
        + ended(MESSAGE_USAGE),
    ),
    "cached input": Shape(
        dialect="anthropic",
        whole=message(SAID_BLOCK, usage=CACHE_USAGE),
        events=started(CACHE_USAGE | {"output_tokens": 1})
        + SPOKEN
        + ended({"input_tokens": 0, "output_tokens": OUTPUT}),
        usage=(PROMPT, CACHED, WRITTEN, OUTPUT),
    ),
    "thinking": Shape(
        dialect="anthropic",
        whole=message(THOUGHT_BLOCK, SAID_BLOCK, usage=MESSAGE_USAGE),
        events=BEGUN
        + block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": THOUGHT},
            {"type": "signature_delta", "signature": "c2ln"},
        )
        + block(1, NO_TEXT, *TEXT_DELTAS)
        + ended(MESSAGE_USAGE),
        thought=THOUGHT,
    ),
    "no usage": Shape(
        dialect="anthropic",
        whole=message(SAID_BLOCK),
        events=started(None) + SPOKEN + ended(None),
        usage=None,
    ),
    "a refusal": Shape(
        dialect="anthropic",
        whole=message(SAID_BLOCK, stop="refusal", usage=MESSAGE_USAGE),
        events=BEGUN + SPOKEN + ended(MESSAGE_USAGE, "refusal"),
        finish="content_filter",
    ),
    "overloaded": Shape(
        dialect="anthropic", whole=OVERLOADED, events="{}", status=529, ending=BUSY
    ),
    "overloaded with status 200": Shape(
        dialect="anthropic",
        whole=None,
        events=event("error", error=OVERLOADED["error"]),
        ending=BUSY,
    ),
    "overloaded in mid-stream": Shape(
        dialect="anthropic",
        whole=None,
        events=BEGUN + SPOKEN + event("error", error=OVERLOADED["error"]),
        usage=None,
        ending=BROKEN,
    ),
    "a key that is refused": Shape(
        dialect="anthropic",
        whole={"type": "error", "error": {"type": "authentication_error", "message": "no"}},
        events="{}",
        status=401,
        ending=BACKEND,
    ),
    "an invalid request": Shape(
        dialect="anthropic",
        whole={"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        events="{}",
        status=400,
        ending=(422, "provider_validation_failed"),
    ),
}
