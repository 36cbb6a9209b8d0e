"""A database server of the test's own, and deaths for it."""

import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from tests.identity.waiting import until
from tests.storage.cluster import Cluster, running_cluster
from tollhouse.storage import migrate
from tollhouse.storage.database import Database
from tollhouse.storage.errors import DatabaseUnavailable


@asynccontextmanager
async def own_server() -> AsyncGenerator[Cluster]:
    """Yields a server at the newest schema, which does not write down its plans."""
    async with running_cluster() as cluster:
        connection = await asyncpg.connect(cluster.url)
        await connection.execute("ALTER SYSTEM SET auto_explain.log_min_duration = -1")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
        await migrate.migrate(cluster.url)
        yield cluster


async def backends(cluster: Cluster, database: Database) -> Sequence[int]:
    """The server's processes that serve workers now; those amid a statement come first."""
    try:
        rows = await database.fetch_all(
            """
            SELECT pid FROM pg_stat_activity
             WHERE application_name = 'tollhouse' AND pid <> pg_backend_pid()
             ORDER BY state = 'active' DESC, pid
            """
        )
    except DatabaseUnavailable:
        return []
    return [row["pid"] for row in rows if _is_of(cluster, row["pid"])]


async def kill_a_backend(cluster: Cluster, database: Database) -> None:
    """Returns when all others have died with it; the server then recovers by itself."""
    doomed: list[int] = []

    async def is_killed() -> bool:
        doomed[:] = await backends(cluster, database)
        with suppress(ProcessLookupError):
            for pid in doomed[:1]:
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    async def is_over() -> bool:
        return not any(_is_of(cluster, pid) for pid in doomed)

    await until(is_killed)
    await until(is_over)


def _is_of(cluster: Cluster, pid: int) -> bool:
    """A process that ended meanwhile may have left its number to a stranger."""
    server = (cluster.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0]
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return f"\nPPid:\t{server}\n" in status
