"""Which tools, calls and choices of a chat are forwarded, and known members of other objects.

Tools, calls and choices are free-form: a backend of the same dialect receives them whole, after
they were priced and judged (OQ-195). What is translated to a chat has the members that are known.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.field_checks import mistyped, unsupported_type
from tollhouse.contract.response_tools import NAMED_TYPES, WEB_SEARCH_TYPES

WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""One word, such as a mode. Engines may know more of them than the gateway."""

Shape = Mapping[str, Any]
"""The form of each member: a type, a pattern or a shape."""

FUNCTION: Final[Shape] = {"name": str, "description": str, "parameters": dict, "strict": bool}
_TOOL_TYPES: Final = (*NAMED_TYPES, *WEB_SEARCH_TYPES)
_COPIED_BY_SDKS: Final = {"call": "index", "function": "parsed_arguments"}
"""Members of calls that SDKs add when they read an answer. They repeat what the call says."""


def with_forwarded_tools(request: ChatRequest) -> ChatRequest:
    """Return the request with its calls as they are forwarded.

    Raises `SupportedNowhere` for a type of tool that no backend is asked to run.
    """
    for position, tool in enumerate(request.tools or ()):
        _check_type(tool.get("type"), f"tools[{position}].type")
    for message in request.messages:
        if message.tool_calls:
            messages = list(map(_message, request.messages))
            return msgspec.structs.replace(request, messages=messages)
    return request


def forwarded_prediction(prediction: FreeObject) -> FreeObject:
    """Return a copy of a prediction. Raises unless its content is a text or a list of parts."""
    if not isinstance(prediction.get("content"), str | list | None):
        raise mistyped("prediction.content", "a string or an array")
    return dict(prediction)


def _check_type(kind: object, path: str) -> None:
    if not isinstance(kind, str | None):
        raise mistyped(path, "a string")
    if kind and kind not in _TOOL_TYPES:
        raise unsupported_type(path, "tools", _TOOL_TYPES)


def _message(message: ChatMessage) -> ChatMessage:
    calls = message.tool_calls
    return msgspec.structs.replace(message, tool_calls=list(map(_call, calls)) if calls else UNSET)


def _call(call: FreeObject) -> FreeObject:
    """Return a call without what SDKs copied into it."""
    function = call.get("function")
    if isinstance(function, dict) and _COPIED_BY_SDKS["function"] in function:
        call = {**call, "function": _without(cast("FreeObject", function), "function")}
    return _without(call, "call")


def _without(members: FreeObject, place: str) -> FreeObject:
    copied = _COPIED_BY_SDKS[place]
    if copied not in members:
        return members
    return {name: value for name, value in members.items() if name != copied}


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
        case _:
            return isinstance(found, form)


def _known(found: Any, form: Any) -> Any:  # noqa: ANN401 - see Shape
    match form:
        case Mapping():
            return known_members(found, cast("Shape", form))
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


def unknown_members(value: FreeObject, shape: Shape, path: str) -> Iterator[str]:
    """Yield the paths of the members that have no known name and form. Null counts as absent."""
    for name, found in value.items():
        form = shape.get(name)
        if found is None:
            continue
        if form is None or not _fits(found, form):
            yield f"{path}.{name}"
        elif isinstance(form, Mapping):
            yield from unknown_members(found, cast("Shape", form), f"{path}.{name}")
