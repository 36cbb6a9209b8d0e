"""Changing many rows without a long transaction: some at a time, each time committed."""

from collections.abc import Awaitable, Callable
from typing import Final

from tollhouse.storage.database import Database, Transaction

ROWS_MAX: Final = 5_000
"""What one transaction takes: some tens of milliseconds, and locks for no longer."""


async def in_batches(
    database: Database, change: Callable[[Transaction, int], Awaitable[int]]
) -> int:
    """Call `change` with the number of rows to touch until it finds fewer; returns their sum."""
    total = 0
    while True:
        async with database.transaction() as tx:
            touched = await change(tx, ROWS_MAX)
        total += touched
        if touched < ROWS_MAX:
            return total
