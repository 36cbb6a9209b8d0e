"""The wire types of a Messages answer: the whole message, and the events of a stream (OQ-222)."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import ErrorBody
from tollhouse.contract.origins import adopted

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]


class MessageUsage(Struct, frozen=True, kw_only=True):
    """The tokens that the request is charged for. `input_tokens` are those not read from a cache.

    The three counts of input tokens together are all input tokens.
    """

    mark: ClassVar[Meta] = adopted("OQ-223")

    input_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int


class Message(Struct, frozen=True, kw_only=True):
    """An answer. `content` has the blocks `thinking`, `text` and `tool_use`."""

    mark: ClassVar[Meta] = adopted("OQ-222")

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[FreeObject]
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: MessageUsage


class MessageEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """One event of a streamed message."""

    mark: ClassVar[Meta] = adopted("OQ-222")


class MessageStart(MessageEvent, frozen=True, kw_only=True, tag="message_start"):
    """The first event. Its usage is not known yet."""

    message: Message


class ContentBlockStart(MessageEvent, frozen=True, kw_only=True, tag="content_block_start"):
    """A block begins. It is still empty."""

    index: int
    content_block: FreeObject


class ContentBlockDelta(MessageEvent, frozen=True, kw_only=True, tag="content_block_delta"):
    """More of the block that began last."""

    index: int
    delta: FreeObject


class ContentBlockStop(MessageEvent, frozen=True, kw_only=True, tag="content_block_stop"):
    """The block is complete."""

    index: int


class MessageEnd(Struct, frozen=True, kw_only=True):
    """Why the answer ended."""

    mark: ClassVar[Meta] = adopted("OQ-222")

    stop_reason: StopReason
    stop_sequence: str | None = None


class MessageDelta(MessageEvent, frozen=True, kw_only=True, tag="message_delta"):
    """Why the answer ended, and its usage as a whole."""

    delta: MessageEnd
    usage: MessageUsage


class MessageStop(MessageEvent, frozen=True, kw_only=True, tag="message_stop"):
    """The last event of a complete answer."""


class MessageFailure(MessageEvent, frozen=True, kw_only=True, tag="error"):
    """The last event of an answer that failed."""

    error: ErrorBody
    request_id: Annotated[str, adopted("OQ-72")]


EVENTS: tuple[type[MessageEvent], ...] = (
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    MessageFailure,
)
