"""Two servers on loopback, replicated synchronously: the primary freezes, the standby takes over.

It needs neither Patroni nor network namespaces, so that it runs everywhere; `test_faults.py` runs
the faults that need them.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.availability.serving import ServedDatabase, serving
from tests.availability.traffic import outages, statuses, steady_traffic
from tests.cli.documents import read, scripts
from tests.hostile.customers import new_customer
from tests.storage.cluster import Cluster, running_cluster, running_standby
from tests.support.deployment import MODEL

SERVED = 30
BACK_SECONDS_MAX = 5.0
WATCH_SECONDS = 5.0
"""The promotion takes no time here, so that the silence has to be noticed after it."""


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A primary that commits nothing without its standby, and the standby."""
    async with running_cluster() as primary:
        await primary.execute("ALTER SYSTEM SET auto_explain.log_min_duration = -1")
        async with running_standby(primary) as standby:
            await primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await primary.execute("SELECT pg_reload_conf()")
            yield primary, standby


@pytest.fixture
async def gateway(pair: tuple[Cluster, Cluster], tmp_path: Path) -> AsyncIterator[ServedDatabase]:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in pair)
    url = f"postgresql://postgres@{hosts}/postgres"
    async with serving(url, tmp_path, administration_url=url) as running:
        yield running


def run_script(script: str, configuration: Path) -> str:
    """Run a script of the guide as an operator does; return all that it shows."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        env={"TOLLHOUSE_CONFIG": str(configuration), "PATH": programs},
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.clock
@pytest.mark.nightly
async def test_a_promoted_standby_serves_within_seconds_and_money_is_exact(
    pair: tuple[Cluster, Cluster], gateway: ServedDatabase
) -> None:
    primary, standby = pair
    customer = await new_customer(gateway.database, gateway.settings)
    with ExitStack() as stack:
        async with (
            gateway.service.client(customer.key) as client,
            steady_traffic(client, MODEL) as traffic,
        ):
            await traffic.serve_more(SERVED)
            stack.enter_context(primary.frozen())
            since = time.monotonic()
            await standby.promote()
            promoted_at = time.monotonic()
            await traffic.serve_more(SERVED)
            until = time.monotonic()
        money = await gateway.compare(customer, traffic)
        script, _ = scripts(read("docs/guides/high-availability.md"))
        shown = await asyncio.to_thread(run_script, script, gateway.configuration)

    (outage,) = outages(traffic.answers, since=since, until=until)
    assert money.is_exact, money
    assert money.streams > 0
    assert outage[1] - max(promoted_at, outage[0]) < BACK_SECONDS_MAX + WATCH_SECONDS
    assert f"127.0.0.1:{primary.port}" not in shown
    assert "Every number follows from its entries" in shown
    assert set(statuses(traffic.answers)) <= {"200", "503 service_unavailable"}
