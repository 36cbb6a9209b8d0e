"""The wire types of a response's result: six given fields, and the rest of OpenAI's object."""

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.origins import GIVEN, adopted, given

_COUNTS = given(additionalProperties="OQ-59")


class ResponseUsage(Struct, frozen=True, kw_only=True):
    """The tokens that the request is charged for."""

    mark: ClassVar[Meta] = GIVEN

    input_tokens: int
    input_tokens_details: Annotated[dict[str, int], _COUNTS]
    """The part of the input that was read from a cache."""
    output_tokens: int
    output_tokens_details: Annotated[dict[str, int], _COUNTS]
    """The part of the output that was reasoning."""
    total_tokens: int


class ResponseError(Struct, frozen=True, kw_only=True):
    """Why a streamed response failed."""

    mark: ClassVar[Meta] = adopted("OQ-58")

    code: str
    """The reason for programs."""
    message: str
    """The reason for people."""
    request_id: str
    type: Literal["policy_error"] | UnsetType = UNSET
    """Present only if a policy refused the answer."""


class IncompleteDetails(Struct, frozen=True, kw_only=True):
    """Why a response is incomplete."""

    mark: ClassVar[Meta] = adopted("OQ-58")

    reason: Literal["max_output_tokens", "content_filter"]
    """Whether the output bound or a filter cut the answer off."""


class ResponseResult(Struct, frozen=True, kw_only=True):
    """A response. It has every field, because SDKs in strict mode require them."""

    mark: ClassVar[Meta] = adopted("OQ-59")

    id: Annotated[str, GIVEN]
    object: Annotated[Literal["response"], GIVEN] = "response"
    created_at: int
    completed_at: int | None
    """When the answer was complete, in Unix seconds, or null before."""
    status: Annotated[
        Literal["in_progress", "completed", "incomplete", "failed"], given(enum="OQ-58")
    ]
    """How far the answer is."""
    background: Literal[False] = False
    """Always false: responses are stateless."""
    error: Annotated[ResponseError | None, adopted("OQ-58")] = None
    """Why it failed, or null."""
    frequency_penalty: Annotated[float, adopted("OQ-53")] = 0.0
    incomplete_details: Annotated[IncompleteDetails | None, adopted("OQ-58")] = None
    """Why it is incomplete, or null."""
    instructions: str | None = None
    """The instructions of the request, or null."""
    max_output_tokens: int | None
    """The output bound of the request."""
    max_tool_calls: int | None = None
    """Always null."""
    metadata: dict[str, str]
    """The names and values that the request sent."""
    model: Annotated[str, GIVEN]
    output: Annotated[list[FreeObject], GIVEN]
    """What the model wrote: messages, calls and reasoning, in their order."""
    parallel_tool_calls: bool = True
    presence_penalty: Annotated[float, adopted("OQ-53")] = 0.0
    previous_response_id: str | None = None
    """Always null: responses are stateless."""
    prompt_cache_key: str | None = None
    reasoning: FreeObject
    """The reasoning options of the request."""
    safety_identifier: str | None = None
    service_tier: str | None = None
    """The class of service that the backend gave the request, or null."""
    store: Literal[False] = False
    """Always false: nothing is stored."""
    temperature: float | None = None
    text: FreeObject
    """The form of the answer, as requested."""
    tool_choice: str | FreeObject = "auto"
    tools: list[FreeObject]
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] = "disabled"
    """What the request said of inputs that are too long."""
    usage: Annotated[ResponseUsage | None, given(null="OQ-58")]
    """What the request is charged for, or null while the answer goes on."""
    user: str | None = None
