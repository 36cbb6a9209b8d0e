"""Refuse what a chat can say and Anthropic's Messages cannot: 501, with the name (OQ-228).

Options that a model declares are refused by `options`: the catalog lets no model on such a backend
declare one that the dialect lacks.
"""

from typing import Any, Final

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.errors import BackendLacksOption
from tollhouse.contract.field_checks import mistyped
from tollhouse.inference.endpoint import NameOf

_KINDS: Final = (None, "function")
_FILES: Final = ("application/pdf",)


def check_messages_options(request: ChatRequest, name_of: NameOf) -> None:
    """Raise for the first tool, choice or message that the dialect cannot express.

    A tool without its function is a mistake in any dialect, and other backends find it themselves.
    """
    for param in _inexpressible(request):
        raise BackendLacksOption(param=name_of(param), model=request.model)
    for position, tool in enumerate(request.tools or ()):
        if "function" not in tool:
            raise mistyped(name_of(f"tools[{position}].function"), "an object")


def _inexpressible(request: ChatRequest) -> list[str]:
    found: list[str] = []
    for position, tool in enumerate(request.tools or ()):
        if tool.get("type") not in _KINDS:
            found.append(f"tools[{position}].type")
    choice: Any = request.tool_choice
    if isinstance(choice, dict) and "function" not in choice:
        found.append("tool_choice.type")
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


def _is_other_file(part: FreeObject) -> bool:
    """Whether a part is a file with a stated type that is not a PDF."""
    if part["type"] != "file":
        return False
    data = part["file"]["file_data"]
    return data.startswith("data:") and not data.lower().startswith(
        tuple(f"data:{kind}" for kind in _FILES)
    )
