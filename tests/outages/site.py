"""Three workers, and the providers of some cells: a sick one and a healthy one for each."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.hostile.customers import Customer, new_customer
from tests.outages.cells import FAULTS, STEADY, Cell
from tests.outages.traffic import CallerAnswer, Callers, CallJournal
from tests.support import databases
from tests.support.gateway import settings_for
from tests.support.processes import Service, running_service
from tests.support.redis_groups import free_ports
from tests.support.upstream import running_upstream
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.base.money import PicoUsd
from tollhouse.settings import DatabaseSettings, Settings
from tollhouse.storage.database import Database

WORKERS: Final = 3
CREDIT: Final = PicoUsd(10_000 * 10**12)
QUIET_SECONDS: Final = 2.0
"""All is well for so long, before the fault and after the last answer."""
RECOVERY_SECONDS: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class CellRun:
    """What happened in one cell. Times count from the beginning of the fault."""

    cell: Cell
    fault_seconds: float
    answers: Sequence[CallerAnswer]
    sick_calls: Sequence[tuple[float, int]]
    well_calls: Sequence[tuple[float, int]]

    @property
    def during(self) -> list[CallerAnswer]:
        """The calls that began while the fault lasted."""
        return [one for one in self.answers if 0 <= one.at_seconds < self.fault_seconds]

    def answered_share(self, *, from_seconds: float = 0.0) -> float:
        """Return the share of the calls from an instant on that were answered."""
        answered = [one.is_answered for one in self.during if one.at_seconds >= from_seconds]
        return sum(answered) / max(len(answered), 1)

    def sick_share(self, *, from_seconds: float) -> float:
        """Return the calls to the sick provider, as a share of all calls of that time."""
        calls = [at for at, _ in self.sick_calls if from_seconds <= at < self.fault_seconds]
        callers = [one for one in self.during if one.at_seconds >= from_seconds]
        return len(calls) / max(len(callers), 1)

    @property
    def back_after_seconds(self) -> float | None:
        """When the recovered provider had its third call in a second, since its recovery."""
        after = [at - self.fault_seconds for at, _ in self.sick_calls if at >= self.fault_seconds]
        pairs = zip(after, after[2:], strict=False)
        return next((third for first, third in pairs if third - first <= 1), None)


@dataclass(kw_only=True)
class _Provider:
    cell: Cell
    sick: ScriptedUpstream
    well: ScriptedUpstream
    closed_port: int

    @property
    def sick_url(self) -> str:
        url = FAULTS[self.cell.fault].url
        if url is None:
            return self.sick.base_url
        return url.format(closed_port=self.closed_port, open_port=self.sick.port)

    def break_down(self) -> None:
        script = FAULTS[self.cell.fault].script
        if script is not None:
            self.sick.scripts.clear()
            self.sick.queue(msgspec.convert(script, UpstreamScript), times=None)

    async def recover(self) -> None:
        self.sick.scripts.clear()
        self.sick.queue(msgspec.convert(STEADY, UpstreamScript), times=None)
        if FAULTS[self.cell.fault].url is not None:
            await self.sick.stop()
            await self.sick.start(self.closed_port)


@asynccontextmanager
async def _provider(cell: Cell, port: int) -> AsyncGenerator[_Provider]:
    async with running_upstream() as sick, running_upstream() as well:
        for each in (sick, well):
            each.seen = CallJournal()
            each.queue(msgspec.convert(STEADY, UpstreamScript), times=None)
        yield _Provider(cell=cell, sick=sick, well=well, closed_port=port)


@dataclass(frozen=True, kw_only=True)
class Site:
    """A running service with its customer."""

    service: Service
    settings: Settings
    configuration: Path
    database: Database
    customer: Customer
    providers: Sequence[_Provider]

    async def run(self, fault_seconds: float) -> list[CellRun]:
        """Let all cells suffer their fault at the same time, and recover."""
        return await asyncio.gather(*(self._run(each, fault_seconds) for each in self.providers))

    async def _run(self, provider: _Provider, fault_seconds: float) -> CellRun:
        callers = Callers(cell=provider.cell, service=self.service, key=self.customer.key)
        began = time.monotonic() + QUIET_SECONDS
        loop = asyncio.get_running_loop()
        loop.call_later(QUIET_SECONDS, provider.break_down)

        async def recover() -> None:
            await asyncio.sleep(QUIET_SECONDS + fault_seconds)
            await provider.recover()

        seconds = QUIET_SECONDS + fault_seconds + RECOVERY_SECONDS
        await asyncio.gather(callers.call_for(seconds, began=began), recover())
        journals = [each.seen for each in (provider.sick, provider.well)]
        sick, well = (
            [(at - began, number) for at, number in journal.calls]
            for journal in journals
            if isinstance(journal, CallJournal)
        )
        return CellRun(
            cell=provider.cell,
            fault_seconds=fault_seconds,
            answers=callers.answers,
            sick_calls=sick,
            well_calls=well,
        )


def _settings(database_url: str, providers: Sequence[_Provider]) -> Settings:
    backends: dict[str, Any] = {}
    models: dict[str, Any] = {}
    for each in providers:
        backends |= each.cell.backends(each.sick_url, each.well.base_url)
        models |= each.cell.models()
    return msgspec.structs.replace(
        settings_for(database_url, workers=WORKERS),
        database=DatabaseSettings(url=database_url, pool_size=4, admin_pool_size=2),
        backends=backends,
        models=models,
    )


@asynccontextmanager
async def running_site(template: str, folder: Path, cells: Sequence[Cell]) -> AsyncGenerator[Site]:
    """Yield a service that is ready, with the models of these cells."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(databases.temporary(template=template))
        providers = [
            await stack.enter_async_context(_provider(cell, port))
            for cell, port in zip(cells, free_ports(len(cells)), strict=True)
        ]
        settings = _settings(url, providers)
        database = await connect(settings)
        stack.push_async_callback(database.close)
        service = await stack.enter_async_context(
            running_service(settings, folder, environment=dict(os.environ))
        )
        yield Site(
            service=service,
            settings=settings,
            configuration=folder / "tollhouse.toml",
            database=database,
            customer=await new_customer(database, settings, credit=CREDIT),
            providers=providers,
        )
