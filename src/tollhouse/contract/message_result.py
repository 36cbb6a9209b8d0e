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
    """Tokens that were neither read from a cache nor written to one."""
    cache_creation_input_tokens: int = 0
    """Tokens that were written to a cache."""
    cache_read_input_tokens: int = 0
    """Tokens that were read from a cache."""
    output_tokens: int


class Message(Struct, frozen=True, kw_only=True):
    """An answer. `content` has the blocks `thinking`, `text` and `tool_use`."""

    mark: ClassVar[Meta] = adopted("OQ-222")

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    """The author: always the model."""
    model: str
    content: list[FreeObject]
    """The blocks of the answer, in the order in which they began."""
    stop_reason: StopReason | None = None
    """Why the answer ended, or null while it goes on."""
    stop_sequence: str | None = None
    usage: MessageUsage
    """What the request is charged for."""


class MessageEvent(Struct, frozen=True, kw_only=True, tag_field="type"):
    """One event of a streamed message."""

    mark: ClassVar[Meta] = adopted("OQ-222")


class MessageStart(MessageEvent, frozen=True, kw_only=True, tag="message_start"):
    """The first event. Its usage is not known yet."""

    message: Message
    """The message without content."""


class ContentBlockStart(MessageEvent, frozen=True, kw_only=True, tag="content_block_start"):
    """A block begins. It is still empty."""

    index: int
    """The position of the block in `content` of the message."""
    content_block: FreeObject
    """The block, still empty."""


class ContentBlockDelta(MessageEvent, frozen=True, kw_only=True, tag="content_block_delta"):
    """More of the block that began last."""

    index: int
    """The position of the block in `content` of the message."""
    delta: FreeObject


class ContentBlockStop(MessageEvent, frozen=True, kw_only=True, tag="content_block_stop"):
    """The block is complete."""

    index: int
    """The position of the block in `content` of the message."""


class MessageEnd(Struct, frozen=True, kw_only=True):
    """Why the answer ended."""

    mark: ClassVar[Meta] = adopted("OQ-222")

    stop_reason: StopReason
    """Why the answer ended."""
    stop_sequence: str | None = None


class MessageDelta(MessageEvent, frozen=True, kw_only=True, tag="message_delta"):
    """Why the answer ended, and its usage as a whole."""

    delta: MessageEnd
    """Why the answer ended."""
    usage: MessageUsage
    """What the request is charged for."""


class MessageStop(MessageEvent, frozen=True, kw_only=True, tag="message_stop"):
    """The last event of a complete answer."""


class MessageFailure(MessageEvent, frozen=True, kw_only=True, tag="error"):
    """The last event of an answer that failed."""

    error: ErrorBody
    """What failed."""
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
