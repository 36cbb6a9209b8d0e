"""The bodies of policies, keys and projects, line by line."""

import unicodedata
from typing import Any

import msgspec
import pytest

from tests.contract import tables
from tests.contract.tables import (
    ACCEPTED,
    BOOLEAN,
    REVISION,
    RULE,
    Table,
    array,
    cases,
    check_case,
    decoded,
    fields_of,
    integer,
    one_of,
    outcome_of,
    row,
    string,
)
from tollhouse.contract import keys, policies, policy_trials, projects

CREATE = Table(
    type_=policies.CreatePolicy,
    body={"name": "No names", "rule": RULE},
    rows=fields_of(tables.CREATE_POLICY),
)
EDIT = Table(type_=policies.EditPolicy, body={"revision": 7}, rows=fields_of(tables.EDIT_POLICY))
EDIT_MANAGED = Table(
    type_=policies.EditManagedPolicy,
    body={"revision": 7},
    rows=[*EDIT.rows, row("ends_answer_early", BOOLEAN)],
)
REVISED = [
    Table(type_=type_, body={"revision": 7}, rows=[REVISION])
    for type_ in (policies.PausePolicy, policies.PublishPolicy, policies.ResumePolicy)
]
ROLL_BACK = Table(
    type_=policies.RollBackPolicy,
    body={"revision": 7, "version": 3},
    rows=[REVISION, row("version", integer(1, 2_147_483_647), required=True)],
)
TRIALS = [
    Table(type_=policy_trials.LintPolicy, body={}, rows=[row("rule", string(1, 20_000))]),
    Table(
        type_=policy_trials.TryPolicy,
        body={"text": "Some text."},
        rows=[
            row("text", string(1, 20_000), required=True),
            row("rule", string(1, 20_000, ending="?")),
        ],
    ),
    Table(
        type_=policy_trials.LintUnsavedRule,
        body={"rule": "a rule"},
        rows=[row("rule", string(1, 20_000), required=True)],
    ),
    Table(
        type_=policy_trials.TryUnsavedRule,
        body={"text": "Some text.", "rule": "Is it so?"},
        rows=[
            row("text", string(1, 20_000), required=True),
            row("rule", string(1, 20_000, ending="?"), required=True),
            row("direction", one_of("request", "response", "both")),
            row("match_threshold_basis_points", integer(1, 9_999), null=True),
        ],
    ),
]
NAME = row("name", string(1, 200), required=True)
EXPIRES_AT = row("expires_at", integer(1, 253_402_300_799), null=True)
BODIES_OF_KEYS = [
    Table(type_=keys.CreateProjectKey, body={"name": "ci"}, rows=[NAME]),
    Table(
        type_=keys.CreateManagedProjectKey,
        body={"name": "ci"},
        rows=[
            NAME,
            EXPIRES_AT,
            row("permissions", array("models:read", 1, 2)),
            row("allowed_models", array("example/model-a", low=1, high=100), null=True),
        ],
    ),
    Table(
        type_=keys.RotateProjectKey,
        body={"overlap_seconds": 0},
        rows=[row("overlap_seconds", integer(0, 604_800), required=True)],
    ),
    Table(
        type_=keys.CreateAdminKey,
        body={"name": "ci"},
        rows=[NAME, EXPIRES_AT, row("permissions", array("policies:read", 1, 20))],
    ),
    Table(type_=projects.CreateProject, body={"name": "search"}, rows=[NAME]),
    Table(
        type_=projects.EditProject,
        body={},
        rows=[
            row("name", string(1, 200)),
            row("allowed_models", array("example/model-a", low=1, high=100), null=True),
        ],
    ),
]


@pytest.mark.guarantee("T15")
@pytest.mark.parametrize(
    ("type_", "body", "outcome"),
    cases(CREATE, EDIT, EDIT_MANAGED, ROLL_BACK, *REVISED, *TRIALS, *BODIES_OF_KEYS),
)
def test_each_field_of_the_organization_keeps_its_line_of_the_table(
    type_: type[msgspec.Struct], body: dict[str, Any], outcome: tuple[str, str | None]
) -> None:
    check_case(type_, body, outcome)


