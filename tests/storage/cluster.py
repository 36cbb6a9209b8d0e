"""A PostgreSQL server of a test's own, which it may stop, kill and read the log of."""

import asyncio
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from tests.support.certificates import Certificates

DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")
SERVER_ACCOUNT = "postgres"
START_SECONDS_MAX = 120.0

CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
shared_buffers = 16MB
max_connections = 40
session_preload_libraries = 'auto_explain'
auto_explain.log_min_duration = 0
auto_explain.log_format = 'text'
log_line_prefix = '%a '
"""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One server. Every plan that it made stands in its log."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://{SERVER_ACCOUNT}@127.0.0.1:{self.port}/postgres"

    async def start(self) -> None:
        """Returns when it accepts connections."""
        await self._control("start", "-w", "-l", str(self.folder / "log"))

    async def kill(self) -> None:
        """As a crash: nothing is written, and the next start has to recover."""
        await self._control("stop", "-m", "immediate")

    async def promote(self) -> None:
        """Make a standby the primary; returns when it is."""
        await self._control("promote", "-w")

    async def execute(self, statement: str) -> None:
        """Run a statement outside any transaction."""
        connection = await asyncpg.connect(self.url)
        await connection.execute(statement)
        await connection.close()

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Stop all processes of the server for the block, as a machine that stands still does."""
        pids = self._processes()
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The postmaster first, so that it starts nothing meanwhile, and its children."""
        postmaster = (
            (self.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0]
        )
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text(
            encoding="utf-8"
        )
        return [int(postmaster), *map(int, children.split())]

    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    async def _control(self, verb: str, *options: str) -> None:
        await _run("pg_ctl", verb, "-D", str(self.folder / "data"), *options)


@asynccontextmanager
async def running_cluster(tls: Certificates | None = None) -> AsyncGenerator[Cluster]:
    """Yields a fresh server that accepts connections; it is gone afterwards."""
    async with _stopped_at_the_end() as cluster:
        data = cluster.folder / "data"
        await _run("initdb", "-D", str(data), "-U", SERVER_ACCOUNT, "-A", "trust", "--no-sync")
        with (data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            configuration.write(f"{CONFIGURATION}port = {cluster.port}\n")
            configuration.write("ssl = on\n" if tls else "")
        if tls:
            _give(tls.certificate, data / "server.crt")
            _give(tls.key, data / "server.key")
        await cluster.start()
        yield cluster


@asynccontextmanager
async def running_standby(primary: Cluster) -> AsyncGenerator[Cluster]:
    """Yields a streaming standby of the server; it is gone afterwards."""
    async with _stopped_at_the_end() as standby:
        data = standby.folder / "data"
        name = f"standby_{standby.port}"
        source = f"{primary.url}?application_name={name}"
        await _run("pg_basebackup", "-D", str(data), "-d", source, "-R", "-c", "fast", "--no-sync")
        with (data / "postgresql.conf").open("a", encoding="utf-8") as configuration:
            configuration.write(f"port = {standby.port}\n")
        await standby.start()
        yield standby


@asynccontextmanager
async def _stopped_at_the_end() -> AsyncGenerator[Cluster]:
    # Not below pytest's folder, into which the server's account cannot look.
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-cluster-"))
    if os.geteuid() == 0:
        shutil.chown(folder, SERVER_ACCOUNT)
    cluster = Cluster(folder=folder, port=_free_port())
    try:
        yield cluster
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            await cluster.kill()
        shutil.rmtree(folder)


def _give(source: Path, place: Path) -> None:
    """Copy a file that the server's account alone may read, as it demands of its key."""
    place.touch(mode=0o600)
    place.write_bytes(source.read_bytes())
    if os.geteuid() == 0:
        shutil.chown(place, SERVER_ACCOUNT)


async def _run(program: str, *arguments: str) -> None:
    """Run one of the server's programs; it refuses to be run by root."""
    account = ("runuser", "-u", SERVER_ACCOUNT, "--") if os.geteuid() == 0 else ()
    process = await asyncio.create_subprocess_exec(
        *account,
        _path(program),
        *arguments,
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(START_SECONDS_MAX):
        assert await process.wait() == 0, f"{program} {' '.join(arguments)}"


def _path(program: str) -> str:
    """Debian keeps them out of the PATH, one folder per version."""
    found = shutil.which(program) or next(iter(DEBIAN_PROGRAMS.glob(f"*/bin/{program}")), None)
    assert found is not None, f"{program} is not installed"
    return str(found)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
