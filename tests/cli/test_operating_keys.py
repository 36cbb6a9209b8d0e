"""The guide to keys, followed step by step on a running service."""

import pytest

from tests.cli.commands import Operator, Server, new_project, remember_secrets
from tests.cli.documents import read, scripts
from tollhouse.settings import load

RELOAD = 'kill -HUP "$TOLLHOUSE_PID"\n'


def follow(operator: Operator, server: Server, script: str) -> str:
    printed = operator.bash(script).stdout
    if script == RELOAD:
        server.wait_for("reloaded")
    return printed


@pytest.mark.nightly
@pytest.mark.clock
def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    listing, create, rotate, end_previous, pause, revoke, narrow, replace, *_ = scripts(
        read("docs/guides/operating-keys.md")
    )
    project = new_project(patient)
    patient.environment["PROJECT_ID"] = project

    with patient.serving() as server:
        patient.environment["TOLLHOUSE_PID"] = str(server.process.pid)
        assert project in follow(patient, server, listing)
        assert "example-model" in follow(patient, server, create)
        (key,) = patient.json("key", "list", "--project", project)["data"]
        patient.environment["KEY_ID"] = key["id"]
        assert "shown only now" in follow(patient, server, rotate)
        assert "previous_value_expires_at   -" in follow(patient, server, end_previous)
        assert "suspended" in follow(patient, server, pause)
        assert follow(patient, server, revoke).count("revoked") == 2
        wide = patient.created("admin-key", "create", "wide")
        patient.environment["ADMIN_KEY_ID"] = wide["id"]
        assert "billing:read, projects:read" in follow(patient, server, narrow)
        assert "tha_" in follow(patient, server, replace)


@pytest.mark.nightly
@pytest.mark.clock
def test_the_master_secret_is_rotated_on_a_running_service(patient: Operator) -> None:
    _, _, section = read("docs/guides/operating-keys.md").partition("## Rotate the master secret\n")
    rotate, reload, status, remove, reload_again, last = scripts(section.partition("\n## ")[0])
    before = load(patient.settings_path, {}).secrets.master

    with patient.serving() as server:
        patient.environment["TOLLHOUSE_PID"] = str(server.process.pid)
        follow(patient, server, rotate)
        remember_secrets(patient)
        assert load(patient.settings_path, {}).secrets.previous_masters == [before]
        follow(patient, server, reload)
        assert [row[1:4] for row in rows_of(follow(patient, server, status))[:2]] == [
            ["current", "yes", "0"],
            ["previous", "no", "0"],
        ]
        follow(patient, server, remove)
        follow(patient, server, reload_again)
        found = follow(patient, server, last)
    assert found.count("current") == 1
    assert "previous" not in found
    assert "failure" not in found
    assert "warning" not in found


def rows_of(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()[1:]]
