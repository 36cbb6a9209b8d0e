"""`tollhouse org checks` and `tollhouse project models`: who may use which model."""

from typing import Any
from uuid import uuid4

import pytest

from tests.cli.commands import Operator, new_project, refusal

MODEL = """
[backends.engine]
replicas = ["http://127.0.0.1:1/v1"]

[models."example/model-a"]
backend = "engine"
context_length = 4096
max_output_length = 1024
pricing = { prompt = "0.0000025", completion = "0.00001" }
"""


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    with operator.settings_path.open("a", encoding="utf-8") as file:
        file.write(MODEL)
    return new_project(operator)


@pytest.fixture(scope="module")
def organization(operator: Operator, project: str) -> str:
    del project
    (only,) = operator.json("org", "list")["data"]
    return only["id"]


def last_entries(operator: Operator, count: int) -> list[dict[str, Any]]:
    return operator.json("audit", "--limit", str(count))["data"]


def test_a_check_is_granted_listed_and_revoked(operator: Operator, organization: str) -> None:
    granted = operator.json("org", "checks", "grant", organization, "identity")
    again = operator.json("org", "checks", "grant", organization, "identity")
    listed = operator.json("org", "checks", "list", organization)
    table = operator.run("org", "checks", "list", organization).stdout
    revoked = operator.json("org", "checks", "revoke", organization, "identity")
    after = operator.json("org", "checks", "list", organization)

    assert (granted["id"], granted["object"]) == ("identity", "organization.check")
    assert again == granted
    assert listed["data"] == [granted]
    assert table.splitlines()[1].startswith("identity ")
    assert revoked == {"id": "identity", "object": "organization.check.deleted", "deleted": True}
    assert after["data"] == []
    revocation, grant = last_entries(operator, 2)
    assert (grant["action"], revocation["action"]) == (
        *("organization_check.grant", "organization_check.revoke"),
    )
    assert grant["resource"] == {"type": "organization_check", "id": "identity"}


@pytest.mark.parametrize("name", ["", "Identity", "two words", "-x", "x" * 101, "é", "x\n"])
def test_a_name_that_no_model_could_require_is_refused(name: str) -> None:
    for verb in ("grant", "revoke"):
        said = refusal("org", "checks", verb, str(uuid4()), "--", name)
        assert "is not the name of a check" in said


def test_an_unknown_organization_is_a_failure(operator: Operator) -> None:
    nobody = str(uuid4())

    failures = {
        operator.failure_code("org", "checks", "grant", nobody, "identity"),
        operator.failure_code("org", "checks", "revoke", nobody, "identity"),
        operator.failure_code("org", "checks", "list", nobody),
    }

    assert failures == {"organization_not_found"}


def test_a_project_is_narrowed_shown_and_widened(operator: Operator, project: str) -> None:
    before = operator.json("project", "models", "show", project)
    narrowed = operator.json(
        "project", "models", "set", project, "example/model-a", "example/model-b", "example/model-a"
    )
    shown = operator.json("project", "models", "show", project)
    table = operator.run("project", "models", "show", project).stdout
    in_full = operator.json("project", "show", project)
    cleared = operator.json("project", "models", "clear", project)

    assert before == {
        "id": project,
        "object": "organization.project.models",
        "allowed_models": None,
        "unknown_models": [],
    }
    assert narrowed["allowed_models"] == ["example/model-a", "example/model-b"]
    assert narrowed["unknown_models"] == ["example/model-b"]
    assert shown == narrowed
    assert "example/model-a, example/model-b" in table
    assert in_full["allowed_models"] == narrowed["allowed_models"]
    assert cleared == before
    widening, narrowing = last_entries(operator, 2)
    assert narrowing["action"] == widening["action"] == "project.edit"
    assert narrowing["changes"] == [
        {"field": "allowed_models", "before": None, "after": narrowed["allowed_models"]}
    ]


def test_a_project_is_narrowed_to_one_model_at_least_and_a_hundred_at_most() -> None:
    project = str(uuid4())
    many = [f"model-{number}" for number in range(101)]

    assert "Missing argument" in refusal("project", "models", "set", project)
    assert "at most 100." in refusal("project", "models", "set", project, *many)
    assert "expected" in refusal("project", "models", "set", project, "x" * 201)


@pytest.mark.usefixtures("project")
def test_an_unknown_project_is_a_failure(operator: Operator) -> None:
    nothing = str(uuid4())

    failures = {
        operator.failure_code("project", "models", "set", nothing, "x"),
        operator.failure_code("project", "models", "clear", nothing),
        operator.failure_code("project", "models", "show", nothing),
    }

    assert failures == {"project_not_found"}


def test_an_archived_project_is_not_narrowed(operator: Operator) -> None:
    made = operator.json("project", "create", "to be archived")["id"]
    operator.json("project", "archive", made, "--yes")

    assert operator.failure_code("project", "models", "set", made, "x") == "project_archived"
