"""`tollhouse key` and `tollhouse admin-key`. The guide to keys shows the tables of the former."""

import json
import time
from datetime import timedelta
from uuid import UUID, uuid4

import httpx2
import pytest

from tests.cli.commands import SECONDS_MAX, Operator, call, new_project, refusal
from tests.support.wrong_clocks import wrong_clock
from tollhouse.base.ids import minted_at

NARROW = (
    *("--permission", "models:read", "--model", "a", "--model", "b", "--expires-in-days", "2"),
    *("--cap", "25", "--cap-period", "day"),
)


@pytest.fixture(scope="module")
def project(operator: Operator) -> str:
    return new_project(operator)


def test_a_key_lives_from_creation_to_revocation(operator: Operator, project: str) -> None:
    created = operator.created("key", "create", "--project", project, "production", *NARROW)
    made = created["id"]
    shown = {name: value for name, value in created.items() if name != "value"}

    assert created["value"].startswith("thp_")
    assert created["status"] == "active"
    assert created["permissions"] == ["models:read"]
    assert created["allowed_models"] == ["a", "b"]
    assert created["expires_at"] - created["created_at"] == 2 * 86_400
    assert shown in operator.json("key", "list", "--project", project)["data"]
    assert operator.json("key", "show", made) == shown
    rotated = operator.created("key", "rotate", made, "--overlap-seconds", "60")
    assert rotated["id"] == made
    assert rotated["value"] != created["value"]
    assert rotated["previous_value_expires_at"] is not None
    assert operator.json("key", "end-previous", made)["previous_value_expires_at"] is None
    (cap,) = [cap for cap in operator.json("caps", "show")["data"] if cap["api_key_id"] == made]
    assert (cap["limit"]["value"], cap["period"]) == ("25", "day")
    assert operator.json("key", "suspend", made)["status"] == "suspended"
    assert operator.json("key", "resume", made)["status"] == "active"
    assert operator.json("key", "revoke", made, "--yes")["status"] == "revoked"
    assert operator.failure_code("key", "suspend", made) == "api_key_state_conflict"


@pytest.mark.guarantee("T8")
@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_of_the_operator_changes_no_time_of_a_key(
    operator: Operator, project: str, hours: int
) -> None:
    create = ["key", "create", "--project", project, "production", "--expires-in-days", "1"]
    began = int(time.time())

    finished = operator.shell(
        [operator.tollhouse, *create, "--json"], wrong_clock(timedelta(hours=hours))
    )

    created = json.loads(finished.stdout)
    at = minted_at(UUID(created["id"]))
    assert at is not None
    assert began <= created["created_at"] <= time.time()
    assert abs(at.timestamp() - created["created_at"]) < 60
    assert created["expires_at"] - created["created_at"] == 86_400
    assert created["status"] == "active"


def test_a_key_of_an_archived_project_is_not_made(patient: Operator) -> None:
    project = new_project(patient)
    call("--config", str(patient.settings_path), "project", "archive", project, "--yes")

    assert patient.failure_code("key", "create", "--project", project, "x") == "project_archived"


@pytest.mark.usefixtures("project")
def test_an_unknown_key_is_a_failure(operator: Operator) -> None:
    assert operator.failure_code("key", "show", str(uuid4())) == "api_key_not_found"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--permission", "policies:write"),
        ("--expires-in-days", "0"),
        ("--model", ""),
        tuple(word for number in range(101) for word in ("--model", f"model-{number}")),
    ],
)
def test_an_option_out_of_bounds_is_refused(arguments: tuple[str, ...]) -> None:
    assert refusal("key", "create", "--project", str(uuid4()), "x", *arguments)


@pytest.mark.usefixtures("project")
def test_an_admin_key_lives_from_creation_to_revocation(operator: Operator) -> None:
    finance = ("finance", "--permission", "billing:read", "--expires-in-days", "1")
    created = operator.created("admin-key", "create", *finance)
    shown = {name: value for name, value in created.items() if name != "value"}

    assert created["value"].startswith("tha_")
    assert created["permissions"] == ["billing:read"]
    assert created["expires_at"] - created["created_at"] == 86_400
    assert operator.json("admin-key", "list")["data"] == [shown]
    assert operator.json("admin-key", "revoke", created["id"], "--yes")["deleted"] is True
    assert operator.json("admin-key", "list")["data"] == []


@pytest.mark.usefixtures("project")
def test_every_verb_on_admin_keys_has_a_table(operator: Operator) -> None:
    created = operator.run("admin-key", "create", "everything").stdout
    fields = dict(line.split(maxsplit=1) for line in created.splitlines())
    operator.secrets.append(fields["value"])

    assert "admin_api_keys:create" in fields["permissions"]
    assert "shown only now" in created
    assert fields["id"] in operator.run("admin-key", "list").stdout
    assert fields["id"] in operator.run("admin-key", "revoke", fields["id"], "--yes").stdout


def test_the_command_line_makes_an_admin_key_when_all_are_revoked(patient: Operator) -> None:
    new_project(patient)
    patient.created("admin-key", "create", "everything")
    revoker = patient.created(
        "admin-key", "create", "cleaner", "--permission", "admin_api_keys:revoke"
    )

    with patient.serving() as server:
        url = server.announced.split()[4].rstrip(",")
        for key in patient.json("admin-key", "list")["data"]:
            if key["id"] != revoker["id"]:
                assert revoke_over_http(url, revoker["value"], key["id"]) == 200
        assert revoke_over_http(url, revoker["value"], revoker["id"]) == 200
        assert patient.json("admin-key", "list")["data"] == []
        replacement = patient.created("admin-key", "create", "replacement")
        assert revoke_over_http(url, replacement["value"], replacement["id"]) == 200


def revoke_over_http(url: str, admin_key: str, revoked_id: str) -> int:
    """The status of a revocation that one Admin key asks for."""
    path = f"{url}/v1/organization/admin_api_keys/{revoked_id}"
    headers = {"authorization": f"Bearer {admin_key}"}
    return httpx2.delete(path, headers=headers, trust_env=False, timeout=SECONDS_MAX).status_code


@pytest.mark.usefixtures("project")
def test_a_key_that_may_revoke_admin_keys_comes_with_a_warning(operator: Operator) -> None:
    made = operator.run("admin-key", "create", "x", "--permission", "admin_api_keys:revoke")
    fields = dict(line.split(maxsplit=1) for line in made.stdout.splitlines())
    operator.secrets.append(fields["value"])

    assert "can revoke every other Admin key" in made.stdout
