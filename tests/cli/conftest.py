"""Deployments to operate on."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import OWN_PROCESS, Operator, environment, free_port, install
from tests.cli.forking import forking
from tests.support import databases
from tests.support.judge import ScriptedJudge, running_judge
from tollhouse.cli.deployment.configuration_file import put_in_place, write_draft
from tollhouse.cli.main import COMMANDS
from tollhouse.cli.trial.folder import TrialFolder
from tollhouse.settings import load


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A directory that holds the `tollhouse` command."""
    directory = tmp_path_factory.mktemp("tools")
    install(directory)
    verbs = COMMANDS.keys() - OWN_PROCESS
    with forking(directory / "tollhouse", verbs, environment(directory)):
        yield directory


@pytest.fixture
def newcomer(tools: Path, tmp_path: Path) -> Operator:
    """Somebody in an empty directory."""
    return Operator(tmp_path, environment(tools))


def without_demo(directory: Path, variables: dict[str, str]) -> Operator:
    """Somebody who has not installed the extra `demo`: it is found first, and missing."""
    shadow = directory.with_name(f"{directory.name}-shadow")
    shadow.mkdir()
    (shadow / "xllamacpp.py").write_text("raise ModuleNotFoundError('xllamacpp')\n")
    return Operator(
        directory,
        variables
        | {
            "PYTHONPATH": f"{shadow}:{variables['PYTHONPATH']}",
            # Others try it at the same time.
            "TOLLHOUSE_SERVER__PORT": str(free_port()),
            "TOLLHOUSE_SERVER__PROBE_PORT": str(free_port()),
        },
    )


@pytest.fixture
def curious(tools: Path, tmp_path: Path) -> Generator[Operator]:
    """Somebody who tries it with the scripted engine, and leaves nothing behind."""
    operator = without_demo(tmp_path, environment(tools))
    yield operator
    if TrialFolder(operator.settings_path).path.exists():
        operator.run("reset", "--yes")


@pytest.fixture(scope="module")
def trial(
    tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Operator, dict[str, Any]]]:
    """A trial that is up, and what was said when it was made."""
    operator = without_demo(tmp_path_factory.mktemp("trial"), environment(tools))
    made = operator.json("up")
    operator.secrets.extend(made["keys"].values())
    yield operator, made
    operator.run("reset", "--yes")


def keys_of(made: dict[str, Any]) -> dict[str, str]:
    return {
        "TOLLHOUSE_URL": made["base_url"],
        "TOLLHOUSE_ADMIN_KEY": made["keys"]["admin_key"],
        "TOLLHOUSE_PROJECT_KEY": made["keys"]["project_key"],
    }


@pytest.fixture
def fresh_url() -> Generator[str, None, None]:
    """The address of a database that does not exist yet."""
    name = databases.fresh_name()
    yield databases.url_of(name)
    asyncio.run(databases.drop(name))


@pytest.fixture(scope="module")
def operator(
    migrated_template: str, tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Operator, None, None]:
    """The operator of a deployment without organizations, for all tests of a module."""
    name = databases.fresh_name()
    asyncio.run(databases.create(name, template=migrated_template))
    yield deployed(
        databases.url_of(name), tmp_path_factory.mktemp("deployment"), environment(tools)
    )
    asyncio.run(databases.drop(name))


@pytest.fixture
def patient(database_url: str, tools: Path, tmp_path: Path) -> Operator:
    """The operator of a deployment that the test may ruin."""
    return deployed(database_url, tmp_path, environment(tools))


def deployed(database_url: str, directory: Path, variables: dict[str, str]) -> Operator:
    """As `tollhouse init` leaves it, but without organizations, and on whatever ports are free."""
    path = directory / "tollhouse.toml"
    write_draft(path, database_url=database_url)
    put_in_place(path, force=False)
    secrets = load(path, environment={}).secrets
    server = {"PORT": "0", "PROBE_PORT": "0", "WORKERS": "1"}
    overlay = {f"TOLLHOUSE_SERVER__{name}": value for name, value in server.items()}
    return Operator(directory, variables | overlay, [secrets.master])


@pytest.fixture
async def judge(patient: Operator) -> AsyncGenerator[ScriptedJudge]:
    """The deployment's judge, named in its configuration."""
    async with running_judge(ScriptedJudge()) as running:
        with patient.settings_path.open("a", encoding="utf-8") as file:
            file.write(
                f'\n[backends.judge]\nreplicas = ["{running.base_url}"]\n'
                '[judge]\nbackend = "judge"\nmodel = "scripted"\ncontext_length = 8192\n'
            )
        yield running
