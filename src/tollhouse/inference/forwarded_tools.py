"""Which members of tools, tool calls and tool choices are forwarded (OQ-195).

Free-form objects are rebuilt from the members that are known. Other members are accepted and not
forwarded, so that an engine never reads an address, or text that was neither priced nor judged.
A schema of parameters belongs to the caller and is forwarded as it is.
"""

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.field_checks import mistyped, unsupported_type
from tollhouse.contract.response_tools import WEB_SEARCH_TYPES

WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""One word, such as a mode. Engines may know more of them than the gateway."""

Shape = Mapping[str, Any]
"""The form of each member: a type, a pattern, a shape, or a list of one shape."""

FUNCTION: Final[Shape] = {"name": str, "description": str, "parameters": dict, "strict": bool}
_GRAMMAR: Final[Shape] = {"definition": str, "syntax": WORD}
_CUSTOM: Final[Shape] = {
    "name": str,
    "description": str,
    "format": {"type": WORD, "grammar": _GRAMMAR},
}
_PLACE: Final[Shape] = {"city": str, "country": str, "region": str, "timezone": str}
_WEB_SEARCH: Final[Shape] = {
    "search_context_size": WORD,
    "user_location": {"type": WORD, "approximate": _PLACE},
}
_TOOLS: Final[dict[str, Shape]] = {
    "function": {"type": str, "function": FUNCTION},
    "custom": {"type": str, "custom": _CUSTOM},
    **{kind: {"type": str, **_WEB_SEARCH} for kind in WEB_SEARCH_TYPES},
}
_CALLED: Final[Shape] = {"name": str, "arguments": (str, dict)}
_CALL: Final[Shape] = {
    "id": str,
    "type": WORD,
    "function": _CALLED,
    "custom": {"name": str, "input": str},
}
_CHOSEN: Final[Shape] = {"type": WORD, "function": {"name": str}, "custom": {"name": str}}
_CHOICE: Final[Shape] = {**_CHOSEN, "allowed_tools": {"mode": WORD, "tools": [_CHOSEN]}}
_AUDIO: Final[Shape] = {"voice": WORD, "format": WORD}
_OPTIONS: Final[dict[str, Shape]] = {
    "tool_choice": _CHOICE,
    "function_call": {"name": str},
    "web_search_options": _WEB_SEARCH,
    "audio": _AUDIO,
}
_options_of: Final = attrgetter(*_OPTIONS)
_NO_OPTIONS: Final = (UNSET,) * len(_OPTIONS)
_PREDICTION: Final[Shape] = {"type": WORD, "content": (str, list)}


def with_forwarded_tools(request: ChatRequest) -> ChatRequest:
    """Return the request with only those members of its tools and options that are forwarded.

    Raises `SupportedNowhere` for a type of tool that no backend is asked to run.
    """
    fields: FreeObject = {}
    if _options_of(request) != _NO_OPTIONS:
        fields = known_options(request, _OPTIONS)
    if request.tools:
        fields["tools"] = [_tool(tool, at) for at, tool in enumerate(request.tools)]
    if request.functions:
        fields["functions"] = [known_members(each, FUNCTION) for each in request.functions]
    for message in request.messages:
        if message.tool_calls or message.function_call:
            fields["messages"] = [_message(each) for each in request.messages]
            break
    return msgspec.structs.replace(request, **fields) if fields else request


def forwarded_prediction(prediction: FreeObject) -> FreeObject:
    """Return type and content of a prediction, whose content is a string or a list of parts."""
    if not isinstance(prediction.get("content"), str | list | None):
        raise mistyped("prediction.content", "a string or an array")
    return known_members(prediction, _PREDICTION)


def _tool(tool: FreeObject, position: int) -> FreeObject:
    kind = tool.get("type")
    # A type can be what no dictionary can look up.
    if not isinstance(kind, str | None):
        raise mistyped(f"tools[{position}].type", "a string")
    shape = _TOOLS.get(kind or "function")
    if shape is None:
        raise unsupported_type(f"tools[{position}].type", "tools", _TOOLS)
    return known_members(tool, shape)


def _message(message: ChatMessage) -> ChatMessage:
    calls, call = message.tool_calls, message.function_call
    return msgspec.structs.replace(
        message,
        tool_calls=[known_members(each, _CALL) for each in calls] if calls else UNSET,
        function_call=known_members(call, _CALLED) if call else UNSET,
    )


def known_members(value: object, shape: Shape) -> FreeObject:
    """Return the members of an object that have a known name and form, without nulls."""
    fields = cast("FreeObject", value) if isinstance(value, dict) else {}
    return {
        name: _known(found, form)
        for name, form in shape.items()
        if _fits(found := fields.get(name), form)
    }


def _fits(found: object, form: Any) -> bool:  # noqa: ANN401 - see Shape
    match form:
        case re.Pattern():
            return (
                isinstance(found, str)
                and cast("re.Pattern[str]", form).fullmatch(found) is not None
            )
        case Mapping():
            return isinstance(found, dict)
        case list():
            return isinstance(found, list)
        case _:
            return isinstance(found, form)


def _known(found: Any, form: Any) -> Any:  # noqa: ANN401 - see Shape
    match form:
        case Mapping():
            return known_members(found, cast("Shape", form))
        case [shape]:
            return [known_members(each, cast("Shape", shape)) for each in found]
        case _:
            return found


def known_options(request: Struct, shapes: Mapping[str, Shape]) -> FreeObject:
    """Return the fields of a request that are objects, reduced to their known members."""
    found: dict[str, Any] = {name: getattr(request, name) for name in shapes}
    return {
        name: known_members(value, shapes[name])
        for name, value in found.items()
        if _fits(value, dict)
    }
