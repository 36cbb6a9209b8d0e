"""Turn the deltas of a model into content blocks and their events.

A block of text or thinking ends when another block begins. A call ends with the answer, because a
backend may continue it: clients assign deltas to blocks by their index.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import Raw

from tollhouse.backends.types import FreeObject, ToolCallDelta, UpstreamDelta
from tollhouse.base.ids import RequestId
from tollhouse.contract import message_result as wire
from tollhouse.inference.content_parts import is_signature

INVALID_JSON: Final = "INVALID_JSON"
"""The member in which arguments are shown that are no JSON object, as Anthropic advises."""


class BlockKind(Enum):
    """The kinds of content blocks."""

    THINKING = "thinking"
    TEXT = "text"
    TOOL_USE = "tool_use"


@dataclass(slots=True)
class _Call:
    """A call. Its block begins when its name is known; arguments that came before are kept."""

    id: str
    name: str = ""
    block: int | None = None
    early: list[str] = field(default_factory=list[str])
    extra_content: Any = None


class MessageOutput:
    """The blocks of one answer: the kind of the open text, and the calls."""

    __slots__ = (
        "_calls",
        "_current",
        "_id",
        "_is_signed",
        "_shows_thinking",
        "count",
        "has_refusal",
        "kind",
    )

    def __init__(self, request_id: RequestId, *, shows_thinking: bool) -> None:
        self._id = request_id.hex
        self._shows_thinking = shows_thinking
        self._is_signed = False
        self._calls: list[_Call] = []
        self._current: dict[int, _Call] = {}
        self.kind: BlockKind | None = None
        self.count = 0
        self.has_refusal = False

    @property
    def has_calls(self) -> bool:
        """Whether the model called a tool."""
        return bool(self._calls)

    def add(self, delta: UpstreamDelta) -> Iterator[wire.MessageEvent]:
        """Yield the events of a delta."""
        thought = delta.reasoning or delta.reasoning_content
        if thought and self._shows_thinking:
            if self._is_signed:
                # A signature ends a block: what follows has a signature of its own.
                yield from self._end_text()
            self._is_signed = False
            yield from self._in_block(BlockKind.THINKING, {"thinking": "", "signature": ""})
            yield self._delta({"type": "thinking_delta", "thinking": thought})
        if delta.signature and self._shows_thinking and is_signature(delta.signature):
            yield from self._in_block(BlockKind.THINKING, {"thinking": "", "signature": ""})
            yield self._delta({"type": "signature_delta", "signature": delta.signature})
            self._is_signed = True
        for said in (delta.content, delta.refusal):
            if said:
                yield from self._in_block(BlockKind.TEXT, {"text": ""})
                yield self._delta({"type": "text_delta", "text": said})
        self.has_refusal = self.has_refusal or bool(delta.refusal)
        for piece in delta.tool_calls or ():
            yield from self._add_call(piece)

    def end(self) -> Iterator[wire.MessageEvent]:
        """Yield the ends of all open blocks, the calls last."""
        yield from self._end_text()
        for call in self._calls:
            if call.block is None:
                yield from self._begin_call(call)
        for call in self._calls:
            assert call.block is not None, "every call has begun"
            yield wire.ContentBlockStop(index=call.block)

    def _add_call(self, piece: ToolCallDelta) -> Iterator[wire.MessageEvent]:
        """Add a piece to the call of its index. Another ID at the same index is another call."""
        call = self._current.get(piece.index)
        if call is None or (piece.id and piece.id != call.id):
            call = _Call(id=piece.id or f"toolu_{self._id}_{len(self._calls) + 1}")
            self._calls.append(call)
            self._current[piece.index] = call
        function = piece.function
        call.name = call.name or (function.name if function else None) or ""
        if call.extra_content is None:
            call.extra_content = piece.extra_content
        arguments = (function.arguments if function else None) or ""
        if call.block is not None:
            if arguments:
                yield _arguments(call.block, arguments)
            return
        call.early.append(arguments)
        if call.name:
            yield from self._begin_call(call)

    def _begin_call(self, call: _Call) -> Iterator[wire.MessageEvent]:
        yield from self._end_text()
        call.block = self.count
        members: FreeObject = {"id": call.id, "name": call.name, "input": {}}
        if call.extra_content is not None:
            members["extra_content"] = call.extra_content
        yield self._begin(BlockKind.TOOL_USE, members)
        if early := "".join(call.early):
            yield _arguments(call.block, early)
        call.early.clear()

    def _in_block(self, kind: BlockKind, empty: FreeObject) -> Iterator[wire.MessageEvent]:
        """End the open text and begin a block of this kind, unless it is open already."""
        if self.kind is not kind:
            yield from self._end_text()
            self.kind = kind
            yield self._begin(kind, empty)

    def _end_text(self) -> Iterator[wire.MessageEvent]:
        if self.kind is not None:
            self.kind = None
            yield wire.ContentBlockStop(index=self.count - 1)

    def _begin(self, kind: BlockKind, members: FreeObject) -> wire.MessageEvent:
        self.count += 1
        block = {"type": kind.value, **members}
        return wire.ContentBlockStart(index=self.count - 1, content_block=block)

    def _delta(self, delta: FreeObject) -> wire.MessageEvent:
        """Return an event of the open text, which is always the newest block."""
        return wire.ContentBlockDelta(index=self.count - 1, delta=delta)


def _arguments(block: int, arguments: str) -> wire.MessageEvent:
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return wire.ContentBlockDelta(index=block, delta=delta)


def whole_blocks(told: Iterable[wire.MessageEvent]) -> list[FreeObject]:
    """Return the complete blocks that the events of a complete message describe."""
    blocks: list[FreeObject] = []
    for event in told:
        match event:
            case wire.ContentBlockStart():
                blocks.append(dict(event.content_block))
            case wire.ContentBlockDelta(delta={"type": "input_json_delta"}):
                blocks[event.index]["input"] = input_of(event.delta["partial_json"])
            case wire.ContentBlockDelta(delta={"type": "signature_delta"}):
                blocks[event.index]["signature"] = event.delta["signature"]
            case wire.ContentBlockDelta():
                member = blocks[event.index]["type"]
                blocks[event.index][member] += event.delta[member]
            case _:
                pass
    return blocks


def input_of(arguments: str) -> Raw | FreeObject:
    """Return the arguments of a call if they are an object, or an object that has their text.

    They are shown as they are: what can be read may still be nested too deep to be written.
    """
    try:
        found: Any = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {INVALID_JSON: arguments}
    return Raw(arguments.encode()) if isinstance(found, dict) else {INVALID_JSON: arguments}
