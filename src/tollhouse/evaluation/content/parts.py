r"""Free-form values as labelled texts, each escaped at most once.

An object becomes its JSON. A string in it that JSON would escape, such as the arguments of a tool
call, becomes a part of its own. A text with escapes such as `\u0041` gets a second part in which
they are decoded, also if it is incomplete JSON or JSON inside a JSON string.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tollhouse.evaluation.content import escapes
from tollhouse.evaluation.errors import NotEvaluable
from tollhouse.evaluation.types import ContentPart

DEPTH_MAX = 200
"""Nesting of objects. The decoder refuses a caller's objects before they are as deep."""

# Tuples, because a free-form member may be unhashable.
TEXT_TYPES = (None, "text", "input_text", "output_text", "refusal")
TEXT_MEMBERS = ("text", "refusal", "annotations", "cache_control", "logprobs")
"""A message part with any other member may contain more than text."""


def value_parts(label: str, value: Any) -> Iterator[ContentPart]:  # noqa: ANN401 - free-form
    """Yield every text of a value, with its keys. Bare numbers and booleans yield nothing."""
    if isinstance(value, list):
        for index, element in enumerate(cast("list[Any]", value)):
            yield from _element_parts(f"{label}[{index}]", element)
    else:
        yield from _element_parts(label, value)


def message_parts(
    label: str,
    content: Any,  # noqa: ANN401 - free-form
    *,
    param: str | None = None,
) -> Iterator[ContentPart]:
    """Yield every text of a message's content. Raises `NotEvaluable` for a part that is not text.

    `param` is the caller's name of the content, if a caller wrote it.
    """
    if not isinstance(content, list):
        yield from value_parts(label, content)
        return
    for index, part in enumerate(cast("list[Any]", content)):
        if not isinstance(part, dict) or not _is_text(cast("dict[str, Any]", part)):
            raise NotEvaluable(param=param and f"{param}[{index}]")
        yield from _member_parts(f"{label}[{index}]", cast("dict[str, Any]", part))


def _is_text(part: dict[str, Any]) -> bool:
    is_known = part.keys() <= {"type", "image_url", *TEXT_MEMBERS}
    return is_known and part.get("image_url") is None and part.get("type") in TEXT_TYPES


def _member_parts(label: str, part: dict[str, Any]) -> Iterator[ContentPart]:
    for name in TEXT_MEMBERS:
        yield from value_parts(label if name == "text" else f"{label}.{name}", part.get(name))


def _element_parts(label: str, value: Any) -> Iterator[ContentPart]:  # noqa: ANN401 - free-form
    if isinstance(value, str):
        yield from _text_parts(label, value)
    elif isinstance(value, dict | list):
        separated = _SeparatedStrings()
        json = msgspec.json.encode(separated.replace(value, 0)).decode()
        yield ContentPart(label, json)
        for number, text in enumerate(separated.texts, 1):
            yield from _text_parts(f"{label}, text {number}", text)


def _text_parts(label: str, text: str) -> Iterator[ContentPart]:
    if not text:
        return
    yield ContentPart(label, text)
    if (unescaped := escapes.unescaped(text)) != text:
        yield ContentPart(f"{label}, unescaped", unescaped)


class _SeparatedStrings:
    """Replaces the strings of an object that JSON would escape, and collects them in `texts`."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def replace(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - free-form
        if depth > DEPTH_MAX:
            raise NotEvaluable(param=None)
        match value:
            case str():
                return value if escapes.is_plain(value) else f"({self._separate(value)})"
            case list():
                return [self.replace(element, depth + 1) for element in cast("list[Any]", value)]
            case dict():
                return self._replace_members(cast("dict[str, Any]", value), depth)
            case _:
                return value

    def _replace_members(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """Keep every member name in place, because names distinguish members."""
        for name in value:
            if not escapes.is_plain(name):
                self._separate(name)
        return {name: self.replace(member, depth + 1) for name, member in value.items()}

    def _separate(self, text: str) -> str:
        self.texts.append(text)
        return f"text {len(self.texts)}"
