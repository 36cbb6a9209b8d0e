"""Translate functions and web search of a response to a chat, where web search is an option."""

from dataclasses import dataclass
from typing import Final, Literal

from msgspec import UNSET, UnsetType

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.response_tools import WEB_SEARCH_OPTIONS, identity, is_web_search
from tollhouse.inference.forwarded_tools import FUNCTION, known_members

Choice = Literal["none", "auto", "required"] | FreeObject
_LOCATION: Final = "approximate"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatTools:
    """The fields of a chat that are about tools."""

    functions: list[FreeObject] | UnsetType
    choice: FreeObject | Literal["none", "required"] | UnsetType
    web_search_options: FreeObject | UnsetType


def chat_tools(tools: list[FreeObject], choice: Choice) -> ChatTools:
    """Return the equivalent fields of a chat; a choice without equivalent was refused before.

    A choice among allowed tools offers only these. One that rules web search out omits it, and one
    that demands it omits the functions.
    """
    offered, choice = _offered(tools, choice)
    functions = [_nested(tool) for tool in offered if not is_web_search(tool)]
    searches = [tool for tool in offered if is_web_search(tool)]
    return ChatTools(
        functions=functions or UNSET,
        choice=choice if functions and choice != "auto" else UNSET,
        web_search_options=_options(searches[0]) if searches else UNSET,
    )


def _offered(tools: list[FreeObject], choice: Choice) -> tuple[list[FreeObject], Choice]:
    functions = [tool for tool in tools if not is_web_search(tool)]
    match choice:
        case {"type": "allowed_tools", "mode": mode, "tools": allowed}:
            chosen = set(map(identity, allowed))
            return [tool for tool in tools if identity(tool) in chosen], mode
        case {"type": "function", "name": name}:
            return functions, {"type": "function", "function": {"name": name}}
        case {}:
            return [tool for tool in tools if is_web_search(tool)], "auto"
        case "none":
            return functions, choice
        case _:
            return tools, choice


def _nested(tool: FreeObject) -> FreeObject:
    return {"type": "function", "function": known_members(tool, FUNCTION)}


def _options(tool: FreeObject) -> FreeObject:
    options = {name: tool[name] for name in WEB_SEARCH_OPTIONS if tool.get(name) is not None}
    if location := options.get("user_location"):
        place = {name: value for name, value in location.items() if name != "type"}
        options["user_location"] = {"type": _LOCATION, _LOCATION: place}
    return options
