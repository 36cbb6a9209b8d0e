"""Whether a connection pooler is between, and whether Tollhouse can work through it.

In transaction mode a pooler gives each transaction any server process. Tollhouse needs its
prepared statements there, and settings that otherwise come with the connection.
"""

from enum import StrEnum
from typing import Final

from tollhouse.base.errors import DeploymentError
from tollhouse.storage.database import Database
from tollhouse.storage.errors import StatementFailed

ROLE_SETTINGS: Final = {
    "enable_seqscan": "off",
    "jit": "off",
    "idle_in_transaction_session_timeout": "60s",
}
"""What `SESSION_SETTINGS` has and a pooler does not pass on: the role must have it instead."""

# A duplicate prepared statement, and a missing one.
_NOT_KEPT: Final = frozenset({"42P05", "26000"})


class PoolingMode(StrEnum):
    """What is between Tollhouse and PostgreSQL."""

    DIRECT = "each connection has its own server process"
    TRANSACTION = "a pooler gives each transaction any server process"


class UnfitPooler(DeploymentError):
    """A connection pooler is between that Tollhouse cannot work through."""

    code = "database_pooler"


class StatementsNotKept(UnfitPooler):
    """The pooler loses prepared statements."""

    def __init__(self) -> None:
        super().__init__(
            "A connection pooler loses prepared statements. Use PgBouncer 1.21 or newer with "
            "max_prepared_statements above 0, or set database.prepared_statements = false."
        )


class SettingsNotKept(UnfitPooler):
    """Settings of the session do not reach the server."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(
            f"The setting {name} = {value} does not reach the server: a connection pooler drops "
            f"it. Run ALTER ROLE ... IN DATABASE ... SET {name} = '{value}', and let the pooler "
            "connect again."
        )


async def examine(first: Database, second: Database) -> PoolingMode:
    """Return what is between; raise `UnfitPooler` if it cannot be used.

    While `second` is in a transaction, a pooler gives `first` another server process.
    """
    try:
        for name, value in await missing_settings(first):
            raise SettingsNotKept(name, value)
        before = await _backend(first)
        async with second.transaction() as tx:
            other = await tx.fetch_value("SELECT pg_backend_pid()")
            after = await _backend(first)
            is_shared = before == other or before != after
    except StatementFailed as failure:
        if failure.sqlstate in _NOT_KEPT:
            raise StatementsNotKept from None
        raise
    return PoolingMode.TRANSACTION if is_shared else PoolingMode.DIRECT


async def _backend(database: Database) -> int:
    rows = await database.fetch_all("SELECT pg_backend_pid() AS backend")
    return rows[0]["backend"]


async def missing_settings(database: Database) -> list[tuple[str, str]]:
    """Return the settings of the session that do not reach the server, with their right values."""
    rows = await database.fetch_all(
        """
        SELECT wanted.name, wanted.value
          FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
          JOIN pg_settings USING (name)
         WHERE current_setting(name) NOT IN (value, '1min')
         ORDER BY name
        """,
        list(ROLE_SETTINGS),
        list(ROLE_SETTINGS.values()),
    )
    return [(row["name"], row["value"]) for row in rows]
