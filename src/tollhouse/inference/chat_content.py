"""The content of a chat message that was translated: from another endpoint, or from an answer."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec import UnsetType

from tollhouse.contract.bounds import FreeObject
from tollhouse.contract.chat import ChatMessage, ChatRequest
from tollhouse.contract.own_answers import COPIED, ChatRequestWithOwnAnswers, OwnAnswer


class Part(NamedTuple):
    """A part of a chat message, and its path in the caller's request."""

    shown: FreeObject
    origin: str


def content_of(parts: Sequence[Part]) -> str | list[FreeObject]:
    """Return a single text as a string: some engines do not accept parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0].shown["type"] == "text":
        return parts[0].shown["text"]
    return [part.shown for part in parts]


def as_specified(request: ChatRequestWithOwnAnswers) -> ChatRequest:
    """Return a checked request whose earlier answers are messages of the specification."""
    return msgspec.structs.replace(request, messages=list(map(_as_specified, request.messages)))


def _as_specified(message: OwnAnswer) -> ChatMessage:
    """Return the message with its refusal as content, and without the other copied members."""
    if not message.copied:
        return message
    members = msgspec.structs.asdict(message)
    for name in COPIED:
        del members[name]
    if message.refusal:
        members["content"] = _with_refusal(message.content, message.refusal)
    return ChatMessage(**members)


def _with_refusal(
    content: str | list[FreeObject] | UnsetType | None, refusal: str
) -> str | list[FreeObject]:
    """Return a content that ends with a refusal, as text: engines differ in parts of that type."""
    if not content:
        return refusal
    said = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*said, {"type": "text", "text": refusal}]
