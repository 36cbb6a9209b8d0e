"""What a scoped function returns, and what it does to the rows of a tenant and of all others."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, LiteralString, cast

import asyncpg

from tests.tenancy.scoped_functions import ScopedFunction
from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Authority, Database, Row, Transaction

TABLES: LiteralString = """
    SELECT c.relname::text AS name
      FROM pg_class c
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization_id'
     WHERE c.relnamespace = 'public'::regnamespace
       AND c.relkind IN ('r', 'p')
       AND NOT c.relispartition
     ORDER BY 1
"""
# A row that is locked has the transaction in its xmax.
ROWS = """
    SELECT '{table}' AS name,
           count(*) FILTER (WHERE t.{column} <> $1) AS others,
           md5(string_agg(concat_ws(' ', t.tableoid, t.ctid, t.xmin, t.xmax, t), ','
                          ORDER BY t.tableoid, t.ctid) FILTER (WHERE t.{column} = $1)) AS own
      FROM {table} t
"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was returned or raised, which of the tenant's tables were touched, and what others have.

    A table is touched if a row in it is added, changed, removed or locked.
    """

    told: object
    touched: frozenset[str]
    others: dict[str, int]


class _Undone(Exception):
    """Rolls back what a function did."""


async def tenant_columns(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, str]:
    """Return the tables that have tenants, each with the column that says whose a row is."""
    found = await connection.fetch(TABLES)
    return {row["name"]: "organization_id" for row in found} | {"organizations": "id"}


class Observer:
    """Calls functions on a database, and looks at the rows of a tenant before and after."""

    def __init__(
        self, database: Database, tenant_id: OrganizationId, columns: dict[str, str]
    ) -> None:
        self._database = database
        self._tenant_id = tenant_id
        statements = [ROWS.format(table=table, column=name) for table, name in columns.items()]
        self._rows: LiteralString = cast("Any", "UNION ALL".join(statements))
        self._untouched: dict[str, str | None] = {}

    async def outcome(
        self, function: ScopedFunction, arguments: dict[str, Any], authority: Authority
    ) -> Outcome:
        """Call a function. What it does with a transaction is rolled back."""
        if not self._untouched:
            rows = await self._database.fetch_all(self._rows, self._tenant_id)
            self._untouched = {row["name"]: row["own"] for row in rows}
        if function.first is Database:
            outcome = await self._on_database(function, arguments)
        else:
            outcome = await self._in_transaction(function, arguments, authority)
        if outcome.touched:
            self._untouched = {}
        return outcome

    async def _on_database(self, function: ScopedFunction, arguments: dict[str, Any]) -> Outcome:
        async with AsyncExitStack() as entered:
            told = await _told(function, self._database, arguments, entered)
            return self._outcome(told, await self._database.fetch_all(self._rows, self._tenant_id))

    async def _in_transaction(
        self, function: ScopedFunction, arguments: dict[str, Any], authority: Authority
    ) -> Outcome:
        told: object = None
        rows: Sequence[Row] = ()
        with suppress(_Undone):
            async with self._database.mutation(authority) as tx, AsyncExitStack() as entered:
                await tx.execute("SAVEPOINT called")
                told = await _told(function, tx, arguments, entered)
                if isinstance(told, _Raised):
                    await tx.execute("ROLLBACK TO SAVEPOINT called")
                rows = await tx.fetch_all(self._rows, self._tenant_id)
                raise _Undone
        return self._outcome(told, rows)

    def _outcome(self, told: object, rows: Sequence[Row]) -> Outcome:
        return Outcome(
            told=told,
            touched=frozenset(
                row["name"] for row in rows if row["own"] != self._untouched[row["name"]]
            ),
            others={row["name"]: row["others"] for row in rows},
        )


@dataclass(frozen=True)
class _Raised:
    kind: str
    message: str


async def _told(
    function: ScopedFunction,
    first: Transaction | Database,
    arguments: dict[str, Any],
    entered: AsyncExitStack,
) -> object:
    try:
        called = function.call(first, **arguments)
        if hasattr(called, "__aenter__"):
            await entered.enter_async_context(called)
            return None
        return await called
    except Exception as error:  # noqa: BLE001 - every failure is an outcome
        return _Raised(type(error).__name__, str(error))
