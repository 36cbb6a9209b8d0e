"""Every import contract is shown to catch the import that it forbids, in a copy of the package."""

import configparser
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / ".importlinter"
SECTION = "importlinter:contract:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plant:
    """A line that must not be there, and how the contract names its place."""

    contract: str
    module: str
    line: str
    named: str

    def __str__(self) -> str:
        return f"{self.contract}: {self.line} in {self.module}"


LIBRARIES = {
    "driver": "asyncpg",
    "redis": "redis",
    "server": "uvicorn",
    "ciphers": "cryptography",
    "upstreams": "httptools",
    "tracing": "opentelemetry",
    "parquet": "pyarrow",
}
ELSEWHERE = ("admin", "inference.responses", "policies")
"""The first package does not exist."""
PLANTS = [
    *(
        Plant(
            contract=contract,
            module=f"{place.replace('.', '/')}/planted.py",
            line=f"import {library}",
            named=f"tollhouse.{place}.planted -> {library}",
        )
        for contract, library in LIBRARIES.items()
        for place in ELSEWHERE
    ),
    *(
        Plant(
            contract="pure",
            module=f"{place.replace('.', '/')}/{module}.py",
            line="import socket",
            named=f"tollhouse.{place}.{module} -> socket",
        )
        for place, module in (("admin.projects", "rules"), ("inference.responses", "types"))
    ),
    Plant(
        contract="stores",
        module="admin/projects/store.py",
        line="",
        named="tollhouse.api.reading_admin -> tollhouse.admin.projects.store",
    ),
    Plant(
        contract="stores",
        module="api/reading_admin.py",
        line="import tollhouse.admin.projects.store",
        named="tollhouse.api.reading_admin -> tollhouse.admin.projects.store",
    ),
    Plant(
        contract="parquet",
        module="reports/planted.py",
        line="import pyarrow",
        named="tollhouse.reports.planted -> pyarrow",
    ),
    Plant(
        contract="layers",
        module="base/planted.py",
        line="import tollhouse.contract",
        named="tollhouse.base.planted -> tollhouse.contract",
    ),
    Plant(
        contract="layers",
        module="projects/planted.py",
        line="import tollhouse.organizations.types",
        named="tollhouse.projects.planted -> tollhouse.organizations.types",
    ),
    Plant(
        contract="layers",
        module="api/planted.py",
        line="from tollhouse import serving",
        named="tollhouse.api.planted -> tollhouse.serving",
    ),
    Plant(contract="layers", module="helpers/planted.py", line="", named="- tollhouse.helpers"),
    Plant(
        contract="package",
        module="projects/rules.py",
        line="import tollhouse.projects.store",
        named="tollhouse.projects.rules -> tollhouse.projects.store",
    ),
    Plant(
        contract="package",
        module="projects/types.py",
        line="import tollhouse.projects.errors",
        named="tollhouse.projects.types -> tollhouse.projects.errors",
    ),
    Plant(
        contract="pure",
        module="projects/rules.py",
        line="import asyncio",
        named="tollhouse.projects.rules -> asyncio",
    ),
    Plant(
        contract="pure",
        module="projects/types.py",
        line="import tollhouse.base.clock",
        named="tollhouse.base.clock -> time",
    ),
    Plant(
        contract="stores",
        module="api/planted.py",
        line="import tollhouse.projects.store",
        named="tollhouse.api.planted -> tollhouse.projects.store",
    ),
    Plant(
        contract="evaluation",
        module="api/planted.py",
        line="import tollhouse.evaluation.judge.client",
        named="tollhouse.api.planted -> tollhouse.evaluation.judge.client",
    ),
    Plant(
        contract="settings",
        module="projects/planted.py",
        line="from tollhouse.settings import Settings",
        named="tollhouse.projects.planted -> tollhouse.settings",
    ),
    Plant(
        contract="driver",
        module="projects/planted.py",
        line="from asyncpg import Record",
        named="tollhouse.projects.planted -> asyncpg",
    ),
    Plant(
        contract="driver",
        module="serving/planted.py",
        line="def later():\n    import sqlalchemy.orm",
        named="tollhouse.serving.planted -> sqlalchemy",
    ),
    Plant(
        contract="redis",
        module="api/planted.py",
        line="from redis.asyncio import Redis",
        named="tollhouse.api.planted -> redis",
    ),
    Plant(
        contract="server",
        module="api/planted.py",
        line="import uvicorn.config",
        named="tollhouse.api.planted -> uvicorn",
    ),
    Plant(
        contract="ciphers",
        module="api/planted.py",
        line="from cryptography.fernet import Fernet",
        named="tollhouse.api.planted -> cryptography",
    ),
    Plant(
        contract="upstreams",
        module="api/planted.py",
        line="from httptools import HttpResponseParser",
        named="tollhouse.api.planted -> httptools",
    ),
    Plant(
        contract="tracing",
        module="activity/planted.py",
        line="from opentelemetry import trace",
        named="tollhouse.activity.planted -> opentelemetry",
    ),
    Plant(
        contract="trial",
        module="trial/planted.py",
        line="import tollhouse.backends.types",
        named="tollhouse.trial.planted -> tollhouse.backends.types",
    ),
    Plant(
        contract="acyclic",
        module="base/planted.py",
        line="import tollhouse.contract",
        named="- .base -> .contract",
    ),
]


def contract_names() -> dict[str, str]:
    parser = configparser.ConfigParser()
    parser.read(CONTRACTS, encoding="utf-8")
    sections = [section for section in parser.sections() if section.startswith(SECTION)]
    return {section.removeprefix(SECTION): parser[section]["name"] for section in sections}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the contracts say of a copy of the package with all that was planted."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "tollhouse"
    shutil.copytree(ROOT / "src" / "tollhouse", package, ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(CONTRACTS, folder)
    for plant in PLANTS:
        module = package / plant.module
        module.parent.mkdir(parents=True, exist_ok=True)
        for above in module.relative_to(package).parents:
            (package / above / "__init__.py").touch()
        with module.open("a", encoding="utf-8") as file:
            file.write(f"\n{plant.line}\n")
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_the_contract_catches_a_planted_import(plant: Plant, report: str) -> None:
    name = contract_names()[plant.contract]

    assert f"{name} BROKEN" in report
    _, _, section = report.partition(f"\n{name}\n{'-' * len(name)}\n")
    assert plant.named in section.partition("\n---")[0]


def test_every_contract_has_a_planted_import() -> None:
    assert {plant.contract for plant in PLANTS} == set(contract_names())
