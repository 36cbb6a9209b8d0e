"""`tollhouse org checks` and `tollhouse project edit --model`: who may use which model."""

from typing import Any
from uuid import uuid4

import pytest

from tests.cli.commands import Operator, new_project

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
def test_a_name_that_no_model_could_require_is_refused(operator: Operator, name: str) -> None:
    (organization,) = operator.json("org", "list")["data"]

    refused = operator.run(
        "org", "checks", "grant", organization["id"], "--json", "--", name, exit_code=2
    )

    assert refused.error["code"] == "invalid_value"


def test_an_unknown_organization_is_a_failure(operator: Operator) -> None:
    nobody = str(uuid4())

    failures = {
        operator.failure_code("org", "checks", "grant", nobody, "identity"),
        operator.failure_code("org", "checks", "revoke", nobody, "identity"),
        operator.failure_code("org", "checks", "list", nobody),
    }

    assert failures == {"organization_not_found"}


def test_a_project_is_narrowed_shown_and_widened(operator: Operator, project: str) -> None:
    models = ("--model", "example/model-a", "--model", "example/model-b")
    narrowed = operator.json("project", "edit", project, *models)
    table = operator.run("project", "show", project).stdout
    widened = operator.json("project", "edit", project, "--clear", "model")

    assert narrowed["allowed_models"] == ["example/model-a", "example/model-b"]
    assert "example/model-a, example/model-b" in table
    assert widened["allowed_models"] is None
    widening, narrowing = last_entries(operator, 2)
    assert narrowing["action"] == widening["action"] == "project.edit"
    assert narrowing["changes"] == [
        {"field": "allowed_models", "before": None, "after": narrowed["allowed_models"]}
    ]
