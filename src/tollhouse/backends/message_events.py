"""Answers of Anthropic's Messages API as completions and chunks.

They are decoded leniently: unknown blocks, events and fields are dropped, and so is invalid usage.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tollhouse.backends.openai_json import INVALID, Undecodable
from tollhouse.backends.types import (
    TOKENS_MAX,
    CachedDetails,
    FreeObject,
    FunctionDelta,
    ReasoningDetails,
    ToolCallDelta,
    UpstreamChoice,
    UpstreamChunk,
    UpstreamChunkChoice,
    UpstreamCompletion,
    UpstreamDelta,
    UpstreamMessage,
    UpstreamUsage,
)

NO_ARGUMENTS: Final = "{}"
_FINISH_REASONS: Final = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
"""The reasons of a chat, where they are not `stop`."""
_BLOCKS: Final = ("text", "thinking", "tool_use")
_DELTAS: Final = ("text_delta", "thinking_delta", "signature_delta", "input_json_delta")
_EVENTS: Final = (
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
)
"""The events that have one form."""
_PROMPT_COUNTS: Final = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)


class ErrorEvent(Exception):
    """The backend reports an error in place of the rest of its answer; `kind` is its type."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class _ReportedUsage(Struct, frozen=True):
    """The counts that were reported so far, by their names; None where there is none."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None


class _Block(Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()


class _BlockDelta(Struct, frozen=True):
    """What an event adds to a block, or says of the end of the message."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None


class _BegunMessage(Struct, frozen=True):
    usage: Any = None


class _WholeAnswer(Struct, frozen=True):
    type: str = ""
    content: list[Raw] = []
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: Any = None


class _Event(Struct, frozen=True):
    type: str
    index: int = 0
    message: _BegunMessage | None = None
    content_block: _Block | None = None
    delta: _BlockDelta | None = None
    usage: Any = None
    error: Any = None


class _AnyEvent(Struct, frozen=True):
    """An event, reduced to what says its type or an error."""

    type: str
    content_block: Any = None
    delta: Any = None
    error: Any = None


class _AnyBlock(Struct, frozen=True):
    type: str = ""


_answer_decoder: Final = msgspec.json.Decoder(_WholeAnswer)
_block_decoder: Final = msgspec.json.Decoder(_Block)
_any_block_decoder: Final = msgspec.json.Decoder(_AnyBlock)
_event_decoder: Final = msgspec.json.Decoder(_Event)
_any_event_decoder: Final = msgspec.json.Decoder(_AnyEvent)


def decode_message(body: bytes) -> UpstreamCompletion:
    """Return a complete answer, which has one choice. Raises `Undecodable`."""
    try:
        answer = _answer_decoder.decode(body)
        if answer.type != "message":
            raise Undecodable
        blocks = [*_known_blocks(answer.content)]
    except INVALID:
        raise Undecodable from None
    choice = UpstreamChoice(
        message=_message(blocks),
        finish_reason=_finish_reason(answer.stop_reason),
        stop_reason=answer.stop_sequence,
    )
    usage = _upstream_usage(_reported(answer.usage, _ReportedUsage()))
    return UpstreamCompletion(choices=[choice], usage=usage)


def _known_blocks(blocks: Iterable[Raw]) -> Iterator[_Block]:
    """Yield the blocks of known types. The members of others may have any form."""
    for block in blocks:
        if _any_block_decoder.decode(block).type in _BLOCKS:
            yield _block_decoder.decode(block)


def _message(blocks: Sequence[_Block]) -> UpstreamMessage:
    thoughts = [block for block in blocks if block.type == "thinking"]
    return UpstreamMessage(
        content="".join(block.text or "" for block in blocks if block.type == "text") or None,
        reasoning="\n".join(block.thinking or "" for block in thoughts) or None,
        # A chat has one reasoning: the signatures of several thoughts would not fit it.
        signature=thoughts[0].signature if len(thoughts) == 1 else None,
        tool_calls=[_call(block) for block in blocks if block.type == "tool_use"] or None,
    )


