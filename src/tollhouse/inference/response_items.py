"""The items of a response as they grow: a message, what was reasoned, and calls of functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Literal, Protocol

from msgspec import Raw

from tollhouse.contract import response_events as wire
from tollhouse.contract.bounds import FreeObject
from tollhouse.inference.response_parts import REASONING, REFUSAL, Part, Place, TextPart

Status = Literal["in_progress", "completed", "incomplete"]


@dataclass(slots=True)
class Slot:
    """An item's place in the response. `numbers` are those of the whole stream."""

    numbers: Iterator[int]
    item_id: str
    output_index: int
    status: Status = "in_progress"

    def head(self, kind: str) -> FreeObject:
        """What every item says first."""
        return {"id": self.item_id, "type": kind, "status": self.status}

    def place(self, content_index: int) -> Place:
        """The place of a part."""
        return Place(self.numbers, self.item_id, self.output_index, content_index)


class Item(Protocol):
    """Whatever can stand in `output`."""

    @property
    def slot(self) -> Slot:
        """Where it stands."""
        ...

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """The ends of all that it holds."""
        ...

    def shown(self) -> FreeObject:
        """As it stands in the response."""
        ...


class Message:
    """At most one text and one refusal, in the order in which they began."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self._parts: list[Part] = []
        self._text: TextPart | None = None
        self._refusal: Part | None = None

    def say(self, delta: str, logprobs: Raw) -> Iterator[wire.ResponseEvent]:
        """More text."""
        if self._text is None:
            self._text = TextPart(self._next_place())
            yield from self._begin(self._text)
        yield self._text.add(delta, logprobs)

    def annotate(self, annotation: FreeObject) -> Iterator[wire.ResponseEvent]:
        """A source of the text."""
        if self._text is None:
            self._text = TextPart(self._next_place())
            yield from self._begin(self._text)
        yield self._text.annotate(annotation)

    def refuse(self, delta: str) -> Iterator[wire.ResponseEvent]:
        """More of a refusal."""
        if self._refusal is None:
            self._refusal = Part(REFUSAL, self._next_place())
            yield from self._begin(self._refusal)
        yield self._refusal.add(delta)

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """The ends of its parts."""
        for part in self._parts:
            yield from part.end()

    def shown(self) -> FreeObject:
        """As it stands in the response."""
        content = [part.shown() for part in self._parts]
        return self.slot.head("message") | {"role": "assistant", "content": content}

    def _next_place(self) -> Place:
        return self.slot.place(len(self._parts))

    def _begin(self, part: Part) -> Iterator[wire.ResponseEvent]:
        yield part.begin()
        self._parts.append(part)


class Reasoning:
    """One part; nothing here makes a summary of it."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self._part: Part | None = None

    def reason(self, delta: str) -> Iterator[wire.ResponseEvent]:
        """More of it."""
        if self._part is None:
            self._part = Part(REASONING, self.slot.place(0))
            yield self._part.begin()
        yield self._part.add(delta)

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """The end of its part."""
        if self._part is not None:
            yield from self._part.end()

    def shown(self) -> FreeObject:
        """As it stands in the response."""
        content = [] if self._part is None else [self._part.shown()]
        return self.slot.head("reasoning") | {"summary": [], "content": content}


class Call:
    """A function that the caller shall call. The name may come later than the call."""

    def __init__(self, slot: Slot, *, call_id: str, name: str) -> None:
        self.slot = slot
        self.name = name
        self._call_id = call_id
        self._arguments = StringIO()

    def argue(self, delta: str) -> wire.ResponseEvent:
        """More of its arguments."""
        self._arguments.write(delta)
        return wire.FunctionCallArgumentsDelta(
            sequence_number=next(self.slot.numbers),
            item_id=self.slot.item_id,
            output_index=self.slot.output_index,
            delta=delta,
        )

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """All of its arguments."""
        yield wire.FunctionCallArgumentsDone(
            sequence_number=next(self.slot.numbers),
            item_id=self.slot.item_id,
            output_index=self.slot.output_index,
            name=self.name,
            arguments=self._arguments.getvalue(),
        )

    def shown(self) -> FreeObject:
        """As it stands in the response."""
        return self.slot.head("function_call") | {
            "call_id": self._call_id,
            "name": self.name,
            "arguments": self._arguments.getvalue(),
        }
