"""One deployment for all attacks: they keep apart by organization, as customers do."""

import resource
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.hostile.deployment import Deployment, running_deployment

DESCRIPTORS = 20_000


@pytest.fixture(scope="session", autouse=True)
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def deployment(
    migrated_template: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Deployment]:
    folder = tmp_path_factory.mktemp("hostile")
    async with running_deployment(migrated_template, folder) as running:
        yield running
