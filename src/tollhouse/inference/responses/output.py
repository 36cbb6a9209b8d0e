"""Turn the deltas of a model into output items and their events.

An item begins with its first delta. Reasoning ends when other output begins. Text and calls end
with the answer, because a backend may continue them: so there is at most one message.
"""

from collections.abc import Generator, Iterator, Mapping
from itertools import count

import msgspec
from msgspec import Raw

from tollhouse.backends.types import FreeObject, FunctionDelta, ToolCallDelta, UpstreamDelta
from tollhouse.base.ids import RequestId
from tollhouse.contract import response_events as wire
from tollhouse.contract.response_tools import ToolIdentity
from tollhouse.inference.chat import annotations_of
from tollhouse.inference.responses.client_tools import NO_ORIGINS
from tollhouse.inference.responses.items import (
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputReasoning,
    OutputSlot,
    Status,
)
from tollhouse.inference.responses.parts import NO_LOGPROBS

ITEM_BYTES = 1_024
"""The bytes that an item takes beside its text."""


class ResponseOutput:
    """The output of one answer. `numbers` counts the events of the stream.

    `kept_bytes` is the approximate size of the kept answer.
    """

    def __init__(
        self, request_id: RequestId, tools: Mapping[str, ToolIdentity] = NO_ORIGINS
    ) -> None:
        self.numbers = count()
        self._tools = tools
        self._hex = request_id.hex
        self._items: list[OutputItem] = []
        self._reasoning: OutputReasoning | None = None
        self._message: OutputMessage | None = None
        self._calls: dict[int, OutputCall] = {}
        self._call_ids: set[str] = set()
        self._last: OutputItem | None = None
        self.kept_bytes = 0

    def add(
        self, delta: UpstreamDelta, logprobs: Raw = NO_LOGPROBS
    ) -> Iterator[wire.ResponseEvent]:
        """Yield the events of one delta. Engines use either name of reasoning."""
        if reasoning := delta.reasoning or delta.reasoning_content:
            yield from self._reason(reasoning)
        if self._reasoning is not None and _is_answer(delta):
            yield from _end(self._reasoning, "completed")
            self._reasoning = None
        if delta.content or (logprobs is not NO_LOGPROBS and self._is_text(delta)):
            yield from self._say(delta.content or "", logprobs)
        if delta.refusal:
            yield from self._refuse(delta.refusal)
        if delta.annotations:
            yield from self._annotate(delta.annotations)
        for call in delta.tool_calls or ():
            yield from self._call(call)

    def end(self, *, is_cut: bool) -> Iterator[wire.ResponseEvent]:
        """Yield the events that end all items. In a cut answer the last item is incomplete.

        An empty answer gets a message with empty text, because callers look for a message.
        """
        if not self._items:
            yield from self._say("", NO_LOGPROBS)
        for item in self._items:
            yield from _end(item, "incomplete" if is_cut and item is self._last else "completed")

    def shown(self) -> list[FreeObject]:
        """Return all items."""
        return [item.shown() for item in self._items]

    def _is_text(self, delta: UpstreamDelta) -> bool:
        """Whether tokens without visible text, such as half a character, belong to the text."""
        others = (delta.reasoning, delta.reasoning_content, delta.refusal, delta.tool_calls)
        return self._message is not None and self._last is self._message and not any(others)

    def _reason(self, piece: str) -> Iterator[wire.ResponseEvent]:
        self.kept_bytes += _text_bytes(piece)
        if self._reasoning is None:
            self._reasoning = OutputReasoning(self._slot("rs"))
            yield from self._begin(self._reasoning)
        self._last = self._reasoning
        yield from self._reasoning.reason(piece)

    def _say(self, piece: str, logprobs: Raw) -> Iterator[wire.ResponseEvent]:
        self.kept_bytes += _text_bytes(piece) + len(logprobs)
        message = self._message or (yield from self._begin_message())
        self._last = message
        yield from message.say(piece, logprobs)

    def _refuse(self, piece: str) -> Iterator[wire.ResponseEvent]:
        self.kept_bytes += _text_bytes(piece)
        message = self._message or (yield from self._begin_message())
        self._last = message
        yield from message.refuse(piece)

    def _annotate(self, found: list[FreeObject]) -> Iterator[wire.ResponseEvent]:
        for annotation in annotations_of(found) or ():
            citation = annotation.url_citation
            self.kept_bytes += len(citation.url) + len(citation.title) + ITEM_BYTES
            message = self._message or (yield from self._begin_message())
            shown = {"type": annotation.type, **msgspec.to_builtins(citation)}
            yield from message.annotate(shown)

    def _call(self, piece: ToolCallDelta) -> Iterator[wire.ResponseEvent]:
        function = piece.function or FunctionDelta()
        call = self._calls.get(piece.index) or (yield from self._begin_call(piece, function))
        call.name = call.name or function.name or ""
        if piece.extra_content is not None and call.extra_content is None:
            call.extra_content = piece.extra_content
            self.kept_bytes += len(msgspec.json.encode(piece.extra_content))
        self._last = call
        if function.arguments:
            self.kept_bytes += _text_bytes(function.arguments)
            yield from call.argue(function.arguments)

    def _begin_message(self) -> Generator[wire.ResponseEvent, None, OutputMessage]:
        message = self._message = OutputMessage(self._slot("msg"))
        yield from self._begin(message)
        return message

    def _begin_call(
        self, piece: ToolCallDelta, function: FunctionDelta
    ) -> Generator[wire.ResponseEvent, None, OutputCall]:
        """Return the ID of a call, or a new one if it is missing or already used."""
        slot = self._slot("fc")
        call_id = piece.id
        if not call_id or call_id in self._call_ids:
            call_id = f"call_{self._hex}_{slot.output_index}"
        self._call_ids.add(call_id)
        call = self._calls[piece.index] = OutputCall(
            slot, call_id=call_id, name=function.name or "", origins=self._tools
        )
        yield from self._begin(call)
        return call

    def _slot(self, prefix: str) -> OutputSlot:
        self.kept_bytes += ITEM_BYTES
        index = len(self._items)
        return OutputSlot(self.numbers, f"{prefix}_{self._hex}_{index}", index)

    def _begin(self, item: OutputItem) -> Iterator[wire.ResponseEvent]:
        self._items.append(item)
        yield wire.OutputItemAdded(
            sequence_number=next(self.numbers),
            output_index=item.slot.output_index,
            item=item.shown(),
        )


def _is_answer(delta: UpstreamDelta) -> bool:
    return bool(delta.content or delta.refusal or delta.annotations or delta.tool_calls)


def _end(item: OutputItem, status: Status) -> Iterator[wire.ResponseEvent]:
    """End an item once."""
    slot = item.slot
    if slot.status != "in_progress":
        return
    yield from item.end_inside()
    slot.status = status
    yield wire.OutputItemDone(
        sequence_number=next(slot.numbers), output_index=slot.output_index, item=item.shown()
    )


def _text_bytes(text: str) -> int:
    """Return the most bytes that a text takes in memory; ASCII takes one for each character."""
    return len(text) if text.isascii() else 4 * len(text)
