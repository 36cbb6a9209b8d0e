"""`tollhouse policy`, with options."""

from uuid import uuid4

import pytest

from tests.cli.commands import Operator, call, new_project, refusal

RULE = "Does the text name a person?"


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    return new_project(operator)


@pytest.fixture(scope="module")
def policy(operator: Operator, project: str) -> str:
    """A draft that nobody changes."""
    assert project
    return operator.json("policy", "create", "No names", "--rule", RULE)["id"]


ANYWAY = "--refuse-until-judged"
"""The deployment has no judge."""


def test_a_policy_lives_from_its_draft_to_its_rollback(operator: Operator, project: str) -> None:
    created = operator.json("policy", "create", "No names", "--rule", RULE, "--description", "d")
    made = created["id"]
    assert created["state"] == "draft"
    assert created["description"] == "d"
    assert created["draft"]["scope"] == "unattached"
    assert created["draft"]["match_threshold_basis_points"] is None
    assert operator.json("policy", "show", made) == created

    edited = operator.json(
        *("policy", "edit", made, "--revision", "1", "--mode", "enforcing"),
        *("--scope", "projects", "--project", project, "--match-threshold-basis-points", "7000"),
    )
    assert edited["revision"] == 2
    assert edited["draft"]["project_ids"] == [project]
    assert operator.json("policy", "effective", project)["data"] == []

    refused = operator.run("policy", "publish", made, "--json", exit_code=1)
    assert "policy_not_judged" in refused.stderr
    published = operator.json("policy", "publish", made, ANYWAY)
    assert published["state"] == "enforcing"
    assert published["published"]["match_threshold_basis_points"] == 7000
    (applied,) = operator.json("policy", "effective", project)["data"]
    assert applied["id"] == made
    assert applied["version"] == 1

    assert operator.json("policy", "pause", made)["state"] == "paused"
    assert operator.json("policy", "effective", project)["data"] == []
    assert operator.json("policy", "resume", made, ANYWAY)["state"] == "enforcing"

    operator.json(
        *("policy", "edit", made, "--mode", "monitoring"),
        *("--name", "Names", "--match-threshold-basis-points", "default"),
    )
    second = operator.json("policy", "publish", made, ANYWAY)
    assert second["published"]["match_threshold_basis_points"] == 5000
    third = operator.json("policy", "rollback", made, "1", ANYWAY)
    assert third["current_version"] == 3
    assert third["state"] == "enforcing"
    assert third["draft"]["mode"] == "monitoring"
    versions = operator.json("policy", "versions", made)["data"]
    assert [(one["version"], one["current"]) for one in versions] == [
        *((3, True), (2, False), (1, False))
    ]
    assert third.pop("preflight") is None
    assert third in operator.json("policy", "list")["data"]
    actions = [entry["action"] for entry in operator.json("audit", "--limit", "8")["data"]]
    assert actions == [
        *("policy.roll_back", "policy.publish", "policy.edit", "policy.resume"),
        *("policy.pause", "policy.publish", "policy.edit", "policy.create"),
    ]


def test_a_policy_may_end_answers_early_and_a_dubious_one_is_warned_of(
    operator: Operator, project: str
) -> None:
    assert project
    rule = "Does the answer lack a warning?"
    sound = operator.json("policy", "create", "n", "--rule", RULE, "--end-early")
    absent = operator.json("policy", "create", "n", "--rule", rule)["id"]
    operator.json("policy", "edit", absent, "--end-early")
    refused = operator.run(
        *("policy", "edit", absent, "--direction", "request", "--json"), exit_code=2
    )

    quiet = operator.run("policy", "publish", sound["id"]).stdout
    warned = operator.run("policy", "publish", absent).stdout

    assert sound["draft"]["ends_answer_early"]
    assert refused.error["code"] == "invalid_parameter_combination"
    assert "Warning: " not in quiet
    assert "Warning: the rule seems to ask whether something is missing" in warned
    assert operator.json("policy", "show", absent)["published"]["ends_answer_early"]
    assert not operator.json("policy", "edit", absent, "--no-end-early")["draft"][
        "ends_answer_early"
    ]
    (differing,) = operator.json("policy", "diff", absent)["fields"]
    assert (differing["field"], differing["published"]) == ("ends_answer_early", True)


