"""Linting of rules: warnings about rules that are hard to judge. Refuses nothing."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LENGTH_MAX: Final = 2_400
"""Judges answer rules of a few hundred tokens best."""

# "No." before a digit is short for number.
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


class LintRule(StrEnum):
    """The kinds of warnings."""

    NOT_A_QUESTION = "not_a_question"
    OPEN_QUESTION = "open_question"
    SEVERAL_QUESTIONS = "several_questions"
    DOUBLE_NEGATION = "double_negation"
    ABSENCE = "absence"
    VAGUE = "vague"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class LintWarning:
    """A weakness of a rule, and what to write instead."""

    weakness: LintRule
    advice: str


ADVICE: Final = {
    LintRule.NOT_A_QUESTION: "Ask a question, and end it with a question mark.",
    LintRule.OPEN_QUESTION: "Ask what can be answered with yes or no, such as 'Does the text ...?'",
    LintRule.SEVERAL_QUESTIONS: "Ask one question. Write a policy for each of the others.",
    LintRule.DOUBLE_NEGATION: "Say it without a negation of a negation: judges lose count.",
    LintRule.ABSENCE: (
        "It asks whether something is absent, which is true of every beginning of a text: it "
        "matches short answers, and must never end an answer early. Ask for what must not be there."
    ),
    LintRule.VAGUE: "Name what is meant: a judge takes vague words its own way.",
    LintRule.TOO_LONG: (
        f"Shorten it to {LENGTH_MAX} characters or less. What a judge reads with every question "
        "costs as much as the question."
    ),
}


def lint(rule: str) -> tuple[LintWarning, ...]:
    """Return warnings in the order in which to fix them. Quoted text is ignored."""
    text = _QUOTED.sub("", rule).strip()
    return tuple(
        LintWarning(found, ADVICE[found]) for found, holds in _TESTS.items() if holds(text)
    )


def _is_double(text: str) -> bool:
    return len(_NEGATIONS.findall(text)) > 1


def _is_absence(text: str) -> bool:
    return len(_NEGATIONS.findall(text)) == 1


def _is_several(text: str) -> bool:
    return text.count("?") > 1 or _SECOND.search(text) is not None


_TESTS: Final[dict[LintRule, Callable[[str], bool]]] = {
    LintRule.NOT_A_QUESTION: lambda text: not text.endswith("?"),
    LintRule.OPEN_QUESTION: lambda text: _OPEN.search(text) is not None,
    LintRule.SEVERAL_QUESTIONS: _is_several,
    LintRule.DOUBLE_NEGATION: _is_double,
    LintRule.ABSENCE: _is_absence,
    LintRule.VAGUE: lambda text: _VAGUE.search(text) is not None,
    LintRule.TOO_LONG: lambda text: len(text) > LENGTH_MAX,
}
