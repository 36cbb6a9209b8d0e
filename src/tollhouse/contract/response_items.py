"""Checks the items in `input` of a response request.

Items stay objects, because parts may have further members, which are not forwarded (OQ-195). Only
members that Tollhouse relies on are checked. References to stored things are refused.
"""

from typing import Any, Final, cast

from tollhouse.base.errors import InvalidRequest
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.errors import SupportedNowhere
from tollhouse.contract.field_checks import (
    invalid_value,
    mistyped,
    objects,
    required,
    text,
    unsupported_type,
)

ROLES = ("user", "assistant", "system", "developer")
PART_TEXTS = {
    "input_text": "text",
    "input_image": "image_url",
    "input_file": "file_data",
    "output_text": "text",
    "refusal": "refusal",
}
"""The types of parts, and the member that has the content of each."""


def check_input(items: list[FreeObject]) -> None:
    """Raise for references to stored things (400) and for unsupported types of items (501)."""
    for position, item in enumerate(items):
        _check_item(item, f"input[{position}]")


def _check_item(item: FreeObject, path: str) -> None:
    kind = text(item, path, "type") if "type" in item else "message"
    if kind == "item_reference":
        raise stored(f"{path}.type")
    check = _ITEM_CHECKS.get(kind)
    if check is None:
        raise unsupported_type(f"{path}.type", "items", _ITEM_CHECKS)
    check(item, path)


def _check_message(item: FreeObject, path: str) -> None:
    if text(item, path, "role") not in ROLES:
        raise invalid_value(f"{path}.role", f"expected one of {', '.join(ROLES)}")
    _check_content(item, path, "content")


def _check_reasoning(item: FreeObject, path: str) -> None:
    for name in ("content", "summary"):
        for index, part in enumerate(objects(item, path, name)):
            text(part, f"{path}.{name}[{index}]", "text")


def _check_call(item: FreeObject, path: str) -> None:
    is_custom = item["type"] == "custom_tool_call"
    for name in ("call_id", "name", "input" if is_custom else "arguments"):
        text(item, path, name)
    if item.get("namespace") is not None:
        text(item, path, "namespace")


def _check_output(item: FreeObject, path: str) -> None:
    text(item, path, "call_id")
    _check_content(item, path, "output")


def _check_local_shell(item: FreeObject, path: str) -> None:
    """Check a call of the local shell or its output. OpenAI's output has `id` for `call_id`."""
    text(item, path, "call_id" if item.get("call_id") is not None else "id")
    if item["type"] == "local_shell_call_output":
        text(item, path, "output")
    elif not isinstance(required(item, path, "action"), dict):
        raise mistyped(f"{path}.action", "an object")


def _check_content(item: FreeObject, path: str, name: str) -> None:
    """Check that a member is a string or a list of parts."""
    content = required(item, path, name)
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise mistyped(f"{path}.{name}", "a string or an array")
    for index, part in enumerate(cast("list[Any]", content)):
        _check_part(part, f"{path}.{name}[{index}]")


def _check_part(part: Any, path: str) -> None:  # noqa: ANN401 - free-form
    if not isinstance(part, dict):
        raise mistyped(path, "an object")
    fields = cast("FreeObject", part)
    kind = text(fields, path, "type")
    if kind not in PART_TEXTS:
        raise unsupported_type(f"{path}.type", "content parts", PART_TEXTS)
    if fields.get("file_id") is not None:
        raise stored(f"{path}.file_id")
    if fields.get("file_url") is not None:
        raise SupportedNowhere(
            param=f"{path}.file_url",
            feature="files by their address",
            instead="Send the content of the file in 'file_data'.",
        )
    text(fields, path, PART_TEXTS[kind])


def stored(param: str) -> InvalidRequest:
    """Return the refusal of a reference to something stored."""
    message = f"Unsupported parameter: '{param}'. Nothing is stored that could be referred to."
    return InvalidRequest("unsupported_parameter", message, param=param)


_ITEM_CHECKS: Final = {
    "message": _check_message,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "reasoning": _check_reasoning,
    "custom_tool_call": _check_call,
    "custom_tool_call_output": _check_output,
    "local_shell_call": _check_local_shell,
    "local_shell_call_output": _check_local_shell,
}
"""The types of items that are accepted, and the check of each."""
