"""Refuse what a chat can say and Anthropic's Messages cannot: 501, with the name (OQ-228).

Options that a model declares are refused by `options`: the catalog lets no model on such a backend
declare one that the dialect lacks.
"""

from collections.abc import Iterator
from typing import Final, cast

from tollhouse.backends.messages_json import has_turns
from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import BackendLacksOption
from tollhouse.contract.field_checks import ABSENT, mistyped
from tollhouse.inference.content_parts import data_media_type
from tollhouse.inference.endpoint import NameOf
from tollhouse.inference.forwarded_tools import FUNCTION, Shape, unknown_members

_KINDS: Final = (None, "function")
_TOOL: Final[Shape] = {"type": str, "function": FUNCTION}
_CHOICE: Final[Shape] = {"type": str, "function": {"name": str}}
_CALL: Final[Shape] = {
    "id": str,
    "type": str,
    "function": {"name": str, "arguments": (str, dict)},
    "extra_content": object,
}
"""`extra_content` is for the provider that wrote the call: another one gets the call without it."""
_FILES: Final = ("application/pdf",)
_FREE_CHOICES: Final = (*ABSENT, "auto", "none")
_THINKING_TOP_P_MIN: Final = 0.95


def check_messages_options(request: ChatRequest, name_of: NameOf, *, thinks: bool = False) -> None:
    """Raise for the first tool, choice or message that the dialect cannot express.

    `thinks` says that the model is asked to think. A tool without its function is a mistake in any
    dialect, and other backends find it themselves.
    """
    for position, tool in enumerate(request.tools or ()):
        if tool.get("type") in _KINDS and not isinstance(tool.get("function"), dict):
            raise mistyped(name_of(f"tools[{position}].function"), "an object")
    for param in _inexpressible(request, thinks=thinks):
        raise BackendLacksOption(param=name_of(param), model=request.model)


def _inexpressible(request: ChatRequest, *, thinks: bool) -> Iterator[str]:
    for position, tool in enumerate(request.tools or ()):
        if tool.get("type") not in _KINDS:
            yield f"tools[{position}].type"
        yield from unknown_members(tool, _TOOL, f"tools[{position}]")
    choice = request.tool_choice
    if isinstance(choice, dict):
        if choice.get("type") not in _KINDS or not _names_function(choice.get("function")):
            yield "tool_choice.type"
        yield from unknown_members(choice, _CHOICE, "tool_choice")
    if thinks:
        yield from _incompatible_with_thinking(request)
    yield from _inexpressible_messages(request)


def _inexpressible_messages(request: ChatRequest) -> Iterator[str]:
    for position, message in enumerate(request.messages):
        path = f"messages[{position}]"
        if message.role == "function":
            yield f"{path}.role"
        if message.function_call:
            yield f"{path}.function_call"
        for index, call in enumerate(message.tool_calls or ()):
            if call.get("type") not in _KINDS:
                yield f"{path}.tool_calls[{index}].type"
            yield from unknown_members(call, _CALL, f"{path}.tool_calls[{index}]")
        if isinstance(message.content, list):
            for at, part in enumerate(message.content):
                if _is_other_file(part):
                    yield f"{path}.content[{at}].file"
    if not has_turns(request):
        yield "messages"


def _names_function(chosen: object) -> bool:
    return isinstance(chosen, dict) and cast("FreeObject", chosen).get("name") is not None


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
