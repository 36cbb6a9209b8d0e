r"""Free-form values as labelled texts, none of which is escaped more than once.

An object is shown as its JSON. A string in it that JSON would have to escape, such as the
arguments of a call, stands beside it as a part of its own; and where characters of a text are
written as `\u0041`, it is shown once more as whoever decodes it will read it, be it sound JSON,
the beginning of some, or JSON in a string of JSON.
"""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from tollhouse.judging import encoding
from tollhouse.judging.errors import NotEvaluable
from tollhouse.judging.types import Part

DEPTH_MAX = 200
"""Of objects in objects; a caller's own are never as deep."""

# Tuples, because a free-form member can be what no set can hold.
TEXT_TYPES = (None, "text", "input_text", "output_text", "refusal")
TEXT_MEMBERS = ("text", "refusal", "annotations", "cache_control", "logprobs")
"""A part of a message that has any other member may show the model more than a text."""


def of_value(label: str, value: Any) -> Iterator[Part]:  # noqa: ANN401 - free-form
    """Every text of a value, keys included. Bare numbers and truth values say nothing."""
    if isinstance(value, list):
        for index, element in enumerate(cast("list[Any]", value)):
            yield from _of_element(f"{label}[{index}]", element)
    else:
        yield from _of_element(label, value)


def of_message_content(
    label: str,
    content: Any,  # noqa: ANN401 - free-form
    *,
    param: str | None = None,
) -> Iterator[Part]:
    """The same, of a place where a part may be something else than text, which is refused.

    `param` is how a caller knows the place, if a caller wrote it.
    """
    if not isinstance(content, list):
        yield from of_value(label, content)
        return
    for index, part in enumerate(cast("list[Any]", content)):
        if not isinstance(part, dict) or not _is_text(cast("dict[str, Any]", part)):
            raise NotEvaluable(param and f"{param}[{index}]")
        yield from _of_text_part(f"{label}[{index}]", cast("dict[str, Any]", part))


def _is_text(part: dict[str, Any]) -> bool:
    is_known = part.keys() <= {"type", "image_url", *TEXT_MEMBERS}
    return is_known and part.get("image_url") is None and part.get("type") in TEXT_TYPES


def _of_text_part(label: str, part: dict[str, Any]) -> Iterator[Part]:
    for name in TEXT_MEMBERS:
        yield from of_value(label if name == "text" else f"{label}.{name}", part.get(name))


def _of_element(label: str, value: Any) -> Iterator[Part]:  # noqa: ANN401 - free-form
    if isinstance(value, str):
        yield from _of_text(label, value)
    elif isinstance(value, dict | list):
        drawing = _Drawing()
        shown = drawing.of(value, 0)
        yield Part(label, msgspec.json.encode(shown).decode())
        for number, text in enumerate(drawing.beside, 1):
            yield from _of_text(f"{label}, text {number}", text)


def _of_text(label: str, text: str) -> Iterator[Part]:
    if not text:
        return
    yield Part(label, text)
    if (unescaped := encoding.unescaped(text)) != text:
        yield Part(f"{label}, unescaped", unescaped)


class _Drawing:
    """An object as it is shown, and the strings that stand beside it."""

    def __init__(self) -> None:
        self.beside: list[str] = []

    def of(self, value: Any, depth: int) -> Any:  # noqa: ANN401 - free-form
        if depth > DEPTH_MAX:
            raise NotEvaluable(None)
        match value:
            case str():
                return value if encoding.is_plain(value) else f"({self._beside(value)})"
            case list():
                return [self.of(element, depth + 1) for element in cast("list[Any]", value)]
            case dict():
                return self._object(cast("dict[str, Any]", value), depth)
            case _:
                return value

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        """Names stay in their place whatever they are: they keep members apart."""
        for name in value:
            if not encoding.is_plain(name):
                self._beside(name)
        return {name: self.of(member, depth + 1) for name, member in value.items()}

    def _beside(self, text: str) -> str:
        self.beside.append(text)
        return f"text {len(self.beside)}"
