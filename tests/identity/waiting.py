"""Making a moment last: locks that a test holds, and waiting for what nobody announces."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

WAIT_SECONDS_MAX = 120.0
ASK_EVERY_SECONDS = 0.02


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again: a file, a counter and another process have no event."""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while not await holds():  # noqa: ASYNC110 - see above
            await asyncio.sleep(ASK_EVERY_SECONDS)


async def until_a_lock_is_awaited(url: str) -> None:
    """Until some statement in this database waits for a lock."""
    connection = await asyncpg.connect(url)

    async def is_awaited() -> bool:
        waiting = await connection.fetchval(
            """
            SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        )
        return waiting > 0

    try:
        await until(is_awaited)
    finally:
        await connection.close()


@asynccontextmanager
async def holding(url: str, statement: str, *arguments: object) -> AsyncGenerator[None]:
    """What the statement locks stays locked inside; nothing that it did remains."""
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(statement, *arguments)
        try:
            yield
        finally:
            await transaction.rollback()
    finally:
        await connection.close()
