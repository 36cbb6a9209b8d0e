"""A database that explains every statement before it runs it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, LiteralString, Self

import msgspec

from tollhouse.storage.database import Database, Row, Transaction

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# A partition that is opened is locked until the transaction ends.
_PARTITIONS: Final = """
    SELECT count(DISTINCT c.oid)
      FROM pg_locks l
      JOIN pg_class c ON c.oid = l.relation
     WHERE l.pid = pg_backend_pid()
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND c.relkind = 'r'
       AND c.relname ~ '_[0-9]{8}$'
"""
_ROWS_READ: Final = """
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
      FROM pg_stat_xact_user_tables
"""


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What one execution touched: pages of tables and indexes, rows, daily partitions."""

    buffers: int
    rows_read: int
    partitions: int
    milliseconds: float


class ExplainingTransaction(Transaction):
    """Explains a statement in a savepoint that it rolls back, then runs it."""

    def __init__(
        self,
        connection: "PoolConnectionProxy[Row]",
        names: dict[str, str],
        explained: list[Explained],
    ) -> None:
        super().__init__(connection)
        self._names = names
        self._explained = explained

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> list[Row]:
        """Explain, then return all rows."""
        await self._explain(sql, arguments)
        return await super().fetch_all(sql, *arguments)

    async def execute(self, sql: LiteralString, *arguments: object) -> int:
        """Explain, then run."""
        await self._explain(sql, arguments)
        return await super().execute(sql, *arguments)

    async def _explain(self, sql: str, arguments: Sequence[object]) -> None:
        """Explain by `EXECUTE`, whose plan becomes generic as that of the driver does."""
        name, values = await self._prepared(sql, arguments)
        before = await self._connection.fetchval(_ROWS_READ)
        savepoint = self._connection.transaction()
        await savepoint.start()
        try:
            text = await self._connection.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}({values})"
            )
            partitions = await self._connection.fetchval(_PARTITIONS)
        finally:
            await savepoint.rollback()
        [told] = msgspec.json.decode(text)
        self._explained.append(
            Explained(
                buffers=_buffers(told["Plan"]) + _buffers(told.get("Planning", {})),
                rows_read=await self._connection.fetchval(_ROWS_READ) - before,
                partitions=partitions,
                milliseconds=told["Planning Time"] + told["Execution Time"],
            )
        )

    async def _prepared(self, sql: str, arguments: Sequence[object]) -> tuple[str, str]:
        """Return the name of the prepared statement and its arguments as literals."""
        statement = await self._connection.prepare(sql)
        types = [each.name for each in statement.get_parameters()]
        if sql not in self._names:
            self._names[sql] = f"explained_{len(self._names)}"
            await self._connection.execute(f"PREPARE {self._names[sql]} AS {sql}")
        columns = ", ".join(
            f"quote_nullable(${number}::{each}::text)" for number, each in enumerate(types, 1)
        )
        literals = await self._connection.fetchrow(f"SELECT {columns}", *arguments)
        assert literals is not None
        return self._names[sql], ", ".join(literals.values())


class ExplainingDatabase(Database):
    """A pool of one connection, so that every statement meets the plan of its earlier calls."""

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect as a worker does."""
        database = await cls.connect(url, pool_size=1, acquire_seconds=5, statement_seconds=60)
        database.names = {}
        database.explained = []
        return database

    names: dict[str, str]
    explained: list[Explained]

    @asynccontextmanager
    async def transaction(
        self, *, statement_seconds: float | None = None
    ) -> AsyncGenerator[Transaction]:
        """Begin a transaction whose statements are explained."""
        assert statement_seconds is None
        async with self._begun() as connection:
            yield ExplainingTransaction(connection, self.names, self.explained)

    async def fetch_all(self, sql: LiteralString, *arguments: object) -> Sequence[Row]:
        """Explain, then return all rows."""
        async with self.transaction() as tx:
            return await tx.fetch_all(sql, *arguments)


def _buffers(node: dict[str, int]) -> int:
    return node.get("Shared Hit Blocks", 0) + node.get("Shared Read Blocks", 0)
