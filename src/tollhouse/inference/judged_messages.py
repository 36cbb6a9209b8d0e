"""A whole message of an engine rebuilt from the members that a policy can read (OQ-196).

Engines send parts and calls as free-form objects. A list of numbers in them says to the caller
what the judge model does not read.
"""

from typing import Any, Final, cast

import msgspec

from tollhouse.backends.types import FreeObject, UpstreamMessage

_TEXT_TYPES: Final = (None, "text", "output_text")
_REFUSAL: Final = "refusal"
_CALL_MEMBERS: Final = {"function": "arguments", "custom": "input"}
"""The types of calls, and the member in which each has what the model says to the tool."""


def judged_message(message: UpstreamMessage) -> UpstreamMessage:
    """Return the message with texts, refusals and calls in the contract's form.

    A part of another type stays as it is: whoever judges the message refuses it.
    """
    content, calls, call = message.content, message.tool_calls, message.function_call
    return msgspec.structs.replace(
        message,
        content=[_part(part) for part in content] if isinstance(content, list) else content,
        tool_calls=None if calls is None else [_call(each) for each in calls],
        function_call=None if call is None else _called(call, "arguments"),
    )


def _part(part: FreeObject) -> FreeObject:
    if part.get("type") == _REFUSAL:
        return {"type": _REFUSAL, _REFUSAL: _text(part.get(_REFUSAL))}
    if part.get("type") in _TEXT_TYPES:
        return {"type": "text", "text": _text(part.get("text"))}
    return part


def _call(call: FreeObject) -> FreeObject:
    kind = "custom" if call.get("type") == "custom" else "function"
    called = _called(call.get(kind), _CALL_MEMBERS[kind])
    return {"id": _text(call.get("id")), "type": kind, kind: called}


def _called(function: Any, member: str) -> FreeObject:  # noqa: ANN401 - as the backend has it
    """Some engines send what is said to a tool as an object: it becomes its JSON."""
    fields = cast("FreeObject", function) if isinstance(function, dict) else {}
    said = fields.get(member)
    if not isinstance(said, str):
        said = "" if said is None else msgspec.json.encode(said).decode()
    return {"name": _text(fields.get("name")), member: said}


def _text(value: Any) -> str:  # noqa: ANN401 - as the backend has it
    return value if isinstance(value, str) else ""
