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
    output_tokens: int
    output_tokens_details: Annotated[dict[str, int], _COUNTS]
    total_tokens: int


class ResponseError(Struct, frozen=True, kw_only=True):
    """Why a streamed response failed. `type` is present only if a policy refused the answer."""

    mark: ClassVar[Meta] = adopted("OQ-58")

    code: str
    message: str
    type: Literal["policy_error"] | UnsetType = UNSET


class IncompleteDetails(Struct, frozen=True, kw_only=True):
    """Why a response is incomplete."""

    mark: ClassVar[Meta] = adopted("OQ-58")

    reason: Literal["max_output_tokens", "content_filter"]


class ResponseResult(Struct, frozen=True, kw_only=True):
    """A response. It has every field, because SDKs in strict mode require them."""

    mark: ClassVar[Meta] = adopted("OQ-59")

    id: Annotated[str, GIVEN]
    object: Annotated[Literal["response"], GIVEN] = "response"
    created_at: int
    completed_at: int | None
    status: Annotated[
        Literal["in_progress", "completed", "incomplete", "failed"], given(enum="OQ-58")
    ]
    background: Literal[False] = False
    error: Annotated[ResponseError | None, adopted("OQ-58")] = None
    frequency_penalty: Annotated[float, adopted("OQ-53")] = 0.0
    incomplete_details: Annotated[IncompleteDetails | None, adopted("OQ-58")] = None
    instructions: str | None = None
    max_output_tokens: int | None
    max_tool_calls: int | None = None
    metadata: dict[str, str]
    model: Annotated[str, GIVEN]
    output: Annotated[list[FreeObject], GIVEN]
    parallel_tool_calls: bool = True
    presence_penalty: Annotated[float, adopted("OQ-53")] = 0.0
    previous_response_id: None = None
    prompt_cache_key: str | None = None
    reasoning: FreeObject
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: Literal[False] = False
    temperature: float | None = None
    text: FreeObject
    tool_choice: str | FreeObject = "auto"
    tools: list[FreeObject]
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] = "disabled"
    usage: Annotated[ResponseUsage | None, given(null="OQ-58")]
    user: str | None = None
