"""The free-form parts of a response request: input items, tools and the choice of a tool.

They stay objects, because further members go to the backend; only what Tollhouse relies on is
looked at. Whatever refers to something stored is refused.
"""

from typing import Any, cast

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import UnsupportedOption

ROLES = ("user", "assistant", "system", "developer")
PART_TYPES = ("input_text", "input_image", "input_file", "output_text", "refusal")
WEB_SEARCH_TYPES = (
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
)
TOOL_CHOICE_TYPES = ("function", "allowed_tools", *WEB_SEARCH_TYPES)


def check_input(items: list[FreeObject]) -> None:
    """Refuse references to stored things (400), and kinds of items that are not served (501)."""
    for position, item in enumerate(items):
        _check_item(item, f"input[{position}]")


def check_tools(tools: list[FreeObject]) -> None:
    """Functions in the flat form, and web search under each of its names (OQ-56)."""
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        kind = _text(tool, path, "type")
        if kind == "function":
            _text(tool, path, "name")
        elif kind not in WEB_SEARCH_TYPES:
            raise UnsupportedOption(f"{path}.type")


def check_tool_choice(choice: FreeObject) -> None:
    """A function by name, allowed tools, or a hosted tool by its type (OQ-56)."""
    kind = _text(choice, "tool_choice", "type")
    if kind == "function":
        _text(choice, "tool_choice", "name")
    elif kind not in TOOL_CHOICE_TYPES:
        raise UnsupportedOption("tool_choice.type")


def _check_item(item: FreeObject, path: str) -> None:
    kind = _text(item, path, "type") if "type" in item else "message"
    if kind == "message":
        if _text(item, path, "role") not in ROLES:
            raise _invalid(f"{path}.role", f"expected one of {', '.join(ROLES)}")
        _check_content(item, path, "content")
    elif kind == "function_call":
        for name in ("call_id", "name", "arguments"):
            _text(item, path, name)
    elif kind == "function_call_output":
        _text(item, path, "call_id")
        _check_content(item, path, "output")
    elif kind == "item_reference":
        raise _stored(f"{path}.type")
    elif kind != "reasoning":
        raise UnsupportedOption(f"{path}.type")


def _check_content(item: FreeObject, path: str, name: str) -> None:
    """A string, or a list of parts."""
    content = _required(item, path, name)
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise _mistyped(f"{path}.{name}", "a string or an array")
    for index, part in enumerate(cast("list[Any]", content)):
        _check_part(part, f"{path}.{name}[{index}]")


def _check_part(part: Any, path: str) -> None:  # noqa: ANN401 - free-form
    if not isinstance(part, dict):
        raise _mistyped(path, "an object")
    fields = cast("FreeObject", part)
    if _text(fields, path, "type") not in PART_TYPES:
        raise UnsupportedOption(f"{path}.type")
    if fields.get("file_id") is not None:
        raise _stored(f"{path}.file_id")


def _text(fields: FreeObject, path: str, name: str) -> str:
    value = _required(fields, path, name)
    if not isinstance(value, str):
        raise _mistyped(f"{path}.{name}", "a string")
    return value


def _required(fields: FreeObject, path: str, name: str) -> Any:  # noqa: ANN401 - free-form
    if name not in fields:
        param = f"{path}.{name}"
        message = f"Missing required parameter: '{param}'."
        raise InvalidRequest("missing_required_parameter", message, param=param)
    return fields[name]


def _mistyped(param: str, expected: str) -> InvalidRequest:
    message = f"Invalid type for '{param}': expected {expected}."
    return InvalidRequest("invalid_type", message, param=param)


def _invalid(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest("invalid_value", f"Invalid '{param}': {reason}.", param=param)


def _stored(param: str) -> InvalidRequest:
    message = f"Unsupported parameter: '{param}'. Nothing is stored that could be referred to."
    return InvalidRequest("unsupported_parameter", message, param=param)
