"""Changes of many rows in batches, each in a transaction of its own."""

from collections.abc import Awaitable, Callable
from typing import Final

from tollhouse.storage.database import Database, Transaction

ROWS_MAX: Final = 5_000
"""Rows per transaction, which then holds its locks for some tens of milliseconds."""


async def in_batches(
    database: Database, change: Callable[[Transaction, int], Awaitable[int]]
) -> int:
    """Call `change` with the batch size until it changes fewer rows; return their total."""
    total = 0
    while True:
        async with database.transaction() as tx:
            touched = await change(tx, ROWS_MAX)
        total += touched
        if touched < ROWS_MAX:
            return total