def _call(block: _Block) -> FreeObject:
    function = {"name": block.name or "", "arguments": _arguments(block) or NO_ARGUMENTS}
    return {"id": block.id or "", "type": "function", "function": function}


def _arguments(block: _Block) -> str:
    """Return the input of a call as text; empty for an empty object, which a stream begins with."""
    try:
        text = bytes(block.input).decode()
    except UnicodeDecodeError:
        raise Undecodable from None
    return "" if text.replace(" ", "") in (NO_ARGUMENTS, "null") else text


def _finish_reason(said: str | None) -> str | None:
    return None if said is None else _FINISH_REASONS.get(said, "stop")


def _reported(found: Any, before: _ReportedUsage) -> _ReportedUsage:  # noqa: ANN401 - any JSON
    """Return a report merged into an earlier one: the counts of a stream are cumulative.

    An invalid count is dropped alone. Some providers repeat only the output, and send zero for the
    rest: the counts of the prompt are replaced together, unless all of them are zero.
    """
    if not isinstance(found, dict):
        return before
    report = cast("FreeObject", found)
    prompt = {name: count for name in _PROMPT_COUNTS if (count := _count(report, name)) is not None}
    merged: FreeObject = prompt if any(prompt.values()) else {}
    if (output_tokens := _count(report, "output_tokens")) is not None:
        merged["output_tokens"] = output_tokens
    if thinking_tokens := _count(report.get("output_tokens_details"), "thinking_tokens"):
        merged["thinking_tokens"] = thinking_tokens
    return replace(before, **merged)


def _count(report: Any, name: str) -> int | None:  # noqa: ANN401 - any JSON
    found = cast("FreeObject", report).get(name) if isinstance(report, dict) else None
    return found if type(found) is int and 0 <= found <= TOKENS_MAX else None


def _upstream_usage(report: _ReportedUsage) -> UpstreamUsage | None:
    """Return usage whose prompt includes what was read from or written to a cache.

    A prompt of 0 tokens was not reported, and the meter estimates it.
    """
    read, written = report.cache_read_input_tokens or 0, report.cache_creation_input_tokens or 0
    prompt_tokens = min((report.input_tokens or 0) + read + written, TOKENS_MAX)
    if not prompt_tokens and report.output_tokens is None:
        return None
    thought = report.thinking_tokens
    return UpstreamUsage(
        prompt_tokens=prompt_tokens,
        completion_tokens=report.output_tokens,
        prompt_tokens_details=CachedDetails(cached_tokens=read, cache_write_tokens=written),
        completion_tokens_details=ReasoningDetails(thought) if thought else None,
    )


