"""The parts of an output item while they grow, with their events.

Text is kept in one buffer, because a part may arrive in a million pieces.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

from msgspec import Raw

from tollhouse.contract import response_events as wire
from tollhouse.contract.bounds import FreeObject

NO_LOGPROBS: Final = Raw(b"[]")


@dataclass(frozen=True, slots=True)
class OutputPosition:
    """The position of a part, which all its events have. `numbers` counts the stream's events."""

    numbers: Iterator[int]
    item_id: str
    output_index: int
    content_index: int

    def event(self, kind: Callable[..., wire.PartEvent], **fields: Any) -> wire.PartEvent:  # noqa: ANN401 - of any kind
        """Return the number of the next event of the stream."""
        return kind(
            sequence_number=next(self.numbers),
            item_id=self.item_id,
            output_index=self.output_index,
            content_index=self.content_index,
            **fields,
        )


@dataclass(frozen=True, slots=True)
class PartForm:
    """The names of one kind of part; `member` contains its text."""

    kind: str
    member: str
    delta: type[wire.PartEvent]
    done: type[wire.PartEvent]


TEXT: Final = PartForm("output_text", "text", wire.OutputTextDelta, wire.OutputTextDone)
REFUSAL: Final = PartForm("refusal", "refusal", wire.RefusalDelta, wire.RefusalDone)
REASONING: Final = PartForm(
    "reasoning_text", "text", wire.ReasoningTextDelta, wire.ReasoningTextDone
)


class OutputPart:
    """A part with plain text: a refusal or reasoning."""

    def __init__(self, form: PartForm, place: OutputPosition) -> None:
        self._form = form
        self._place = place
        self._text = StringIO()

    def begin(self) -> wire.PartEvent:
        """Return the part before its first text."""
        return self._place.event(wire.ContentPartAdded, part=self.shown())

    def add(self, delta: str) -> wire.PartEvent:
        """Add text."""
        self._text.write(delta)
        return self._place.event(self._form.delta, delta=delta)

    def end(self) -> Iterator[wire.PartEvent]:
        """Yield the events that end the part."""
        shown = self.shown()
        yield self._place.event(self._form.done, **self._whole(shown))
        yield self._place.event(wire.ContentPartDone, part=shown)

    def shown(self) -> FreeObject:
        """Return the part as it appears in its item."""
        return {"type": self._form.kind, self._form.member: self._text.getvalue()}

    def _whole(self, shown: FreeObject) -> FreeObject:
        return {self._form.member: shown[self._form.member]}


class TextPart(OutputPart):
    """The text of an answer, with its sources and the log probabilities of its tokens."""

    def __init__(self, place: OutputPosition) -> None:
        super().__init__(TEXT, place)
        self._annotations: list[FreeObject] = []
        self._logprobs = bytearray()

    def add(self, delta: str, logprobs: Raw = NO_LOGPROBS) -> wire.PartEvent:
        """Add text; the log probabilities are an encoded list."""
        self._text.write(delta)
        if logprobs is not NO_LOGPROBS:
            self._logprobs += (b"," if self._logprobs else b"") + bytes(logprobs)[1:-1]
        return self._place.event(wire.OutputTextDelta, delta=delta, logprobs=logprobs)

    def annotate(self, annotation: FreeObject) -> wire.PartEvent:
        """Add a source of the text so far."""
        self._annotations.append(annotation)
        return self._place.event(
            wire.OutputTextAnnotationAdded,
            annotation_index=len(self._annotations) - 1,
            annotation=annotation,
        )

    def shown(self) -> FreeObject:
        """Return the part as it appears in its item."""
        return super().shown() | {
            "annotations": list(self._annotations),
            "logprobs": Raw(b"[%b]" % self._logprobs),
        }

    def _whole(self, shown: FreeObject) -> FreeObject:
        return {"text": shown["text"], "logprobs": shown["logprobs"]}
