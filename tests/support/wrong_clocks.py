"""Processes whose machine's clock is wrong, and a database whose clock a test moves."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg

from tests.support.processes import REPOSITORY

SOURCE = Path(__file__).with_name("wrong_clock.c")
LIBRARY = REPOSITORY / "build" / "wrong_clock.so"
SECONDS = "CLOCK_AHEAD_SECONDS"


def wrong_clock(ahead: timedelta) -> dict[str, str]:
    """Return the variables of a process whose wall clock is ahead of this one's.

    Its monotonic clock stays right, as that of a machine whose clock is set wrong does.
    """
    moved = int(os.environ.get(SECONDS, "0"))
    return {
        "LD_PRELOAD": os.environ.get("LD_PRELOAD") or str(_library()),
        SECONDS: str(moved + round(ahead.total_seconds())),
    }


def own_clock() -> dict[str, str]:
    """Return the variables that give this process's clock to one that inherits no others."""
    names = {"LD_PRELOAD", SECONDS, "TZ"} & os.environ.keys()
    return {name: os.environ[name] for name in names}


def _library() -> Path:
    LIBRARY.parent.mkdir(exist_ok=True)
    built = LIBRARY.with_suffix(f".{os.getpid()}")
    command = ("cc", "-O2", "-Wall", "-Werror", "-fPIC", "-shared", "-o", built, SOURCE)
    subprocess.run(command, check=True)
    return built.replace(LIBRARY)


def environment_with(ahead: timedelta) -> dict[str, str]:
    """Return the environment of this process with a wrong clock."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), **wrong_clock(ahead)}


class MovedClock:
    """The clock of a database: a function that is found before the server's.

    It runs beside the server's clock, or stands still.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def install(self) -> None:
        connection = await asyncpg.connect(self._url)
        await connection.execute("CREATE SCHEMA moved_clock")
        await connection.execute(
            "CREATE TABLE moved_clock.moved (ahead interval, held timestamptz)"
        )
        await connection.execute("INSERT INTO moved_clock.moved VALUES ('0', NULL)")
        await connection.execute(
            "CREATE FUNCTION moved_clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS"
            " 'SELECT coalesce(held, pg_catalog.clock_timestamp() + ahead) FROM moved_clock.moved'"
        )
        name = await connection.fetchval("SELECT current_database()")
        # The table of the clock has no index, so that plans without scans seem worth compiling.
        await connection.execute(f'ALTER DATABASE "{name}" SET jit = off')
        await connection.execute(
            f'ALTER DATABASE "{name}" SET search_path = moved_clock, pg_catalog, public'
        )
        await connection.close()

    async def set(self, at: datetime) -> None:
        """Set the clock, which goes on from there."""
        ahead = at - datetime.now(UTC)
        await self._execute("UPDATE moved_clock.moved SET ahead = $1, held = NULL", ahead)

    async def hold(self, at: datetime) -> None:
        """Set the clock, which stands still from then on."""
        await self._execute("UPDATE moved_clock.moved SET held = $1", at)

    async def advance(self, by: timedelta) -> None:
        await self._execute("UPDATE moved_clock.moved SET ahead = ahead + $1", by)

    async def now(self) -> datetime:
        connection = await asyncpg.connect(self._url)
        now: datetime = await connection.fetchval("SELECT clock_timestamp()")
        await connection.close()
        return now

    async def _execute(self, statement: str, argument: datetime | timedelta) -> None:
        connection = await asyncpg.connect(self._url)
        await connection.execute(statement, argument)
        await connection.close()
