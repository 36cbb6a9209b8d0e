"""What is asked of a backend and what comes back: the nouns of the port.

Upstream records are read leniently: fields that we do not know are dropped here, so that only
what the contract has can leave the gateway.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta, Struct

TOKENS_MAX = 2**31 - 1

FreeObject = dict[str, Any]
TokenCount = Annotated[int, Meta(ge=0, le=TOKENS_MAX)]


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendConfig:
    """How one backend is reached and how long it may take.

    `replicas` are base URLs such as `http://10.0.0.7:8000/v1`; `health_path` begins at their host.
    """

    name: str
    replicas: tuple[str, ...]
    api_key: str | None = field(default=None, repr=False)
    health_path: str = "/health"
    bills_without_answer: bool = False
    connections_max: int = 1_000
    connect_seconds: float = 5.0
    first_event_seconds: float = 120.0
    idle_seconds: float = 60.0
    total_seconds: float = 580.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """One call, ready for any replica of its backend.

    `path` goes on from the replica's base URL, or from its host where `is_at_host`. `affinity`
    draws calls of one session to one replica.
    """

    path: str
    body: bytes
    affinity: bytes | None = None
    is_at_host: bool = False


class CachedDetails(Struct, frozen=True):
    """Where an engine says how much of the prompt it had."""

    cached_tokens: TokenCount | None = None


class ReasoningDetails(Struct, frozen=True):
    """Where an engine says how much of the answer was reasoning."""

    reasoning_tokens: TokenCount | None = None


class UpstreamUsage(Struct, frozen=True):
    """As the engine reports it. What cannot be a count, or lacks the prompt, is no usage at all."""

    prompt_tokens: TokenCount
    completion_tokens: TokenCount | None = None
    prompt_tokens_details: CachedDetails | None = None
    completion_tokens_details: ReasoningDetails | None = None


class FunctionDelta(Struct, frozen=True):
    """A piece of a call."""

    name: str | None = None
    arguments: str | None = None


class ToolCallDelta(Struct, frozen=True):
    """A piece of one of the calls of a choice."""

    index: int = 0
    id: str | None = None
    function: FunctionDelta | None = None


class UpstreamDelta(Struct, frozen=True):
    """What a record adds to a choice. Engines call reasoning by either name."""

    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    function_call: FunctionDelta | None = None
    annotations: list[FreeObject] | None = None


class UpstreamChunkChoice(Struct, frozen=True):
    """A choice in a record of a stream."""

    index: int = 0
    delta: UpstreamDelta = UpstreamDelta()
    logprobs: Any = None
    finish_reason: str | None = None


class UpstreamChunk(Struct, frozen=True):
    """One record of a stream."""

    choices: list[UpstreamChunkChoice] = []
    usage: UpstreamUsage | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None


class UpstreamMessage(Struct, frozen=True):
    """A whole answer of one choice."""

    content: str | list[FreeObject] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[FreeObject] | None = None
    function_call: FreeObject | None = None
    annotations: list[FreeObject] | None = None


class UpstreamChoice(Struct, frozen=True):
    """One of the completions."""

    index: int = 0
    message: UpstreamMessage = UpstreamMessage()
    logprobs: Any = None
    finish_reason: str | None = None


class UpstreamCompletion(Struct, frozen=True):
    """An answer that was not streamed."""

    choices: list[UpstreamChoice]
    usage: UpstreamUsage | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    prompt_logprobs: list[FreeObject | None] | None = None
