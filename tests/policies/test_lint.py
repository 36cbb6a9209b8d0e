"""Advice on rules, by reading them."""

import time

import pytest

from tollhouse.policies.lint import ADVICE, LENGTH_MAX, LintRule, lint

SOUND = [
    "Does the text name a person?",
    "Does the text contain the number of a payment card?",
    'Does the text say "never again" or "nobody is good"?',
    "Does the text ask for legal advice in a matter of a tenant and a landlord?",
    "Is the message unsolicited advertising?",
    "Does the text call a product the No. 1 brand?",
    "Does the text quote rule no.7 of the club?",
]
WEAK = [
    ("Names of persons", LintRule.NOT_A_QUESTION),
    ("What is the text about?", LintRule.OPEN_QUESTION),
    ("how dangerous is it?", LintRule.OPEN_QUESTION),
    ("Does it name a person? Does it name a place?", LintRule.SEVERAL_QUESTIONS),
    ("Does it name a person and does it insult them?", LintRule.SEVERAL_QUESTIONS),
    ("Does the text not fail to name a person?", LintRule.DOUBLE_NEGATION),
    ("Isn't there no name in it?", LintRule.DOUBLE_NEGATION),
    ("Does the text lack a greeting?", LintRule.ABSENCE),
    ("Does the answer come without a source?", LintRule.ABSENCE),
    ("Does the answer have no 16-digit number?", LintRule.ABSENCE),
    ("Does the answer to No. 1 have no source?", LintRule.ABSENCE),
    ("Is the text appropriate?", LintRule.VAGUE),
    (f"Does the text mention {'very ' * LENGTH_MAX}long words?", LintRule.TOO_LONG),
]


@pytest.mark.parametrize("rule", SOUND)
def test_a_sound_rule_gets_no_advice(rule: str) -> None:
    assert lint(rule) == ()


@pytest.mark.parametrize(("rule", "weakness"), WEAK)
def test_each_weakness_is_found(rule: str, weakness: LintRule) -> None:
    assert weakness in [remark.weakness for remark in lint(rule)]


def test_there_is_advice_on_every_weakness_and_a_case_of_each() -> None:
    assert set(ADVICE) == set(LintRule) == {weakness for _, weakness in WEAK}


def test_a_negation_is_not_also_an_absence_when_it_is_negated() -> None:
    found = [remark.weakness for remark in lint("Is it not true that no name is there?")]

    assert LintRule.ABSENCE not in found


def test_reading_takes_no_longer_than_the_rule_is_long() -> None:
    began_seconds = time.process_time()

    lint("\u201c" * 20_000)

    # Quadratic, it took two seconds.
    assert time.process_time() - began_seconds < 0.5