class MessageStreamDecoder:
    """Decodes the events of one streamed message.

    `has_ended`: the message has its reason to stop. `has_stopped`: its last event has come.
    """

    __slots__ = ("_calls", "_report", "has_ended", "has_stopped")

    def __init__(self) -> None:
        self._calls: dict[int, bool] = {}
        self._report = _ReportedUsage()
        self.has_ended = False
        self.has_stopped = False

    def decode(self, payload: bytes) -> list[UpstreamChunk]:
        """Return the chunks of one event. Raises `Undecodable` or `ErrorEvent`."""
        try:
            event = _event_decoder.decode(payload)
        except INVALID:
            event = _unknown_event(payload)
        match event.type:
            case "content_block_delta":
                return self._more(event)
            case "content_block_start":
                return self._begin(event)
            case "content_block_stop":
                return self._end_block(event.index)
            case "message_start":
                return self._start(event.message or _BegunMessage())
            case "message_delta":
                return self._end(event)
            case "message_stop":
                self.has_stopped = True
            case kind:
                _check_error(kind, event.error)
        return []

    def _start(self, message: _BegunMessage) -> list[UpstreamChunk]:
        """Report the prompt. The few tokens that the first event counts are not all output."""
        begun = _reported(message.usage, self._report)
        self._report = replace(begun, output_tokens=None)
        usage = _upstream_usage(self._report)
        return [_chunk(UpstreamDelta()), *([UpstreamChunk(usage=usage)] if usage else ())]

    def _begin(self, event: _Event) -> list[UpstreamChunk]:
        block = event.content_block or _Block()
        match block.type:
            case "tool_use":
                arguments = _arguments(block)
                self._calls[event.index] = bool(arguments)
                function = FunctionDelta(name=block.name, arguments=arguments)
                call = ToolCallDelta(
                    index=self._number(event.index), id=block.id, function=function
                )
                return [_chunk(UpstreamDelta(tool_calls=[call]))]
            case "text" if block.text:
                return [_chunk(UpstreamDelta(content=block.text))]
            case "thinking" if block.thinking:
                return [_chunk(UpstreamDelta(reasoning=block.thinking))]
            case _:
                return []

    def _more(self, event: _Event) -> list[UpstreamChunk]:
        delta = event.delta or _BlockDelta()
        match delta.type:
            case "text_delta":
                return [_chunk(UpstreamDelta(content=delta.text))]
            case "thinking_delta":
                return [_chunk(UpstreamDelta(reasoning=delta.thinking))]
            case "signature_delta":
                return [_chunk(UpstreamDelta(signature=delta.signature))]
            case "input_json_delta" if event.index in self._calls:
                self._calls[event.index] = self._calls[event.index] or bool(delta.partial_json)
                return [self._pieces(event.index, delta.partial_json or "")]
            case _:
                return []

    def _end_block(self, index: int) -> list[UpstreamChunk]:
        """Give a call without arguments an empty object: clients parse what came."""
        if self._calls.get(index, True):
            return []
        self._calls[index] = True
        return [self._pieces(index, NO_ARGUMENTS)]

    def _pieces(self, index: int, arguments: str) -> UpstreamChunk:
        function = FunctionDelta(arguments=arguments)
        call = ToolCallDelta(index=self._number(index), function=function)
        return _chunk(UpstreamDelta(tool_calls=[call]))

    def _number(self, index: int) -> int:
        """Return the number of a call among the calls."""
        return list(self._calls).index(index)

    def _end(self, event: _Event) -> list[UpstreamChunk]:
        chunks: list[UpstreamChunk] = []
        if event.delta is not None and event.delta.stop_reason is not None:
            self.has_ended = True
            choice = UpstreamChunkChoice(
                finish_reason=_finish_reason(event.delta.stop_reason),
                stop_reason=event.delta.stop_sequence,
            )
            chunks.append(UpstreamChunk(choices=[choice]))
        if event.usage is not None:
            self._report = _reported(event.usage, self._report)
            if (usage := _upstream_usage(self._report)) is not None:
                chunks.append(UpstreamChunk(usage=usage))
        return chunks


def _chunk(delta: UpstreamDelta) -> UpstreamChunk:
    return UpstreamChunk(choices=[UpstreamChunkChoice(delta=delta)])


def _unknown_event(payload: bytes) -> _Event:
    """Return an event whose members have other forms than expected, without them.

    Raises `Undecodable` if its types are known: only unknown ones may have any members.
    """
    try:
        event = _any_event_decoder.decode(payload)
    except INVALID:
        raise Undecodable from None
    is_known = event.type in _EVENTS
    if event.type == "content_block_start":
        is_known = _type_of(event.content_block) in ("", *_BLOCKS)
    elif event.type == "content_block_delta":
        is_known = _type_of(event.delta) in ("", *_DELTAS)
    if is_known:
        raise Undecodable
    return _Event(type=event.type, error=event.error)


def _check_error(kind: str, error: Any) -> None:  # noqa: ANN401 - any JSON
    if kind == "error" or error is not None:
        raise ErrorEvent(_type_of(error))


def _type_of(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the type of an object; empty if it has none."""
    kind = cast("FreeObject", value).get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""
