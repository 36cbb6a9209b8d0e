"""The records of a streamed response: OpenAI's typed events (OQ-60)."""

from typing import Annotated, ClassVar

from msgspec import Meta, Raw, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.origins import adopted
from tollhouse.contract.response_result import ResponseResult

Logprobs = Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
"""Written once, for the delta and for all that repeats it at the end."""


class ResponseEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """Numbers begin at 0 and have no gaps (OQ-61)."""

    mark: ClassVar[Meta] = adopted("OQ-60", "OQ-61")

    sequence_number: int


class ResponseCreated(ResponseEvent, frozen=True, kw_only=True, tag="response.created"):
    """The first event."""

    response: ResponseResult


class ResponseInProgress(ResponseEvent, frozen=True, kw_only=True, tag="response.in_progress"):
    """The second event, the same but for its name."""

    response: ResponseResult


class ResponseCompleted(ResponseEvent, frozen=True, kw_only=True, tag="response.completed"):
    """The last event of an answer that came to its end."""

    response: ResponseResult


class ResponseIncomplete(ResponseEvent, frozen=True, kw_only=True, tag="response.incomplete"):
    """The last event of an answer that was cut, by the output bound or by a filter."""

    response: ResponseResult


class ResponseFailed(ResponseEvent, frozen=True, kw_only=True, tag="response.failed"):
    """The last event of an answer that broke off; no other event tells of it (OQ-63)."""

    mark: ClassVar[Meta] = adopted("OQ-63")

    response: ResponseResult


class OutputItemAdded(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    """An item begins; it is still empty."""

    output_index: int
    item: FreeObject


class OutputItemDone(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An item as it will stand in the response."""

    output_index: int
    item: FreeObject


class PartEvent(ResponseEvent, frozen=True, kw_only=True):
    """About a part of an item."""

    item_id: str
    output_index: int
    content_index: int


class ContentPartAdded(PartEvent, frozen=True, kw_only=True, tag="response.content_part.added"):
    """A part begins; it is still empty."""

    part: FreeObject


class ContentPartDone(PartEvent, frozen=True, kw_only=True, tag="response.content_part.done"):
    """A part as it will stand in its item."""

    part: FreeObject


class OutputTextDelta(PartEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """More of the answer's text, with the log-probabilities of its tokens if these are wanted."""

    delta: str
    logprobs: Logprobs


class OutputTextDone(PartEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    """All of the text."""

    text: str
    logprobs: Logprobs


class OutputTextAnnotationAdded(
    PartEvent, frozen=True, kw_only=True, tag="response.output_text.annotation.added"
):
    """A source of the text."""

    annotation_index: int
    annotation: FreeObject


class RefusalDelta(PartEvent, frozen=True, kw_only=True, tag="response.refusal.delta"):
    """More of a refusal."""

    delta: str


class RefusalDone(PartEvent, frozen=True, kw_only=True, tag="response.refusal.done"):
    """All of a refusal."""

    refusal: str


class ReasoningTextDelta(PartEvent, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    """More of what the model reasons."""

    mark: ClassVar[Meta] = adopted("OQ-64")

    delta: str


class ReasoningTextDone(PartEvent, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    """All that the model reasoned."""

    mark: ClassVar[Meta] = adopted("OQ-64")

    text: str


class FunctionCallArgumentsDelta(
    ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    """More of the arguments of a call."""

    item_id: str
    output_index: int
    delta: str


class FunctionCallArgumentsDone(
    ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    """All of the arguments; the name is told again, because some SDKs need it here."""

    item_id: str
    output_index: int
    name: str
    arguments: str


EVENTS = (
    ResponseCreated,
    ResponseInProgress,
    OutputItemAdded,
    ContentPartAdded,
    OutputTextDelta,
    OutputTextAnnotationAdded,
    OutputTextDone,
    RefusalDelta,
    RefusalDone,
    ReasoningTextDelta,
    ReasoningTextDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    ContentPartDone,
    OutputItemDone,
    ResponseCompleted,
    ResponseIncomplete,
    ResponseFailed,
)
