"""A complete message of a backend in the form of a stream's delta."""

from typing import Any, cast

import msgspec

from tollhouse.backends.types import (
    FreeObject,
    FunctionDelta,
    ToolCallDelta,
    UpstreamDelta,
    UpstreamMessage,
)


def as_one_piece(message: UpstreamMessage) -> UpstreamDelta:
    """Return a complete message as a single delta, with its calls numbered by position."""
    content = message.content
    return UpstreamDelta(
        content=content if isinstance(content, str) else _joined(content or []),
        refusal=message.refusal,
        reasoning=message.reasoning or message.reasoning_content,
        signature=message.signature,
        tool_calls=[_call(index, call) for index, call in enumerate(message.tool_calls or ())],
        annotations=message.annotations,
    )


def _joined(parts: list[FreeObject]) -> str:
    return "".join(text for part in parts if isinstance(text := part.get("text"), str))


def _call(index: int, call: FreeObject) -> ToolCallDelta:
    """Return arguments as text; an object becomes its JSON."""
    function = call.get("function")
    fields = cast("FreeObject", function) if isinstance(function, dict) else {}
    arguments = fields.get("arguments")
    if not isinstance(arguments, str):
        arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
    found = FunctionDelta(name=_text(fields.get("name")), arguments=arguments)
    return ToolCallDelta(
        index=index,
        id=_text(call.get("id")),
        function=found,
        extra_content=call.get("extra_content"),
    )


def _text(value: Any) -> str | None:  # noqa: ANN401 - as the backend has it
    return value if isinstance(value, str) else None
