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
from tollhouse.contract.field_checks import ABSENT, check_exclusive, combination, mistyped
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
                "type": {
                    "description": "The kind of the part, such as `text` or `image_url`.",
                    ORIGIN_MEMBER: Origin.GIVEN.value,
                    "type": ["string", "null"],
                },
                "text": {
                    "description": "The text of a part of the kind `text`.",
                    ORIGIN_MEMBER: Origin.GIVEN.value,
                    "type": ["string", "null"],
                },
                "image_url": {
                    "description": "The image, by a data URL in `url` or by its address.",
                    ORIGIN_MEMBER: Origin.GIVEN.value,
                },
            }
        }
    ),
]


class ChatMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message. The backend decides whether the messages form a valid conversation (OQ-43)."""

    mark: ClassVar[Meta] = GIVEN

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    """The author of the message."""
    content: str | list[ContentPart] | UnsetType | None = UNSET
    """A text, or parts with text, images and other media."""
    reasoning: str | UnsetType | None = UNSET
    """What the model reasoned before this message, from an earlier answer."""
    reasoning_content: str | UnsetType | None = UNSET
    name: str | UnsetType | None = UNSET
    """Tells participants of one role apart, or names the function that returned."""
    tool_call_id: str | UnsetType | None = UNSET
    """The call whose result this message is."""
    tool_calls: list[FreeObject] | UnsetType | None = UNSET
    """The calls of this message, from an earlier answer."""
    function_call: FreeObject | UnsetType | None = UNSET
    """The call of this message in the older form."""
    model_id: MessageModelId | UnsetType = UNSET
    """Accepted without effect."""


class StreamOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a stream."""

    mark: ClassVar[Meta] = GIVEN

    include_usage: bool | UnsetType | None = UNSET
    """Whether a last record has the usage of the whole stream."""


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
    """A label of the schema that the model sees."""
    description: SchemaDescription | UnsetType | None = UNSET
    """What the format is for, in words for the model."""
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
    """The schema with its label."""


class ChatRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /v1/chat/completions. Where null is allowed, it counts as absent."""

    mark: ClassVar[Meta] = GIVEN
    exclusive: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")

    model: ModelName
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    policy_ids: PolicyIds | UnsetType = UNSET
    stream: bool = False
    max_tokens: Annotated[OutputBound | UnsetType | None, DefaultOutputBound] = UNSET
    """The largest number of tokens to write. Without any bound it is 1,024, or the model's maximum
    if that is smaller."""
    max_completion_tokens: Annotated[OutputBound | UnsetType | None, DefaultOutputBound] = UNSET
    """The newer name of `max_tokens`. Send one of the two."""
    temperature: float | UnsetType | None = UNSET
    top_p: float | UnsetType | None = UNSET
    frequency_penalty: Penalty | UnsetType | None = UNSET
    presence_penalty: Penalty | UnsetType | None = UNSET
    logit_bias: dict[str, LogitBias] | UnsetType | None = UNSET
    """Makes tokens likelier or less likely: a number for the ID of each token."""
    n: CompletionCount | UnsetType | None = UNSET
    """The number of answers to generate. Each of them is charged."""
    seed: int | UnsetType | None = UNSET
    """The same seed makes the same answer likely."""
    stop: str | list[str] | UnsetType | None = UNSET
    """One or several texts at which the answer ends. They are not part of it."""
    stream_options: StreamOptions | UnsetType | None = UNSET
    """Options of a stream."""
    thinking: bool | UnsetType | None = UNSET
    """Whether the model reasons before it answers."""
    reasoning: Reasoning | UnsetType | None = UNSET
    """Whether and how much the model reasons, and whether that is shown."""
    reasoning_effort: Effort | UnsetType | None = UNSET
    """How much the model reasons."""
    include_reasoning: bool | UnsetType | None = UNSET
    """Whether the answer shows the reasoning."""
    safety_identifier: SafetyIdentifier | UnsetType | None = UNSET
    user: User | UnsetType | None = UNSET
    structured_outputs: bool | UnsetType = field(default=UNSET, name="structuredOutputs")
    """Accepted without effect."""
    tools: list[FreeObject] | UnsetType | None = UNSET
    tool_choice: Literal["none", "auto", "required"] | FreeObject | UnsetType | None = UNSET
    parallel_tool_calls: bool | UnsetType | None = UNSET
    functions: list[FreeObject] | UnsetType | None = UNSET
    """The older form of `tools`."""
    function_call: Literal["none", "auto"] | FreeObject | UnsetType | None = UNSET
    """The older form of `tool_choice`."""
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | UnsetType | None = UNSET
    """Free text, any JSON, or JSON that matches a schema."""
    modalities: list[str] | UnsetType | None = UNSET
    """The kinds of content to generate."""
    verbosity: Verbosity | UnsetType | None = UNSET
    audio: FreeObject | UnsetType | None = UNSET
    """The voice and format of spoken answers."""
    prediction: FreeObject | UnsetType | None = UNSET
    """Text that the answer is likely to repeat, so that it comes faster."""
    metadata: FreeObject | UnsetType | None = UNSET
    """Names and values by which costs can be grouped."""
    store: OnlyFalse = False
    service_tier: str | UnsetType | None = UNSET
    """The class of service that the backend gives the request, if it has several."""
    prompt_cache_key: PromptCacheKey | UnsetType | None = UNSET
    prompt_cache_retention: PromptCacheRetention | UnsetType | None = UNSET
    logprobs: bool | UnsetType | None = UNSET
    """Whether to return log probabilities of the tokens."""
    top_logprobs: int | UnsetType | None = UNSET
    prompt_logprobs: int | UnsetType | None = UNSET
    """The number of alternatives for each token of the prompt."""
    web_search_options: FreeObject | UnsetType | None = UNSET
    """Lets the model search the web, with these options."""
    cache_salt: str | UnsetType | None = UNSET
    """Requests share cached prompts only with those of the same salt."""


def check(request: ChatRequest) -> None:
    """Raise `InvalidRequest` for fields that contradict each other, whatever the model supports."""
    if request.store:
        message = "Invalid 'store': only false is accepted, because nothing is stored."
        raise InvalidRequest("unsupported_value", message, param="store")
    check_exclusive(request, request.exclusive)
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
