"""Counting the tokens of text that no engine counted: a quarter of its characters, rounded up.

Streams and whole answers are counted by the same functions, so the same text has the same count in
either form. The catalog names the family of a tokenizer, which bounds a prompt; no tokenizer runs
inside the gateway, so none can count here.
"""

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from tollhouse.backends.types import FreeObject, FunctionDelta, UpstreamDelta, UpstreamMessage
from tollhouse.contract.chat import ChatMessage, ChatRequest

CHARACTERS_PER_TOKEN = 4
"""Few tokenizers make longer tokens of ordinary text."""
_TEXT_MEMBERS = ("text", "refusal")
"""The members of a content part that hold text."""
_CALL_MEMBERS = ("name", "arguments", "input")
"""What a model writes of a call: functions have arguments, custom tools have an input."""


def tokens_of(characters: int) -> int:
    """Return the estimated tokens of a text: at least one unless it is empty."""
    return -(-characters // CHARACTERS_PER_TOKEN)


class OutputCount:
    """Running count of the output tokens of one answer, by choice.

    A choice never counts more than `choice_tokens_max`, all together never more than
    `tokens_max`: an estimate must not exceed what the caller allowed.
    """

    def __init__(self, *, choice_tokens_max: int, tokens_max: int) -> None:
        self._choice_tokens_max = choice_tokens_max
        self._tokens_max = tokens_max
        self._characters: dict[int, int] = {}
        self._tokens = 0

    @property
    def tokens(self) -> int:
        """The tokens of all text so far."""
        return min(self._tokens, self._tokens_max)

    @property
    def choices(self) -> int:
        """How many choices have any text."""
        return len(self._characters)

    def add(self, choice: int, characters: int) -> None:
        """Count more text of a choice. Every record of a stream comes here."""
        if not characters:
            return
        before = self._characters.get(choice, 0)
        self._characters[choice] = after = before + characters
        counted, tokens_max = -(-before // CHARACTERS_PER_TOKEN), self._choice_tokens_max
        if counted < tokens_max:
            tokens = -(-after // CHARACTERS_PER_TOKEN)
            self._tokens += min(tokens, tokens_max) - counted


def delta_characters(delta: UpstreamDelta) -> int:
    """Count the text that a record adds to a choice, without the calls in it."""
    reasoning = delta.reasoning or delta.reasoning_content or ""
    return len(delta.content or "") + len(reasoning) + len(delta.refusal or "")


def logprob_tokens(logprobs: Any) -> int:  # noqa: ANN401 - as the engine has them
    """Count the tokens that log probabilities name."""
    found = cast("FreeObject", logprobs).get("content") if isinstance(logprobs, dict) else None
    return len(cast("list[Any]", found)) if isinstance(found, list) else 0


def function_characters(piece: FunctionDelta, *, has_name: bool) -> int:
    """Count a piece of a call. A name counts once: some engines repeat it with every piece."""
    name = "" if has_name else piece.name or ""
    return len(name) + len(piece.arguments or "")


def message_characters(message: UpstreamMessage) -> int:
    """Count the text of a whole answer of one choice."""
    return (
        _content_characters(message.content)
        + len(message.reasoning or message.reasoning_content or "")
        + len(message.refusal or "")
        + _calls_characters(message.tool_calls, message.function_call)
    )


def prompt_characters(request: ChatRequest) -> int:
    """Count the text of the messages and tools of a request, without the data of its images."""
    tools = [tool.get("function") or tool.get("custom") for tool in request.tools or ()]
    return (
        sum(map(_sent_characters, request.messages))
        + sum(map(_tool_characters, filter(None, tools)))
        + sum(map(_tool_characters, filter(None, request.functions or ())))
    )


def _sent_characters(message: ChatMessage) -> int:
    content = message.content
    characters = len(content) if isinstance(content, str) else _content_characters(content or None)
    if text := message.reasoning or message.reasoning_content:
        characters += len(text)
    if message.name:
        characters += len(message.name)
    if message.tool_calls or message.function_call:
        characters += _calls_characters(message.tool_calls or None, message.function_call or None)
    return characters


def _content_characters(content: str | list[FreeObject] | None) -> int:
    if isinstance(content, list):
        return sum(map(_part_characters, content))
    return len(content or "")


def _part_characters(part: FreeObject) -> int:
    text = part.get("text")
    if type(text) is str and "refusal" not in part:
        return len(text)
    return _members_characters(part, _TEXT_MEMBERS)


def _calls_characters(calls: list[FreeObject] | None, function_call: FreeObject | None) -> int:
    called: list[Any] = [call.get("function") or call.get("custom") for call in calls or ()]
    called.append(function_call)
    return sum(_members_characters(call, _CALL_MEMBERS) for call in called if call)


def _tool_characters(described: Any) -> int:  # noqa: ANN401 - free-form
    """A template shows the model the schema of a tool as JSON, so its keys are text."""
    return _members_characters(described, ("name", "description", "parameters", "format"))


def _members_characters(value: Any, names: Iterable[str]) -> int:  # noqa: ANN401 - free-form
    if not isinstance(value, dict):
        return 0
    members = cast("FreeObject", value)
    return sum(_characters(members.get(name)) for name in names)


def _characters(value: Any) -> int:  # noqa: ANN401 - free-form
    """A string as it is; what some engines send as an object, as the JSON that callers read."""
    if isinstance(value, str):
        return len(value)
    return len(msgspec.json.encode(value)) if value else 0
