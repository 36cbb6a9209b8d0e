"""`tollhouse project` and `tollhouse audit`."""

from uuid import uuid4

import pytest

from tests.cli.commands import Operator, refusal
from tollhouse.cli.organizations.org import create_organization


@pytest.fixture(scope="module")
def organization(operator: Operator) -> str:
    return str(operator.do(lambda session: create_organization(session, "Example Ltd")).id)


def test_a_project_lives_from_creation_to_archiving(operator: Operator, organization: str) -> None:
    created = operator.json("project", "create", "--org", organization, "search")
    made = created["id"]

    assert created["object"] == "organization.project"
    assert created["status"] == "active"
    assert created in operator.json("project", "list")["data"]
    assert operator.json("project", "show", made) == created
    assert operator.json("project", "rename", made, "find")["name"] == "find"
    assert operator.json("project", "archive", made, "--yes")["status"] == "archived"
    assert operator.failure_code("project", "rename", made, "seek") == "project_archived"


def test_every_verb_has_a_table_and_every_change_an_entry_in_the_audit_log(
    operator: Operator, organization: str
) -> None:
    created = operator.run("project", "create", "search").stdout
    made = created.split()[1]

    assert made in operator.run("project", "list").stdout
    assert operator.run("project", "show", made).stdout == created
    assert "find" in operator.run("project", "rename", made, "find").stdout
    assert "archived" in operator.run("project", "archive", made, "--yes").stdout
    entries = operator.json("audit", "--org", organization, "--limit", "3")
    assert [entry["action"] for entry in entries["data"]] == [
        *("project.archive", "project.edit", "project.create")
    ]
    renaming = entries["data"][1]["changes"]
    assert renaming == [{"field": "name", "before": "search", "after": "find"}]
    lines = operator.run("audit", "--org", organization, "--limit", "3").stdout.splitlines()[1:]
    assert [line.split()[-1] for line in lines] == ["archived_at", "name", "all"]
    assert {entry["actor"]["type"] for entry in entries["data"]} == {"operator"}
    assert {entry["resource"]["id"] for entry in entries["data"]} == {made}
    assert entries["has_more"] is True


@pytest.mark.usefixtures("organization")
def test_an_unknown_project_is_a_failure(operator: Operator) -> None:
    assert operator.failure_code("project", "show", str(uuid4())) == "project_not_found"


def test_without_an_organization_there_is_nothing_to_do_and_with_two_one_must_be_named(
    patient: Operator,
) -> None:
    config = ("--config", str(patient.settings_path))
    without = patient.failure_code("project", "list")
    for _ in range(2):
        patient.do(lambda session: create_organization(session, "Example Ltd"))
    with_two = refusal(*config, "project", "list")

    assert without == "organization_not_found"
    assert "--org" in with_two
