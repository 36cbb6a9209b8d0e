"""The events of a streamed response (OQ-60)."""

from typing import Annotated, ClassVar

from msgspec import Meta, Raw, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import ErrorBody
from tollhouse.contract.origins import adopted
from tollhouse.contract.response_result import ResponseResult

Logprobs = Annotated[Raw, Meta(extra_json_schema={"type": "array", "items": {"type": "object"}})]
"""Log probabilities as JSON that was encoded once, because several events repeat them."""


class ResponseEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """One event. `sequence_number` begins at 0 and has no gaps (OQ-61)."""

    mark: ClassVar[Meta] = adopted("OQ-60", "OQ-61")

    sequence_number: int


class ResponseCreated(ResponseEvent, frozen=True, kw_only=True, tag="response.created"):
    """The first event."""

    response: ResponseResult


class ResponseInProgress(ResponseEvent, frozen=True, kw_only=True, tag="response.in_progress"):
    """The second event, with the same response as the first."""

    response: ResponseResult


class ResponseCompleted(ResponseEvent, frozen=True, kw_only=True, tag="response.completed"):
    """The last event of a complete answer."""

    response: ResponseResult


class ResponseIncomplete(ResponseEvent, frozen=True, kw_only=True, tag="response.incomplete"):
    """The last event of an answer that was cut off by the output bound or by a filter."""

    response: ResponseResult


class ResponseErrorEvent(ResponseEvent, frozen=True, kw_only=True, tag="error"):
    """The event before the last one, if the prompt is too long. SDKs raise what `error` says."""

    mark: ClassVar[Meta] = adopted("OQ-63", "OQ-245")

    code: str
    """The reason for programs."""
    message: str
    """What happened and what to do, for people."""
    param: str | None
    """The field at fault, or null."""
    error: ErrorBody
    """The same with the type and the request, as an answer without stream has it."""


class ResponseFailed(ResponseEvent, frozen=True, kw_only=True, tag="response.failed"):
    """The last event of an answer that failed."""

    mark: ClassVar[Meta] = adopted("OQ-63")

    response: ResponseResult


class OutputItemAdded(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    """An item begins. It is still empty."""

    output_index: int
    item: FreeObject
    """The item, still empty."""


class OutputItemDone(ResponseEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An item is complete, as in the final response."""

    output_index: int
    item: FreeObject
    """The whole item."""


class PartEvent(ResponseEvent, frozen=True, kw_only=True):
    """An event about a part of an item."""

    item_id: str
    output_index: int
    content_index: int


class ContentPartAdded(PartEvent, frozen=True, kw_only=True, tag="response.content_part.added"):
    """A part begins. It is still empty."""

    part: FreeObject
    """The part, still empty."""


class ContentPartDone(PartEvent, frozen=True, kw_only=True, tag="response.content_part.done"):
    """A part is complete, as in the final item."""

    part: FreeObject
    """The whole part."""


class OutputTextDelta(PartEvent, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """The next piece of text, with the log probabilities of its tokens if they were requested."""

    delta: str
    logprobs: Logprobs


class OutputTextDone(PartEvent, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The complete text of a part."""

    text: str
    """The whole text."""
    logprobs: Logprobs


class OutputTextAnnotationAdded(
    PartEvent, frozen=True, kw_only=True, tag="response.output_text.annotation.added"
):
    """A source that the text cites."""

    annotation_index: int
    """The position of the citation among those of its part."""
    annotation: FreeObject
    """The citation."""


class RefusalDelta(PartEvent, frozen=True, kw_only=True, tag="response.refusal.delta"):
    """The next piece of a refusal."""

    delta: str


class RefusalDone(PartEvent, frozen=True, kw_only=True, tag="response.refusal.done"):
    """The complete refusal."""

    refusal: str


class ReasoningTextDelta(PartEvent, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    """The next piece of the reasoning."""

    mark: ClassVar[Meta] = adopted("OQ-64")

    delta: str


class ReasoningTextDone(PartEvent, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    """The complete reasoning."""

    mark: ClassVar[Meta] = adopted("OQ-64")

    text: str
    """The whole reasoning."""


class FunctionCallArgumentsDelta(
    ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"
):
    """The next piece of the arguments of a call."""

    item_id: str
    output_index: int
    delta: str


class FunctionCallArgumentsDone(
    ResponseEvent, frozen=True, kw_only=True, tag="response.function_call_arguments.done"
):
    """The complete arguments of a call. Some SDKs need the name here."""

    item_id: str
    output_index: int
    name: str
    """The function to call."""
    arguments: str
    """The whole arguments, as JSON text."""


class CustomToolCallInputDelta(
    ResponseEvent, frozen=True, kw_only=True, tag="response.custom_tool_call_input.delta"
):
    """The input of a custom tool. It arrives as a whole, because engines write it as JSON."""

    mark: ClassVar[Meta] = adopted("OQ-215")

    item_id: str
    output_index: int
    delta: str


class CustomToolCallInputDone(
    ResponseEvent, frozen=True, kw_only=True, tag="response.custom_tool_call_input.done"
):
    """The complete input of a custom tool."""

    mark: ClassVar[Meta] = adopted("OQ-215")

    item_id: str
    output_index: int
    input: str
    """The whole input, as free text."""


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
    CustomToolCallInputDelta,
    CustomToolCallInputDone,
    ContentPartDone,
    OutputItemDone,
    ResponseCompleted,
    ResponseIncomplete,
    ResponseErrorEvent,
    ResponseFailed,
)
