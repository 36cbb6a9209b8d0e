"""`tollhouse init`. What it prints for people is pasted where the README is followed."""

import asyncio
import secrets
import stat
from collections.abc import Generator

import pytest

from tests.cli.commands import Operator, call, execute, free_port, remember_secrets
from tests.support import databases
from tollhouse.cli.deployment.provisioning import CreationRefused
from tollhouse.settings import load
from tollhouse.storage import revisions


def test_init_as_json_has_all_of_it_and_never_replaces_a_file_unasked(
    newcomer: Operator, fresh_url: str
) -> None:
    made = newcomer.json(
        "init", "--database-url", fresh_url, "--organization", "Example", "--project", "search"
    )
    remember_secrets(newcomer, made["admin_key"]["value"], made["project_key"]["value"])
    written = newcomer.settings_path.read_text()

    refused = newcomer.failure_code("init", "--database-url", fresh_url)
    forced = newcomer.failure_code("init", "--database-url", fresh_url, "--force")

    assert stat.S_IMODE(newcomer.settings_path.stat().st_mode) == 0o600
    assert made["config"] == str(newcomer.settings_path)
    assert made["database_created"] is True
    assert made["revisions_applied"] == list(revisions.known())
    assert made["organization"]["name"] == "Example"
    assert made["project"]["name"] == "search"
    assert made["project_key"]["owner"]["id"] == made["project"]["id"]
    assert (made["credit"]["kind"], made["credit"]["amount"]["value"]) == ("sandbox", "10")
    assert newcomer.json("credits", "show")["available"]["value"] == "10"
    assert made["first_steps"]["serve"] == "tollhouse serve"
    assert refused == "configuration_exists"
    assert forced == "database_taken"
    assert newcomer.settings_path.read_text() == written


def test_errors_link_to_the_address_that_clients_use(newcomer: Operator, fresh_url: str) -> None:
    config = ("--config", str(newcomer.settings_path))
    address = "https://gateway.example/llm"

    call(*config, "init", "--database-url", fresh_url, "--public-url", address)

    settings = load(newcomer.settings_path, environment={})
    assert settings.server.public_url == address
    assert settings.documentation_url == f"{address}/docs/errors"


def test_without_an_address_for_clients_it_is_this_machines(
    newcomer: Operator, fresh_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOLLHOUSE_SERVER__PORT", "9123")

    call("--config", str(newcomer.settings_path), "init", "--database-url", fresh_url)

    settings = load(newcomer.settings_path, environment={})
    assert (settings.server.port, settings.server.public_url) == (8080, "http://127.0.0.1:9123")


def test_force_replaces_the_file_when_the_database_is_another(
    newcomer: Operator, fresh_url: str
) -> None:
    newcomer.settings_path.write_text("# something precious\n")

    config = ("--config", str(newcomer.settings_path))
    call(*config, "init", "--database-url", fresh_url, "--force")

    assert load(newcomer.settings_path, environment={}).database.url == fresh_url
    assert [path.name for path in newcomer.directory.iterdir()] == ["tollhouse.toml"]


async def refuse_project_keys(url: str) -> None:
    await execute(url, "ALTER TABLE project_keys ADD CONSTRAINT refused CHECK (false) NOT VALID")


async def allow_project_keys(url: str) -> None:
    await execute(url, "ALTER TABLE project_keys DROP CONSTRAINT refused")


def test_an_interrupted_init_goes_on(newcomer: Operator, database_url: str) -> None:
    asyncio.run(refuse_project_keys(database_url))
    newcomer.run("init", "--database-url", database_url, exit_code=1)
    assert not newcomer.settings_path.exists()
    asyncio.run(allow_project_keys(database_url))

    made = newcomer.json("init", "--database-url", database_url)

    remember_secrets(newcomer, made["admin_key"]["value"], made["project_key"]["value"])
    assert [path.name for path in newcomer.directory.iterdir()] == ["tollhouse.toml"]
    done = [entry["action"] for entry in newcomer.json("audit")["data"]]
    assert sorted(done) == [
        # Both tries made one, and only the second could show it.
        "admin_api_key.create",
        "admin_api_key.create",
        "credit.grant",
        "organization.create",
        "project.create",
        "project_api_key.create",
    ]


def test_an_unreachable_server_is_explained_and_leaves_nothing(newcomer: Operator) -> None:
    url = f"postgresql://somebody:a-password@127.0.0.1:{free_port()}/tollhouse"
    newcomer.secrets.append("a-password")

    refused = newcomer.run("init", "--database-url", url, exit_code=1)

    assert "cannot be reached" in refused.stderr
    assert "Start it, or correct database.url" in refused.stderr
    assert list(newcomer.directory.iterdir()) == []


def test_a_malformed_address_is_refused_without_a_word_of_it(newcomer: Operator) -> None:
    """The driver would take the password for a port, and repeat it."""
    newcomer.secrets.append("a-password")

    refused = newcomer.run(
        "init", "--database-url", "postgresql://somebody:a-password/2@127.0.0.1/x", exit_code=1
    )

    assert refused.stderr.startswith("Error: database.url: not of the form")
    assert list(newcomer.directory.iterdir()) == []


@pytest.fixture
def powerless_url(fresh_url: str) -> Generator[str, None, None]:
    """As a role that may log in and nothing else."""
    role = f"tollhouse_test_{secrets.token_hex(6)}"
    create = f"CREATE ROLE {role} LOGIN PASSWORD 'a-password'"
    asyncio.run(execute(databases.MAINTENANCE_URL, create))
    yield fresh_url.replace("//root@", f"//{role}:a-password@")
    asyncio.run(execute(databases.MAINTENANCE_URL, f"DROP ROLE {role}"))


def test_a_role_that_may_not_create_databases_is_told_what_to_ask_for(
    newcomer: Operator, powerless_url: str
) -> None:
    with pytest.raises(CreationRefused, match="CREATE DATABASE"):
        call("--config", str(newcomer.settings_path), "init", "--database-url", powerless_url)
