"""The answer of a chat completion: one object, or a stream of chunks (OQ-19)."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import FreeObject, NonNegative
from tollhouse.contract.origins import GIVEN, adopted

TokenCounts = dict[str, int | dict[str, int] | None]


class UrlCitation(Struct, frozen=True, kw_only=True):
    """A cited source, and the part of the text that cites it."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("url", "title", "start_index", "end_index")

    url: str
    title: str
    start_index: NonNegative
    end_index: NonNegative


class Annotation(Struct, frozen=True, kw_only=True):
    """A source that a web search found."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("url_citation",)

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class CompletionMessage(Struct, frozen=True, kw_only=True):
    """The message that the model generated."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("role",)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[FreeObject] | UnsetType | None = UNSET
    refusal: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    tool_call_id: str | UnsetType | None = UNSET
    tool_calls: list[FreeObject] | UnsetType | None = UNSET
    function_call: FreeObject | UnsetType | None = UNSET
    annotations: list[Annotation] | UnsetType | None = UNSET


class Choice(Struct, frozen=True, kw_only=True):
    """One of the `n` completions."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("index", "message")

    index: int
    message: CompletionMessage
    logprobs: Any = None
    finish_reason: str | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens that the request is charged for."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = (
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
    )

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokenCounts | UnsetType | None = UNSET
    completion_tokens_details: dict[str, int | None] | UnsetType | None = UNSET


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """The answer of POST /v1/chat/completions without streaming."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("id", "created", "model", "choices")

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | UnsetType | None = UNSET
    system_fingerprint: str | UnsetType | None = UNSET
    service_tier: str | UnsetType | None = UNSET
    prompt_logprobs: list[FreeObject | None] | UnsetType | None = UNSET


class ToolCallFunctionDelta(Struct, frozen=True, kw_only=True):
    """A piece of a function call: the name is sent once, the arguments in pieces."""

    mark: ClassVar[Meta] = adopted("OQ-21")

    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class ToolCallDelta(Struct, frozen=True, kw_only=True):
    """A piece of a tool call. Only the first piece of an index has ID, type and name."""

    mark: ClassVar[Meta] = adopted("OQ-21")

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: ToolCallFunctionDelta | UnsetType = UNSET


class Delta(Struct, frozen=True, kw_only=True):
    """The text and calls that a chunk adds to its choice."""

    mark: ClassVar[Meta] = adopted("OQ-19", "OQ-20")

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    refusal: str | UnsetType | None = UNSET
    reasoning: Annotated[str | UnsetType | None, adopted("OQ-26")] = UNSET
    reasoning_content: Annotated[str | UnsetType | None, adopted("OQ-26")] = UNSET
    tool_calls: Annotated[list[ToolCallDelta] | UnsetType, adopted("OQ-21")] = UNSET
    function_call: Annotated[FreeObject | UnsetType, adopted("OQ-30")] = UNSET
    annotations: Annotated[list[Annotation] | UnsetType, adopted("OQ-30")] = UNSET


class ChunkChoice(Struct, frozen=True, kw_only=True):
    """One choice of a chunk. Its last chunk has an empty delta and a `finish_reason`."""

    mark: ClassVar[Meta] = adopted("OQ-19", "OQ-20")

    index: int
    delta: Delta
    logprobs: Any = None
    finish_reason: str | None = None


class ChatChunk(Struct, frozen=True, kw_only=True):
    """One record of a stream. `usage` is absent unless `include_usage` is true (OQ-22)."""

    mark: ClassVar[Meta] = adopted("OQ-19")

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    service_tier: str | None = None
    system_fingerprint: str | None = None
    choices: list[ChunkChoice]
    usage: Annotated[Usage | UnsetType | None, adopted("OQ-22")] = UNSET
