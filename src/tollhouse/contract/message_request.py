"""The body of a Messages request, and the rules between its fields (OQ-219 to OQ-225).

The content of messages is checked where it is translated, block by block.
"""

from typing import Annotated, Any, ClassVar, Final, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import NOT_SERVED, FreeObject, ModelName, OutputBound, PolicyIds
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    ABSENT,
    asks_for_something,
    combination,
    mistyped,
    objects,
    text,
)
from tollhouse.contract.origins import adopted, extension

STOP_SEQUENCES_MAX: Final = 100
STOP_SEQUENCE_LENGTH_MAX: Final = 1_000
ROLES: Final = ("user", "assistant", "system")
UNSERVED_FIELDS: Final = (
    "top_k",
    "container",
    "mcp_servers",
    "compaction",
    "fallbacks",
    "fallback_credit_token",
    "inference_geo",
    "thread",
)
"""Fields of the Messages API that no model of the gateway serves."""
_NEUTRAL_SPEEDS: Final = (*ABSENT, "standard")
_NEUTRAL_EDITS: Final = "clear_thinking_"
"""Edits of earlier thinking. Chat engines drop it by their templates, so nothing is left to do."""

StopSequences = Annotated[
    list[Annotated[str, Meta(max_length=STOP_SEQUENCE_LENGTH_MAX)]],
    Meta(max_length=STOP_SEQUENCES_MAX),
]
Unserved = Annotated[Any, adopted("OQ-220"), NOT_SERVED]
Unused = Annotated[Any, adopted("OQ-221"), Meta(description="Accepted without effect.")]


class MessageRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /compat/anthropic/v1/messages. Where null is allowed, it counts as absent."""

    mark: ClassVar[Meta] = adopted("OQ-219")

    model: ModelName
    messages: Annotated[list[FreeObject], Meta(min_length=1)]
    max_tokens: OutputBound
    """The largest number of tokens to write."""
    policy_ids: Annotated[PolicyIds | UnsetType, extension("OQ-219")] = UNSET
    system: str | list[FreeObject] | UnsetType | None = UNSET
    """Instructions that precede the messages."""
    stream: bool | UnsetType | None = UNSET
    stop_sequences: StopSequences | UnsetType | None = UNSET
    """Texts at which the answer ends. They are not part of it."""
    temperature: float | UnsetType | None = UNSET
    top_p: float | UnsetType | None = UNSET
    thinking: FreeObject | UnsetType | None = UNSET
    """How the model reasons and whether that is shown, in Anthropic's form."""
    tools: list[FreeObject] | UnsetType | None = UNSET
    tool_choice: FreeObject | UnsetType | None = UNSET
    output_config: FreeObject | UnsetType | None = UNSET
    """The effort and the format of the answer, in Anthropic's form."""
    output_format: FreeObject | UnsetType | None = UNSET
    """The older name of `output_config.format`."""
    context_management: FreeObject | UnsetType | None = UNSET
    """Edits of earlier thinking are accepted, others refused with 501."""
    metadata: Unused = None
    cache_control: Unused = None
    service_tier: Unused = None
    diagnostics: Unused = None
    user_profile_id: Unused = None
    workspace_id: Unused = None
    speed: Unserved = None
    """Only `standard` is served; other values are refused with 501."""
    top_k: Unserved = None
    container: Unserved = None
    mcp_servers: Unserved = None
    compaction: Unserved = None
    fallbacks: Unserved = None
    fallback_credit_token: Unserved = None
    inference_geo: Unserved = None
    thread: Unserved = None


def check(request: MessageRequest) -> None:
    """Raise for fields that no model supports (501) and for fields that contradict each other."""
    for name in UNSERVED_FIELDS:
        if asks_for_something(getattr(request, name)):
            raise SupportedNowhere(param=name)
    if request.speed not in _NEUTRAL_SPEEDS:
        raise SupportedNowhere(param="speed")
    check_edits(request.context_management)
    _check_choice(request)
    if (request.output_config or {}).get("format") and request.output_format:
        raise combination("output_format", "send it or 'output_config.format', not both")


def check_edits(management: Any) -> None:  # noqa: ANN401 - free-form
    """Raise for every edit of the context, except those that concern earlier thinking alone."""
    if management in ABSENT:
        return
    if not isinstance(management, dict):
        raise mistyped("context_management", "an object")
    fields = cast("FreeObject", management)
    for index, edit in enumerate(objects(fields, "context_management", "edits")):
        kind = text(edit, f"context_management.edits[{index}]", "type")
        if not kind.startswith(_NEUTRAL_EDITS):
            raise SupportedNowhere(
                param=f"context_management.edits[{index}].type",
                feature="edits of the context beside those of thinking",
            )


def _check_choice(request: MessageRequest) -> None:
    choice = request.tool_choice or {}
    if choice.get("type") in (None, "auto", "none"):
        return
    if not request.tools:
        raise combination("tool_choice", "it needs 'tools'")
    if choice.get("type") == "tool":
        name = text(choice, "tool_choice", "name")
        if name not in [tool.get("name") for tool in request.tools]:
            raise combination("tool_choice", "nothing of that name is defined")
