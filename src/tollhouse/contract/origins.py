"""Who says so: the specification, a public convention that we adopted, or we ourselves.

A mark stands on every struct (class variable `mark`), and on each field whose origin differs
from that of its struct. A field that is given, but whose null, bound or default is not, is
marked as adopted. `openapi` prints both.
"""

from enum import StrEnum

from msgspec import Meta

ORIGIN_MEMBER = "x-tollhouse-origin"
QUESTIONS_MEMBER = "x-tollhouse-questions"


class Origin(StrEnum):
    """Where a part of the interface comes from."""

    GIVEN = "given"
    ADOPTED = "adopted"
    EXTENSION = "extension"


GIVEN = Meta(extra_json_schema={ORIGIN_MEMBER: Origin.GIVEN.value})
"""Stands in the specification, as it is."""


def adopted(question: str, *more: str) -> Meta:
    """Follows a public convention; the numbers name the open questions that it answers."""
    return _mark(Origin.ADOPTED, question, *more)


def extension(question: str, *more: str) -> Meta:
    """Ours; the numbers name the open questions that it answers."""
    return _mark(Origin.EXTENSION, question, *more)


def _mark(origin: Origin, *questions: str) -> Meta:
    return Meta(extra_json_schema={ORIGIN_MEMBER: origin.value, QUESTIONS_MEMBER: list(questions)})
