"""The body of a stateless response request (OQ-49), and the rules between its fields."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import (
    NOT_SERVED,
    DefaultOutputBound,
    Effort,
    FreeObject,
    Metadata,
    ModelName,
    OnlyFalse,
    OutputBound,
    Penalty,
    PolicyIds,
    PromptCacheKey,
    PromptCacheRetention,
    SafetyIdentifier,
    SchemaDescription,
    SchemaName,
    User,
    Verbosity,
)
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    ABSENT,
    asks_for_something,
    check_exclusive,
    combination,
)
from tollhouse.contract.origins import GIVEN, adopted, given
from tollhouse.contract.response_items import check_input
from tollhouse.contract.response_tools import RefusedTool, check_tool_choice, check_tools

IncludeValue = Literal[
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
]
ServiceTier = Literal["auto", "default", "flex", "scale", "priority"]
Summary = Literal["auto", "concise", "detailed"]
Absent = Annotated[Any, adopted("OQ-55")]
Unserved = Annotated[Any, adopted("OQ-49"), NOT_SERVED]

_NAMED_PENALTY = given(name="OQ-53", null="OQ-53")
_NAMED_IDENTIFIER = given(name="OQ-51", null="OQ-51")

STATEFUL_FIELDS = ("background", "previous_response_id", "conversation", "prompt")
UNSERVED_FIELDS = (
    "max_tool_calls",
    "context_management",
    "moderation",
    "prompt_cache_options",
    "access_programs",
    "image",
)


class ResponseReasoning(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reasoning."""

    mark: ClassVar[Meta] = adopted("OQ-49")

    effort: Effort | UnsetType | None = UNSET
    """How much the model reasons."""
    summary: Summary | UnsetType | None = UNSET
    """How detailed the summary of the reasoning is."""
    generate_summary: Summary | UnsetType | None = UNSET
    """The older name of `summary`."""


class ResponseTextFormat(
    Struct, frozen=True, tag_field="type", tag="text", forbid_unknown_fields=True
):
    """Plain text."""

    mark: ClassVar[Meta] = adopted("OQ-49")


class ResponseJsonObjectFormat(
    Struct, frozen=True, tag_field="type", tag="json_object", forbid_unknown_fields=True
):
    """Any JSON object."""

    mark: ClassVar[Meta] = adopted("OQ-49")


class ResponseJsonSchemaFormat(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="json_schema",
    forbid_unknown_fields=True,
):
    """JSON that matches a schema. Unlike in chat, the members are not nested."""

    mark: ClassVar[Meta] = adopted("OQ-49")

    name: SchemaName
    """A label of the format that the model sees."""
    schema: FreeObject
    description: SchemaDescription | UnsetType | None = UNSET
    """What the format is for, in words for the model."""
    strict: bool | UnsetType | None = UNSET


class ResponseText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The format of the answer's text."""

    mark: ClassVar[Meta] = adopted("OQ-49")

    format: ResponseTextFormat | ResponseJsonObjectFormat | ResponseJsonSchemaFormat | UnsetType = (
        UNSET
    )
    """Free text, any JSON, or JSON that matches a schema."""
    verbosity: Verbosity | UnsetType | None = UNSET


class ResponseStreamOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Accepted without effect, because nothing is obfuscated."""

    mark: ClassVar[Meta] = adopted("OQ-49")

    include_obfuscation: bool | UnsetType = UNSET
    """Accepted without effect."""


class ResponseRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /v1/responses. Where null is allowed, it counts as absent."""

    mark: ClassVar[Meta] = adopted("OQ-49", additionalProperties="OQ-54")
    exclusive: ClassVar[tuple[str, ...]] = (
        "max_output_tokens",
        "max_tokens",
        "max_completion_tokens",
    )

    model: Annotated[ModelName, GIVEN]
    input: Annotated[
        Annotated[str, Meta(min_length=1)] | Annotated[list[FreeObject], Meta(min_length=1)],
        given(type="OQ-49"),
    ]
    """The conversation so far: a text of the user, or items, oldest first."""
    instructions: str | UnsetType | None = UNSET
    """A system message that precedes the input."""
    max_output_tokens: Annotated[
        OutputBound | UnsetType | None, given(name="OQ-52", null="OQ-52"), DefaultOutputBound
    ] = UNSET
    """The largest number of tokens to write. Send at most one of the three bounds."""
    max_tokens: Annotated[OutputBound | UnsetType | None, adopted("OQ-52")] = UNSET
    """The name of `max_output_tokens` in older clients."""
    max_completion_tokens: Annotated[OutputBound | UnsetType | None, adopted("OQ-52")] = UNSET
    """The name of `max_output_tokens` in chat."""
    temperature: float | UnsetType | None = UNSET
    top_p: float | UnsetType | None = UNSET
    presence_penalty: Annotated[Penalty | UnsetType | None, _NAMED_PENALTY] = UNSET
    frequency_penalty: Annotated[Penalty | UnsetType | None, _NAMED_PENALTY] = UNSET
    top_logprobs: int | UnsetType | None = UNSET
    tools: Annotated[list[FreeObject] | UnsetType | None, given(null="OQ-56")] = UNSET
    tool_choice: Annotated[
        Literal["none", "auto", "required"] | FreeObject | UnsetType | None, given(null="OQ-56")
    ] = UNSET
    parallel_tool_calls: bool | UnsetType | None = UNSET
    max_tool_calls: Annotated[int, Meta(ge=1)] | UnsetType | None = UNSET
    """Refused with 501: no model of the gateway bounds its calls."""
    text: ResponseText | UnsetType = UNSET
    """The form of the answer."""
    reasoning: ResponseReasoning | UnsetType | None = UNSET
    """How much the model reasons, and how that is summarized."""
    include: Annotated[list[IncludeValue] | UnsetType | None, given(null="OQ-57")] = UNSET
    """Further parts of the answer to return."""
    truncation: Annotated[
        Literal["auto", "disabled"] | UnsetType | None, given(name="OQ-50", null="OQ-50")
    ] = UNSET
    """Nothing of an input is cut: with `auto`, one that may not fit is refused with 501."""
    service_tier: Annotated[ServiceTier | UnsetType | None, given(null="OQ-57")] = UNSET
    """The class of service that the backend gives the request, if it has several."""
    prompt_cache_key: Annotated[PromptCacheKey | UnsetType | None, given(null="OQ-49")] = UNSET
    prompt_cache_retention: PromptCacheRetention | UnsetType | None = UNSET
    safety_identifier: Annotated[SafetyIdentifier | UnsetType | None, _NAMED_IDENTIFIER] = UNSET
    user: Annotated[User | UnsetType | None, _NAMED_IDENTIFIER] = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    """Names and values of the caller, which the answer repeats."""
    client_metadata: Annotated[FreeObject | UnsetType | None, adopted("OQ-214")] = UNSET
    """Accepted without effect: it is not stored, forwarded or repeated."""
    policy_ids: Annotated[PolicyIds | UnsetType, GIVEN] = UNSET
    stream: bool | UnsetType | None = UNSET
    stream_options: ResponseStreamOptions | UnsetType | None = UNSET
    """Options of a stream."""
    store: Annotated[OnlyFalse | UnsetType | None, given(null="OQ-55")] = UNSET
    background: Absent = None
    """Refused if true: responses are stateless."""
    previous_response_id: Annotated[Any, given(default="OQ-55")] = None
    """Refused unless null: responses are stateless."""
    conversation: Absent = None
    """Refused unless null: responses are stateless."""
    prompt: Absent = None
    """Refused unless null: no prompts are stored."""
    context_management: Unserved = None
    moderation: Unserved = None
    prompt_cache_options: Unserved = None
    access_programs: Unserved = None
    image: Unserved = None


def check(request: ResponseRequest) -> Mapping[int, RefusedTool]:
    """Raise for fields that need stored state, contradict each other, or are unsupported.

    Returns the tools that no backend runs, by position: some models answer without them.
    """
    _check_stateless(request)
    check_exclusive(request, request.exclusive)
    if isinstance(request.input, list):
        check_input(request.input)
    _check_served(request)
    tools = request.tools or []
    refused = check_tools(tools)
    if isinstance(request.tool_choice, str | dict):
        check_tool_choice(request.tool_choice, tools, refused)
    _check_summary(request.reasoning or ResponseReasoning())
    return refused


def output_bounds(request: ResponseRequest) -> dict[str, int]:
    """Return the output bounds that were sent, by name. `check` allows at most one (OQ-52)."""
    return {
        name: bound for name in request.exclusive if (bound := getattr(request, name)) not in ABSENT
    }


def _check_stateless(request: ResponseRequest) -> None:
    if request.store is True:
        message = "Invalid 'store': only false is accepted, because nothing is stored."
        raise InvalidRequest("unsupported_value", message, param="store")
    for name in STATEFUL_FIELDS:
        value = getattr(request, name)
        if value is not None and value is not False:
            message = f"Unsupported parameter: '{name}'. Responses are stateless."
            raise InvalidRequest("unsupported_parameter", message, param=name)


def _check_served(request: ResponseRequest) -> None:
    """Raise for options that no backend supports."""
    for name in UNSERVED_FIELDS:
        if asks_for_something(getattr(request, name)):
            raise SupportedNowhere(param=name)


def _check_summary(reasoning: ResponseReasoning) -> None:
    names = {reasoning.summary, reasoning.generate_summary} - {UNSET, None}
    if len(names) > 1:
        raise combination("reasoning.generate_summary", "it contradicts 'reasoning.summary'")
