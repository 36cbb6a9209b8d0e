"""Two cells for drills, each with a database server and gateway processes of its own."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from bench.support import processes
from tests.cli.commands import free_port
from tests.faults.server import own_server
from tests.storage.cluster import Cluster
from tests.support.deployment import CREDIT, offering
from tests.support.gateway import settings_for
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tests.support.processes import REPOSITORY, Service, running_service
from tollhouse.app import connect
from tollhouse.base.ids import GrantId, OrganizationId, time_ordered_uuid
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import GrantKind
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

KILLED = -signal.SIGKILL


@dataclass
class Cell:
    """One complete deployment that can be killed and restored."""

    name: str
    settings: Settings
    cluster: Cluster
    folder: Path
    database: Database
    service: Service | None = None
    _serving: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def port(self) -> int:
        return self.settings.server.port

    async def start(self) -> None:
        """Start the gateway on the port that the proxy knows."""
        self.service = await self._serving.enter_async_context(
            running_service(self.settings, self.folder)
        )

    async def kill(self) -> None:
        """Kill every process of the gateway, then the database."""
        assert self.service is not None
        supervisor = self.service.process.pid
        for pid in (supervisor, *processes.children(supervisor)):
            os.kill(pid, signal.SIGKILL)
        await self._serving.aclose()
        await self.cluster.kill()

    async def restore(self) -> None:
        await self.cluster.start()
        await self.start()

    async def close(self) -> None:
        await self._serving.aclose()
        await self.database.close()

    async def command(self, *arguments: str, kill_at: str | None = None) -> tuple[int, str]:
        """Run a command of the operator, and kill it when it announces a step.

        The last step of a command may end before the kill arrives, which is a case as well.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tollhouse.cli.main"),
            *("--config", str(self.folder / "tollhouse.toml"), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # With compiled files, as an installed command has them: a freeze waits for it to start.
            env={
                **os.environ,
                "PYTHONPATH": str(REPOSITORY / "src"),
            },
        )
        assert process.stderr is not None
        said: list[str] = []
        async for line in process.stderr:
            said.append(line.decode())
            if kill_at is not None and line.decode().strip() == f"step: {kill_at}":
                process.kill()
        assert process.stdout is not None
        shown = (await process.stdout.read()).decode()
        code = await process.wait()
        assert code in ((KILLED, 0) if kill_at else (0,)), "".join(said)
        return code, shown


@dataclass(frozen=True)
class CellCustomer:
    """An organization of a cell, and its key."""

    organization_id: OrganizationId
    key: str


async def customer(cell: Cell, name: str) -> CellCustomer:
    org: OrganizationFixture = await new_organization_fixture(cell.database, name, cell=cell.name)
    async with cell.database.mutation(org.authority()) as tx:
        await ledger.grant(
            tx,
            grant_id=GrantId(time_ordered_uuid()),
            kind=GrantKind.PROMOTIONAL,
            amount=CREDIT,
            reason="to be spent",
        )
    key = await org.project_key(await org.project())
    await org.admin_key()
    return CellCustomer(org.organization_id, key.value)


@asynccontextmanager
async def two_cells(folder: Path, upstreams: Sequence[str]) -> AsyncGenerator[tuple[Cell, Cell]]:
    """The cells eu1 and us1, which share no secret."""
    async with AsyncExitStack() as stack:
        opened: list[Cell] = []
        for name in ("eu1", "us1"):
            cluster = await stack.enter_async_context(own_server())
            settings = offering(settings_for(cluster.url, port=free_port()), *upstreams)
            settings = replace(settings, keys=replace(settings.keys, cell=name))
            (folder / name).mkdir()
            cell = Cell(name, settings, cluster, folder / name, await connect(settings))
            stack.push_async_callback(cell.close)
            await cell.start()
            opened.append(cell)
        yield opened[0], opened[1]