def test_whoever_publishes_what_sees_nothing_is_told(operator: Operator, project: str) -> None:
    made = operator.json("policy", "create", "n", "--rule", RULE)["id"]

    told = operator.run("policy", "publish", made).stdout
    edit, publish = told.splitlines()[-2:]
    assert "applies only to requests that name it in `policy_ids`" in told
    operator.bash(edit)
    quiet = operator.bash(publish).stdout

    assert "policy_ids" not in quiet
    assert made in operator.run("policy", "effective", project).stdout


def test_whoever_publishes_what_is_paused_is_told(operator: Operator, project: str) -> None:
    assert project
    made = operator.json("policy", "create", "n", "--rule", RULE, "--scope", "organization")["id"]
    applying = operator.run("policy", "publish", made).stdout
    operator.run("policy", "pause", made)

    told = operator.run("policy", "publish", made).stdout
    resumed = operator.bash(told.splitlines()[-1]).stdout

    assert "applies after you resume it" in told
    assert "resumed" not in applying
    assert rows(resumed)["state"] == "monitoring"


def test_people_see_draft_and_published_side_by_side(operator: Operator, project: str) -> None:
    created = operator.run("policy", "create", "No names", "--rule", RULE).stdout
    made = created.split()[1]
    assert rows(created)["rule"] == f"{RULE}   -"
    assert operator.run("policy", "show", made).stdout == created

    published = rows(operator.run("policy", "publish", made).stdout)
    assert published["state"] == "monitoring"
    assert published["rule"] == f"{RULE}   {RULE}"
    assert published["match_threshold_basis_points"].split() == ["default", "5000"]
    edit = ("policy", "edit", made, "--scope", "organization", "--rule", "Is it\nsecret?")
    edited = rows(operator.run(*edit).stdout)
    assert edited["scope"].split() == ["organization", "unattached"]
    assert edited["has_unpublished_changes"] == "yes"
    assert made in operator.run("policy", "list").stdout

    operator.run("policy", "publish", made)
    assert made in operator.run("policy", "effective", project).stdout
    versions = operator.run("policy", "versions", made).stdout.splitlines()
    assert [line.split()[:2] for line in versions[1:]] == [["2", "yes"], ["1", "no"]]
    assert rows(operator.run("policy", "pause", made).stdout)["state"] == "paused"
    assert rows(operator.run("policy", "resume", made).stdout)["state"] == "monitoring"
    assert rows(operator.run("policy", "rollback", made, "1").stdout)["current_version"] == "3"


def rows(table: str) -> dict[str, str]:
    """What stands behind the first word of each line."""
    pairs = (line.split(maxsplit=1) for line in table.splitlines() if line.strip())
    return {pair[0]: pair[-1] for pair in pairs}


def test_a_diff_has_the_lines_of_the_rule_and_the_other_fields(
    operator: Operator, project: str
) -> None:
    rule = "Does the text name\na person?"
    made = operator.json("policy", "create", "No names", "--rule", rule)["id"]
    first = operator.json("policy", "diff", made)
    operator.json("policy", "publish", made)
    same = operator.run("policy", "diff", made).stdout
    operator.json(
        *("policy", "edit", made, "--rule", "Does the text name\na \x1bplace?"),
        *("--scope", "projects", "--project", project),
    )
    edited = operator.json("policy", "diff", made)

    assert first["current_version"] is None
    assert first["rule"].splitlines()[2:] == [
        "@@ -0,0 +1,2 @@",
        "+Does the text name",
        "+a person?",
    ]
    assert [one["field"] for one in first["fields"]] == ["direction", "mode", "scope"]
    assert same == "The draft equals the published version.\n"
    assert edited == {
        "object": "policy.diff",
        "id": made,
        "revision": 3,
        "current_version": 1,
        "has_unpublished_changes": True,
        "rule": (
            "--- version 1\n+++ draft, revision 3\n@@ -1,2 +1,2 @@\n"
            " Does the text name\n-a person?\n+a \x1bplace?"
        ),
        "fields": [
            {"field": "scope", "published": "unattached", "draft": "projects"},
            {"field": "project_ids", "published": [], "draft": [project]},
        ],
    }
    assert operator.run("policy", "diff", made).stdout.splitlines() == [
        *("--- version 1", "+++ draft, revision 3", "@@ -1,2 +1,2 @@"),
        *(" Does the text name", "-a person?", r"+a \x1bplace?", ""),
        "field         published    draft",
        "scope         unattached   projects",
        f"project_ids   -            {project}",
    ]


