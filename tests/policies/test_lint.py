"""Advice on rules, by reading them."""

import time

import pytest

from tollhouse.policies.lint import ADVICE, LENGTH_MAX, Weakness, lint

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
    ("Names of persons", Weakness.NOT_A_QUESTION),
    ("What is the text about?", Weakness.OPEN_QUESTION),
    ("how dangerous is it?", Weakness.OPEN_QUESTION),
    ("Does it name a person? Does it name a place?", Weakness.SEVERAL_QUESTIONS),
    ("Does it name a person and does it insult them?", Weakness.SEVERAL_QUESTIONS),
    ("Does the text not fail to name a person?", Weakness.DOUBLE_NEGATION),
    ("Isn't there no name in it?", Weakness.DOUBLE_NEGATION),
    ("Does the text lack a greeting?", Weakness.ABSENCE),
    ("Does the answer come without a source?", Weakness.ABSENCE),
    ("Does the answer have no 16-digit number?", Weakness.ABSENCE),
    ("Does the answer to No. 1 have no source?", Weakness.ABSENCE),
    ("Is the text appropriate?", Weakness.VAGUE),
    (f"Does the text mention {'very ' * LENGTH_MAX}long words?", Weakness.TOO_LONG),
]


@pytest.mark.parametrize("rule", SOUND)
def test_a_sound_rule_gets_no_advice(rule: str) -> None:
    assert lint(rule) == ()


@pytest.mark.parametrize(("rule", "weakness"), WEAK)
def test_each_weakness_is_found(rule: str, weakness: Weakness) -> None:
    assert weakness in [remark.weakness for remark in lint(rule)]


def test_there_is_advice_on_every_weakness_and_a_case_of_each() -> None:
    assert set(ADVICE) == set(Weakness) == {weakness for _, weakness in WEAK}


def test_a_negation_is_not_also_an_absence_when_it_is_negated() -> None:
    found = [remark.weakness for remark in lint("Is it not true that no name is there?")]

    assert Weakness.ABSENCE not in found


def test_reading_takes_no_longer_than_the_rule_is_long() -> None:
    began_seconds = time.process_time()

    lint("\u201c" * 20_000)

    # Quadratic, it took two seconds.
    assert time.process_time() - began_seconds < 0.5
