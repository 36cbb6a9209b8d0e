"""A deployment for each setup, which all its faults are done to in turn."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.availability.deployment import Deployment, running_deployment
from tests.availability.setups import SETUPS

READABLE = 0o755


@pytest.fixture(scope="session")
def machines_folder() -> Iterator[Path]:
    """A folder outside pytest's own, into which the server's account cannot look."""
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-availability-"))
    folder.chmod(READABLE)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest_asyncio.fixture(loop_scope="session", scope="session", params=list(SETUPS))
async def deployment(
    request: pytest.FixtureRequest, machines_folder: Path
) -> AsyncIterator[Deployment]:
    folder = machines_folder / request.param
    folder.mkdir()
    async with running_deployment(request.param, folder) as running:
        yield running
