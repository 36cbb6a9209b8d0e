"""The wire types of token counting, in the form of the Messages API (OQ-67 to OQ-75)."""

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tollhouse.contract.bounds import NOT_SERVED, FreeObject, ModelName, NonNegative
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    asks_for_something,
    invalid_value,
    mistyped,
    required,
    text,
    unsupported_type,
)
from tollhouse.contract.origins import GIVEN, adopted

VERSION_HEADER = "anthropic-version"
BETA_HEADER = "anthropic-beta"
ESTIMATED_HEADER = "x-tollhouse-estimated"
"""Names the header that marks a count as an estimate (OQ-75)."""
TOOL_TYPES = (
    "custom",
    "web_search_2025_03_05",
    "web_fetch_2025_03_05",
    "web_search_20250305",
    "web_fetch_20250910",
)
ROLES = ("user", "assistant")
UNSERVED_FIELDS = ("speed", "context_management", "mcp_servers", "compaction")

Unserved = Annotated[Any, adopted("OQ-70"), NOT_SERVED]


class CountTokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of POST /v1/messages/count_tokens. The backend validates the content of messages."""

    mark: ClassVar[Meta] = adopted("OQ-70")

    model: Annotated[ModelName, GIVEN]
    messages: Annotated[list[FreeObject], Meta(min_length=1), GIVEN]
    system: str | list[FreeObject] | UnsetType = UNSET
    """Instructions that precede the messages."""
    thinking: FreeObject | UnsetType = UNSET
    """How the model would reason, in Anthropic's form."""
    tool_choice: FreeObject | UnsetType = UNSET
    tools: Annotated[list[FreeObject] | UnsetType, GIVEN] = UNSET
    cache_control: FreeObject | UnsetType | None = UNSET
    """Accepted without effect: nothing is cached by counting."""
    output_config: FreeObject | UnsetType = UNSET
    """The form of the answer, in Anthropic's form."""
    speed: Unserved = None
    context_management: Unserved = None
    mcp_servers: Unserved = None
    compaction: Unserved = None


class TokenCount(Struct, frozen=True, kw_only=True):
    """The number of input tokens, which may be an estimate."""

    mark: ClassVar[Meta] = GIVEN

    input_tokens: NonNegative
    """Tokens that the model would read."""


def check(request: CountTokens, roles: tuple[str, ...] = ROLES) -> None:
    """Raise for messages and tools that are invalid (400) or not supported by any model (501).

    Otherwise a misspelt request would get an estimate.
    """
    for name in UNSERVED_FIELDS:
        if asks_for_something(getattr(request, name)):
            raise SupportedNowhere(param=name)
    for position, message in enumerate(request.messages):
        path = f"messages[{position}]"
        if text(message, path, "role") not in roles:
            raise invalid_value(f"{path}.role", f"expected one of {', '.join(roles)}")
        if not isinstance(required(message, path, "content"), str | list):
            raise mistyped(f"{path}.content", "a string or an array")
    for position, tool in enumerate(request.tools or []):
        path = f"tools[{position}]"
        if (tool.get("type") or "custom") not in TOOL_TYPES:
            raise unsupported_type(f"{path}.type", "tools", TOOL_TYPES)
        if not text(tool, path, "name"):
            raise invalid_value(f"{path}.name", "it is empty")
