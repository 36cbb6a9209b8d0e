"""A gateway in front of a cluster, and one round of traffic with a fault in it."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.availability.faults import FAULTS
from tests.availability.patroni import PatroniCluster, PrimaryWatch, Promotion, running_patroni
from tests.availability.results import Round
from tests.availability.serving import ServedDatabase, serving
from tests.availability.setups import SETUPS
from tests.availability.traffic import outages, statuses, steady_traffic
from tests.hostile.customers import new_customer
from tests.support.deployment import MODEL

SERVED_BEFORE = 25
SERVED_AFTER = 25
NOTICED_SECONDS_MAX = 5.0
"""A promotion may be noticed so much later than the callers notice it."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """Everything that a round needs."""

    setup: str
    cluster: PatroniCluster
    gateway: ServedDatabase

    async def describe(self) -> list[str]:
        """What the servers say, and which of them the test's own pool asks."""
        (row,) = await self.gateway.database.fetch_all(
            "SELECT inet_server_addr(), pg_is_in_recovery(), pg_backend_pid(), now()"
        )
        return [*await self.cluster.describe(), f"asked: {row}"]

    async def run(self, fault: str) -> Round:
        """Do the fault under traffic of a new customer; return what it cost."""
        customer = await new_customer(self.gateway.database, self.gateway.settings)
        workers = len(self.gateway.service.started_workers())
        watch = PrimaryWatch(self.cluster)
        watching = asyncio.create_task(watch.run())
        try:
            async with (
                self.gateway.service.client(customer.key) as client,
                steady_traffic(client, MODEL) as traffic,
            ):
                await traffic.serve_more(SERVED_BEFORE)
                since = time.monotonic()
                await FAULTS[fault].run(self.cluster)
                await traffic.serve_more(SERVED_AFTER)
                copied = await self.cluster.wait_until_healthy()
                until = time.monotonic()
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        gaps = list(outages(traffic.answers, since=since, until=until))
        return Round(
            setup=self.setup,
            fault=fault,
            seconds_without_service=round(sum(end - begun for begun, end in gaps), 2),
            seconds_after_promotion=_after_promotion(gaps, watch.promotions),
            statuses=statuses(traffic.answers),
            replaced_workers=len(self.gateway.service.started_workers()) - workers,
            copied_standbys=len(copied),
            is_history_kept=await self.cluster.timeline() >= watch.newest_timeline,
            money=await self.gateway.compare(customer, traffic),
        )


def _after_promotion(gaps: list[tuple[float, float]], promotions: list[Promotion]) -> float | None:
    """Return the longest time from a usable new primary to the end of its outage, if there is one.

    Service may be back before Patroni says that it has a new primary.
    """
    waits = [
        max(0.0, end - promotion.usable_at)
        for begun, end in gaps
        for promotion in promotions
        if begun < promotion.promoted_at < end + NOTICED_SECONDS_MAX
    ]
    return round(max(waits), 2) if waits else None


@asynccontextmanager
async def running_deployment(setup: str, folder: Path) -> AsyncGenerator[Deployment]:
    """Yield a gateway that serves, in front of a healthy cluster."""
    wanted = SETUPS[setup]
    async with running_patroni(
        folder, databases=wanted.databases, is_proxied=wanted.is_proxied
    ) as cluster:
        direct = cluster.url(is_proxied=False)
        url = cluster.url(is_proxied=wanted.is_proxied)
        async with serving(url, folder, administration_url=direct) as gateway:
            yield Deployment(setup=setup, cluster=cluster, gateway=gateway)
