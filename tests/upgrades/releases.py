"""The working tree and a release that comes after it, as an operator runs both."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.engine import COMMAND
from tests.support.processes import REPOSITORY, Service, running_configuration
from tollhouse.storage import revisions


@dataclass(frozen=True, kw_only=True)
class Finished:
    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """A tree with the package in it."""

    name: str
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.source)}

    async def run(self, configuration: Path, *arguments: str) -> Finished:
        """Run the release's command."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", COMMAND, "--config", str(configuration), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
        )
        stdout, stderr = await process.communicate()
        assert process.returncode is not None
        return Finished(
            exit_code=process.returncode, stdout=stdout.decode(), stderr=stderr.decode()
        )

    async def json(self, configuration: Path, *arguments: str) -> Any:  # noqa: ANN401 - JSON
        """The document that a command prints; it has to succeed."""
        finished = await self.run(configuration, *arguments, "--json")
        assert finished.exit_code == 0, finished
        return json.loads(finished.stdout)

    @asynccontextmanager
    async def serving(self, configuration: Path, name: str) -> AsyncGenerator[Service]:
        """Yield a supervisor with one worker, once it is ready."""
        log_path = configuration.parent / f"{name}.jsonl"
        async with running_configuration(
            configuration, log_path, environment=self.environment
        ) as service:
            yield service


WORKING_TREE = Release(name="old", source=REPOSITORY / "src")


NEXT = "9001"
_EXPAND = """
ALTER TABLE projects ADD COLUMN colour text;
CREATE TABLE rehearsals (name text PRIMARY KEY);
"""
_CONTRACT = """
ALTER TABLE projects ADD CONSTRAINT projects_colour_check CHECK (colour <> '');
"""
_REVISION = '''"""A rehearsal: a column with a bound, a table, and a function."""

from tollhouse.storage.migrate import run_step

revision = "9001"
down_revision = "{before}"


def upgrade() -> None:
    """Run the text of the step."""
    run_step(expand="9001_expand.sql", contract="9001_contract.sql")
'''
_FUNCTION = """
CREATE OR REPLACE FUNCTION rehearsed() RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
"""


def next_release(folder: Path) -> Release:
    """Copy the working tree, and add a revision with both steps and the schema that it makes."""
    package = folder / "src" / "tollhouse"
    ignored = shutil.ignore_patterns("__pycache__", "static")
    shutil.copytree(REPOSITORY / "src" / "tollhouse", package, ignore=ignored)
    versions, schema = package / "storage/migrations/versions", package / "storage/schema"
    (versions / "9001_rehearsal.py").write_text(_REVISION.format(before=revisions.head()))
    (versions / "9001_expand.sql").write_text(_EXPAND)
    (versions / "9001_contract.sql").write_text(_CONTRACT)
    (schema / "functions" / "rehearsal.sql").write_text(_FUNCTION)
    projects = schema / "tables" / "01_organizations.sql"
    last = "    allowed_models  text[],\n    PRIMARY KEY"
    added = "    colour          text CHECK (colour <> ''),\n    PRIMARY KEY"
    projects.write_text(projects.read_text().replace(last, last.replace("    PRIMARY KEY", added)))
    (schema / "tables" / "99_rehearsals.sql").write_text(
        "CREATE TABLE rehearsals (name text PRIMARY KEY);\n"
    )
    return Release(name="next", source=folder / "src")
