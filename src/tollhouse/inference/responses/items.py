"""The output items of a response while they grow: messages, reasoning and calls."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final, Literal, Protocol

from msgspec import Raw

from tollhouse.contract import response_events as wire
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.response_tools import ToolIdentity
from tollhouse.inference.responses.client_tools import called_tool
from tollhouse.inference.responses.parts import (
    REASONING,
    REFUSAL,
    OutputPart,
    OutputPosition,
    TextPart,
)

Status = Literal["in_progress", "completed", "incomplete"]
_CALL_TYPES: Final = {
    "function": "function_call",
    "custom": "custom_tool_call",
    "local_shell": "local_shell_call",
}


@dataclass(slots=True)
class OutputSlot:
    """The position of an item. `numbers` counts the events of the whole stream."""

    numbers: Iterator[int]
    item_id: str
    output_index: int
    status: Status = "in_progress"

    def head(self, kind: str) -> FreeObject:
        """Return the event with which an item begins."""
        return {"id": self.item_id, "type": kind, "status": self.status}

    def place(self, content_index: int) -> OutputPosition:
        """Return the position of a part."""
        return OutputPosition(self.numbers, self.item_id, self.output_index, content_index)


class OutputItem(Protocol):
    """An item of `output`."""

    @property
    def slot(self) -> OutputSlot:
        """The position of the item."""
        ...

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """Yield the events that end its parts."""
        ...

    def shown(self) -> FreeObject:
        """Return the item as it appears in the response."""
        ...


class OutputMessage:
    """A message: at most one text and one refusal, in the order in which they began."""

    def __init__(self, slot: OutputSlot) -> None:
        self.slot = slot
        self._parts: list[OutputPart] = []
        self._text: TextPart | None = None
        self._refusal: OutputPart | None = None

    def say(self, delta: str, logprobs: Raw) -> Iterator[wire.ResponseEvent]:
        """Add text."""
        if self._text is None:
            self._text = TextPart(self._next_place())
            yield from self._begin(self._text)
        yield self._text.add(delta, logprobs)

    def annotate(self, annotation: FreeObject) -> Iterator[wire.ResponseEvent]:
        """Add a source of the text."""
        if self._text is None:
            self._text = TextPart(self._next_place())
            yield from self._begin(self._text)
        yield self._text.annotate(annotation)

    def refuse(self, delta: str) -> Iterator[wire.ResponseEvent]:
        """Add text of a refusal."""
        if self._refusal is None:
            self._refusal = OutputPart(REFUSAL, self._next_place())
            yield from self._begin(self._refusal)
        yield self._refusal.add(delta)

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """Yield the events that end its parts."""
        for part in self._parts:
            yield from part.end()

    def shown(self) -> FreeObject:
        """Return the item as it appears in the response."""
        content = [part.shown() for part in self._parts]
        return self.slot.head("message") | {"role": "assistant", "content": content}

    def _next_place(self) -> OutputPosition:
        return self.slot.place(len(self._parts))

    def _begin(self, part: OutputPart) -> Iterator[wire.ResponseEvent]:
        yield part.begin()
        self._parts.append(part)


class OutputReasoning:
    """A reasoning item with one part and no summary."""

    def __init__(self, slot: OutputSlot) -> None:
        self.slot = slot
        self._part: OutputPart | None = None

    def reason(self, delta: str) -> Iterator[wire.ResponseEvent]:
        """Add reasoning text."""
        if self._part is None:
            self._part = OutputPart(REASONING, self.slot.place(0))
            yield self._part.begin()
        yield self._part.add(delta)

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """Yield the events that end its part."""
        if self._part is not None:
            yield from self._part.end()

    def shown(self) -> FreeObject:
        """Return the item as it appears in the response."""
        content = [] if self._part is None else [self._part.shown()]
        return self.slot.head("reasoning") | {"summary": [], "content": content}


class OutputCall:
    """A call of a function, or of the tool for which the function stands (`origins`).

    Its name may arrive after the call began; until then it is shown as a function call.
    `extra_content` is what the provider wants back with the call.
    """

    def __init__(
        self, slot: OutputSlot, *, call_id: str, name: str, origins: Mapping[str, ToolIdentity]
    ) -> None:
        self.slot = slot
        self.name = name
        self.extra_content: Any = None
        self._call_id = call_id
        self._origins = origins
        self._arguments = StringIO()

    def argue(self, delta: str) -> Iterator[wire.ResponseEvent]:
        """Add text of its arguments. The input of other tools is sent at the end."""
        self._arguments.write(delta)
        if self._kind == "function":
            yield self._event(wire.FunctionCallArgumentsDelta, delta=delta)

    def end_inside(self) -> Iterator[wire.ResponseEvent]:
        """Yield the events with all of its arguments, or with the input of a custom tool."""
        shown = self.shown()
        if self._kind == "function":
            yield self._event(
                wire.FunctionCallArgumentsDone, name=shown["name"], arguments=shown["arguments"]
            )
        elif self._kind == "custom":
            yield self._event(wire.CustomToolCallInputDelta, delta=shown["input"])
            yield self._event(wire.CustomToolCallInputDone, input=shown["input"])

    def shown(self) -> FreeObject:
        """Return the item as it appears in the response."""
        arguments, origin = self._arguments.getvalue(), self._origins.get(self.name)
        if origin is None:
            called: FreeObject = {"name": self.name, "arguments": arguments}
        else:
            called = called_tool(origin, arguments)
        if self.extra_content is not None:
            called["extra_content"] = self.extra_content
        return self.slot.head(_CALL_TYPES[self._kind]) | {"call_id": self._call_id} | called

    @property
    def _kind(self) -> str:
        origin = self._origins.get(self.name)
        return "function" if origin is None else origin.kind

    def _event(self, kind: Callable[..., wire.ResponseEvent], **fields: str) -> wire.ResponseEvent:
        return kind(
            sequence_number=next(self.slot.numbers),
            item_id=self.slot.item_id,
            output_index=self.slot.output_index,
            **fields,
        )
