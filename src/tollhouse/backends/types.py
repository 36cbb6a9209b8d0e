"""Requests to a backend and its answers.

Answers are decoded leniently: unknown fields are dropped, so that only fields of the contract can
leave the gateway.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta, Struct

from tollhouse.base.attempts import Attempt
from tollhouse.base.dialects import Dialect

TOKENS_MAX = 2**31 - 1
FIRST_EVENT_SECONDS = 120.0

FreeObject = dict[str, Any]
TokenCount = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendConfig:
    """The address and timeouts of one backend.

    `replicas` are base URLs such as `http://10.0.0.7:8000/v1`; `health_path` begins at their host.
    `replica_names` stand for them in records that customers read.
    """

    name: str
    replicas: tuple[str, ...]
    replica_names: tuple[str, ...]
    dialect: Dialect = "openai"
    api_key: str | None = field(default=None, repr=False)
    health_path: str = "/health"
    bills_without_answer: bool = False
    connections_max: int = 1_000
    connect_seconds: float = 5.0
    first_event_seconds: float = FIRST_EVENT_SECONDS
    idle_seconds: float = 60.0
    total_seconds: float = 580.0


class UpstreamRequest(Struct, frozen=True, kw_only=True):
    """A request that any replica of its backend can answer.

    `path` continues the replica's base URL, or its host if `is_at_host`. `model` is the backend's
    own name of the model, empty for what is no generation. Requests of equal `affinity` go to the
    same replica if it is not overloaded. `traceparent` is a header, if spans are exported.
    `may_move` says whether another replica may be called after a failure. `is_last_candidate`: no
    other model could answer, so that replicas are called that are ejected. `attempts` of earlier
    calls are continued, under the name of `candidate`. `context_tokens` and
    `output_tokens` are the bounds that a refusal for the length of the prompt is told with.
    """

    path: str
    body: bytes
    model: str = ""
    affinity: bytes | None = None
    is_at_host: bool = False
    traceparent: str | None = None
    first_event_seconds: float | None = None
    """How long to wait for the first event of a stream, if not as long as for others."""
    answer_seconds: float | None = None
    """How long to wait for a whole answer before another replica or model is asked."""
    is_last_candidate: bool = True
    may_move: Callable[[], bool] | None = None
    context_tokens: int = 0
    output_tokens: int = 0
    candidate: str = ""
    attempts: list[Attempt] | None = None


class MessageHints(Struct, frozen=True, kw_only=True):
    """What a Messages request says and a chat cannot, by the positions of chat messages (OQ-229).

    Only a backend that speaks Messages receives it. `thoughts` are thinking blocks with their
    signatures, whose text the chat has too; `failed_results` are results of tools that failed.
    """

    thoughts: Mapping[int, list[FreeObject]] = {}
    failed_results: frozenset[int] = frozenset()
    asks_for_cache: bool = False
    thinks_adaptively: bool = False

    @property
    def signature_bytes(self) -> int:
        """The size of all signatures: encrypted reasoning, which is billed as input."""
        blocks = (block for blocks in self.thoughts.values() for block in blocks)
        return sum(len(block["signature"].encode()) for block in blocks)


NO_HINTS = MessageHints()


class CachedDetails(Struct, frozen=True):
    """The parts of the prompt that the engine had cached, and that it stored in its cache."""

    cached_tokens: TokenCount | None = None
    cache_write_tokens: TokenCount | None = None


class ReasoningDetails(Struct, frozen=True):
    """The part of the answer that was reasoning."""

    reasoning_tokens: TokenCount | None = None


class UpstreamUsage(Struct, frozen=True):
    """Token counts as the engine reports them. Without a prompt count, all of them are dropped."""

    prompt_tokens: TokenCount
    completion_tokens: TokenCount | None = None
    prompt_tokens_details: CachedDetails | None = None
    completion_tokens_details: ReasoningDetails | None = None


class UpstreamTimings(Struct, frozen=True):
    """What llama.cpp has read, found in its cache and generated up to a record of a stream."""

    prompt_n: TokenCount
    predicted_n: TokenCount
    cache_n: TokenCount = 0

    def usage(self) -> UpstreamUsage:
        """Return the counts as a report of usage."""
        return UpstreamUsage(
            prompt_tokens=self.prompt_n + self.cache_n,
            completion_tokens=self.predicted_n,
            prompt_tokens_details=CachedDetails(cached_tokens=self.cache_n),
        )


class FunctionDelta(Struct, frozen=True):
    """A piece of a function call."""

    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Struct, frozen=True):
    """A piece of one tool call of a choice.

    `extra_content` is what the provider wants back with the call, such as the signature of a
    thought.
    """

    index: int = 0
    id: str | None = None
    function: FunctionDelta | None = None
    extra_content: Any = None


class UpstreamDelta(Struct, frozen=True):
    """What a record adds to a choice. Engines name reasoning either way.

    `signature` proves to the provider that the reasoning before it is its own.
    """

    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    signature: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    function_call: FunctionDelta | None = None
    annotations: list[FreeObject] | None = None


class UpstreamChunkChoice(Struct, frozen=True):
    """One choice in a record of a stream. `stop_reason` is the text at which some engines ended."""

    index: int = 0
    delta: UpstreamDelta = UpstreamDelta()
    logprobs: Any = None
    finish_reason: str | None = None
    stop_reason: Any = None


class UpstreamChunk(Struct, frozen=True):
    """One record of a stream."""

    choices: list[UpstreamChunkChoice] = []
    usage: UpstreamUsage | None = None
    timings: UpstreamTimings | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None


class UpstreamMessage(Struct, frozen=True):
    """The complete message of one choice."""

    content: str | list[FreeObject] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    signature: str | None = None
    tool_calls: list[FreeObject] | None = None
    function_call: FreeObject | None = None
    annotations: list[FreeObject] | None = None


class UpstreamChoice(Struct, frozen=True):
    """One choice of a completion. `stop_reason` is the text at which some engines ended."""

    index: int = 0
    message: UpstreamMessage = UpstreamMessage()
    logprobs: Any = None
    finish_reason: str | None = None
    stop_reason: Any = None


class UpstreamCompletion(Struct, frozen=True):
    """A complete answer."""

    choices: list[UpstreamChoice]
    usage: UpstreamUsage | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    prompt_logprobs: list[FreeObject | None] | None = None
