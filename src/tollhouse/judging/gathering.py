"""A streamed answer put together again: by choice, by what is said in it, and by call.

Pieces of several choices come interleaved, and a word may come in two pieces: nothing is judged
that was not joined first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import msgspec

from tollhouse.backends.types import FreeObject, FunctionDelta, UpstreamChunk, UpstreamChunkChoice
from tollhouse.judging.content import Said, of_answer
from tollhouse.judging.types import Content, ContentOf

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Gathered:
    """One per answer. It sees everything before the caller does."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}

    def see(self, chunks: Sequence[UpstreamChunk]) -> None:
        """Records as they arrive."""
        for chunk in chunks:
            for piece in chunk.choices:
                self._choices.setdefault(piece.index, _Choice()).add(piece)

    def content(self, bytes_max: float = inf) -> Content:
        """All that was said, when no more is coming."""
        return self.so_far()(bytes_max)

    def so_far(self) -> ContentOf:
        """What was said until now, to be laid out while more is coming."""
        return partial(of_answer, [one.said(index) for index, one in self._choices.items()])


@dataclass(slots=True)
class _Function:
    """Some engines repeat a name with every piece, others send it in pieces."""

    names: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])

    def add(self, piece: FunctionDelta) -> None:
        if piece.name:
            self.names.append(piece.name)
        self.arguments.append(piece.arguments or "")

    def whole(self) -> FreeObject:
        return {"name": "".join(dict.fromkeys(self.names)), "arguments": "".join(self.arguments)}

    def as_passed_on(self) -> FreeObject:
        """Callers get every piece of such a name, and put together what they get."""
        whole, joined = self.whole(), "".join(self.names)
        return whole if joined == whole["name"] else {"name_in_pieces": joined, **whole}


@dataclass(slots=True)
class _Call:
    ids: dict[str, None] = field(default_factory=dict[str, None])
    function: _Function = field(default_factory=_Function)


@dataclass(slots=True)
class _Choice:
    content: list[str] = field(default_factory=list[str])
    refusal: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: dict[int, _Call] = field(default_factory=dict[int, _Call])
    function: _Function | None = None
    annotations: list[FreeObject] = field(default_factory=list[FreeObject])
    logprobs: list[bytes] = field(default_factory=list[bytes])
    """Encoded: decoded, they take five times the memory for as long as the answer is held."""

    def add(self, piece: UpstreamChunkChoice) -> None:
        delta = piece.delta
        self.content.append(delta.content or "")
        self.refusal.append(delta.refusal or "")
        # Engines use either name, and may change it on the way; callers get one text.
        self.reasoning.append(delta.reasoning or delta.reasoning_content or "")
        self.annotations += delta.annotations or ()
        if piece.logprobs is not None:
            self.logprobs.append(_encode(piece.logprobs))
        if delta.function_call is not None:
            self.function = self.function or _Function()
            self.function.add(delta.function_call)
        for part in delta.tool_calls or ():
            call = self.calls.setdefault(part.index, _Call())
            if part.id:
                call.ids[part.id] = None
            if part.function is not None:
                call.function.add(part.function)

    def said(self, index: int) -> Said:
        message: dict[str, Any] = {
            "content": "".join(self.content),
            "refusal": "".join(self.refusal),
            "reasoning": "".join(self.reasoning),
            "tool_calls": [
                {"id": "".join(call.ids), "function": call.function.whole()}
                for call in self.calls.values()
            ],
            "function_call": None if self.function is None else self.function.as_passed_on(),
            "annotations": [*self.annotations],
        }
        return Said(index=index, message=message, logprobs=[*map(_decode, self.logprobs)])
