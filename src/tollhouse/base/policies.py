"""Directions, modes and outcomes of policies."""

from enum import StrEnum
from typing import Final, Literal

DEMONSTRATION_JUDGE: Final = "demonstration-judge"
"""The model name of a trial's judge, which decides by patterns."""
DEMONSTRATION_KINDS: Final = (
    "quoted words, card numbers, passwords, e-mail addresses, phone numbers, links, IP addresses "
    "and IBANs"
)
"""What that judge knows, as in 'Does the text contain "Project Falcon"?'."""


class Direction(StrEnum):
    """The content that a policy evaluates: the request, the response, or both."""

    REQUEST = "request"
    RESPONSE = "response"
    BOTH = "both"


class Mode(StrEnum):
    """Whether a match is recorded, or also refuses the request or its answer."""

    MONITORING = "monitoring"
    ENFORCING = "enforcing"


class EvaluationOutcome(StrEnum):
    """The result of one policy on one content.

    Skipped: its answer could not change the result, or the request selects it while it is paused.
    """

    MATCH = "match"
    NO_MATCH = "no_match"
    FAILED = "failed"
    SKIPPED = "skipped"


JudgedDirection = Literal[Direction.REQUEST, Direction.RESPONSE]
"""The direction of one evaluation."""
JUDGED_DIRECTIONS: Final[tuple[JudgedDirection, ...]] = (Direction.REQUEST, Direction.RESPONSE)


def judged_direction(text: str) -> JudgedDirection:
    """Return the direction of an evaluation by its name. Raises `ValueError` for any other text."""
    return JUDGED_DIRECTIONS[JUDGED_DIRECTIONS.index(Direction(text))]
