"""The content of a chat message that was translated from another endpoint's form."""

from collections.abc import Sequence
from typing import NamedTuple

from tollhouse.contract.bounds import FreeObject


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
