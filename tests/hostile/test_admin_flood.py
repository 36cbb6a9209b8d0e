"""One organization's Admin key does not hold up another organization's inference."""

from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection

import msgspec
import pytest
import pytest_asyncio

from tests.hostile.customers import NO_CREDIT
from tests.hostile.deployment import Deployment
from tests.hostile.flood import flood
from tests.storage.processes import next_word, running
from tests.support import seeds

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock]

CONNECTIONS = 60
KINDS = {
    "reports": ("reports",),
    "limits": ("limits",),
    "projects": ("projects",),
    "all": ("reports", "limits", "projects"),
}
ANSWERS = {"200", "201", "409", "422", "429", "503"}


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def flooder(deployment: Deployment) -> AsyncIterator[Connection]:
    async with running(flood, deployment.address, CONNECTIONS) as (_, line):
        yield line


@pytest.mark.guarantee("T46")
@pytest.mark.parametrize("name", seeds.partly_nightly(KINDS, at_landings=1))
async def test_a_flood_of_admin_requests_is_bounded(
    deployment: Deployment,
    flooder: Connection,
    name: str,
    record_property: Callable[[str, object], None],
) -> None:
    customer = await deployment.customer(credit=NO_CREDIT)

    async with deployment.attacked(record_property, budget_bytes=0) as measuring:
        flooder.send((customer.admin_key, KINDS[name]))
        await measuring
        flooder.send("stop")
        statuses = msgspec.convert(await next_word(flooder), dict[str, int])

    record_property("statuses", statuses)
    assert set(statuses) <= ANSWERS
    assert statuses.get("200", 0) + statuses.get("201", 0) > 0
    await customer.assert_settled([])
