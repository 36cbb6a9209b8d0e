"""Translate the tools that a client runs to functions, and calls of these functions back (OQ-215).

A chat has functions only. A function in a namespace gets a name that contains both names, a custom
tool becomes a function with one text, and the local shell a function with a command. Everything
here is a pure function of the request's tools, so that a call in a later request gets the name that
it had in the answer.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.field_checks import combination
from tollhouse.contract.response_tools import (
    LOCAL_SHELL,
    ToolIdentity,
    chosen_identity,
    identity,
    is_web_search,
    with_namespaces,
)
from tollhouse.inference.forwarded_tools import FUNCTION, known_members

FUNCTION_NAME_LENGTH_MAX: Final = 64
"""The longest name of a function that OpenAI and most engines accept."""
_DIGEST_CHARACTERS: Final = 8
_CUSTOM_PARAMETERS: Final = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The input of the tool, as text."}},
    "required": ["input"],
    "additionalProperties": False,
}
_SHELL_DESCRIPTION: Final = "Runs a command on the user's machine and returns its output."
_SHELL_PARAMETERS: Final = {
    "type": "object",
    "properties": {
        "command": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The program and its arguments.",
        },
        "working_directory": {"type": "string"},
        "timeout_ms": {"type": "integer"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "user": {"type": "string"},
    },
    "required": ["command"],
    "additionalProperties": False,
}
_SHELL_OPTIONS: Final = {"working_directory": str, "timeout_ms": int, "user": str}
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class ClientTools(NamedTuple):
    """Tools as functions and web searches, and the tool of each function that was translated."""

    offered: list[FreeObject]
    origins: Mapping[str, ToolIdentity]


NO_ORIGINS: Final[Mapping[str, ToolIdentity]] = {}


def as_functions(tools: list[FreeObject]) -> ClientTools:
    """Return checked tools as functions in the flat form; a web search stays as it is.

    Raises `InvalidRequest` if two tools would become functions of the same name.
    """
    offered: list[FreeObject] = []
    origins: dict[str, ToolIdentity] = {}
    names: set[str] = set()
    for tool, namespace in with_namespaces(tools):
        if is_web_search(tool):
            offered.append(tool)
            continue
        key = identity(tool, namespace)
        name = function_name(key)
        is_translated = key.kind != "function" or bool(namespace)
        if name in names and (is_translated or name in origins):
            raise combination("tools", f"two tools would both be the function '{name}'")
        names.add(name)
        if is_translated:
            origins[name] = key
        offered.append({**_function(tool), "type": "function", "name": name})
    return ClientTools(offered, origins)


def as_function_choice(choice: Any) -> Any:  # noqa: ANN401 - a word or a free-form object
    """Return a checked choice among tools as the choice among functions."""
    if not isinstance(choice, dict):
        return choice
    chosen = cast("FreeObject", choice)
    if chosen["type"] == "allowed_tools":
        allowed = [as_function_choice(each) for each in chosen.get("tools") or ()]
        return {**chosen, "tools": allowed}
    if is_web_search(chosen):
        return chosen
    return {"type": "function", "name": function_name(chosen_identity(chosen))}


def function_name(tool: ToolIdentity) -> str:
    """Return the name of the function that stands for a tool.

    A name that is too long for engines is cut and ends with a digest of the whole.
    """
    if tool.kind == LOCAL_SHELL:
        return LOCAL_SHELL
    if not tool.namespace:
        return tool.name
    name = f"{tool.namespace}__{tool.name}"
    if len(name) <= FUNCTION_NAME_LENGTH_MAX:
        return name
    digest = hashlib.blake2b(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{name[: FUNCTION_NAME_LENGTH_MAX - _DIGEST_CHARACTERS - 1]}_{digest}"


def called_function(item: FreeObject) -> FreeObject:
    """Return name and arguments of the function for a call in `input`, which was checked."""
    match item["type"]:
        case "custom_tool_call":
            key = ToolIdentity("custom", item["name"], item.get("namespace") or "")
            arguments = _text_arguments(item["input"])
        case "local_shell_call":
            key, arguments = ToolIdentity(LOCAL_SHELL), _encode(_action(item["action"])).decode()
        case _:
            key = ToolIdentity("function", item["name"], item.get("namespace") or "")
            arguments = item["arguments"]
    return {"name": function_name(key), "arguments": arguments}


def called_tool(key: ToolIdentity, arguments: str) -> FreeObject:
    """Return the members of the output item for a call of a translated function."""
    if key.kind == LOCAL_SHELL:
        return {"action": {"type": "exec", **_action(_object(arguments))}}
    if key.kind == "custom":
        called: FreeObject = {"name": key.name, "input": custom_input(arguments)}
    else:
        called = {"name": key.name, "arguments": arguments}
    return called | {"namespace": key.namespace} if key.namespace else called


def custom_input(arguments: str) -> str:
    """Return the text for a custom tool, or the arguments if the model wrote the text itself."""
    found = _object(arguments).get("input")
    return found if isinstance(found, str) else arguments


def _function(tool: FreeObject) -> FreeObject:
    match tool["type"]:
        case "custom":
            return {"description": _custom_description(tool), "parameters": _CUSTOM_PARAMETERS}
        case "local_shell":
            return {"description": _SHELL_DESCRIPTION, "parameters": _SHELL_PARAMETERS}
        case _:
            return known_members(tool, FUNCTION)


def _custom_description(tool: FreeObject) -> str:
    """Return the description with the grammar, which a function cannot enforce."""
    described = tool.get("description")
    text = described if isinstance(described, str) else ""
    match tool.get("format"):
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            grammar = f"Write `input` so that it matches this {syntax} grammar:\n{definition}"
            return f"{text}\n\n{grammar}".strip()
        case _:
            return text


def _text_arguments(text: str) -> str:
    return _encode({"input": text}).decode()


def _action(found: FreeObject) -> FreeObject:
    """Return the known members of a shell command; one that is malformed is empty."""
    action: FreeObject = {
        "command": _strings(found.get("command")),
        "env": _texts(found.get("env")),
    }
    options = {
        name: value
        for name, kind in _SHELL_OPTIONS.items()
        if isinstance(value := found.get(name), kind)
    }
    return action | options


def _strings(found: object) -> list[str]:
    if not isinstance(found, list):
        return []
    return [each for each in cast("list[object]", found) if isinstance(each, str)]


def _texts(found: object) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    members = cast("dict[str, object]", found)
    return {name: value for name, value in members.items() if isinstance(value, str)}


def _object(arguments: str) -> FreeObject:
    """Return the arguments of a call; an engine may have cut them or written something else."""
    try:
        found = _decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return cast("FreeObject", found) if isinstance(found, dict) else {}