def test_a_restored_default_is_a_difference_from_the_threshold_in_force(
    operator: Operator, project: str
) -> None:
    assert project
    threshold = "--match-threshold-basis-points"
    made = operator.json("policy", "create", "n", "--rule", RULE, threshold, "700")["id"]
    operator.json("policy", "publish", made)
    operator.json("policy", "edit", made, threshold, "default")

    assert operator.run("policy", "diff", made).stdout.splitlines() == [
        "field                          published   draft",
        "match_threshold_basis_points   700         default",
    ]


def test_texts_cannot_command_a_terminal(operator: Operator, project: str) -> None:
    assert project
    name, description = "a\u200b forged   row", "a\x1b[2J\nforged   row"
    made = operator.json(*("policy", "create", name, "--rule", RULE, "--description", description))[
        "id"
    ]

    shown = operator.run("policy", "show", made).stdout
    listed = operator.run("policy", "list").stdout

    assert r"a\x1b[2J\nforged   row" in shown
    assert r"a\u200b forged   row" in listed
    assert operator.json("policy", "show", made)["name"] == name


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_narrow_terminal_cuts_nothing_off(operator: Operator, policy: str, columns: str) -> None:
    listed = operator.run("policy", "list", FORCE_COLOR="1", NO_COLOR="1", COLUMNS=columns).stdout

    (line,) = (line for line in listed.splitlines() if policy in line)
    assert line.split() == [policy, "No", "names", "draft", "-", "yes"]


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (("edit", "{}", "--revision", "7", "--mode", "enforcing"), "revision_conflict"),
        (("publish", "{}", "--revision", "7"), "revision_conflict"),
        (("pause", "{}", "--revision", "7"), "revision_conflict"),
        (("resume", "{}", "--revision", "7"), "revision_conflict"),
        (("rollback", "{}", "1", "--revision", "7"), "revision_conflict"),
        (("pause", "{}"), "policy_state_conflict"),
        (("resume", "{}"), "policy_state_conflict"),
        (("rollback", "{}", "1"), "policy_version_not_found"),
        (("edit", "{}", "--project", str(uuid4())), "project_not_found"),
        (("show", f"pol_{uuid4().hex}"), "policy_not_found"),
        (("versions", f"pol_{uuid4().hex}"), "policy_not_found"),
        (("publish", f"pol_{uuid4().hex}"), "policy_not_found"),
        (("effective", str(uuid4())), "project_not_found"),
        (("edit", "{}", "--rule", "Names a person."), "invalid_value"),
        (("edit", "{}", "--name", "n" * 81), "string_above_max_length"),
        (("edit", "{}", "--name", "no\u202enames"), "invalid_value"),
        (("create", "no\nnames", "--rule", RULE), "invalid_value"),
        (("create", "--rule", RULE), "missing_required_parameter"),
        (("create", "n\udcff", "--rule", RULE), "invalid_value"),
    ],
)
def test_a_refusal_says_why(
    operator: Operator, policy: str, verb: tuple[str, ...], code: str
) -> None:
    assert operator.failure_code("policy", *(word.format(policy) for word in verb)) == code


def test_a_conflict_is_said_plainly_and_exits_with_one(operator: Operator, policy: str) -> None:
    verb = ("policy", "publish", policy, "--revision", "7")

    assert operator.run(*verb, exit_code=1).stderr == (
        "Error: Revision 7 is not the latest, which is 1. Read the policy again.\n"
    )
    assert operator.run(*verb, "--json", exit_code=1).error["code"] == "revision_conflict"


def test_a_wrong_call_exits_with_two(operator: Operator, policy: str) -> None:
    edit = ("policy", "edit", policy, "--rule", "Names a person.", "--json")

    assert operator.run(*edit, exit_code=2).error["code"] == "invalid_value"
    assert "pol_" in refusal("policy", "show", str(uuid4()))
    assert "9999" in refusal("policy", "edit", policy, "--match-threshold-basis-points", "10000")


def test_an_edit_that_says_nothing_new_changes_nothing(operator: Operator, policy: str) -> None:
    config = ("--config", str(operator.settings_path))
    call(*config, "policy", "edit", policy, "--mode", "monitoring")

    assert operator.json("policy", "show", policy)["revision"] == 1
