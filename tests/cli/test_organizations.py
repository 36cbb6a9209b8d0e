"""`tollhouse org`."""

import asyncio
from uuid import uuid4

import pytest

from tests.cli.commands import Operator, call, execute, new_project, refusal


def test_an_organization_lives_from_creation_to_closing(operator: Operator) -> None:
    created = operator.json("org", "create", "Example Ltd")
    made = created["id"]

    assert created["object"] == "organization"
    assert created["name"] == "Example Ltd"
    assert created["status"] == "active"
    listed = {one["id"]: one for one in operator.json("org", "list")["data"]}
    assert listed[made] == operator.json("org", "show", made)
    assert created.items() <= listed[made].items()
    assert operator.json("org", "suspend", made)["status"] == "suspended"
    assert operator.json("org", "resume", made)["status"] == "active"
    assert operator.json("org", "close", made, "--yes")["status"] == "closed"
    refused = operator.run("org", "resume", made, "--json", exit_code=1)
    assert refused.stdout == ""
    assert refused.error["code"] == "organization_closed"


def test_every_verb_has_a_table_and_markup_in_a_name_is_only_text(operator: Operator) -> None:
    created = operator.run("org", "create", "[red]:smile:[/red]").stdout
    fields = dict(line.split(maxsplit=1) for line in created.splitlines())
    made = fields["id"]

    assert fields["name"] == "[red]:smile:[/red]"
    listed = operator.run("org", "list").stdout.splitlines()
    assert listed[0].split()[:4] == ["id", "name", "status", "available"]
    assert [made, "[red]:smile:[/red]", "active"] in [line.split()[:3] for line in listed]
    shown = dict(
        line.split(maxsplit=1) for line in operator.run("org", "show", made).stdout.splitlines()
    )
    assert fields.items() <= shown.items()
    assert "suspended" in operator.run("org", "suspend", made).stdout
    assert "active" in operator.run("org", "resume", made).stdout
    assert "closed" in operator.run("org", "close", made, "--yes").stdout


def test_nothing_is_created_in_a_closed_organization(patient: Operator) -> None:
    config = ("--config", str(patient.settings_path))
    project = new_project(patient)
    key = patient.created("key", "create", "--project", project, "production")["id"]
    (organization,) = patient.json("org", "list")["data"]
    call(*config, "org", "close", organization["id"], "--yes")
    before = patient.json("audit")["data"]

    refused = [
        patient.failure_code("project", "create", "search"),
        patient.failure_code("admin-key", "create", "finance"),
        patient.failure_code("key", "create", "--project", project, "batch"),
        patient.failure_code("key", "rotate", key, "--overlap-seconds", "0"),
    ]

    assert refused == 4 * ["organization_closed"]
    assert patient.json("audit")["data"] == before


RENAME_BADLY = r"UPDATE organizations SET name = U&'\001B[2J\001B]0;owned\0007\009B31m\202Eeno'"


def test_what_a_terminal_would_obey_is_written_out(patient: Operator, database_url: str) -> None:
    """The product takes no such names; whoever writes to the database may."""
    call("--config", str(patient.settings_path), "org", "create", "Example Ltd")
    asyncio.run(execute(database_url, RENAME_BADLY))

    listed = patient.run("org", "list").stdout
    shown = patient.run("org", "show", listed.splitlines()[1].split()[0]).stdout

    for text in (listed, shown):
        assert r"\x1b[2J\x1b]0;owned\x07\x9b31m\u202eeno" in text
        assert all(line.isprintable() for line in text.splitlines())


def test_an_unknown_organization_is_said_to_be_unknown(operator: Operator) -> None:
    refused = operator.run("org", "show", str(uuid4()), exit_code=1)

    assert refused.stderr == "Error: No such organization.\n"


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 201, "\udcff"])
def test_a_name_that_the_api_would_refuse_is_refused(name: str) -> None:
    for verb in (
        ("org", "create"),
        ("project", "create"),
        ("project", "rename", str(uuid4())),
        ("key", "create", "--project", str(uuid4())),
        ("admin-key", "create"),
        ("init", "--organization"),
        ("init", "--project"),
    ):
        assert "expected" in refusal(*verb, name) or "UTF-8" in refusal(*verb, name)


def test_a_refused_name_is_a_usage_error(operator: Operator) -> None:
    assert operator.run("org", "create", "", "--json", exit_code=2).error["code"] == "usage"
