"""One worker in front of test upstreams and a judge, and what an attack may cost it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.hostile.clients import LOOK_EVERY_SECONDS
from tests.hostile.customers import CREDIT, Customer, new_customer
from tests.hostile.memory import MemoryWatch
from tests.hostile.neighbour import FACTOR_MAX, Neighbour, running_neighbour, slowdown
from tests.support import databases
from tests.support.deployment import TAKES, chat, model
from tests.support.engine import COMMAND
from tests.support.gateway import settings_for
from tests.support.judge import ScriptedJudge, running_judge
from tests.support.judged_deployment import judged_by
from tests.support.processes import Service, running_service
from tests.support.upstream import upstream_process
from tollhouse.app import connect
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Mode
from tollhouse.serving.worker import METRICS_SECONDS
from tollhouse.settings import DatabaseSettings, InferenceSettings, Settings
from tollhouse.storage.database import Database

MEGABYTE = 1024 * 1024
SLACK_SECONDS = 2.0
TOTAL_SECONDS = 3.0
STEADY, COUNTED, BILLING, BRIEF, NEAR = "steady", "counted", "billing", "brief", "near"
"""Models: usage in every record; usage at the end only; billed without an answer; short; near."""

SERVER: dict[str, Any] = {
    "write_seconds": 1.0,
    "header_seconds": 1.0,
    "body_seconds": 1.0,
    "keep_alive_seconds": 1.0,
    "body_bytes_max": 8 * MEGABYTE,
    "bodies_bytes_max": 64 * MEGABYTE,
    "admin_requests_per_organization": 2,
    "admin_wait_seconds": 0.2,
}
INFERENCE: dict[str, Any] = {"buffer_worker_bytes": 256 * MEGABYTE}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A running service with one worker."""

    service: Service
    settings: Settings
    configuration: Path
    database: Database
    judge: ScriptedJudge
    neighbour: Neighbour

    @property
    def address(self) -> tuple[str, int]:
        return self.service.address

    @property
    def port(self) -> int:
        return self.service.address[1]

    @property
    def worker(self) -> int:
        """Return the process ID of the one worker, which was never replaced."""
        (pid,) = self.service.started_workers()
        return pid

    async def customer(self, *, credit: PicoUsd = CREDIT, mode: Mode | None = None) -> Customer:
        """Make an organization; with a policy if `mode` says so."""
        return await new_customer(self.database, self.settings, credit=credit, mode=mode)

    async def in_flight(self) -> float:
        """Return how many calls to backends are under way."""
        lines = (await self.service.metrics()).splitlines()
        name = "tollhouse_backend_in_flight{"
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    async def is_idle(self) -> bool:
        """Wait a moment for the calls that are under way; return whether all are over."""
        # Calls that began just now are not in the metrics yet.
        await asyncio.sleep(2 * METRICS_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(SLACK_SECONDS):
                while await self.in_flight():  # noqa: ASYNC110 - nothing announces it
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
        return await self.in_flight() == 0

    @asynccontextmanager
    async def attacked(
        self, record: Callable[[str, object], None], *, budget_bytes: int
    ) -> AsyncGenerator["asyncio.Task[float]"]:
        """Measure the worker's memory and a neighbour inside, and assert their bounds at the end.

        Yields the task that measures the neighbour: an attack that can go on does so until then.
        `budget_bytes` is what the settings allow for what the attack makes the worker hold.
        """
        quiet_ms = await self.neighbour.quiet_p50_ms()
        async with self.watched(record, budget_bytes=budget_bytes) as memory:
            measuring = self.neighbour.start()
            yield measuring
            busy_ms = await measuring
        record("quiet_ms", round(quiet_ms, 2))
        record("busy_ms", round(busy_ms, 2))
        assert slowdown(quiet_ms, busy_ms) <= FACTOR_MAX, (quiet_ms, busy_ms)
        await memory.assert_given_back()

    @asynccontextmanager
    async def watched(
        self, record: Callable[[str, object], None], *, budget_bytes: int
    ) -> AsyncGenerator[MemoryWatch]:
        """Assert that the worker's memory stays within the budget inside."""
        memory = MemoryWatch(self.worker)
        async with memory.watching():
            yield memory
        record("start_megabytes", memory.start_megabytes)
        record("peak_megabytes", memory.peak_megabytes)
        memory.assert_bounded(budget_bytes)

    def verify_ledger(self) -> None:
        """Run `tollhouse ledger verify` as an operator does."""
        verified = subprocess.run(
            [sys.executable, "-c", COMMAND, "ledger", "verify", "--json"],
            env={"TOLLHOUSE_CONFIG": str(self.configuration)},
            check=False,
            capture_output=True,
            text=True,
        )
        assert verified.returncode == 0, verified.stdout + verified.stderr


def hostile_settings(database_url: str, engine: str, near_engine: str) -> Settings:
    """Short times, small budgets, and a model for every way in which usage becomes known."""
    quiet = [name for name in TAKES if name != "continuous_usage_stats"]
    engines: dict[str, dict[str, Any]] = {
        STEADY: {"replicas": [engine], "takes": TAKES},
        COUNTED: {"replicas": [engine], "takes": quiet},
        BILLING: {"replicas": [engine], "takes": quiet, "bills_without_answer": True},
        BRIEF: {"replicas": [engine], "takes": TAKES, "total_seconds": TOTAL_SECONDS},
        NEAR: {"replicas": [near_engine], "takes": TAKES},
    }
    return msgspec.structs.replace(
        settings_for(database_url, **SERVER),
        database=DatabaseSettings(url=database_url),
        inference=msgspec.convert(INFERENCE, InferenceSettings),
        backends=engines,
        models={name: model(backend=name) for name in engines},
    )


@asynccontextmanager
async def running_deployment(
    template: str,
    folder: Path,
    change: Callable[[Settings], Settings] = lambda settings: settings,
) -> AsyncGenerator[Deployment]:
    """Yield a deployment of its own; at its end the ledger is verified and nobody has died."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(databases.temporary(template=template))
        engine = stack.enter_context(upstream_process())
        near_engine = stack.enter_context(upstream_process())
        judge = await stack.enter_async_context(running_judge(ScriptedJudge()))
        settings = judged_by(change(hostile_settings(url, engine, near_engine)), judge.base_url)
        database = await connect(settings)
        stack.push_async_callback(database.close)
        service = await stack.enter_async_context(running_service(settings, folder))
        near = await new_customer(database, settings)
        body = json.dumps(chat("Hello.", max_tokens=8) | {"model": NEAR}).encode()
        deployment = Deployment(
            service=service,
            settings=settings,
            configuration=folder / "tollhouse.toml",
            database=database,
            judge=judge,
            neighbour=await stack.enter_async_context(
                running_neighbour(service.address, near.key, body)
            ),
        )
        yield deployment
        assert deployment.worker
        deployment.verify_ledger()
        assert await service.stop() == 0
