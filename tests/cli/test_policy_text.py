"""A policy as a text: what is written into the form is read out of it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tollhouse.base.errors import InvalidRequest
from tollhouse.cli.output import JsonValue, visible
from tollhouse.cli.policy.arguments import checked
from tollhouse.cli.policy.draft_text import NewDraft, new_form, read

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
awkward = st.text('"\\\n\r\t\x7f\x1b{}?#', max_size=20)


@settings(deadline=None)
@given(
    name=texts | awkward,
    rule=texts | awkward,
    project_ids=st.lists(st.uuids().map(str), max_size=3),
    threshold=st.none() | st.integers(1, 9_999),
)
@example(name="", rule='""""\\"""', project_ids=[], threshold=None)
@example(name="{rule}", rule="\n\n", project_ids=[], threshold=1)
def test_the_form_gives_back_what_was_put_into_it(
    name: str, rule: str, project_ids: list[str], threshold: int | None
) -> None:
    fields: dict[str, JsonValue] = {
        "name": name,
        "description": name,
        "rule": f"{rule}?",
        "direction": "both",
        "mode": "monitoring",
        "scope": "projects",
        "project_ids": [*project_ids],
        "match_threshold_basis_points": threshold,
        "ends_answer_early": threshold is None,
    }

    assert read(new_form(fields)) == fields


def test_an_empty_form_asks_for_a_name_and_has_the_least_effect() -> None:
    fields = read(new_form({}))

    assert fields["scope"] == "unattached"
    assert fields["mode"] == "monitoring"
    with pytest.raises(InvalidRequest, match="'name'"):
        checked(fields, NewDraft)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name =", "not valid TOML"),
        ('name = "n"\nrule = "Is it\\u0000?"', "NUL"),
        ('name = "n"\nrule = "Is it?"\nmod = "enforcing"', "'mod'"),
        ('name = "n"\nrule = "Is it?"\nmode = "loud"', "one of 'enforcing', 'monitoring'"),
        ('name = "n"\nrule = ["Is it?"]', "a string"),
    ],
)
def test_what_cannot_be_a_policy_is_refused_in_the_words_of_the_api(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        checked(read(text), NewDraft)


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    assert visible("a\x1b[2J\r\n\x9b\u202eß 漢") == r"a\x1b[2J\r\n\x9b\u202eß 漢"
