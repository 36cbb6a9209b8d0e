"""`tollhouse limits`, and the guide to it, followed to its end."""

from uuid import uuid4

import pytest

from tests.cli.commands import Operator, new_project, refusal
from tests.cli.documents import read, scripts
from tests.cli.test_readme import json_documents
from tests.support.redis_server import running_redis


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    return new_project(operator)


def test_a_limit_is_set_shown_and_cleared(operator: Operator, project: str) -> None:
    place = ("--project", project)

    made = operator.json("limits", "set", "--requests", "60", "--concurrent", "5", *place)
    own = operator.json("limits", "set", "--tokens", "1000", "--own", *place)

    assert (made["owner"], own["owner"]) == ("operator", "organization")
    assert (made["scope"], made["project_id"]) == ("project", project)
    assert (made["requests_per_minute"], made["tokens_per_minute"]) == (60, None)
    assert operator.json("limits", "show")["data"] == [made, own]
    assert made["id"] in operator.run("limits", "show").stdout
    assert operator.json("limits", "clear", *place)["deleted"] is True
    assert operator.failure_code("limits", "clear", *place) == "rate_limit_not_found"
    assert operator.json("limits", "clear", "--own", *place)["id"] == own["id"]
    unknown = ("limits", "set", "--requests", "5", "--key", str(uuid4()))
    assert operator.failure_code(*unknown) == "api_key_not_found"


def test_what_is_no_limit_is_a_usage_error(operator: Operator, project: str) -> None:
    config = ("--config", str(operator.settings_path), "limits", "set")

    assert "at least one" in refusal(*config)
    assert "not in the range" in refusal(*config, "--requests", "0")
    both = ("--requests", "1", "--project", project, "--key", project)
    assert "not both" in refusal(*config, *both)


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    set_limits, manage, clear, doctor = scripts(read("docs/guides/limits.md"))
    project = new_project(patient)
    key = patient.created("key", "create", "--project", project, "batch jobs")
    admin = patient.created("admin-key", "create", "platform")
    patient.environment.update({"PROJECT_ID": project, "KEY_ID": key["id"]})

    with running_redis() as server:
        patient.environment["TOLLHOUSE_REDIS__URL"] = server.url
        limits = patient.bash(set_limits).stdout
        with patient.serving() as service:
            address = service.announced.split("is ready on ")[1].split()[0].strip(",.")
            answered = patient.bash(
                manage, {"TOLLHOUSE_URL": address, "TOLLHOUSE_ADMIN_KEY": admin["value"]}
            ).stdout
        cleared = patient.bash(clear).stdout
        examined = patient.bash(doctor).stdout

    assert f"project:{project}:operator" in limits
    assert f"api_key:{key['id']}:operator" in limits
    own, listed = json_documents(answered)
    assert (own["owner"], own["requests_per_minute"]) == ("organization", 300)
    assert len(listed["data"]) == 4
    assert cleared.count("yes") == 2
    assert "eviction policy noeviction" in " ".join(examined.split())
