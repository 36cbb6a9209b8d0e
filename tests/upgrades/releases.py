"""The previous release, taken from the history, and the working tree, as an operator runs both."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import COMMAND
from tests.support.processes import REPOSITORY, Service, running_configuration

PREVIOUS_SUBJECT = "Prepare version 0.2.0"


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


WORKING_TREE = Release(name="new", source=REPOSITORY / "src")


def previous_release(folder: Path) -> Release:
    """Export the previous release's source. Fails the test if the history does not reach it."""
    commit = _git("log", "--format=%H", f"--grep=^{PREVIOUS_SUBJECT}$").decode().split()
    if len(commit) != 1:
        pytest.fail(
            f"{len(commit)} commits are called '{PREVIOUS_SUBJECT}' in the history of this "
            "checkout, and the upgrade is tested from exactly one. In a shallow clone run "
            "`git fetch --unshallow` first."
        )
    archive = folder / "previous.tar"
    archive.write_bytes(_git("archive", commit[0], "src"))
    subprocess.run(
        ["tar", "-x", "-f", str(archive), "-C", str(folder)],  # noqa: S607 - found by the PATH
        check=True,
    )
    return Release(name="old", source=folder / "src")


def _git(*arguments: str) -> bytes:
    ended = subprocess.run(
        ["git", "-C", str(REPOSITORY), *arguments],  # noqa: S607 - found by the PATH
        check=False,
        capture_output=True,
    )
    if ended.returncode:
        pytest.fail(f"the previous release cannot be read: {ended.stderr.decode()}")
    return ended.stdout
