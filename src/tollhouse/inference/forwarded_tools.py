"""Which members of tools, of calls and of the choices among them are forwarded (OQ-195).

A schema of parameters is the caller's own, and is forwarded as it is.
"""

from typing import Final

import msgspec
from msgspec import UNSET

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.free_form import mistyped, unsupported_type
from tollhouse.contract.response_tools import WEB_SEARCH_TYPES
from tollhouse.inference.known_members import WORD, Shape, known_members, known_options

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
_PREDICTION: Final[Shape] = {"type": WORD, "content": (str, list)}


def with_forwarded_tools(request: ChatRequest) -> ChatRequest:
    """Return the request with only those members of its tools and options that are forwarded.

    Raises `SupportedNowhere` for a type of tool that no backend is asked to run.
    """
    fields = known_options(request, _OPTIONS)
    if request.tools:
        fields["tools"] = [_tool(tool, at) for at, tool in enumerate(request.tools)]
    if request.functions:
        fields["functions"] = [known_members(each, FUNCTION) for each in request.functions]
    if any(message.tool_calls or message.function_call for message in request.messages):
        fields["messages"] = [_message(message) for message in request.messages]
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