@pytest.mark.parametrize("rule", ["Is it?", "?", "Ist es grün?", "is it so\n?", "??"])
def test_a_rule_is_anything_that_ends_with_a_question_mark(rule: str) -> None:
    assert outcome_of(policies.CreatePolicy, {"name": "n", "rule": rule}) == ACCEPTED


# The full-width question mark looks the same and is another character.
@pytest.mark.parametrize("rule", ["Is it", "Is it? ", "Is it?\n", "Is it\uff1f", "?!"])
def test_a_rule_that_ends_otherwise_is_refused(rule: str) -> None:
    refused = ("invalid_value", "rule")

    assert outcome_of(policies.CreatePolicy, {"name": "n", "rule": rule}) == refused
    assert outcome_of(policies.EditPolicy, {"revision": 1, "rule": rule}) == refused


def test_a_new_policy_has_the_least_effect() -> None:
    created = decoded(policies.CreatePolicy, {"name": "No names", "rule": RULE})

    assert created == policies.CreatePolicy(
        name="No names",
        rule=RULE,
        description="",
        direction="both",
        mode="monitoring",
        scope="unattached",
        project_ids=[],
        match_threshold_basis_points=None,
    )


def test_an_edit_tells_a_null_threshold_from_an_absent_one() -> None:
    absent = decoded(policies.EditPolicy, {"revision": 1})
    null = decoded(policies.EditPolicy, {"revision": 1, "match_threshold_basis_points": None})

    assert absent.match_threshold_basis_points is msgspec.UNSET
    assert null.match_threshold_basis_points is None


NAMED = pytest.mark.parametrize(
    ("type_", "body"),
    [
        (keys.CreateProjectKey, {}),
        (keys.CreateAdminKey, {}),
        (projects.CreateProject, {}),
        (policies.CreatePolicy, {"rule": "Is it?"}),
        (policies.EditPolicy, {"revision": 1}),
        (policies.EditManagedPolicy, {"revision": 1}),
    ],
)
BIDI_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
BIDI_CONTROLS = [
    *("\u061c", "\u200e", "\u200f"),
    *(
        each
        for each in map(chr, range(0x110000))
        if unicodedata.bidirectional(each) in BIDI_CLASSES
    ),
]
LINE_BREAKS = ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@NAMED
@pytest.mark.parametrize("name", ["a", " a ", "名前", "שלום عليكم", "a\u00a0b", "a\u200b"])
def test_a_name_needs_one_character_that_is_not_blank(
    type_: type[msgspec.Struct], body: dict[str, object], name: str
) -> None:
    assert outcome_of(type_, body | {"name": name}) == ACCEPTED


@NAMED
def test_a_name_is_one_line_in_the_order_in_which_it_is_written(
    type_: type[msgspec.Struct], body: dict[str, object]
) -> None:
    blank = [" ", "\u00a0\u3000", "\u200b", "\u2060\ufeff", "\u00ad", "\u3164", "\u2800 "]
    controls = ["\t", "\x01", "\x1b", "\x7f", "\x9f"]
    inside = [f"a{character}b" for character in controls + LINE_BREAKS + BIDI_CONTROLS]

    for name in (*blank, *inside, "a\n", "\ta", "\u202ea"):
        assert outcome_of(type_, body | {"name": name}) == ("invalid_value", "name"), repr(name)


@pytest.mark.parametrize(
    ("type_", "permission"),
    [
        (keys.CreateManagedProjectKey, "policies:read"),
        (keys.CreateManagedProjectKey, "models:read\n"),
        (keys.CreateManagedProjectKey, "xmodels:read"),
        (keys.CreateAdminKey, "inference:write"),
        (keys.CreateAdminKey, "all"),
        (keys.CreateAdminKey, ""),
    ],
)
def test_a_key_cannot_get_a_permission_of_the_other_kind(
    type_: type[msgspec.Struct], permission: str
) -> None:
    body = {"name": "ci", "permissions": [permission]}

    assert outcome_of(type_, body) == ("invalid_value", "permissions[0]")


def test_allowed_models_are_names_of_models() -> None:
    body = {"name": "ci", "allowed_models": ["a", "é" * 201]}

    refused = ("string_above_max_length", "allowed_models[1]")
    assert outcome_of(keys.CreateManagedProjectKey, body) == refused
