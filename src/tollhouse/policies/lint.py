"""What makes a rule hard to judge, found by reading it: advice, never a refusal."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LENGTH_MAX: Final = 2_400
"""Judges answer best to a few hundred tokens."""

# Before a figure, "No." is short for number.
_NEGATIONS: Final = re.compile(
    r"\b(?:not|no(?!\.\s?\d)|never|none|neither|nor|nothing|nobody|without|cannot|lacks?|lacking|omits?"
    r"|omitting|fails?|failing|miss(?:es|ing)|absent|refrains?|avoids?)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(r"\A\W*(?:what|which|who|whom|whose|how|why|when|where)\b", re.IGNORECASE)
_VAGUE: Final = re.compile(
    r"\b(?:generally|usually|sometimes|appropriate|inappropriate|proper|improper|reasonable"
    r"|bad|good|etc)\b",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"\"[^\"]*\"|\u201c[^\u201c\u201d]*\u201d")
_SECOND: Final = re.compile(
    r"\b(?:and|or) (?:also )?(?:does|do|is|are|has|have|can|will|would)\b", re.IGNORECASE
)


class Weakness(StrEnum):
    """Kinds of advice."""

    NOT_A_QUESTION = "not_a_question"
    OPEN_QUESTION = "open_question"
    SEVERAL_QUESTIONS = "several_questions"
    DOUBLE_NEGATION = "double_negation"
    ABSENCE = "absence"
    VAGUE = "vague"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Remark:
    """What was found, and what to write instead."""

    weakness: Weakness
    advice: str


ADVICE: Final = {
    Weakness.NOT_A_QUESTION: "Ask a question, and end it with a question mark.",
    Weakness.OPEN_QUESTION: "Ask what can be answered with yes or no, such as 'Does the text ...?'",
    Weakness.SEVERAL_QUESTIONS: "Ask one question. Write a policy for each of the others.",
    Weakness.DOUBLE_NEGATION: "Say it without a negation of a negation: judges lose count.",
    Weakness.ABSENCE: (
        "It asks whether something is absent, which is true of every beginning of a text: it "
        "matches short answers, and must never end an answer early. Ask for what must not be there."
    ),
    Weakness.VAGUE: "Name what is meant: a judge takes vague words its own way.",
    Weakness.TOO_LONG: (
        f"Shorten it to {LENGTH_MAX} characters or less. What a judge reads with every question "
        "costs as much as the question."
    ),
}


def lint(rule: str) -> tuple[Remark, ...]:
    """In the order in which one would mend them; what stands in quotation marks is passed over."""
    text = _QUOTED.sub("", rule).strip()
    return tuple(Remark(found, ADVICE[found]) for found, holds in _TESTS.items() if holds(text))


def _is_double(text: str) -> bool:
    return len(_NEGATIONS.findall(text)) > 1


def _is_absence(text: str) -> bool:
    return len(_NEGATIONS.findall(text)) == 1


def _is_several(text: str) -> bool:
    return text.count("?") > 1 or _SECOND.search(text) is not None


_TESTS: Final[dict[Weakness, Callable[[str], bool]]] = {
    Weakness.NOT_A_QUESTION: lambda text: not text.endswith("?"),
    Weakness.OPEN_QUESTION: lambda text: _OPEN.search(text) is not None,
    Weakness.SEVERAL_QUESTIONS: _is_several,
    Weakness.DOUBLE_NEGATION: _is_double,
    Weakness.ABSENCE: _is_absence,
    Weakness.VAGUE: lambda text: _VAGUE.search(text) is not None,
    Weakness.TOO_LONG: lambda text: len(text) > LENGTH_MAX,
}
