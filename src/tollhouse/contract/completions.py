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
    """The address of the source."""
    title: str
    """What the source is called."""
    start_index: NonNegative
    """The first character of the text that cites it."""
    end_index: NonNegative
    """The character after the text that cites it."""


class Annotation(Struct, frozen=True, kw_only=True):
    """A source that a web search found."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("url_citation",)

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation
    """The source, and where it is cited."""


class CompletionMessage(Struct, frozen=True, kw_only=True):
    """The message that the model generated."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("role",)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    """The author: the model."""
    content: str | list[FreeObject] | UnsetType | None = UNSET
    """The text, or null if the model only calls tools."""
    refusal: str | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    """What the model reasoned before it answered."""
    reasoning_content: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    """Tells participants of one role apart."""
    tool_call_id: str | UnsetType | None = UNSET
    """The call whose result the message is."""
    tool_calls: list[FreeObject] | UnsetType | None = UNSET
    function_call: FreeObject | UnsetType | None = UNSET
    """The call in the older form."""
    annotations: list[Annotation] | UnsetType | None = UNSET
    """The sources that the text cites."""


class Choice(Struct, frozen=True, kw_only=True):
    """One of the `n` completions."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("index", "message")

    index: int
    """The position among the `n` answers, from 0."""
    message: CompletionMessage
    """What the model wrote."""
    logprobs: Any = None
    finish_reason: str | None = None
    """Why the answer ended."""


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens that the request is charged for."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = (
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
    )

    prompt_tokens: int
    """Tokens that the model read."""
    completion_tokens: int
    """Tokens that the model wrote, its reasoning included."""
    total_tokens: int
    prompt_tokens_details: TokenCounts | UnsetType | None = UNSET
    """Parts of the prompt, such as those from a cache."""
    completion_tokens_details: dict[str, int | None] | UnsetType | None = UNSET
    """Parts of the completion, such as its reasoning."""


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """The answer of POST /v1/chat/completions without streaming."""

    mark: ClassVar[Meta] = GIVEN
    given_required: ClassVar[tuple[str, ...]] = ("id", "created", "model", "choices")

    id: str
    """Identifies the answer at the engine."""
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    """The `n` answers."""
    usage: Usage | UnsetType | None = UNSET
    """What the request is charged for, or null if the engine did not report it."""
    system_fingerprint: str | UnsetType | None = UNSET
    """The configuration of the engine, as it names it."""
    service_tier: str | UnsetType | None = UNSET
    """The class of service that the backend gave the request."""
    prompt_logprobs: list[FreeObject | None] | UnsetType | None = UNSET
    """Log probabilities of the prompt's tokens, if the request asked for them."""


class ToolCallFunctionDelta(Struct, frozen=True, kw_only=True):
    """A piece of a function call: the name is sent once, the arguments in pieces."""

    mark: ClassVar[Meta] = adopted("OQ-21")

    name: str | UnsetType = UNSET
    """The function to call."""
    arguments: str | UnsetType = UNSET
    """The next piece of the arguments, which are JSON text."""


class ToolCallDelta(Struct, frozen=True, kw_only=True):
    """A piece of a tool call. Only the first piece of an index has ID, type and name."""

    mark: ClassVar[Meta] = adopted("OQ-21")

    index: int
    """The position of the call among those of the answer, from 0."""
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: ToolCallFunctionDelta | UnsetType = UNSET
    """What is called."""
    extra_content: Annotated[Any, adopted("OQ-196")] = UNSET
    """What the provider wants back with the call, such as the signature of a thought."""


class Delta(Struct, frozen=True, kw_only=True):
    """The text and calls that a chunk adds to its choice."""

    mark: ClassVar[Meta] = adopted("OQ-19", "OQ-20")

    role: Literal["assistant"] | UnsetType = UNSET
    """The author: the model. Only in the first record."""
    content: str | UnsetType | None = UNSET
    """The next piece of the text."""
    refusal: str | UnsetType | None = UNSET
    """The next piece of the refusal."""
    reasoning: Annotated[str | UnsetType | None, adopted("OQ-26")] = UNSET
    """The next piece of the reasoning."""
    reasoning_content: Annotated[str | UnsetType | None, adopted("OQ-26")] = UNSET
    tool_calls: Annotated[list[ToolCallDelta] | UnsetType, adopted("OQ-21")] = UNSET
    """The next pieces of calls."""
    function_call: Annotated[FreeObject | UnsetType, adopted("OQ-30")] = UNSET
    """The next piece of a call in the older form."""
    annotations: Annotated[list[Annotation] | UnsetType, adopted("OQ-30")] = UNSET
    """The sources that the text cites."""


class ChunkChoice(Struct, frozen=True, kw_only=True):
    """One choice of a chunk. Its last chunk has an empty delta and a `finish_reason`."""

    mark: ClassVar[Meta] = adopted("OQ-19", "OQ-20")

    index: int
    """The position among the `n` answers, from 0."""
    delta: Delta
    """What the record adds to the answer."""
    logprobs: Any = None
    finish_reason: str | None = None
    """Why the answer ended, or null while it goes on."""


class ChatChunk(Struct, frozen=True, kw_only=True):
    """One record of a stream. `usage` is absent unless `include_usage` is true (OQ-22)."""

    mark: ClassVar[Meta] = adopted("OQ-19")

    id: str
    """Identifies the answer at the engine; the same in all records."""
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    service_tier: str | None = None
    """The class of service that the backend gave the request, or null."""
    system_fingerprint: str | None = None
    """The configuration of the engine, as it names it, or null."""
    choices: list[ChunkChoice]
    """What the record adds to each answer. Empty in the record with the usage."""
    usage: Annotated[Usage | UnsetType | None, adopted("OQ-22")] = UNSET
    """What the request is charged for, only in the last record."""
