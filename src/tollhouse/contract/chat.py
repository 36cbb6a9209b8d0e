"""The body of a chat completion request, and the rules between its fields."""

from operator import attrgetter
from typing import Annotated, Any, ClassVar, Final, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType, field

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import (
    CompletionCount,
    DefaultOutputBound,
    Effort,
    FreeObject,
    LogitBias,
    MessageModelId,
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
from tollhouse.contract.field_checks import ABSENT, combination, mistyped
from tollhouse.contract.origins import GIVEN, ORIGIN_MEMBER, Origin
from tollhouse.contract.reasoning import Reasoning, ReasoningControls, check_reasoning

# A part may have further members, which are accepted and not forwarded (OQ-195).
_STRING_OR_NULL = (str, type(None))
_TEXT = "a string or null"
_FREE_CHOICES = (*ABSENT, "none", "auto")
"""Choices that need no tool."""
ContentPart = Annotated[
    FreeObject,
    Meta(
        extra_json_schema={
            "properties": {
                "type": {ORIGIN_MEMBER: Origin.GIVEN.value, "type": ["string", "null"]},
                "text": {ORIGIN_MEMBER: Origin.GIVEN.value, "type": ["string", "null"]},
                "image_url": {ORIGIN_MEMBER: Origin.GIVEN.value},
            }
        }
    ),
]


class ChatMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message. The backend decides whether the messages form a valid conversation (OQ-43)."""

    mark: ClassVar[Meta] = GIVEN

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | UnsetType | None = UNSET
    reasoning: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    tool_call_id: str | UnsetType | None = UNSET
    tool_calls: list[FreeObject] | UnsetType | None = UNSET
    function_call: FreeObject | UnsetType | None = UNSET
    model_id: MessageModelId | UnsetType = UNSET


class StreamOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`include_usage` adds a last record with the usage."""

    mark: ClassVar[Meta] = GIVEN

    include_usage: bool | UnsetType | None = UNSET


class TextFormat(Struct, frozen=True, tag_field="type", tag="text", forbid_unknown_fields=True):
    """Plain text."""

    mark: ClassVar[Meta] = GIVEN


class JsonObjectFormat(
    Struct, frozen=True, tag_field="type", tag="json_object", forbid_unknown_fields=True
):
    """Any JSON object."""

    mark: ClassVar[Meta] = GIVEN


class JsonSchema(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON schema that the answer must match."""

    mark: ClassVar[Meta] = GIVEN

    name: SchemaName
    description: SchemaDescription | UnsetType | None = UNSET
    schema: FreeObject
    strict: bool | UnsetType | None = UNSET


class JsonSchemaFormat(
    Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    tag="json_schema",
    forbid_unknown_fields=True,
):
    """JSON that matches a schema."""

    mark: ClassVar[Meta] = GIVEN

    json_schema: JsonSchema


class ChatRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /v1/chat/completions. Where null is allowed, it counts as absent."""

    mark: ClassVar[Meta] = GIVEN

    model: ModelName
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    policy_ids: PolicyIds | UnsetType = UNSET
    stream: bool = False
    max_tokens: Annotated[OutputBound | UnsetType | None, DefaultOutputBound] = UNSET
    max_completion_tokens: Annotated[OutputBound | UnsetType | None, DefaultOutputBound] = UNSET
    temperature: float | UnsetType | None = UNSET
    top_p: float | UnsetType | None = UNSET
    frequency_penalty: Penalty | UnsetType | None = UNSET
    presence_penalty: Penalty | UnsetType | None = UNSET
    logit_bias: dict[str, LogitBias] | UnsetType | None = UNSET
    n: CompletionCount | UnsetType | None = UNSET
    seed: int | UnsetType | None = UNSET
    stop: str | list[str] | UnsetType | None = UNSET
    stream_options: StreamOptions | UnsetType | None = UNSET
    thinking: bool | UnsetType | None = UNSET
    reasoning: Reasoning | UnsetType | None = UNSET
    reasoning_effort: Effort | UnsetType | None = UNSET
    include_reasoning: bool | UnsetType | None = UNSET
    safety_identifier: SafetyIdentifier | UnsetType | None = UNSET
    user: User | UnsetType | None = UNSET
    structured_outputs: bool | UnsetType = field(default=UNSET, name="structuredOutputs")
    tools: list[FreeObject] | UnsetType | None = UNSET
    tool_choice: Literal["none", "auto", "required"] | FreeObject | UnsetType | None = UNSET
    parallel_tool_calls: bool | UnsetType | None = UNSET
    functions: list[FreeObject] | UnsetType | None = UNSET
    function_call: Literal["none", "auto"] | FreeObject | UnsetType | None = UNSET
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | UnsetType | None = UNSET
    modalities: list[str] | UnsetType | None = UNSET
    verbosity: Verbosity | UnsetType | None = UNSET
    audio: FreeObject | UnsetType | None = UNSET
    prediction: FreeObject | UnsetType | None = UNSET
    metadata: FreeObject | UnsetType | None = UNSET
    store: OnlyFalse = False
    service_tier: str | UnsetType | None = UNSET
    prompt_cache_key: PromptCacheKey | UnsetType | None = UNSET
    prompt_cache_retention: PromptCacheRetention | UnsetType | None = UNSET
    logprobs: bool | UnsetType | None = UNSET
    top_logprobs: int | UnsetType | None = UNSET
    prompt_logprobs: int | UnsetType | None = UNSET
    web_search_options: FreeObject | UnsetType | None = UNSET
    cache_salt: str | UnsetType | None = UNSET


def check(request: ChatRequest) -> None:
    """Raise `InvalidRequest` for fields that contradict each other, whatever the model supports."""
    if request.store:
        message = "Invalid 'store': only false is accepted, because nothing is stored."
        raise InvalidRequest("unsupported_value", message, param="store")
    if request.max_tokens not in ABSENT and request.max_completion_tokens not in ABSENT:
        raise combination("max_tokens", "send it or 'max_completion_tokens', not both")
    if request.logprobs is False and request.top_logprobs:
        raise combination("top_logprobs", "it contradicts 'logprobs', which is false")
    if request.stream and (request.prompt_logprobs or 0) > 0:
        raise combination("prompt_logprobs", "it cannot be streamed")
    if _tools_of(request) != _NO_TOOLS:
        _check_tools(request)
    _check_content_parts(request.messages)
    if _reasoning_of(request) != _NO_REASONING:
        _check_reasoning(request)


_tools_of: Final = attrgetter("tools", "functions", "tool_choice", "function_call")
_NO_TOOLS: Final = (UNSET, UNSET, UNSET, UNSET)
_reasoning_of: Final = attrgetter("reasoning", "reasoning_effort", "thinking", "include_reasoning")
_NO_REASONING: Final = (UNSET, UNSET, UNSET, UNSET)


def _check_reasoning(request: ChatRequest) -> None:
    check_reasoning(
        ReasoningControls(
            reasoning=request.reasoning or Reasoning(),
            reasoning_effort=request.reasoning_effort,
            thinking=request.thinking,
            include_reasoning=request.include_reasoning,
        )
    )


def _check_tools(request: ChatRequest) -> None:
    """Check tools, functions and the choice among them. An empty list counts as absent (OQ-37)."""
    tools, functions = request.tools or [], request.functions or []
    if tools and functions:
        raise combination("functions", "send it or 'tools', not both")
    choice, call = request.tool_choice, request.function_call
    if choice not in _FREE_CHOICES:
        if not tools:
            raise combination("tool_choice", "it needs 'tools'")
        if isinstance(choice, dict) and choice.get("type") == "function":
            _check_named("tool_choice", choice.get("function"), [t.get("function") for t in tools])
    if call not in _FREE_CHOICES:
        if not functions:
            raise combination("function_call", "it needs 'functions'")
        _check_named("function_call", call, functions)


def _check_named(param: str, chosen: Any, defined: list[Any]) -> None:  # noqa: ANN401 - free-form
    """Check that a choice by name names a defined tool. The backend checks other forms."""
    name = _name(chosen)
    if name is not None and name not in map(_name, defined):
        raise combination(param, "nothing of that name is defined")


def _name(function: Any) -> Any:  # noqa: ANN401 - free-form
    return cast("FreeObject", function).get("name") if isinstance(function, dict) else None


def _check_content_parts(messages: list[ChatMessage]) -> None:
    for position, message in enumerate(messages):
        if isinstance(message.content, list):
            for index, part in enumerate(message.content):
                if not isinstance(part.get("type"), _STRING_OR_NULL):
                    raise mistyped(f"messages[{position}].content[{index}].type", _TEXT)
                if not isinstance(part.get("text"), _STRING_OR_NULL):
                    raise mistyped(f"messages[{position}].content[{index}].text", _TEXT)
