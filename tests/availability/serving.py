"""A gateway in front of PostgreSQL servers that fail, and its ledger against what callers know."""

import asyncio
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.availability.results import Money
from tests.availability.traffic import Traffic
from tests.hostile.customers import Customer
from tests.support.deployment import MODEL, TAKES, model
from tests.support.engine import COMMAND
from tests.support.gateway import settings_for
from tests.support.processes import Service, running_service
from tests.support.upstream import upstream_process
from tollhouse.app import connect
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage import migrate
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable

logger = logging.getLogger("tests.availability")

WORKERS = 2
SETTLED_SECONDS_MAX = 90.0
VERIFICATIONS_MAX = 5
UNREACHABLE = b"database_unreachable"
"""A server of a busy machine may not answer within the second that each host has."""
LOOK_EVERY_SECONDS = 0.25

_RESOLVED = """
    SELECT kind, input_tokens, output_tokens
      FROM ledger_entries
     WHERE organization_id = $1 AND phase = 1
"""


@dataclass(frozen=True, kw_only=True)
class ServedDatabase:
    """A running service, and a pool of the test's own beside it."""

    service: Service
    settings: Settings
    database: Database
    configuration: Path

    async def compare(self, customer: Customer, traffic: Traffic) -> Money:
        """Wait until nothing is held; compare what was answered with what was charged."""
        begun = time.monotonic()
        is_settled = await _is_settled_in_time(customer)
        seconds = time.monotonic() - begun
        rows = await self.database.fetch_all(_RESOLVED, customer.org.organization_id)
        charged = Counter[tuple[int, int]](
            (row["input_tokens"], row["output_tokens"]) for row in rows if row["kind"] != "void"
        )
        whole = [answer for answer in traffic.answers if answer.usage is not None]
        answered = Counter(answer.usage for answer in whole if answer.usage is not None)
        return Money(
            answers=len(whole),
            streams=sum(answer.is_stream for answer in whole),
            broken_streams=sum(not answer.is_whole for answer in traffic.answers),
            uncharged=(answered - charged).total(),
            overcharged=(charged - answered).total(),
            seconds_until_settled=round(seconds, 2),
            is_settled=is_settled,
            is_verified=await asyncio.to_thread(self._verify),
        )

    def _verify(self) -> bool:
        """Run `tollhouse ledger verify` as an operator does, again if it reached no server."""
        for _ in range(VERIFICATIONS_MAX):
            verified = subprocess.run(
                [sys.executable, "-c", COMMAND, "ledger", "verify", "--json"],
                env={"TOLLHOUSE_CONFIG": str(self.configuration)},
                check=False,
                capture_output=True,
            )
            if verified.returncode == 0:
                return True
            logger.warning("ledger verify: %s", (verified.stdout + verified.stderr).decode())
            if UNREACHABLE not in verified.stdout + verified.stderr:
                return False
        return False


async def _is_settled(customer: Customer) -> bool:
    """The test's own pool learns only now that its servers have changed."""
    with suppress(DatabaseUnavailable):
        return await customer.is_settled()
    return False


async def _is_settled_in_time(customer: Customer) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            while not await _is_settled(customer):  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(LOOK_EVERY_SECONDS)
        return True
    return False


def _settings(url: str, upstream: str) -> Settings:
    """Return the defaults of a deployment, so that they are what is measured."""
    return msgspec.structs.replace(
        settings_for(url, workers=WORKERS),
        database=DatabaseSettings(url=url),
        backends={"scripted": {"replicas": [upstream], "takes": TAKES}},
        models={MODEL: model()},
    )


@asynccontextmanager
async def serving(
    url: str, folder: Path, *, administration_url: str
) -> AsyncGenerator[ServedDatabase]:
    """Migrate the database and yield a gateway that serves."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(upstream_process())
        settings = _settings(url, upstream)
        await migrate.migrate(administration_url)
        database = await connect(_settings(administration_url, upstream))
        stack.push_async_callback(database.close)
        service = await stack.enter_async_context(running_service(settings, folder))
        yield ServedDatabase(
            service=service,
            settings=settings,
            database=database,
            configuration=folder / "tollhouse.toml",
        )
