"""`tollhouse org`."""

from uuid import uuid4

import pytest

from tests.cli.commands import Operator, refusal


def test_an_organization_lives_from_creation_to_closing(operator: Operator) -> None:
    created = operator.json("org", "create", "Example Ltd")
    made = created["id"]

    assert created["object"] == "organization"
    assert created["name"] == "Example Ltd"
    assert created["status"] == "active"
    assert created in operator.json("org", "list")["data"]
    assert operator.json("org", "show", made) == created
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
    assert listed[0].split() == ["id", "name", "status", "created_at"]
    assert [made, "[red]:smile:[/red]", "active"] in [line.split()[:3] for line in listed]
    assert operator.run("org", "show", made).stdout == created
    assert "suspended" in operator.run("org", "suspend", made).stdout
    assert "active" in operator.run("org", "resume", made).stdout
    assert "closed" in operator.run("org", "close", made, "--yes").stdout


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
