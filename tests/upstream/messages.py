"""Anthropic's Messages API: its requests read as chats, and answers in its two forms."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from tests.upstream.answers import Run, ScriptedAnswer
from tests.upstream.asked import ChatAsked
from tests.upstream.scripts import UpstreamScript
from tollhouse.contract.bounds import FreeObject
from tollhouse.trial.chat import MODEL, SentMessage, prompt_tokens

VERSION_HEADER: Final = "anthropic-version"
ID: Final = "msg_test"
SIGNATURE: Final = "c2lnbmVkIGJ5IHRoZSB0ZXN0"
NO_VERSION: Final = UpstreamScript(
    status=400,
    error={"type": "invalid_request_error", "message": "anthropic-version: header is required"},
)
SCRIPTED_ERROR: Final[FreeObject] = {"type": "api_error", "message": "The script says so."}
STOP_REASONS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_USAGE_NAMES: Final = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


class MessagesAsked(Struct, frozen=True):
    """Body of POST /v1/messages."""

    messages: list[SentMessage]
    max_tokens: int
    model: str = MODEL
    system: str | list[FreeObject] | None = None
    stream: bool | None = None
    tools: list[FreeObject] | None = None
    tool_choice: FreeObject | None = None
    thinking: FreeObject | None = None

    def as_chat(self) -> ChatAsked:
        """Return the chat that is answered in the same way."""
        system = [] if self.system is None else [SentMessage("system", self.system)]
        return ChatAsked(
            messages=[*system, *map(_shown, self.messages)],
            model=self.model,
            stream=self.stream,
            max_tokens=self.max_tokens,
            tools=[_function(tool) for tool in self.tools or ()] or None,
            tool_choice=_choice(self.tool_choice or {}),
            reasoning_effort="medium" if self.thinking else None,
        )


def _shown(message: SentMessage) -> SentMessage:
    """Return a message whose results of tools are texts."""
    if not isinstance(message.content, list):
        return message
    parts = [part for block in message.content for part in (_inner(block) or [block])]
    calls = [block for block in message.content if block.get("type") == "tool_use"]
    return SentMessage(message.role, parts, calls or None)


def _inner(block: FreeObject) -> list[FreeObject]:
    inner: Any = block.get("content")
    return [{"text": inner}] if isinstance(inner, str) else inner or []


def _function(tool: FreeObject) -> FreeObject:
    return {"function": {"name": tool["name"], "parameters": tool["input_schema"]}}


def _choice(choice: FreeObject) -> str | FreeObject | None:
    if choice.get("type") == "tool":
        return {"function": {"name": choice["name"]}}
    return "required" if choice.get("type") == "any" else None


def error_body(error: FreeObject | None) -> bytes:
    """Return an error in the form of this API."""
    return msgspec.json.encode({"type": "error", "error": error or SCRIPTED_ERROR})


def message(answer: ScriptedAnswer) -> bytes:
    """Return the whole answer as JSON."""
    blocks = [_block(answer, run, number) for number, run in enumerate(answer.runs)]
    body = _body(answer) | {
        "content": blocks,
        "stop_reason": _stop_reason(answer),
        "stop_sequence": None,
    }
    if (reported := _usage(answer, answer.choice_tokens)) is not None:
        body["usage"] = reported
    return msgspec.json.encode(body)


def events(answer: ScriptedAnswer) -> Iterator[bytes]:
    """Yield the data of each event. The error of a script is not among them."""
    start: FreeObject = _body(answer) | {"content": [], "stop_reason": None, "stop_sequence": None}
    if (begun := _usage(answer, 1)) is not None:
        start["usage"] = begun
    if answer.script.padding_bytes:
        start["padding"] = "x" * answer.script.padding_bytes
    yield _event("message_start", message=start)
    yield _event("ping")
    for index, run in enumerate(answer.runs):
        yield _event("content_block_start", index=index, content_block=_opened(answer, run, index))
        for delta in _deltas(run):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end: FreeObject = {"delta": {"stop_reason": _stop_reason(answer), "stop_sequence": None}}
    if (reported := _usage(answer, answer.choice_tokens)) is not None:
        end["usage"] = reported
    yield _event("message_delta", **end)
    if answer.script.done:
        yield _event("message_stop")


def _event(kind: str, **members: object) -> bytes:
    return msgspec.json.encode({"type": kind, **members})


def _body(answer: ScriptedAnswer) -> FreeObject:
    return {"id": ID, "type": "message", "role": "assistant", "model": answer.asked.model}


def _opened(answer: ScriptedAnswer, run: Run, index: int) -> FreeObject:
    """Return a block that is still empty."""
    return _block(answer, Run(kind=run.kind, tokens=(), name=run.name), index) | (
        {"signature": ""} if run.kind == "reasoning" else {}
    )


def _block(answer: ScriptedAnswer, run: Run, index: int) -> FreeObject:
    match run.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": run.text, "signature": SIGNATURE}
        case "tool_call" | "function_call":
            call = {"id": _call_id(answer, index), "name": run.name, "input": _input(run.text)}
            return {"type": "tool_use", **call}
        case _:
            return {"type": "text", "text": run.text}


def _deltas(run: Run) -> Iterator[FreeObject]:
    match run.kind:
        case "reasoning":
            yield from ({"type": "thinking_delta", "thinking": token} for token in run.tokens)
            yield {"type": "signature_delta", "signature": SIGNATURE}
        case "tool_call" | "function_call":
            yield {"type": "input_json_delta", "partial_json": ""}
            arguments: Sequence[str] = () if run.text == "{}" else run.tokens
            yield from ({"type": "input_json_delta", "partial_json": each} for each in arguments)
        case _:
            yield from ({"type": "text_delta", "text": token} for token in run.tokens)


def _input(arguments: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return {}


def _stop_reason(answer: ScriptedAnswer) -> str:
    return STOP_REASONS.get(answer.finish_reason, answer.finish_reason)


def _usage(answer: ScriptedAnswer, output_tokens: int) -> Any:  # noqa: ANN401 - a script may send anything
    """Return the usage object: exact, unless the script replaces it."""
    script = answer.script
    if script.usage is None or isinstance(script.usage, str):
        return script.usage
    read, written = script.cached_tokens or 0, script.cache_write_tokens or 0
    exact: FreeObject = {
        "input_tokens": prompt_tokens(answer.asked.messages) - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output_tokens,
    }
    if script.usage is UNSET:
        return exact
    return exact | {_USAGE_NAMES.get(name, name): value for name, value in script.usage.items()}


def _call_id(answer: ScriptedAnswer, index: int) -> str:
    """Return an ID that no earlier call of the conversation has."""
    earlier = sum(len(message.tool_calls or ()) for message in answer.asked.messages)
    return f"toolu_{earlier + index}"
