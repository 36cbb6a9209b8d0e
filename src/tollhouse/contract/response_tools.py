"""Checks the tools of a response request, and the choice among them (OQ-56).

Tools are functions in the flat form, and web search under each of its names. For a backend, web
search is an option of the whole request, so that it does not support every choice.
"""

from collections.abc import Set as AbstractSet

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    combination,
    invalid_value,
    mistyped,
    objects,
    text,
    unsupported_type,
)

WEB_SEARCH_TYPES = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
)
TOOL_TYPES = ("function", *WEB_SEARCH_TYPES)
WEB_SEARCH_OPTIONS = ("search_context_size", "user_location")
"""The options of a web search that a chat request can express. Other options are refused."""
MODES = ("auto", "required")


def is_function(tool: FreeObject) -> bool:
    """Return whether a tool is a function, which the caller runs, and not a web search."""
    return tool.get("type") == "function"


def identity(tool: FreeObject) -> str | None:
    """Return the name of a function, or None for a web search, which is in `tools` at most once."""
    return tool["name"] if is_function(tool) else None


def identities(tools: list[FreeObject]) -> frozenset[str | None]:
    """Return the identities of tools as a set, for fast lookups."""
    return frozenset(map(identity, tools))


def check_tools(tools: list[FreeObject]) -> None:
    """Raise for types and options of tools that no model supports (501)."""
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        kind = text(tool, path, "type")
        if kind == "function":
            text(tool, path, "name")
        elif kind in WEB_SEARCH_TYPES:
            _check_web_search(tool, path)
        else:
            raise unsupported_type(f"{path}.type", "tools", TOOL_TYPES)
    if sum(not is_function(tool) for tool in tools) > 1:
        raise combination("tools", "a web search can stand in it once")


def check_tool_choice(choice: str | FreeObject, tools: list[FreeObject]) -> None:
    """Raise unless the chosen function, allowed tools or hosted tool are in `tools`."""
    if choice == "required":
        _check_required("tool_choice", tools)
    if isinstance(choice, str):
        return
    if text(choice, "tool_choice", "type") == "allowed_tools":
        allowed = objects(choice, "tool_choice", "tools")
        defined = identities(tools)
        for index, tool in enumerate(allowed):
            _check_chosen(tool, f"tool_choice.tools[{index}]", defined)
        if text(choice, "tool_choice", "mode") not in MODES:
            raise invalid_value("tool_choice.mode", f"expected one of {', '.join(MODES)}")
        if choice["mode"] == "required":
            _check_required("tool_choice.mode", allowed)
    else:
        _check_chosen(choice, "tool_choice", identities(tools))


def _check_web_search(tool: FreeObject, path: str) -> None:
    for name, value in tool.items():
        if name not in ("type", *WEB_SEARCH_OPTIONS) and value is not None:
            raise SupportedNowhere(param=f"{path}.{name}", feature="this option of a web search")
    if not isinstance(tool.get("user_location"), dict | None):
        raise mistyped(f"{path}.user_location", "an object or null")


def _check_chosen(choice: FreeObject, path: str, defined: AbstractSet[str | None]) -> None:
    kind = text(choice, path, "type")
    if kind == "function":
        text(choice, path, "name")
    elif kind not in WEB_SEARCH_TYPES:
        raise unsupported_type(f"{path}.type", "tools", TOOL_TYPES)
    if identity(choice) not in defined:
        raise _undefined(path)


def _check_required(param: str, offered: list[FreeObject]) -> None:
    """Raise if `required` would have to choose between functions and a web search."""
    if not offered:
        raise combination(param, "it needs 'tools'")
    if len({is_function(tool) for tool in offered}) > 1:
        raise SupportedNowhere(
            param=param,
            feature="'required' between functions and a web search",
            instead="Send 'auto', or only tools of one kind.",
        )


def _undefined(param: str) -> InvalidRequest:
    return combination(param, "nothing of that name is defined in 'tools'")
