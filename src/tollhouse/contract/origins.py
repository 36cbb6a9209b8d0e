"""Marks for the origin of each part of the interface: specification, public convention, or ours.

Every struct has a mark (class variable `mark`), and so has each field whose origin differs from
that of its struct. A given field may have a part that the specification does not give, such as a
null, a default or a name; its mark lists the part with its open questions. The OpenAPI document
shows all marks.
"""

from enum import StrEnum
from typing import Any

from msgspec import Meta

ORIGIN_MEMBER = "x-tollhouse-origin"
QUESTIONS_MEMBER = "x-tollhouse-questions"
PARTS_MEMBER = "x-tollhouse-adopted"

Questions = str | tuple[str, ...]


class Origin(StrEnum):
    """The origin of a part of the interface."""

    GIVEN = "given"
    ADOPTED = "adopted"
    EXTENSION = "extension"


def given(**parts: Questions) -> Meta:
    """Mark as given by the specification, except for the named parts with their open questions.

    A part is a keyword of JSON Schema (`default`, `enum`, `required`, `additionalProperties`), or
    another word where JSON Schema has none, such as `null`, `bounds`, `name` or `status`.
    """
    return _mark(Origin.GIVEN, (), parts)


def adopted(question: str, *more: str, **parts: Questions) -> Meta:
    """Mark as a public convention that answers these open questions."""
    return _mark(Origin.ADOPTED, (question, *more), parts)


def extension(question: str, *more: str) -> Meta:
    """Mark as our extension that answers these open questions."""
    return _mark(Origin.EXTENSION, (question, *more), {})


def members(mark: Meta) -> dict[str, Any]:
    """Return a mark as members of a JSON object."""
    return dict(mark.extra_json_schema or {})


def _mark(origin: Origin, questions: tuple[str, ...], parts: dict[str, Questions]) -> Meta:
    found: dict[str, Any] = {ORIGIN_MEMBER: origin.value}
    if questions:
        found[QUESTIONS_MEMBER] = list(questions)
    if parts:
        found[PARTS_MEMBER] = {name: _listed(part) for name, part in parts.items()}
    return Meta(extra_json_schema=found)


def _listed(questions: Questions) -> list[str]:
    return [questions] if isinstance(questions, str) else list(questions)


GIVEN = given()
"""The mark of what the specification gives completely."""
