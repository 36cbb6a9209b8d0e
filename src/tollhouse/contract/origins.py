"""Where each part of the interface comes from: the specification, a public convention, or us.

A mark stands on every struct (class variable `mark`), and on each field whose origin differs
from that of its struct. A part of something given that the specification does not give, such as
a null, a default or a name, is listed beside the mark with its open questions. `openapi` prints
both.
"""

from enum import StrEnum
from typing import Any

from msgspec import Meta

ORIGIN_MEMBER = "x-tollhouse-origin"
QUESTIONS_MEMBER = "x-tollhouse-questions"
PARTS_MEMBER = "x-tollhouse-adopted"

Questions = str | tuple[str, ...]


class Origin(StrEnum):
    """Where a part of the interface comes from."""

    GIVEN = "given"
    ADOPTED = "adopted"
    EXTENSION = "extension"


def given(**parts: Questions) -> Meta:
    """Stands in the specification, except for the parts that are named with their questions.

    A part is a keyword of JSON Schema (`default`, `enum`, `required`, `additionalProperties`), or
    a word for something that has none, such as `null`, `bounds`, `name` or `status`.
    """
    return _mark(Origin.GIVEN, (), parts)


def adopted(question: str, *more: str, **parts: Questions) -> Meta:
    """Follows a public convention; the numbers name the open questions that it answers."""
    return _mark(Origin.ADOPTED, (question, *more), parts)


def extension(question: str, *more: str) -> Meta:
    """Ours; the numbers name the open questions that it answers."""
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
"""Stands in the specification, as it is."""
