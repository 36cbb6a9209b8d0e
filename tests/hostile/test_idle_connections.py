"""Connections on which nothing happens are closed in time, and nobody else notices."""

import asyncio
from collections.abc import Callable

import pytest

from tests.hostile.clients import Caller, cut_seconds
from tests.hostile.deployment import SERVER, SLACK_SECONDS, Deployment

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.clock, pytest.mark.nightly]

CONNECTIONS = 300
CONNECTING_AT_ONCE = 20
UNKNOWN = b"OPTIONS /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n"


@pytest.mark.parametrize(
    ("is_served_once", "seconds_max"),
    [(False, SERVER["header_seconds"]), (True, SERVER["keep_alive_seconds"])],
    ids=["that never spoke", "that were served once"],
)
async def test_idle_connections_are_closed(
    deployment: Deployment,
    is_served_once: bool,
    seconds_max: float,
    record_property: Callable[[str, object], None],
) -> None:
    connecting = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def open_idle() -> Caller:
        async with connecting:
            caller = await Caller.connect(deployment.address)
            if is_served_once:
                await caller.send(UNKNOWN)
                await caller.read_to_end()
            return caller

    async with deployment.attacked(record_property, budget_bytes=0):
        callers = await asyncio.gather(*(open_idle() for _ in range(CONNECTIONS)))
        bound = seconds_max + SLACK_SECONDS
        cuts = await cut_seconds(deployment.port, callers, at_most=bound)
    for caller in callers:
        caller.close()

    assert all(seconds is not None and seconds <= bound for seconds in cuts.values())
