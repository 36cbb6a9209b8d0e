"""A deployment for each setup, which all its faults are done to in turn."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.availability.deployment import Deployment, running_deployment
from tests.availability.patroni import MACHINES
from tests.availability.setups import SETUPS

READABLE = 0o755


def _readable(prefix: str, within: Path | None = None) -> Path:
    """Make a folder that the server's account can read."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    folder.chmod(READABLE)
    return folder


@pytest.fixture(scope="session")
def machines_folder() -> Iterator[Path]:
    """A folder outside pytest's own, into which the server's account cannot look."""
    folder = _readable("tollhouse-availability-")
    yield folder
    if (kept := os.environ.get("TOLLHOUSE_AVAILABILITY_LOGS")) is not None:
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns(*MACHINES), dirs_exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="session", scope="session", params=list(SETUPS))
async def deployment(
    request: pytest.FixtureRequest, machines_folder: Path
) -> AsyncIterator[Deployment]:
    folder = _readable(request.param, machines_folder)
    async with running_deployment(request.param, folder) as running:
        yield running
