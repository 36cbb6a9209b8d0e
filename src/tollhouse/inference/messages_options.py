"""Refuse what a chat can say and Anthropic's Messages cannot: 501, with the name (OQ-228).

Options that a model declares are refused by `options`: the catalog lets no model on such a backend
declare one that the dialect lacks.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from tollhouse.backends.messages_json import has_turns
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import BackendLacksOption
from tollhouse.contract.field_checks import ABSENT, mistyped
from tollhouse.inference.content_parts import data_media_type
from tollhouse.inference.endpoint import NameOf

_KINDS: Final = (None, "function")
_FILES: Final = ("application/pdf",)
_FREE_CHOICES: Final = (*ABSENT, "auto", "none")
_THINKING_TOP_P_MIN: Final = 0.95


def check_messages_options(request: ChatRequest, name_of: NameOf, *, thinks: bool = False) -> None:
    """Raise for the first tool, choice or message that the dialect cannot express.

    `thinks` says that the model is asked to think. A tool without its function is a mistake in any
    dialect, and other backends find it themselves.
    """
    for param in _inexpressible(request, thinks=thinks):
        raise BackendLacksOption(param=name_of(param), model=request.model)
    for position, tool in enumerate(request.tools or ()):
        if "function" not in tool:
            raise mistyped(name_of(f"tools[{position}].function"), "an object")


def _inexpressible(request: ChatRequest, *, thinks: bool) -> list[str]:
    found: list[str] = []
    for position, tool in enumerate(request.tools or ()):
        if tool.get("type") not in _KINDS:
            found.append(f"tools[{position}].type")
    choice: Any = request.tool_choice
    if isinstance(choice, dict) and not _names_function(cast("FreeObject", choice)):
        found.append("tool_choice.type")
    if thinks:
        found += _incompatible_with_thinking(request)
    return found + _inexpressible_messages(request)


def _inexpressible_messages(request: ChatRequest) -> list[str]:
    found: list[str] = [] if has_turns(request) else ["messages"]
    for position, message in enumerate(request.messages):
        path = f"messages[{position}]"
        if message.role == "function":
            found.append(f"{path}.role")
        if message.function_call:
            found.append(f"{path}.function_call")
        for index, call in enumerate(message.tool_calls or ()):
            if call.get("type") not in _KINDS:
                found.append(f"{path}.tool_calls[{index}].type")
        if isinstance(message.content, list):
            parts = enumerate(message.content)
            found += [f"{path}.content[{at}].file" for at, part in parts if _is_other_file(part)]
    return found


def _names_function(choice: FreeObject) -> bool:
    return choice.get("type") in _KINDS and "name" in choice.get("function", ())


def _incompatible_with_thinking(request: ChatRequest) -> Iterator[str]:
    """Yield the options that the API refuses beside thinking."""
    if request.temperature not in (*ABSENT, 1):
        yield "temperature"
    if request.top_p not in ABSENT and request.top_p < _THINKING_TOP_P_MIN:
        yield "top_p"
    if request.tools and request.tool_choice not in _FREE_CHOICES:
        yield "tool_choice"


def _is_other_file(part: FreeObject) -> bool:
    """Whether a part is a file with a stated type that is not a PDF."""
    if part["type"] != "file":
        return False
    data = part["file"]["file_data"]
    return data.startswith("data:") and data_media_type(data) not in _FILES
