"""Checks the tools of a response request, and the choice among them (OQ-56, OQ-215).

The caller runs functions, custom tools and the local shell; a namespace groups functions and custom
tools. Web search runs at the backend: there it is an option of the whole request, so that it does
not support every choice.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    ABSENT,
    combination,
    invalid_value,
    mistyped,
    objects,
    text,
    unsupported_type,
)

WEB_SEARCH_TYPES: Final = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
)
NAMED_TYPES: Final = ("function", "custom")
LOCAL_SHELL: Final = "local_shell"
NAMESPACE: Final = "namespace"
TOOL_TYPES: Final = (*NAMED_TYPES, LOCAL_SHELL, NAMESPACE, *WEB_SEARCH_TYPES)
CHOICE_TYPES: Final = (*NAMED_TYPES, LOCAL_SHELL, *WEB_SEARCH_TYPES)
WEB_SEARCH_OPTIONS: Final = ("search_context_size", "user_location")
"""The options of a web search that a chat request can express. Other options are refused."""
MODES: Final = ("auto", "required")
FREE_CHOICES: Final = (*ABSENT, "auto", "none")
"""The choices that demand no tool."""


class ToolIdentity(NamedTuple):
    """What a choice refers to. A web search and the local shell have no name."""

    kind: str
    name: str = ""
    namespace: str = ""


class RefusedTool(NamedTuple):
    """A tool that no backend runs, and the refusal of a request with it."""

    kind: str
    refusal: SupportedNowhere


def is_web_search(tool: FreeObject) -> bool:
    """Return whether a tool, or a choice of one, is a web search under any of its names."""
    return tool.get("type") in WEB_SEARCH_TYPES


def identity(tool: FreeObject, namespace: str = "") -> ToolIdentity:
    """Return the identity of a tool, or of the tool that a choice refers to."""
    kind = tool["type"]
    if kind in NAMED_TYPES:
        return ToolIdentity(kind, tool["name"], namespace)
    return ToolIdentity(WEB_SEARCH_TYPES[0] if kind in WEB_SEARCH_TYPES else kind)


def chosen_identity(choice: FreeObject) -> ToolIdentity:
    """Return the identity of the tool that a checked choice refers to."""
    return identity(choice, choice.get("namespace") or "")


def with_namespaces(tools: list[FreeObject]) -> Iterator[tuple[FreeObject, str]]:
    """Yield every tool that is not a namespace, with the name of its namespace or ""."""
    for tool in tools:
        if tool["type"] == NAMESPACE:
            for inner in tool.get("tools") or ():
                yield inner, tool["name"]
        else:
            yield tool, ""


def check_tools(tools: list[FreeObject]) -> Mapping[int, RefusedTool]:
    """Return the tools that no backend runs, by position. Raises for a malformed tool."""
    refused: dict[int, RefusedTool] = {}
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        kind = text(tool, path, "type")
        if kind in NAMED_TYPES:
            text(tool, path, "name")
        elif kind == NAMESPACE:
            _check_namespace(tool, path)
        elif kind in WEB_SEARCH_TYPES:
            if (refusal := _refused_option(tool, path)) is not None:
                refused[position] = RefusedTool(kind, refusal)
        elif kind != LOCAL_SHELL:
            refusal = unsupported_type(f"{path}.type", "tools", TOOL_TYPES)
            refused[position] = RefusedTool(kind, refusal)
    if sum(map(is_web_search, tools)) > 1:
        raise combination("tools", "a web search can stand in it once")
    return refused


def check_tool_choice(
    choice: str | FreeObject, tools: list[FreeObject], refused: Mapping[int, RefusedTool]
) -> None:
    """Raise unless the chosen function, allowed tools or hosted tool are in `tools`.

    A choice that demands a tool also raises for a refused tool, because it may demand that one.
    """
    if choice in FREE_CHOICES:
        return
    for each in refused.values():
        raise each.refusal
    if isinstance(choice, str):
        _check_required("tool_choice", tools)
        return
    defined = frozenset(identity(tool, name) for tool, name in with_namespaces(tools))
    if text(choice, "tool_choice", "type") == "allowed_tools":
        allowed = objects(choice, "tool_choice", "tools")
        for index, tool in enumerate(allowed):
            _check_chosen(tool, f"tool_choice.tools[{index}]", defined)
        if text(choice, "tool_choice", "mode") not in MODES:
            raise invalid_value("tool_choice.mode", f"expected one of {', '.join(MODES)}")
        if choice["mode"] == "required":
            _check_required("tool_choice.mode", allowed)
    else:
        _check_chosen(choice, "tool_choice", defined)


def _check_namespace(tool: FreeObject, path: str) -> None:
    text(tool, path, "name")
    for index, inner in enumerate(objects(tool, path, "tools")):
        inner_path = f"{path}.tools[{index}]"
        if text(inner, inner_path, "type") not in NAMED_TYPES:
            raise unsupported_type(f"{inner_path}.type", "tools in a namespace", NAMED_TYPES)
        text(inner, inner_path, "name")


def _refused_option(tool: FreeObject, path: str) -> SupportedNowhere | None:
    """Return the refusal of an option that a chat does not have, or None."""
    if not isinstance(tool.get("user_location"), dict | None):
        raise mistyped(f"{path}.user_location", "an object or null")
    for name, value in tool.items():
        if name not in ("type", *WEB_SEARCH_OPTIONS) and value is not None:
            return SupportedNowhere(param=f"{path}.{name}", feature="this option of a web search")
    return None


def _check_chosen(choice: FreeObject, path: str, defined: AbstractSet[ToolIdentity]) -> None:
    kind = text(choice, path, "type")
    if kind not in CHOICE_TYPES:
        raise unsupported_type(f"{path}.type", "tools", CHOICE_TYPES)
    if kind in NAMED_TYPES:
        text(choice, path, "name")
        if choice.get("namespace") is not None:
            text(choice, path, "namespace")
    if chosen_identity(choice) not in defined:
        raise _undefined(path)


def _check_required(param: str, offered: list[FreeObject]) -> None:
    """Raise if `required` would have to choose between functions and a web search."""
    if not offered:
        raise combination(param, "it needs 'tools'")
    if len(set(map(is_web_search, offered))) > 1:
        raise SupportedNowhere(
            param=param,
            feature="'required' between functions and a web search",
            instead="Send 'auto', or only tools of one kind.",
        )


def _undefined(param: str) -> InvalidRequest:
    return combination(param, "nothing of that name is defined in 'tools'")
