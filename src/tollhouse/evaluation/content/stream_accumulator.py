"""Joins the chunks of a streamed answer by choice, by field and by tool call.

Chunks of several choices are interleaved, and a word may be split between two chunks, so only the
joined text is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import msgspec

from tollhouse.backends.types import FreeObject, FunctionDelta, UpstreamChunk, UpstreamChunkChoice
from tollhouse.evaluation.content.rendering import ChoiceText, answer_content
from tollhouse.evaluation.types import Content, RenderContent

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class StreamAccumulator:
    """Joins one answer. It receives every chunk before the caller does."""

    def __init__(self) -> None:
        self._choices: dict[int, _ChoicePieces] = {}

    def add(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Add chunks in the order of their arrival."""
        for chunk in chunks:
            for piece in chunk.choices:
                self._choices.setdefault(piece.index, _ChoicePieces()).add(piece)

    def content(self, bytes_max: float = inf) -> Content:
        """Return the content of all chunks."""
        return self.snapshot()(bytes_max)

    def snapshot(self) -> RenderContent:
        """Return a function that renders the chunks so far, also while more are added."""
        texts = [pieces.joined(index) for index, pieces in self._choices.items()]
        return partial(answer_content, texts)


@dataclass(slots=True)
class _FunctionPieces:
    """The pieces of a call. Some engines repeat the name in every chunk, others split it."""

    names: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])

    def add(self, piece: FunctionDelta) -> None:
        if piece.name:
            self.names.append(piece.name)
        self.arguments.append(piece.arguments or "")

    def joined(self) -> FreeObject:
        return {"name": "".join(dict.fromkeys(self.names)), "arguments": "".join(self.arguments)}

    def as_received(self) -> FreeObject:
        """Return the call with the name that a caller gets by joining all pieces, if it differs."""
        joined, name = self.joined(), "".join(self.names)
        return joined if name == joined["name"] else {"name_in_pieces": name, **joined}


@dataclass(slots=True)
class _ToolCallPieces:
    ids: dict[str, None] = field(default_factory=dict[str, None])
    function: _FunctionPieces = field(default_factory=_FunctionPieces)
    extra_content: list[Any] = field(default_factory=list[Any])

    def joined(self) -> FreeObject:
        call: FreeObject = {"id": "".join(self.ids), "function": self.function.joined()}
        return call | {"extra_content": self.extra_content} if self.extra_content else call


@dataclass(slots=True)
class _ChoicePieces:
    content: list[str] = field(default_factory=list[str])
    refusal: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])
    """Both in their order, which some dialects make one text of."""
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[int, _ToolCallPieces] = field(default_factory=dict[int, _ToolCallPieces])
    function: _FunctionPieces | None = None
    annotations: list[FreeObject] = field(default_factory=list[FreeObject])
    logprobs: list[bytes] = field(default_factory=list[bytes])
    """Encoded, because decoded they take five times the memory while the answer is buffered."""

    def add(self, piece: UpstreamChunkChoice) -> None:
        delta = piece.delta
        self.content.append(delta.content or "")
        self.refusal.append(delta.refusal or "")
        self.said += filter(None, (delta.content, delta.refusal))
        # Engines use either name, and may change it within a stream; callers receive one text.
        self.reasoning.append(delta.reasoning or delta.reasoning_content or "")
        self.annotations += delta.annotations or ()
        if piece.logprobs is not None:
            self.logprobs.append(_encode(piece.logprobs))
        if delta.function_call is not None:
            self.function = self.function or _FunctionPieces()
            self.function.add(delta.function_call)
        for part in delta.tool_calls or ():
            call = self.calls.setdefault(part.index, _ToolCallPieces())
            if part.id:
                call.ids[part.id] = None
            if part.function is not None:
                call.function.add(part.function)
            if part.extra_content is not None:
                call.extra_content.append(part.extra_content)

    def joined(self, index: int) -> ChoiceText:
        message: dict[str, Any] = {
            "content": "".join(self.content),
            "refusal": "".join(self.refusal),
            "said": "".join(self.said),
            "reasoning": "".join(self.reasoning),
            "tool_calls": [call.joined() for call in self.calls.values()],
            "function_call": None if self.function is None else self.function.as_received(),
            "annotations": [*self.annotations],
        }
        return ChoiceText(index=index, message=message, logprobs=[*map(_decode, self.logprobs)])
