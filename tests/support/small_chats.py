"""Small chats, in which what a template adds outweighs what was said."""

from typing import Any, Final

Body = dict[str, Any]

_SYSTEM: Final = {"role": "system", "content": "Be"}
_USER: Final = {"role": "user", "content": "Hi"}
_ASSISTANT: Final = {"role": "assistant", "content": "Yo"}
_SMALL_TOOL: Final[Body] = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {}},
    },
}
_TOOL: Final[Body] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city"},
                "unit": {"type": "string", "enum": ["c", "f"]},
            },
            "required": ["city"],
        },
    },
}


def _calls(count: int) -> Body:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"call{n:05}", "type": "function", "function": function} for n in range(count)]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(number: int = 0) -> Body:
    return {"role": "tool", "tool_call_id": f"call{number:05}", "content": "ok"}


SMALL_CHATS: Final[dict[str, Body]] = {
    "question": {"messages": [_USER]},
    "system": {"messages": [_SYSTEM, _USER]},
    "turns": {"messages": [*[_USER, _ASSISTANT] * 20, _USER]},
    "tool": {"messages": [_USER], "tools": [_SMALL_TOOL]},
    "tools": {"messages": [_USER], "tools": [_TOOL] * 8},
    "calls": {"messages": [_USER, *[_calls(1), _result()] * 10], "tools": [_SMALL_TOOL]},
    "parallel": {
        "messages": [_USER, _calls(4), *map(_result, range(4))],
        "tools": [_SMALL_TOOL],
    },
}
"""Without a model."""
