"""What a chat template can render of a request, sorted by how it may be rendered."""

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.combinations import is_set

# Tuples, because a free-form member can be what no set can hold.
TEXT_TYPES = (None, "text", "refusal")
TEXT_MEMBERS = {"type", "text", "refusal", "cache_control"}
_PLAIN_MEMBERS = ("type", "text")
IMAGE_TYPES = (None, "image_url")
IMAGE_MEMBERS = {"type", "image_url", "cache_control"}
CLOSED_TOOL_TYPES = ("function", "custom")


@dataclass(kw_only=True, slots=True)
class Prompt:
    """What a request says, without the data of its images.

    `texts` are rendered as they are or as JSON strings. `structures` may be printed anew, with
    other blanks and escapes. `arguments` are JSON inside a string, which a template may get
    parsed. `is_open` says that the backend may bill input whose size the request does not tell.
    """

    texts: list[Any] = field(default_factory=list[Any])
    structures: list[Any] = field(default_factory=list[Any])
    arguments: list[str] = field(default_factory=list[str])
    messages: int = 0
    tools: int = 0
    images: int = 0
    is_open: bool = False


def of_chat(request: ChatRequest) -> Prompt:
    """Messages, tools, functions, choices among them, and the schema of the answer."""
    prompt = Prompt(is_open=is_set(request.web_search_options))
    prompt.messages = len(request.messages)
    for message in request.messages:
        _add_message(prompt, message)
    _add_tools(prompt, request.tools or [])
    _add_tools(prompt, [{"function": function} for function in request.functions or []])
    choices = (request.tool_choice, request.function_call, request.response_format)
    prompt.structures += filter(is_set, choices)
    return prompt


def _add_message(prompt: Prompt, message: ChatMessage) -> None:
    if isinstance(message.content, list):
        texts = _text_parts(prompt, message.content)
        message = msgspec.structs.replace(message, content=texts)
    calls = [call.get("function") for call in message.tool_calls or []]
    if message.function_call:
        calls.append(message.function_call)
    if not calls:
        prompt.texts.append(message)
        return
    prompt.structures.append(message)
    for call in calls:
        _add_arguments(prompt, call)


def _text_parts(prompt: Prompt, parts: list[FreeObject]) -> list[FreeObject]:
    """Keep text, count images; anything else may be of any size."""
    texts: list[FreeObject] = []
    for part in parts:
        if part.get("type") == "text" and "text" in part and len(part) == len(_PLAIN_MEMBERS):
            texts.append(part)
            continue
        members = {name for name, value in part.items() if value is not None}
        if part.get("type") in TEXT_TYPES and members <= TEXT_MEMBERS:
            texts.append(part)
        elif part.get("type") in IMAGE_TYPES and members <= IMAGE_MEMBERS:
            prompt.images += 1
        else:
            prompt.is_open = True
    return texts


def _add_tools(prompt: Prompt, tools: list[FreeObject]) -> None:
    """A tool that the backend runs itself, such as web search, brings input of its own."""
    prompt.tools += len(tools)
    prompt.structures += tools
    if not all(tool.get("type", "function") in CLOSED_TOOL_TYPES for tool in tools):
        prompt.is_open = True


def _add_arguments(prompt: Prompt, call: Any) -> None:  # noqa: ANN401 - free-form
    arguments = cast("FreeObject", call).get("arguments") if isinstance(call, dict) else None
    if isinstance(arguments, str):
        prompt.arguments.append(arguments)
